"""Tests for gatewayd.pipeline.runs.subscriber."""

import asyncio

import pytest

from gatewayd.completions.records import Completion, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.records import ChatAnswer
from gatewayd.pipeline.runs.subscriber import RunSubscriber


def streamed() -> ChatAnswer:
    return ChatAnswer(chunks=RunSubscriber(), warnings=["w"], sources=[{"source": {}}])


async def test_chunks_come_as_they_are_put() -> None:
    follower = RunSubscriber()
    follower.begin(streamed())
    answer = await follower.answer()
    assert (answer.warnings, answer.sources) == (["w"], [{"source": {}}])
    assert answer.chunks is not None
    follower.put(CompletionChunk(raw=b"1"))
    assert (await anext(answer.chunks)).raw == b"1"
    follower.put(CompletionChunk(raw=b"2"))
    follower.end()
    assert [chunk.raw async for chunk in answer.chunks] == [b"2"]


async def test_completion_is_handed_on_as_it_is() -> None:
    follower, completion = RunSubscriber(), Completion(raw=b"{}")
    waiting = asyncio.ensure_future(follower.answer())
    await asyncio.sleep(0)
    follower.begin(ChatAnswer(completion=completion))
    assert (await waiting).completion is completion


async def test_failure_before_the_answer_is_raised() -> None:
    follower = RunSubscriber()
    follower.end(GatewayError(ErrorKind.TIMEOUT, "cannot wait"))
    follower.end()
    with pytest.raises(GatewayError, match="cannot wait"):
        await follower.answer()


async def test_failure_after_chunks_is_raised_after_them() -> None:
    follower = RunSubscriber()
    follower.begin(streamed())
    follower.put(CompletionChunk(raw=b"1"))
    follower.end(GatewayError(ErrorKind.TIMEOUT, "cannot wait"))
    assert (await anext(follower)).raw == b"1"
    with pytest.raises(GatewayError):
        await anext(follower)


async def test_nothing_is_kept_for_who_has_left() -> None:
    follower = RunSubscriber()
    follower.begin(streamed())
    await follower.aclose()
    follower.put(CompletionChunk(raw=b"1"))
    follower.end()
    assert [chunk async for chunk in follower] == []
