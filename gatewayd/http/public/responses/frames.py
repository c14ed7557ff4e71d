"""Frames of converted responses, and of failures in forwarded ones."""

import re
from collections.abc import Awaitable, Callable
from typing import Final

import orjson

from gatewayd.completions.records import CompletionChunk
from gatewayd.dialects.responses.envelope import failure_of
from gatewayd.dialects.responses.stream import ResponseStream
from gatewayd.errors import GatewayError
from gatewayd.http.responses.streams import OpenAiFrames

_NUMBER: Final = re.compile(rb'"sequence_number"\s*:\s*([0-9]{1,15})')


class ResponseFrames:
    """Renderer of a converted response, whose keep-alives are events; `keep` stores the finished response."""

    content_type: str | None = None

    def __init__(self, stream: ResponseStream, keep: Callable[[], Awaitable[bool]]) -> None:
        self._stream = stream
        self._keep = keep
        self._has_ended = False

    def feed(self, chunk: CompletionChunk) -> bytes:
        """Return the events of a chunk."""
        return self._stream.feed(chunk.events)

    def ping(self) -> bytes:
        """Return the state of the response once more; some clients take comments for silence."""
        return self._stream.ping()

    def finish(self) -> bytes:
        """Return the events before the last one."""
        try:
            return self._stream.finish()
        except GatewayError as error:
            return self.fail(error)

    def fail(self, error: GatewayError) -> bytes:
        """Return the events that end a broken response, which is not stored."""
        self._has_ended = True
        return self._stream.fail(error) + self._stream.last(is_stored=False)

    async def end(self) -> bytes:
        """Store the response, and return its last event."""
        if self._has_ended:
            return b""
        self._has_ended = True
        return self._stream.last(is_stored=await self._keep())


class ForwardedFrames(OpenAiFrames):
    """The begin of a forwarded stream: comments while its answer is awaited, as it has its own events."""

    def fail(self, error: GatewayError) -> bytes:
        """Return the event that ends the stream."""
        return render_failure(error, b"")


def render_failure(error: GatewayError, last_read: bytes) -> bytes:
    """Return the event that ends a forwarded stream; it is numbered after the events of the last read."""
    found = _NUMBER.findall(last_read)
    number = int(found[-1]) + 1 if found else 0
    failure = {**failure_of(error), "param": error.param}
    event = {"type": "error", "sequence_number": number, **failure, "error": {"type": "error", **failure}}
    return b"event: error\ndata: " + orjson.dumps(event) + b"\n\n"
