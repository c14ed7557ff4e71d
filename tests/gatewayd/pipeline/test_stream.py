"""Tests for gatewayd.pipeline.stream."""

from collections.abc import AsyncIterator

from gatewayd.completions.records import CompletionChunk
from gatewayd.pipeline.stream import StartedStream


async def test_chunks_come_in_order_and_the_first_is_not_lost() -> None:
    async def numbers() -> AsyncIterator[CompletionChunk]:
        for number in range(3):
            yield CompletionChunk(events=[{"n": number}])

    started = await StartedStream.start(numbers(), ())
    assert [chunk.events[0]["n"] async for chunk in started] == [0, 1, 2]
