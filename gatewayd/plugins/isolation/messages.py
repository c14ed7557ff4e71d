"""How the gateway and the process of a plugin write what they say to each other.

A message is a frame of `gatewayd.workers`: a short header, and JSON followed by `attached` raw bytes. What a
process sends may be anything: it is bounded here, and decoded in slices.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.json_decoder import JsonLimits, decode
from gatewayd.json_encoder import encode
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError
from gatewayd.text import MAX_STORED_DEPTH

MAX_MESSAGE_BYTES: Final = 16 << 20
"""Of what a process sends at a time."""
MAX_QUESTION_ANSWER_BYTES: Final = 64 << 20
"""Of what a process is answered."""
MAX_HEADER_BYTES: Final = 64 << 10
MAX_ERROR_CHARACTERS: Final = 8_192
MAX_NAME_CHARACTERS: Final = 200
MAX_NAMES: Final = 8
MAX_REFUSAL_CHARACTERS: Final = 2_000
LIMITS: Final = JsonLimits(
    containers=250_000, values=1_000_000, depth=MAX_STORED_DEPTH, has_exact_integers=False
)
"""Of the JSON that a process sends."""

EXCEPTIONS: Final[Mapping[str, type[Exception]]] = {
    one.__name__: one for one in (TimeoutError, RuntimeError, ValueError, TypeError, LookupError)
}
"""What the gateway raises in plugins beside its own errors; a call raises the first two."""
SPENT_FIELD: Final = "spent"
"""What the header of an answer has when the memory of the process is used up."""
LOGGED_FIELDS: Final = ("plugin", "family", "doing", "error", "line", "hook", "text", "what")
"""The fields of a line of the log that the gateway is told."""

Headers = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PipeData:
    """A value of JSON, and bytes beside it."""

    value: Any = None
    attachment: bytes = b""


async def pack(payload: PipeData) -> tuple[Headers, bytes]:
    """Return what the header and the rest of a message have of a payload, made in slices.

    What is no JSON is written as its text: the gateway's own mappings, paths and the like.
    """
    try:
        parts = await encode(payload.value)
    except TypeError:
        parts = [orjson.dumps(payload.value, default=_plain, option=orjson.OPT_NON_STR_KEYS)]
    return {"attached": len(payload.attachment)}, b"".join([*parts, payload.attachment])


def pack_at_once(payload: PipeData) -> tuple[Headers, bytes]:
    """Return the same in the process of the plugin; TypeError for what is no JSON."""
    text = json_at_once(payload, MAX_MESSAGE_BYTES - MAX_HEADER_BYTES)
    return {"attached": len(payload.attachment)}, text + payload.attachment


def json_at_once(payload: PipeData, most: int) -> bytes:
    """Return the JSON of a payload; TypeError for what is none, ValueError for more than `most` bytes."""
    text = orjson.dumps(payload.value)
    size = len(text) + len(payload.attachment)
    if size > most:
        raise ValueError(
            f"what it gives has {size} bytes, more than the {MAX_MESSAGE_BYTES} that may leave its process"
        )
    return text


async def unpack(header: Mapping[str, Any], blob: bytes) -> PipeData:
    """Return the payload of a message of a process; ValueError for what is none."""
    text, attachment = _divided(header, blob)
    try:
        return PipeData(await decode(text, LIMITS) if text else None, attachment)
    except GatewayError as error:
        raise ValueError(error.message) from None


def unpack_at_once(header: Mapping[str, Any], blob: bytes) -> PipeData:
    """Return the payload of a message of the gateway."""
    text, attachment = _divided(header, blob)
    return PipeData(orjson.loads(text) if text else None, attachment)


def render_failure(failure: PluginError) -> Headers:
    """Return what the header of an answer says of a failure."""
    failed = failure.failed
    return {
        "failed": {
            "text": failed.text[:MAX_ERROR_CHARACTERS],
            "exception": failed.exception[:MAX_NAME_CHARACTERS],
            "status": failed.status,
            "line": failed.line,
            "code": failed.code,
            "retry_after": failed.retry_after,
            "names": [name[:MAX_NAME_CHARACTERS] for name in failed.names[:MAX_NAMES]],
            "kind": failure.kind.value,
        }
    }


def read_failure_details(told: Any) -> tuple[FailureDetails, ErrorKind]:
    """Return the failure in a header; ValueError, TypeError or LookupError for what is none."""
    failed = FailureDetails(
        text=_text(told["text"]),
        exception=_text(told["exception"]),
        status=_number(told["status"]),
        line=_number(told["line"]),
        code=None if told["code"] is None else _text(told["code"]),
        retry_after=_number(told["retry_after"]),
        names=tuple(_text(name) for name in told["names"][:MAX_NAMES]),
    )
    return failed, ErrorKind(told["kind"])


def render_error(error: GatewayError) -> Headers:
    """Return what the header of an answer says of an error of the gateway."""
    message = error.message[:MAX_REFUSAL_CHARACTERS]
    return {"error": {"kind": error.kind.value, "message": message, "param": error.param, "code": error.code}}


def render_exception(error: Exception) -> Headers | None:
    """Return what the header of an answer says of an exception that plugins know, None for another one."""
    name = next((base.__name__ for base in type(error).__mro__ if base.__name__ in EXCEPTIONS), None)
    return None if name is None else {"raised": name, "text": str(error)[:MAX_REFUSAL_CHARACTERS]}


def read_exception(header: Mapping[str, Any]) -> Exception | None:
    """Return the exception in a header of the gateway, None when it has none."""
    if "raised" in header:
        return EXCEPTIONS[header["raised"]](header["text"])
    return read_error(header["error"]) if "error" in header else None


def read_error(told: Mapping[str, Any]) -> GatewayError:
    """Return the error in a header of the gateway."""
    return GatewayError(ErrorKind(told["kind"]), told["message"], param=told["param"], code=told["code"])


def _divided(header: Mapping[str, Any], blob: bytes) -> tuple[bytes, bytes]:
    attached = header.get("attached", 0)
    if not isinstance(attached, int) or not 0 <= attached <= len(blob):
        raise ValueError("a message has fewer bytes than it says")
    end = len(blob) - attached
    return blob[:end], blob[end:]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value[:MAX_ERROR_CHARACTERS]


def _number(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError("a number is expected")
    return value


def _plain(value: Any) -> Any:
    """Return what stands for a value that is no JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set | tuple):
        return list(value)
    return str(value)
