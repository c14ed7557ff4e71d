import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from gatewayd.plugins.isolation.read_ahead import MAX_AHEAD_BYTES, MAX_PIECES, ReadAhead
from gatewayd.plugins.runtime.iterators import PluginIterator


class Source:
    """An iterator that counts what was asked of it, and stands in for Items."""

    def __init__(self, *pieces: Any) -> None:
        self.made = 0
        self.closed = False
        self._pieces = list(pieces)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        await asyncio.sleep(0)
        if not self._pieces:
            raise StopAsyncIteration
        self.made += 1
        piece = self._pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        if isinstance(piece, asyncio.Event):
            await piece.wait()
        return piece

    async def aclose(self) -> None:
        self.closed = True


def ahead_of(source: Source) -> ReadAhead:
    return ReadAhead(cast(PluginIterator, source))


async def settled() -> None:
    for _ in range(10 * MAX_PIECES):
        await asyncio.sleep(0)


async def test_what_is_there_is_taken_at_once() -> None:
    source = Source(*range(100))
    ahead = ahead_of(source)
    await settled()
    assert source.made == MAX_PIECES
    taken = [*await ahead.take()]
    assert taken == list(range(MAX_PIECES))
    while pieces := await ahead.take():
        taken += pieces
    assert taken == list(range(100))
    assert await ahead.take() == []


async def test_a_slow_stream_is_taken_piece_by_piece() -> None:
    gate = asyncio.Event()
    ahead = ahead_of(Source("a", gate))
    assert await ahead.take() == ["a"]
    waiting = asyncio.ensure_future(ahead.take())
    await settled()
    assert not waiting.done()
    gate.set()
    assert await waiting == [gate]


async def test_large_pieces_are_not_read_ahead() -> None:
    source = Source("x" * MAX_AHEAD_BYTES, "y", "z")
    ahead = ahead_of(source)
    await settled()
    assert source.made == 1
    await ahead.close()


async def test_a_failure_comes_after_the_pieces_before_it() -> None:
    ahead = ahead_of(Source("a", ValueError("no")))
    await settled()
    assert await ahead.take() == ["a"]
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await ahead.take()


async def test_a_stream_is_closed_while_it_is_waited_for() -> None:
    source = Source(asyncio.Event())
    ahead = ahead_of(source)
    waiting = asyncio.ensure_future(ahead.take())
    await settled()
    await ahead.close()
    assert await waiting == []
    assert source.closed
