"""Streams of a plugin process that the gateway reads: it requests their items and closes them."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import orjson

from gatewayd.plugins.isolation.call_results import OutcomeWriter
from gatewayd.plugins.isolation.messages import MAX_HEADER_BYTES, MAX_MESSAGE_BYTES, PipeData, json_at_once
from gatewayd.plugins.isolation.read_ahead import ReadAhead
from gatewayd.plugins.runtime.invoke import PluginOutcome, run_guarded, run_guarded_async
from gatewayd.plugins.runtime.iterators import PluginIterator

MAX_BYTES: Final = MAX_MESSAGE_BYTES - 2 * MAX_HEADER_BYTES
"""Maximum size of the items of one message, without the overhead of their encoding."""


@dataclass(slots=True)
class _LentStream:
    """A stream of a call, and its items that were read but not yet sent."""

    call: int
    ahead: ReadAhead
    items_read: deque[Any] = field(default_factory=deque)


class LentStreams:
    """Streams by number; `items` makes a PluginIterator from the body of a response."""

    def __init__(self, items: Callable[[AsyncIterable[Any]], PluginIterator]) -> None:
        self._writer = OutcomeWriter(_no_stream, items)
        self._numbers = itertools.count(1)
        self._streams: dict[int, _LentStream] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no stream is open."""
        return not self._streams

    def keep(self, call: int, items: Any) -> int:
        """Register a stream of a call and return its number."""
        number = next(self._numbers)
        self._streams[number] = _LentStream(call, ReadAhead(items))
        return number

    async def next(self, number: int) -> PipeData:
        """Return the available items of a stream, at least one; the value is None at its end.

        Raises the exception of the stream, and TypeError or ValueError for an item that cannot be encoded,
        each after the preceding items; the stream is closed then.
        """
        stream = self._streams.get(number)
        if stream is None:
            return PipeData()
        outcome = await run_guarded_async(partial(self._written, stream))
        if outcome.error is not None:
            await self.close(number)
            raise outcome.error
        written: PipeData = outcome.value
        if written.value is None:
            self._streams.pop(number, None)
        return written

    async def close(self, number: int) -> None:
        """Close a stream."""
        stream = self._streams.pop(number, None)
        if stream is not None:
            await stream.ahead.close()

    async def close_of(self, call: int) -> None:
        """Close the streams of a call whose answer the gateway dropped."""
        numbers = [number for number, stream in self._streams.items() if stream.call == call]
        await asyncio.gather(*(self.close(number) for number in numbers))

    async def _written(self, stream: _LentStream) -> PipeData:
        if not stream.items_read:
            stream.items_read.extend(await stream.ahead.take())
        encoded: list[dict[str, Any]] = []
        attached: list[bytes] = []
        size = 0
        while stream.items_read:
            packed = run_guarded(partial(self._packed, stream.items_read[0]))
            if packed.error is not None and not encoded:
                raise packed.error
            size += _size(packed)
            # An item that fails or does not fit is left for the next message.
            if packed.error is not None or (encoded and size > MAX_BYTES):
                break
            stream.items_read.popleft()
            text, attachment = packed.value
            encoded.append({"outcome": orjson.Fragment(text), "attached": len(attachment)})
            attached.append(attachment)
        return PipeData(encoded or None, b"".join(attached))

    def _packed(self, piece: Any) -> tuple[bytes, bytes]:
        payload = self._writer.write(piece, is_loose=False)
        return json_at_once(payload, MAX_BYTES), payload.attachment


def _size(packed: PluginOutcome) -> int:
    return 0 if packed.error is not None else sum(map(len, packed.value))


def _no_stream(_: object) -> Any:
    raise TypeError("a stream cannot be an item of a stream")
