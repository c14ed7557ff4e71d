"""Chunks of one answer: an iterator that sends the request and reads the stream of the provider."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, Self

from gatewayd.catalog.interfaces import AnswerWatch
from gatewayd.completions.choices import choice_to_delta
from gatewayd.completions.json_access import as_sequence
from gatewayd.completions.limits import MAX_STREAM_BYTES, AnswerSizeError
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.errors import GatewayError
from gatewayd.upstream.http.client import FollowedResponse, TransportError, UpstreamResponse
from gatewayd.upstream.http.response import ProviderResponse
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.streams.sse import FramingError

SLICE_BYTES = 16 * 1024
"""Maximum number of bytes that are processed before other tasks run."""

LARGE_SLICE_BYTES = 64 * 1024
LARGE_SLICE_LINES = 800
"""Maximum number of bytes of a slice with at most LARGE_SLICE_LINES lines, as ordinary events have."""

READING_ERRORS = (TransportError, FramingError, AnswerSizeError)
"""Errors of a stream that the provider has caused."""

OpenResponse = Callable[[], Awaitable[UpstreamResponse]]
"""Sends the request and returns the successful response; raises TransportError or GatewayError."""

ChunkFromCompletion = Callable[[dict[str, Any]], CompletionChunk]
"""Converts an answer that is whole although the request asked for a stream; raises FramingError."""

ReadCompletion = Callable[[UpstreamResponse], Awaitable[dict[str, Any]]]
"""Reads a whole answer."""


@dataclass(frozen=True, slots=True)
class ReportedError:
    """An error object of a stream with its JSON text, which callers of the same protocol get."""

    error: object
    payload: bytes


class StreamReader(Protocol):
    """Converts the stream of a provider into chunks; without I/O."""

    @property
    def error(self) -> object:
        """The error object in the stream or a `ReportedError`, a FramingError for a malformed stream, or
        None."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether the rest of the stream can be ignored."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        ...

    def feed(self, read: bytes) -> CompletionChunk | None:
        """Process one read; raises FramingError."""
        ...

    def finish(self) -> CompletionChunk | None:
        """Process the end of the stream; raises FramingError."""
        ...


