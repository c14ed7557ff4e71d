"""The chunks of one streamed answer, read from a provider as they are asked for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, Protocol, Self

from gatewayd.completions.limits import MAX_STREAM_BYTES, AnswerSizeError
from gatewayd.completions.records import CompletionChunk
from gatewayd.upstream.http.client import TransportError, UpstreamResponse
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.streams.sse import FramingError

SLICE_BYTES = 16 * 1024
"""Bytes of an answer that are looked at before others have their turn, whatever they hold."""

LARGE_SLICE_BYTES = 64 * 1024
LARGE_SLICE_LINES = 800
"""Bytes of such a slice that has no more lines than these, as events of a usual length have."""

OpenResponse = Callable[[], Awaitable[UpstreamResponse]]
"""Sends the request and returns a good answer; raises TransportError or GatewayError."""

ChunkFromCompletion = Callable[[dict[str, Any]], CompletionChunk]
"""Takes an answer that came whole although a stream was asked for; raises FramingError."""

ReadCompletion = Callable[[UpstreamResponse], Awaitable[dict[str, Any]]]
"""Reads an answer that came whole."""


class StreamReader(Protocol):
    """Turns a provider's stream into chunks; pure."""

    @property
    def error(self) -> object:
        """The error object that the provider sent in its stream, a FramingError for what is none, or None."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether nothing of interest can follow."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the answer came to its end."""
        ...

    def feed(self, read: bytes) -> CompletionChunk | None:
        """Take one read; raises FramingError."""
        ...

    def finish(self) -> CompletionChunk | None:
        """Take the end of the stream; raises FramingError."""
        ...


class AnswerChunks:
    """An iterator of chunks; the request is sent when the first one is asked for.

    Whatever ends it (the end, a failure, a cancelled wait, `aclose`) releases the connection at once.
    """

    def __init__(
        self,
        begin: OpenResponse,
        reader: StreamReader,
        failures: ProviderFailures,
        whole: tuple[ChunkFromCompletion, ReadCompletion] | None = None,
    ) -> None:
        self._begin = begin
        self._reader = reader
        self._failures = failures
        self._whole = whole
        self._response: UpstreamResponse | None = None
        self._held: CompletionChunk | None = None
        self._rest = b""
        self._size = 0
        self._is_whole = False
        self._ended = False
        self._is_closed = False

    def __aiter__(self) -> Self:
        """Return itself: an answer is read once."""
        return self

    async def __anext__(self) -> CompletionChunk:
        """Return the next chunk; raises GatewayError."""
        alive = False
        try:
            response, reader = self._response or await self._start(), self._reader
            chunk = self._held
            self._held = None
            while chunk is None:
                if reader.error is not None or reader.is_done or self._ended:
                    return await self._finish(response)
                read = await (self._next_slice() if self._rest else self._read(response))
                chunk = reader.feed(read) if read else self._last()
            alive = True
        except TransportError as error:
            raise self._failures.from_transport(error) from error
        except FramingError as error:
            raise self._failures.broken(str(error)) from error
        except AnswerSizeError as error:
            raise self._failures.broken(error.reason) from error
        finally:
            if not alive:
                self._close()
        return chunk

    async def aclose(self) -> None:
        """Close the provider's connection at once unless the answer was read to its end."""
        self._close()

    def _close(self) -> None:
        self._ended = self._is_closed = True
        if self._response is not None:
            self._response.close()

    async def _read(self, response: UpstreamResponse) -> bytes:
        """Return what came, or the start of it."""
        read = await response.read_some()
        self._size += len(read)
        if self._size > MAX_STREAM_BYTES:
            raise FramingError(f"its answer is over {MAX_STREAM_BYTES} bytes")
        return read if len(read) <= SLICE_BYTES or _is_light(read) else self._sliced(read)

    async def _next_slice(self) -> bytes:
        """Return more of what came, after others had their turn."""
        await asyncio.sleep(0)
        return self._sliced(self._rest)

    def _sliced(self, read: bytes) -> bytes:
        self._rest = read[SLICE_BYTES:]
        return read[:SLICE_BYTES]

    async def _start(self) -> UpstreamResponse:
        """Send the request; an answer that came whole is held as the only chunk."""
        if self._is_closed:
            raise StopAsyncIteration
        response = self._response = await self._begin()
        if self._whole is not None and media_type(response) == "application/json":
            convert, read_whole = self._whole
            self._held = convert(await read_whole(response))
            self._ended = self._is_whole = True
        return response

    def _last(self) -> CompletionChunk | None:
        """Return what the end of the stream completed."""
        self._ended = True
        return self._reader.finish()

    async def _finish(self, response: UpstreamResponse) -> NoReturn:
        """End the iteration: raise what went wrong, if anything did."""
        reader = self._reader
        if self._is_closed:
            raise StopAsyncIteration
        if reader.error is not None:
            raise self._reported(reader.error)
        if reader.is_done:
            await response.finish()
        elif not (self._is_whole or reader.is_complete):
            raise self._failures.broken("its answer ended before it was complete")
        raise StopAsyncIteration

    def _reported(self, error: object) -> Exception:
        return error if isinstance(error, FramingError) else self._failures.from_event(error)


def _is_light(read: bytes) -> bool:
    return len(read) <= LARGE_SLICE_BYTES and b"\r" not in read and read.count(b"\n") <= LARGE_SLICE_LINES


def media_type(response: UpstreamResponse) -> str:
    """Return the media type of an answer without its parameters."""
    return response.headers.get("Content-Type", "").split(";", 1)[0].strip().lower()
