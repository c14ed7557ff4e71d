"""Encoding of the messages between the gateway and a plugin process.

A message is a frame of `gatewayd.workers`: a short header, and JSON followed by `attached` raw bytes. A
process is not trusted: its messages are limited in size and decoded in slices.
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
"""Maximum size of a message of a process."""
MAX_QUESTION_ANSWER_BYTES: Final = 64 << 20
"""Maximum size of the answer to a host call."""
MAX_HEADER_BYTES: Final = 64 << 10
MAX_ERROR_CHARACTERS: Final = 8_192
MAX_NAME_CHARACTERS: Final = 200
MAX_NAMES: Final = 8
MAX_REFUSAL_CHARACTERS: Final = 2_000
LIMITS: Final = JsonLimits(
    containers=250_000, values=1_000_000, depth=MAX_STORED_DEPTH, has_exact_integers=False
)
"""Limits of the JSON that a process sends."""

EXCEPTIONS: Final[Mapping[str, type[Exception]]] = {
    one.__name__: one for one in (TimeoutError, RuntimeError, ValueError, TypeError, LookupError)
}
"""Exceptions other than GatewayError that host calls raise; `__event_call__` raises the first two."""
SPENT_FIELD: Final = "spent"
"""Header field of an answer when the memory of the process is used up."""
LOGGED_FIELDS: Final = ("plugin", "family", "doing", "error", "line", "hook", "text", "what")
"""Fields of a log line that are sent to the gateway."""

Headers = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PipeData:
    """A JSON value with attached bytes."""

    value: Any = None
    attachment: bytes = b""


async def pack(payload: PipeData) -> tuple[Headers, bytes]:
    """Return the header fields and the bytes of a payload, encoded in slices.

    Mappings become objects, sets and tuples become lists, other values that are not JSON become text.
    """
    try:
        parts = await encode(payload.value)
    except TypeError:
        parts = [orjson.dumps(payload.value, default=_plain, option=orjson.OPT_NON_STR_KEYS)]
    return {"attached": len(payload.attachment)}, b"".join([*parts, payload.attachment])


def pack_at_once(payload: PipeData) -> tuple[Headers, bytes]:
    """Return the same without slices, for the plugin process; TypeError for a value that is not JSON."""
    text = json_at_once(payload, MAX_MESSAGE_BYTES - MAX_HEADER_BYTES)
    return {"attached": len(payload.attachment)}, text + payload.attachment


def json_at_once(payload: PipeData, most: int) -> bytes:
    """Return the JSON of a payload; TypeError if it is not JSON, ValueError above `most` bytes."""
    text = orjson.dumps(payload.value)
    size = len(text) + len(payload.attachment)
    if size > most:
        raise ValueError(
            f"its result has {size} bytes, more than the {MAX_MESSAGE_BYTES} that its process may send"
        )
    return text


async def unpack(header: Mapping[str, Any], blob: bytes) -> PipeData:
    """Return the payload of a message of a process; ValueError for an invalid one."""
    text, attachment = _split(header, blob)
    try:
        return PipeData(await decode(text, LIMITS) if text else None, attachment)
    except GatewayError as error:
        raise ValueError(error.message) from None


def unpack_at_once(header: Mapping[str, Any], blob: bytes) -> PipeData:
    """Return the payload of a message of the gateway."""
    text, attachment = _split(header, blob)
    return PipeData(orjson.loads(text) if text else None, attachment)


def render_failure(failure: PluginError) -> Headers:
    """Return the header fields of a failure."""
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


def read_failure_details(fields: Any) -> tuple[FailureDetails, ErrorKind]:
    """Return the failure of header fields; ValueError, TypeError or LookupError for invalid ones."""
    failed = FailureDetails(
        text=_text(fields["text"]),
        exception=_text(fields["exception"]),
        status=_number(fields["status"]),
        line=_number(fields["line"]),
        code=None if fields["code"] is None else _text(fields["code"]),
        retry_after=_number(fields["retry_after"]),
        names=tuple(_text(name) for name in fields["names"][:MAX_NAMES]),
    )
    return failed, ErrorKind(fields["kind"])


def render_error(error: GatewayError) -> Headers:
    """Return the header fields of an error of the gateway."""
    message = error.message[:MAX_REFUSAL_CHARACTERS]
    return {"error": {"kind": error.kind.value, "message": message, "param": error.param, "code": error.code}}


def render_exception(error: Exception) -> Headers | None:
    """Return the header fields of one of EXCEPTIONS; None for any other exception."""
    name = next((base.__name__ for base in type(error).__mro__ if base.__name__ in EXCEPTIONS), None)
    return None if name is None else {"raised": name, "text": str(error)[:MAX_REFUSAL_CHARACTERS]}


def read_exception(header: Mapping[str, Any]) -> Exception | None:
    """Return the exception of a header of the gateway; None without one."""
    if "raised" in header:
        return EXCEPTIONS[header["raised"]](header["text"])
    return read_error(header["error"]) if "error" in header else None


def read_error(fields: Mapping[str, Any]) -> GatewayError:
    """Return the error of header fields of the gateway."""
    return GatewayError(
        ErrorKind(fields["kind"]), fields["message"], param=fields["param"], code=fields["code"]
    )


def _split(header: Mapping[str, Any], blob: bytes) -> tuple[bytes, bytes]:
    attached = header.get("attached", 0)
    if not isinstance(attached, int) or not 0 <= attached <= len(blob):
        raise ValueError("a message is shorter than its header says")
    end = len(blob) - attached
    return blob[:end], blob[end:]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a text")
    return value[:MAX_ERROR_CHARACTERS]


def _number(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError("expected a number")
    return value


def _plain(value: Any) -> Any:
    """Return the replacement of a value that is not JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set | tuple):
        return list(value)
    return str(value)
