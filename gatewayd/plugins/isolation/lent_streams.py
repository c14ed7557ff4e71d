"""The streams that a process has given to the gateway, which asks for their pieces and closes them."""

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
from gatewayd.plugins.runtime.invoke import CallOutcome, run_guarded, run_guarded_async
from gatewayd.plugins.runtime.iterators import PluginIterator

MAX_BYTES: Final = MAX_MESSAGE_BYTES - 2 * MAX_HEADER_BYTES
"""Of the pieces that are written at a time; the rest is for what is around them."""


@dataclass(slots=True)
class _Given:
    """A stream of a call, and the pieces of it that were read and not yet written."""

    call: int
    ahead: ReadAhead
    pieces: deque[Any] = field(default_factory=deque)


class GivenStreams:
    """The streams of a process by their numbers; `items` makes Items of the body of a response."""

    def __init__(self, items: Callable[[AsyncIterable[Any]], PluginIterator]) -> None:
        self._writer = OutcomeWriter(_no_stream, items)
        self._numbers = itertools.count(1)
        self._streams: dict[int, _Given] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._streams

    def keep(self, call: int, items: Any) -> int:
        """Keep a stream that a call gives, and return its number."""
        number = next(self._numbers)
        self._streams[number] = _Given(call, ReadAhead(items))
        return number

    async def next(self, number: int) -> PipeData:
        """Return the pieces of a stream that are there, one at least, or nothing at its end.

        Raises what the stream raised and, for a piece that cannot be written, TypeError or ValueError, each
        after the pieces before it; the stream is closed then.
        """
        given = self._streams.get(number)
        if given is None:
            return PipeData()
        outcome = await run_guarded_async(partial(self._written, given))
        if outcome.error is not None:
            await self.close(number)
            raise outcome.error
        written: PipeData = outcome.value
        if written.value is None:
            self._streams.pop(number, None)
        return written

    async def close(self, number: int) -> None:
        """End a stream."""
        given = self._streams.pop(number, None)
        if given is not None:
            await given.ahead.close()

    async def close_of(self, call: int) -> None:
        """End the streams of a call, whose answer the gateway does not take."""
        numbers = [number for number, given in self._streams.items() if given.call == call]
        await asyncio.gather(*(self.close(number) for number in numbers))

    async def _written(self, given: _Given) -> PipeData:
        if not given.pieces:
            given.pieces.extend(await given.ahead.take())
        told: list[dict[str, Any]] = []
        attached: list[bytes] = []
        size = 0
        while given.pieces:
            packed = run_guarded(partial(self._packed, given.pieces[0]))
            if packed.error is not None and not told:
                raise packed.error
            size += _size(packed)
            # What fails, or does not fit any more, is for the next time.
            if packed.error is not None or (told and size > MAX_BYTES):
                break
            given.pieces.popleft()
            text, attachment = packed.value
            told.append({"outcome": orjson.Fragment(text), "attached": len(attachment)})
            attached.append(attachment)
        return PipeData(told or None, b"".join(attached))

    def _packed(self, piece: Any) -> tuple[bytes, bytes]:
        payload = self._writer.write(piece, is_loose=False)
        return json_at_once(payload, MAX_BYTES), payload.attachment


def _size(packed: CallOutcome) -> int:
    return 0 if packed.error is not None else sum(map(len, packed.value))


def _no_stream(_: object) -> Any:
    raise TypeError("a stream cannot be a piece of a stream")
