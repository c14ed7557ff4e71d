"""Tests for gatewayd.pipeline.runs.subscriber."""

import asyncio

import pytest

from gatewayd.completions.records import Chunk, Completion
from gatewayd.errors import GatewayError, Kind
from gatewayd.pipeline.records import Answer
from gatewayd.pipeline.runs.subscriber import Follower


def streamed() -> Answer:
    return Answer(chunks=Follower(), warnings=["w"], sources=[{"source": {}}])


async def test_chunks_come_as_they_are_put() -> None:
    follower = Follower()
    follower.begin(streamed())
    answer = await follower.answer()
    assert (answer.warnings, answer.sources) == (["w"], [{"source": {}}])
    assert answer.chunks is not None
    follower.put(Chunk(raw=b"1"))
    assert (await anext(answer.chunks)).raw == b"1"
    follower.put(Chunk(raw=b"2"))
    follower.end()
    assert [chunk.raw async for chunk in answer.chunks] == [b"2"]


async def test_completion_is_handed_on_as_it_is() -> None:
    follower, completion = Follower(), Completion(raw=b"{}")
    waiting = asyncio.ensure_future(follower.answer())
    await asyncio.sleep(0)
    follower.begin(Answer(completion=completion))
    assert (await waiting).completion is completion


async def test_failure_before_the_answer_is_raised() -> None:
    follower = Follower()
    follower.end(GatewayError(Kind.TIMEOUT, "cannot wait"))
    follower.end()
    with pytest.raises(GatewayError, match="cannot wait"):
        await follower.answer()


async def test_failure_after_chunks_is_raised_after_them() -> None:
    follower = Follower()
    follower.begin(streamed())
    follower.put(Chunk(raw=b"1"))
    follower.end(GatewayError(Kind.TIMEOUT, "cannot wait"))
    assert (await anext(follower)).raw == b"1"
    with pytest.raises(GatewayError):
        await anext(follower)


async def test_nothing_is_kept_for_who_has_left() -> None:
    follower = Follower()
    follower.begin(streamed())
    await follower.aclose()
    follower.put(Chunk(raw=b"1"))
    follower.end()
    assert [chunk async for chunk in follower] == []
