"""Encoding of the results of calls in a plugin process: values, responses and streams."""

from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from pydantic import BaseModel

from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.runtime.iterators import PluginIterator

_RESPONSES: Final = ("HTMLResponse", "Response")
"""Response classes that `plugins.tool_results` recognises by name; any other becomes a Response."""
MAX_HEADER_CHARACTERS: Final = 8_000


class ForeignResponse:
    """A response that a plugin made in its process; only a streamed one has `body_iterator`."""

    def __init__(self, status_code: int, headers: Mapping[str, str]) -> None:
        self.status_code = status_code
        self.headers = headers
        self.body = b""


NumberStream = Callable[[AsyncIterable[Any]], int]
"""Registers a stream in the process and returns its number."""

OpenStream = Callable[[int], PluginIterator]
"""Opens the stream with a number in the gateway."""


@dataclass(frozen=True, slots=True)
class OutcomeWriter:
    """Encodes the results of calls, in the process.

    With `is_loose` values that are not JSON become text, as for results of tools. `items` makes a
    PluginIterator from the body of a response.
    """

    number_stream: NumberStream
    items: Callable[[AsyncIterable[Any]], PluginIterator]

    def write(self, value: Any, *, is_loose: bool) -> PipeData:
        """Return the encoded result; TypeError for a value that is not JSON, unless `is_loose`."""
        if isinstance(value, PluginIterator):
            return PipeData({"is": "stream", "stream": self.number_stream(value)})
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
        outcome = {
            "is": "response",
            "name": next(name for name in (*_RESPONSES, names[0]) if name in names),
            "status": int(response.status_code),
            "headers": {str(name): str(value) for name, value in dict(response.headers).items()},
        }
        if hasattr(response, "body_iterator"):
            return PipeData({**outcome, "stream": self.number_stream(self.items(response.body_iterator))})
        body = response.body
        return PipeData(outcome, bytes(body) if isinstance(body, bytes | memoryview) else str(body).encode())


def read_outcome(payload: PipeData, open_stream: OpenStream) -> Any:
    """Return the decoded result of a call; ValueError, TypeError or LookupError for an invalid one."""
    outcome = payload.value
    match outcome["is"]:
        case "value":
            return outcome["value"]
        case "bytes":
            return payload.attachment
        case "stream":
            return open_stream(read_number(outcome["stream"]))
        case "response":
            return _read_response(outcome, payload.attachment, open_stream)
        case "pair":
            first = read_outcome(PipeData(outcome["first"], payload.attachment), open_stream)
            return first, read_outcome(PipeData(outcome["second"]), open_stream)
        case other:
            raise ValueError(f"unknown kind of result {str(other)[:40]!r}")


def _read_response(outcome: Mapping[str, Any], body: bytes, open_stream: OpenStream) -> Any:
    headers = outcome["headers"]
    if not isinstance(headers, dict) or sum(len(n) + len(str(v)) for n, v in headers.items()) > (
        MAX_HEADER_CHARACTERS
    ):
        raise ValueError("the headers of a response are too long")
    name = "HTMLResponse" if outcome["name"] == "HTMLResponse" else "Response"
    response: Any = _CLASSES[name](
        read_number(outcome["status"]), {key.lower(): str(value) for key, value in headers.items()}
    )
    response.body = body
    if "stream" in outcome:
        response.body_iterator = open_stream(read_number(outcome["stream"]))
    return response


def read_number(value: Any) -> int:
    """Return an integer of a message; TypeError for any other value."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("expected a number")
    return value


def _is_response(value: Any) -> bool:
    return any(base.__name__ == "Response" for base in type(value).__mro__) and hasattr(value, "status_code")


def _json(value: Any) -> Any:
    """Return a JSON value in which other objects are replaced by their text."""
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
