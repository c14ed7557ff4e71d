"""Notes on the request that the present task serves, for the access log and for traces.

The edge makes them if one of both is on; who calls models adds to them. A task that a request starts inherits
the notes.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


class RequestNotes:
    """Facts of one request that become known below the edge.

    `began` is monotonic seconds, `first_seconds` the time from it to the first part of an answer (0.0 before
    it). Tokens are those of all calls of models together. `parent` is the span of the request, opaque to all
    but the tracer, and `traceparent` the header of its calls (W3C Trace Context, 3.2), "" for none.
    """

    __slots__ = (
        "began",
        "cached",
        "completion",
        "first_seconds",
        "model",
        "parent",
        "prompt",
        "provider",
        "traceparent",
    )

    def __init__(self, began: float) -> None:
        self.began = began
        self.model = ""
        self.provider = ""
        self.first_seconds = 0.0
        self.prompt = 0
        self.cached = 0
        self.completion = 0
        self.parent: object = None
        self.traceparent = ""


@dataclass(slots=True)
class ServedRequest:
    """An ended request; `size` is the number of bytes of the answer, -1 if it is not known.

    `seconds` is the duration. `user_id`, `email` and `key` (the shown beginning of an API key) are "" without
    them. `route` is the path template, never the path with its query.
    """

    request_id: str
    client: str
    method: str
    route: str
    status: int
    size: int
    seconds: float
    user_id: str
    email: str
    key: str
    notes: RequestNotes


CURRENT_NOTES: Final[ContextVar[RequestNotes | None]] = ContextVar("request_notes", default=None)
"""The notes of the present request; None if nobody reads them."""


def with_trace(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of a call of a model, with its `traceparent` if it is traced."""
    notes = CURRENT_NOTES.get()
    if notes is None or not notes.traceparent:
        return headers
    return {**headers, "traceparent": notes.traceparent}
