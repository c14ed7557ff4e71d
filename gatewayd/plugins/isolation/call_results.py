"""What a call in the process of a plugin gave, as the gateway gets it: values, responses and streams."""

from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from pydantic import BaseModel

from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.runtime.iterators import PluginIterator

_RESPONSES: Final = ("HTMLResponse", "Response")
"""Classes of responses that `plugins.results` knows by their names; any other one is a Response."""
MAX_HEADER_CHARACTERS: Final = 8_000


class ForeignResponse:
    """A response that a plugin made in its process; `body_iterator` is there for a streamed one alone."""

    def __init__(self, status_code: int, headers: Mapping[str, str]) -> None:
        self.status_code = status_code
        self.headers = headers
        self.body = b""


NumberStream = Callable[[AsyncIterable[Any]], int]
"""Keeps a stream in the process and returns its number."""

OpenStream = Callable[[int], PluginIterator]
"""Returns the stream of a number in the gateway."""


@dataclass(frozen=True, slots=True)
class OutcomeWriter:
    """Writes what calls gave, in the process.

    A result `is_loose` when what is no JSON may become a text, as results of tools do. `items` makes Items of
    the body of a response.
    """

    numbered: NumberStream
    items: Callable[[AsyncIterable[Any]], PluginIterator]

    def write(self, value: Any, *, is_loose: bool) -> PipeData:
        """Return a result; TypeError for what is no JSON and may not become a text."""
        if isinstance(value, PluginIterator):
            return PipeData({"is": "stream", "stream": self.numbered(value)})
        if isinstance(value, bytes | bytearray | memoryview):
            return PipeData({"is": "bytes"}, bytes(value))
        if _is_response(value):
            return self._response(value)
        if isinstance(value, tuple) and len(value) == 2 and is_loose:
            # A page and a text for the model, or a page and its headers.
            first = self.write(value[0], is_loose=True)
            beside = {"is": "value", "value": _json(value[1])}
            return PipeData({"is": "pair", "first": first.value, "second": beside}, first.attachment)
        if isinstance(value, BaseModel) and not is_loose:
            value = value.model_dump(mode="json")
        if is_loose and not isinstance(value, dict | list | str | int | float | bool | None):
            value = str(value)
        return PipeData({"is": "value", "value": _json(value) if is_loose else value})

    def _response(self, response: Any) -> PipeData:
        names = [base.__name__ for base in type(response).__mro__]
        told = {
            "is": "response",
            "name": next(name for name in (*_RESPONSES, names[0]) if name in names),
            "status": int(response.status_code),
            "headers": {str(name): str(value) for name, value in dict(response.headers).items()},
        }
        if hasattr(response, "body_iterator"):
            return PipeData({**told, "stream": self.numbered(self.items(response.body_iterator))})
        body = response.body
        return PipeData(told, bytes(body) if isinstance(body, bytes | memoryview) else str(body).encode())


def read_outcome(payload: PipeData, opened: OpenStream) -> Any:
    """Return what a call gave; ValueError, TypeError or LookupError for what is no outcome."""
    told = payload.value
    match told["is"]:
        case "value":
            return told["value"]
        case "bytes":
            return payload.attachment
        case "stream":
            return opened(read_number(told["stream"]))
        case "response":
            return _read_response(told, payload.attachment, opened)
        case "pair":
            first = read_outcome(PipeData(told["first"], payload.attachment), opened)
            return first, read_outcome(PipeData(told["second"]), opened)
        case other:
            raise ValueError(f"a call gave {str(other)[:40]!r}")


def _read_response(told: Mapping[str, Any], body: bytes, opened: OpenStream) -> Any:
    headers = told["headers"]
    if not isinstance(headers, dict) or sum(len(n) + len(str(v)) for n, v in headers.items()) > (
        MAX_HEADER_CHARACTERS
    ):
        raise ValueError("the headers of a response are too long")
    name = "HTMLResponse" if told["name"] == "HTMLResponse" else "Response"
    made: Any = _CLASSES[name](
        read_number(told["status"]), {key.lower(): str(value) for key, value in headers.items()}
    )
    made.body = body
    if "stream" in told:
        made.body_iterator = opened(read_number(told["stream"]))
    return made


def read_number(value: Any) -> int:
    """Return a number that a process told; TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("a number is expected")
    return value


def _is_response(value: Any) -> bool:
    return any(base.__name__ == "Response" for base in type(value).__mro__) and hasattr(value, "status_code")


def _json(value: Any) -> Any:
    """Return a value of JSON in which what has no form there is a text."""
    try:
        orjson.dumps(value)
    except TypeError:
        return orjson.loads(orjson.dumps(value, default=_text, option=orjson.OPT_NON_STR_KEYS))
    return value


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_Response: Final = type("Response", (ForeignResponse,), {})
_CLASSES: Final[Mapping[str, Any]] = {
    "Response": _Response,
    "HTMLResponse": type("HTMLResponse", (_Response,), {}),
}
