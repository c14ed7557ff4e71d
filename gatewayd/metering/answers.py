"""Answers whose reading is metered: chunks of chats, and replies that are passed on as bytes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, Self

import orjson

from gatewayd.completions.deltas import answer_characters
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.errors import GatewayError
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall
from gatewayd.metering.reply_usage import ReplyUsage
from gatewayd.metering.usage_objects import StreamUsage, answer_usage


class ReadableChunks(Protocol):
    """The chunks of an answer, a `catalog.interfaces.ChunkStream`."""

    def __anext__(self) -> Awaitable[CompletionChunk]:
        """Return the next chunk."""
        ...

    async def aclose(self) -> None:
        """Release the source."""
        ...


class TakenChunks(ReadableChunks, Protocol):
    """Chunks that may be taken when they arrive, a `catalog.interfaces.FollowedChunks`."""

    @property
    def is_quiet(self) -> bool:
        """Whether the chunk that `take` has returned is the last one until `arrived` is called."""
        ...

    def follow(self, arrived: Callable[[], None]) -> bool:
        """Call `arrived` from now on when `take` may return something; return False if it cannot."""
        ...

    def take(self) -> CompletionChunk | None:
        """Return the next chunk, None before it has come."""
        ...

    def hold(self) -> None:
        """Stop the clock of silence."""
        ...

    def close(self) -> None:
        """Release the source at once."""
        ...


class ReadableReply(Protocol):
    """A reply that is passed on, a `catalog.interfaces.ForwardedAnswer`."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def content_type(self) -> str:
        """Media type with its parameters."""
        ...

    async def __anext__(self) -> bytes:
        """Return the next bytes."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


def outcome_of(end: StopAsyncIteration | GatewayError | asyncio.CancelledError) -> CallOutcome:
    """Return how a call ended whose answer was read until this was raised."""
    if isinstance(end, StopAsyncIteration):
        return CallOutcome.ANSWERED
    return CallOutcome.CUT if isinstance(end, GatewayError) else CallOutcome.CANCELLED


class MeteredChunks:
    """The chunks of an answer of a call; it ends with them.

    An error before the first chunk is left to the `CallMeter`, because another source may be asked. With
    `hides_usage` the event that has usage alone, which the caller did not ask for, is dropped.
    """

    __slots__ = ("_call", "_chunks", "_hides_usage", "_meter", "_usage")

    def __init__(
        self, chunks: ReadableChunks, call: MeteredCall, meter: CallMeter, *, hides_usage: bool = False
    ) -> None:
        self._chunks = chunks
        self._call = call
        self._meter = meter
        self._hides_usage = hides_usage
        self._usage = StreamUsage()

    def __aiter__(self) -> Self:
        """Return itself; the stream is read once."""
        return self

    async def __anext__(self) -> CompletionChunk:
        """Return the next chunk; the errors are those of the source."""
        try:
            shown = self._shown(await self._chunks.__anext__())
            while shown is None:
                shown = self._shown(await self._chunks.__anext__())
        except (StopAsyncIteration, GatewayError, asyncio.CancelledError) as end:
            self._end(outcome_of(end))
            raise
        return shown

    async def aclose(self) -> None:
        """Release the source; a call whose answer has not ended is cancelled."""
        try:
            self._end(CallOutcome.CANCELLED)
        finally:
            await self._chunks.aclose()

    def _shown(self, chunk: CompletionChunk) -> CompletionChunk | None:
        """Count a chunk and return what of it the caller gets, None for nothing."""
        call = self._call
        if self._usage.look(chunk, call) and self._hides_usage:
            shown = without_usage_event(chunk)
            if shown is None:
                return None
            chunk = shown
        if not call.first_at:
            self._meter.first(call)
        return chunk

    def _end(self, outcome: CallOutcome) -> None:
        if self._call.first_at:
            self._meter.finish(self._call, outcome, self._usage.tokens())


class MeteredArrivals(MeteredChunks):
    """Metered chunks that are taken when they arrive, a `catalog.interfaces.FollowedChunks`."""

    __slots__ = ("_arrivals", "is_quiet")

    def __init__(
        self, chunks: TakenChunks, call: MeteredCall, meter: CallMeter, *, hides_usage: bool = False
    ) -> None:
        super().__init__(chunks, call, meter, hides_usage=hides_usage)
        self._arrivals = chunks
        self.is_quiet = False
        """Whether the chunk that `take` has returned is the last one until `arrived` is called."""

    def follow(self, arrived: Callable[[], None]) -> bool:
        """Call `arrived` from now on when `take` may return something; return False if it cannot."""
        self.is_quiet = False
        return self._arrivals.follow(arrived)

    def take(self) -> CompletionChunk | None:
        """Return the next chunk, None before it has come; the errors are those of the source."""
        take = self._arrivals.take
        try:
            chunk = take()
            while chunk is not None and (chunk := self._shown(chunk)) is None:
                chunk = take()
        except (StopAsyncIteration, GatewayError) as end:
            self._end(outcome_of(end))
            raise
        self.is_quiet = self._arrivals.is_quiet
        return chunk

    def hold(self) -> None:
        """Stop the clock of silence: nothing is taken for now."""
        self._arrivals.hold()

    def close(self) -> None:
        """Release the source; a call whose answer has not ended is cancelled."""
        try:
            self._end(CallOutcome.CANCELLED)
        finally:
            self._arrivals.close()


class MeteredReply:
    """A reply that is passed on as bytes; the call ends with its body."""

    __slots__ = ("_call", "_meter", "_reply", "_usage")

    def __init__(self, reply: ReadableReply, call: MeteredCall, meter: CallMeter) -> None:
        self._reply = reply
        self._call = call
        self._meter = meter
        self._usage = ReplyUsage(reply.content_type)

    @property
    def status(self) -> int:
        """The HTTP status, below 300."""
        return self._reply.status

    @property
    def content_type(self) -> str:
        """Media type with its parameters; empty if the provider sent none."""
        return self._reply.content_type

    def __aiter__(self) -> Self:
        """Return itself; the body is read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes; the errors are those of the reply."""
        try:
            read = await self._reply.__anext__()
        except (StopAsyncIteration, GatewayError, asyncio.CancelledError) as end:
            self._end(outcome_of(end))
            raise
        if not self._call.first_at:
            self._meter.first(self._call)
        self._usage.look(read, self._call)
        return read

    async def aclose(self) -> None:
        """Close the connection; a call whose body was not read to its end is cancelled."""
        try:
            self._end(CallOutcome.CANCELLED)
        finally:
            await self._reply.aclose()

    def _end(self, outcome: CallOutcome) -> None:
        if self._call.ended_at:
            return
        usage = self._usage.tokens()
        if usage is None or not usage.total:
            self._call.characters += self._usage.characters()
        self._meter.finish(self._call, outcome, usage)


def without_usage_event(chunk: CompletionChunk) -> CompletionChunk | None:
    """Return a chunk without the events that have no choices but usage; None if nothing is left."""
    decoded = chunk.decoded
    if decoded is not None:
        kept = [event for event in decoded if event.get("choices") or not event.get("usage")]
        return chunk if len(kept) == len(decoded) else CompletionChunk(events=kept) if kept else None
    raw = chunk.raw
    # Providers tell it in the last event.
    start = raw.rfind(b"\n\ndata:") + 2
    if start > 1 and raw.count(b'"usage"', 0, start) == raw.count(b'"usage":null', 0, start):
        return chunk if _has_choices(raw[start + 5 :]) else CompletionChunk(raw=raw[:start])
    data = chunk.data
    shown = [one for one in data if b'"usage"' not in one or _has_choices(one)]
    return chunk if len(shown) == len(data) else CompletionChunk.of_data(shown) if shown else None


def _has_choices(data: bytes) -> bool:
    event = orjson.loads(data)
    return bool(event.get("choices")) or not event.get("usage")


def finish_whole(meter: CallMeter, call: MeteredCall, answer: Mapping[str, Any] | Body) -> None:
    """End a call with its whole answer, an object with `usage`."""
    usage = answer_usage(answer)
    if usage is None:
        call.characters += answer_characters(answer)
    meter.finish(call, CallOutcome.ANSWERED, usage)
