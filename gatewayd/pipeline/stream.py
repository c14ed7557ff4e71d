"""A stream whose first chunk has arrived, with the stream filters applied."""

from collections.abc import Awaitable, Sequence
from typing import Self

from gatewayd.catalog.interfaces import ChunkStream
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.interfaces import ChatFilter


class StartedStream:
    """Chunks of an answer; `aclose` closes the source immediately, even before the first read."""

    def __init__(self, first: CompletionChunk, rest: ChunkStream, filters: Sequence[ChatFilter]) -> None:
        self._first: CompletionChunk | None = first
        self._rest = rest
        self._filters = filters

    @classmethod
    async def start(cls, chunks: ChunkStream, filters: Sequence[ChatFilter]) -> Self:
        """Wait for the first chunk, so that an earlier error still sets the HTTP status."""
        try:
            first = await anext(chunks)
        except StopAsyncIteration:
            raise GatewayError(
                ErrorKind.UPSTREAM_FAILED, "cannot get an answer: the source sent nothing"
            ) from None
        return cls(first, chunks, filters)

    def __aiter__(self) -> Self:
        """Return itself; the stream is read once."""
        return self

    def __anext__(self) -> Awaitable[CompletionChunk]:
        """Return the next chunk after the filters."""
        if self._first is None and not self._filters:
            return self._rest.__anext__()
        return self._next()

    async def _next(self) -> CompletionChunk:
        if self._first is not None:
            chunk, self._first = self._first, None
        else:
            chunk = await self._rest.__anext__()
        for item in self._filters:
            chunk = await item.stream(chunk)
        return chunk

    async def aclose(self) -> None:
        """Close the source's stream and its upstream connection."""
        await self._rest.aclose()
