import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import orjson
import pytest

from gatewayd.plugins.isolation import lent_streams
from gatewayd.plugins.isolation.lent_streams import LentStreams
from gatewayd.plugins.isolation.messages import pack_at_once


class Made:
    """Makes streams of pieces, and knows which of them were closed."""

    def __init__(self) -> None:
        self.streams = LentStreams(lambda items: cast(Any, items))
        self.closed: list[int] = []

    def give(self, *pieces: Any, call: int = 1) -> int:
        return self.streams.keep(call, self._items(call, pieces))

    async def read(self, number: int) -> list[Any]:
        """Return the pieces of a message, once all that can be read ahead was."""
        for _ in range(100):
            await asyncio.sleep(0)
        answer = await self.streams.next(number)
        _, blob = pack_at_once(answer)
        told = orjson.loads(blob[: len(blob) - len(answer.attachment)]) or []
        return [piece["outcome"].get("value", piece["attached"]) for piece in told]

    async def _items(self, call: int, pieces: Any) -> AsyncIterator[Any]:
        try:
            for piece in pieces:
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                yield piece
        finally:
            self.closed.append(call)


@pytest.fixture
def made() -> Made:
    return Made()


async def test_more_than_a_message_may_have_comes_in_the_next_one(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lent_streams, "MAX_BYTES", 100)
    number = made.give("a" * 40, bytes(40), "c")
    assert [await made.read(number) for _ in range(3)] == [["a" * 40], [40, "c"], []]
    assert made.streams.is_empty
    number = made.give("a", "b" * 100)
    assert await made.read(number) == ["a"]
    with pytest.raises(ValueError, match="that its process may send"):
        await made.read(number)


@pytest.mark.parametrize("bad", ["\ud83d", object(), {1}])
async def test_what_cannot_be_written_closes_the_stream(made: Made, bad: Any) -> None:
    number = made.give("a", "b", bad, "c")
    assert await made.read(number) == ["a", "b"]
    with pytest.raises(TypeError):
        await made.read(number)
    assert made.closed == [1]
    assert await made.read(number) == []


async def test_a_stream_is_no_piece_of_a_stream(made: Made) -> None:
    class Response:
        status_code = 200
        headers: dict[str, str] = {}  # noqa: RUF012 - as plugins write it
        body_iterator: Any = ()

    with pytest.raises(TypeError, match="cannot be an item of a stream"):
        await made.read(made.give(Response()))


async def test_the_streams_of_a_call_are_closed(made: Made) -> None:
    for call in (1, 2, 1):
        await made.read(made.give("a", asyncio.Event(), call=call))
    await made.streams.close_of(1)
    assert made.closed == [1, 1]
    assert not made.streams.is_empty
