"""Forwarded answers of the Responses protocol for streams that are resumed and replies that are repeated."""

from contextlib import aclosing
from typing import Self

from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.completions.passthrough import FailureRenderer, ForwardedOpening
from gatewayd.http.responses.resumable import RenderedAnswer
from gatewayd.http.schemas import EVENT_STREAM
from gatewayd.pipeline.filters.streams import MAX_WHOLE_BYTES


class ForwardedChunks:
    """The reads of an opened answer as a `catalog.interfaces.ChunkStream`; `last` is the newest read."""

    def __init__(self, opened: ForwardedOpening) -> None:
        self._first = opened.first
        self._answer = opened.answer
        self.last = b""

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> CompletionChunk:
        """Return the next read."""
        if self._first:
            read, self._first = self._first, b""
        elif self.last:
            read = await anext(self._answer)
        else:
            raise StopAsyncIteration
        self.last = read
        return CompletionChunk(raw=read)

    async def aclose(self) -> None:
        """Close the provider's connection."""
        await self._answer.aclose()


class ForwardedRenderer:
    """Renderer of a forwarded stream: its bytes, and the event after a failure."""

    content_type: str | None = None

    def __init__(self, chunks: ForwardedChunks, render_failure: FailureRenderer) -> None:
        self._chunks = chunks
        self._render_failure = render_failure

    def feed(self, chunk: CompletionChunk) -> bytes:
        """Return the bytes of a read."""
        return chunk.raw

    def ping(self) -> bytes:
        """Return nothing: a recorded stream has keep-alives of its readers."""
        return b""

    def finish(self) -> bytes:
        """Return nothing: the provider has ended its stream."""
        return b""

    def fail(self, error: GatewayError) -> bytes:
        """Return the event that ends a broken stream."""
        return self._render_failure(error, self._chunks.last)


async def render_forwarded(opened: ForwardedOpening, render_failure: FailureRenderer) -> RenderedAnswer:
    """Return a forwarded stream as frames; raises upstream_failed if the provider sent none."""
    if not opened.answer.content_type.lower().startswith(EVENT_STREAM):
        await opened.answer.aclose()
        raise _unusable("the request asked for a stream, and the provider sent none")
    chunks = ForwardedChunks(opened)
    return RenderedAnswer(ForwardedRenderer(chunks, render_failure), b"", chunks, opened.headers)


async def read_whole(opened: ForwardedOpening) -> bytes:
    """Return the bytes of an answer; raises upstream_failed for a stream, and for over MAX_WHOLE_BYTES."""
    data = bytearray(opened.first)
    async with aclosing(opened.answer) as answer:
        if answer.content_type.lower().startswith(EVENT_STREAM):
            raise _unusable("the request asked for no stream, and the provider sent one")
        async for piece in answer:
            data += piece
            if len(data) > MAX_WHOLE_BYTES:
                raise _unusable(f"it is over {MAX_WHOLE_BYTES} bytes")
    return bytes(data)


def _unusable(reason: str) -> GatewayError:
    return GatewayError(ErrorKind.UPSTREAM_FAILED, f"cannot forward the answer: {reason}")