class AnswerChunks:
    """An iterator of chunks; the first step sends the request.

    Its end, a failure, cancellation and `aclose` release the connection at once.
    """

    def __init__(
        self,
        begin: OpenResponse | None,
        reader: StreamReader,
        failures: ProviderFailures,
        whole: tuple[ChunkFromCompletion, ReadCompletion] | None = None,
        watch: AnswerWatch | None = None,
    ) -> None:
        self._begin = begin
        self._reader = reader
        self._failures = failures
        self._whole = whole
        self._watch = watch
        self._response: UpstreamResponse | None = None
        self._followed: FollowedResponse | None = None
        self._arrived: Callable[[], None] | None = None
        self._is_turn = False
        self._held: CompletionChunk | None = None
        self._rest = b""
        self._size = 0
        self._is_whole = False
        self.is_quiet = False
        """Whether the chunk that `take` has returned is the last one until `arrived` is called."""
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
            if self._watch is not None:
                chunk = self._watch.feed(chunk)
            alive = True
        except READING_ERRORS as error:
            raise self._failure(error) from error
        finally:
            if not alive:
                self._close()
        return chunk

    async def aclose(self) -> None:
        """Close the connection of the provider at once unless the answer is complete."""
        self._close()

    def close(self) -> None:
        """Close the connection of the provider at once unless the answer is complete."""
        self._close()

    def follow(self, arrived: Callable[[], None]) -> bool:
        """Call `arrived` from now on when `take` may return something; return False if that is not possible.

        `take` then replaces the iteration.
        """
        if not isinstance(self._response, ProviderResponse) or self._is_whole or self._is_closed:
            return False
        self._followed, self._arrived = self._response, arrived
        self.is_quiet = False
        self._response.follow(arrived)
        if self._rest:
            asyncio.get_running_loop().call_soon(self._turn)
        return True

    def take(self) -> CompletionChunk | None:
        """Return the next chunk, None before it has come; raises as the iteration does.

        The bytes of a long read are taken in several turns of the event loop.
        """
        alive = False
        try:
            reader, response, rest = self._reader, self._followed, self._rest
            chunk = self._next(reader, response)
            if chunk is not None and response is not None:
                # Behind a slice of a long read more may have come meanwhile.
                has_more = rest or self._rest or response.is_over or reader.is_done or reader.error
                self.is_quiet = not has_more
                if self._watch is not None:
                    chunk = self._watch.feed(chunk)
            alive = True
        except READING_ERRORS as error:
            raise self._failure(error) from error
        finally:
            if not alive:
                self._close()
        return chunk

    def hold(self) -> None:
        """Stop the clock of silence: nothing is taken for now."""
        if self._followed is not None:
            self._followed.hold()

    def _next(self, reader: StreamReader, response: FollowedResponse | None) -> CompletionChunk | None:
        while response is not None:
            if reader.error is not None or reader.is_done or self._ended:
                self._end(response)
            if not self._rest:
                taken = response.take()
                if taken is None:
                    return None
                read = self._counted(taken)
            elif self._is_turn:
                self._is_turn = False
                read = self._sliced(self._rest)
            else:
                return None
            if self._rest:
                asyncio.get_running_loop().call_soon(self._turn)
            chunk = reader.feed(read) if read else self._last()
            if chunk is not None:
                return chunk
        raise StopAsyncIteration

    def _turn(self) -> None:
        """Let the next slice be taken."""
        self._is_turn = True
        if self._arrived is not None and not self._is_closed:
            self._arrived()

    def _end(self, response: FollowedResponse) -> NoReturn:
        """End the answer: raise the error of the stream, or StopAsyncIteration."""
        if self._is_done():
            # It is read to its end without its reader.
            self._response = self._followed = None
            response.drain()
        raise StopAsyncIteration

    def _close(self) -> None:
        self._ended = self._is_closed = True
        # It refers to the reader, which refers to these chunks.
        self._arrived = None
        if self._response is not None:
            self._response.close()

    async def _read(self, response: UpstreamResponse) -> bytes:
        """Return the next bytes, or the first slice of them; raises TransportError."""
        return self._counted(await response.read_some())

    def _counted(self, read: bytes) -> bytes:
        """Return the bytes of a read, or the first slice of them."""
        self._size += len(read)
        if self._size > MAX_STREAM_BYTES:
            raise FramingError(f"its answer is over {MAX_STREAM_BYTES} bytes")
        return read if len(read) <= SLICE_BYTES or _is_light(read) else self._sliced(read)

    async def _next_slice(self) -> bytes:
        """Return the next slice after other tasks have run."""
        await asyncio.sleep(0)
        return self._sliced(self._rest)

    def _sliced(self, read: bytes) -> bytes:
        self._rest = read[SLICE_BYTES:]
        return read[:SLICE_BYTES]

    async def _start(self) -> UpstreamResponse:
        """Send the request; a whole answer becomes the only chunk."""
        if self._is_closed or self._begin is None:
            raise StopAsyncIteration
        response = self._response = await self._begin()
        if self._whole is not None and media_type(response) == "application/json":
            convert, read_whole = self._whole
            self._held = convert(await read_whole(response))
            self._ended = self._is_whole = True
        return response

    def _last(self) -> CompletionChunk | None:
        """Return the chunk that the end of the stream completes."""
        self._ended = True
        return self._reader.finish()

    async def _finish(self, response: UpstreamResponse) -> NoReturn:
        """End the iteration: raise the error of the stream, or StopAsyncIteration."""
        if self._is_done():
            await response.finish()
        raise StopAsyncIteration

    def _is_done(self) -> bool:
        """Return whether the end of the response is still to come; raises the error of the stream."""
        reader = self._reader
        if self._is_closed:
            return False
        if reader.error is not None:
            raise self._reported(reader.error)
        if not (reader.is_done or self._is_whole or reader.is_complete):
            raise self._failures.broken("its answer ended before it was complete")
        return reader.is_done

    def _failure(self, error: TransportError | FramingError | AnswerSizeError) -> GatewayError:
        if isinstance(error, TransportError):
            return self._failures.from_transport(error)
        return self._failures.broken(error.reason if isinstance(error, AnswerSizeError) else str(error))

    def _reported(self, error: object) -> Exception:
        if isinstance(error, ReportedError):
            return self._failures.from_event(error.error, error.payload)
        return error if isinstance(error, FramingError) else self._failures.from_event(error)


def _is_light(read: bytes) -> bool:
    return len(read) <= LARGE_SLICE_BYTES and b"\r" not in read and read.count(b"\n") <= LARGE_SLICE_LINES


def media_type(response: UpstreamResponse) -> str:
    """Return the media type of an answer without its parameters."""
    return response.headers.get("Content-Type", "").split(";", 1)[0].strip().lower()


def completion_chunk(completion: Mapping[str, Any]) -> CompletionChunk:
    """Return a whole completion as one chunk: messages become deltas, other fields stay.

    Raises FramingError for a completion without a choice.
    """
    choices = [choice for choice in as_sequence(completion.get("choices")) if isinstance(choice, dict)]
    if not choices:
        raise FramingError("its answer has no choice")
    event: Body = {**completion, "object": "chat.completion.chunk"}
    event.pop("event", None)
    event["choices"] = [choice_to_delta(choice, index) for index, choice in enumerate(choices)]
    return CompletionChunk(events=[event])
