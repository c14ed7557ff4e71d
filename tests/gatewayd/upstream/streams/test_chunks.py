"""Tests for gatewayd.upstream.streams.chunks."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import orjson
import pytest

from gatewayd.completions.limits import MAX_TOOL_CALLS
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.sources.provider_client import ProviderClient
from gatewayd.upstream.streams import chunks as streams_chunks
from gatewayd.upstream.streams.chunks import SLICE_BYTES, AnswerChunks, completion_chunk
from gatewayd.upstream.streams.sse import ChunkReader, FramingError
from tests.fakes.providers.upstream import (
    SILENCE,
    FakeUpstream,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

Body = dict[str, Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.fixture
async def fake() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as made:
        yield made


@pytest.fixture
async def exchange(fake: FakeUpstream) -> AsyncIterator[ProviderClient]:
    made = ProviderClient(ProviderConfig("p", SourceKind.OPENAI, fake.openai_url), {})
    yield made
    await made.close()


def ask(exchange: ProviderClient) -> AnswerChunks:
    return exchange.chunks("/chat/completions", {"model": "m"}, ChunkReader(), completion_chunk)


def said(chunks: list[CompletionChunk]) -> str:
    events = [event for chunk in chunks for event in chunk.events]
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events)


async def test_nothing_is_sent_before_the_first_chunk_is_asked_for(
    fake: FakeUpstream, exchange: ProviderClient
) -> None:
    chunks = ask(exchange)
    await asyncio.sleep(0)
    assert fake.requests == []
    await chunks.aclose()
    assert [chunk async for chunk in chunks] == []
    assert fake.requests == []


async def test_an_answer_is_read_to_its_end_and_then_over(
    fake: FakeUpstream, exchange: ProviderClient
) -> None:
    fake.script(Reply(steps=openai_stream(["a", "b"])))
    chunks = ask(exchange)
    assert said([chunk async for chunk in chunks]) == "ab"
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)


async def test_an_answer_that_came_whole_is_one_chunk(fake: FakeUpstream, exchange: ProviderClient) -> None:
    fake.script(json_reply(openai_completion("all of it")))
    chunks = ask(exchange)
    assert said([chunk async for chunk in chunks]) == "all of it"


async def test_after_a_failure_nothing_more_comes(fake: FakeUpstream, exchange: ProviderClient) -> None:
    fake.script(Reply(steps=[sse(openai_chunk(content="a"))]))
    chunks = ask(exchange)
    assert said([await anext(chunks)]) == "a"
    with pytest.raises(GatewayError, match="before it was complete") as caught:
        await anext(chunks)
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert [chunk async for chunk in chunks] == []


async def test_a_cancelled_wait_closes_the_connection(fake: FakeUpstream, exchange: ProviderClient) -> None:
    fake.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE]))
    chunks = ask(exchange)
    await anext(chunks)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(chunks)
    await asyncio.wait_for(fake.closed.wait(), 5)
    assert [chunk async for chunk in chunks] == []


async def test_an_endless_answer_ends(
    fake: FakeUpstream, exchange: ProviderClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_chunks, "MAX_STREAM_BYTES", 1000)
    fake.script(Reply(steps=openai_stream(["word"] * 20)))
    with pytest.raises(GatewayError, match="provider 'p': its answer is over 1000 bytes"):
        async for _ in ask(exchange):
            pass


async def test_too_many_tool_calls_end_the_answer_and_close_the_connection(
    fake: FakeUpstream, exchange: ProviderClient
) -> None:
    calls = [
        {"index": index, "id": f"c{index}", "function": {"name": "f", "arguments": "{}"}}
        for index in range(MAX_TOOL_CALLS + 1)
    ]
    events = [sse(openai_chunk(tool_calls=calls[at : at + 500])) for at in range(0, len(calls), 500)]
    fake.script(Reply(steps=[sse(openai_chunk(content="a")), *events, SILENCE]))
    found = []
    with pytest.raises(
        GatewayError, match=f"provider 'p': it has over {MAX_TOOL_CALLS} tool calls"
    ) as caught:
        async for chunk in ask(exchange):
            found += chunk.events
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert len(found[-1]["choices"][0]["delta"]["tool_calls"]) == 500
    await asyncio.wait_for(fake.closed.wait(), 5)


class Read:
    """An answer whose body came in one read."""

    status = 200
    headers: ClassVar = {"Content-Type": "text/event-stream"}

    def __init__(self, body: bytes) -> None:
        self._reads = [body]

    async def read_some(self) -> bytes:
        return self._reads.pop() if self._reads else b""

    async def finish(self) -> None:
        return

    def close(self) -> None:
        return


async def test_much_that_came_at_once_leaves_others_their_turn() -> None:
    words = [str(number) for number in range(5000)]
    body = b"".join(openai_stream(words))

    async def begin() -> Any:
        return Read(body)

    turns: list[int] = []
    loop = asyncio.get_running_loop()

    def turn() -> None:
        turns.append(len(found))
        loop.call_soon(turn)

    found: list[CompletionChunk] = []
    loop.call_soon(turn)
    async for chunk in AnswerChunks(begin, ChunkReader(), ProviderFailures("p")):
        found.append(chunk)
    assert said(found) == "".join(words)
    assert len(set(turns)) >= len(body) // SLICE_BYTES


def choice_of(choice: Body) -> Body:
    (event,) = completion_chunk({**openai_completion(""), "choices": [choice]}).events
    (found,) = event["choices"]
    return found


def test_messages_become_deltas():
    chunk = completion_chunk({**openai_completion("hi", tool_calls=[CALL]), "event": {"type": "execute"}})
    (event,) = chunk.events
    assert event["object"] == "chat.completion.chunk"
    assert "event" not in event
    assert event["usage"]["total_tokens"] == 5
    (choice,) = event["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["delta"] == {"role": "assistant", "content": "hi", "tool_calls": [{"index": 0, **CALL}]}
    assert "message" not in choice


@pytest.mark.parametrize("choices", [[], None, [None], {}, "x"])
def test_an_answer_without_a_choice_is_none(choices: object):
    with pytest.raises(FramingError, match="no choice"):
        completion_chunk({"choices": choices})


@pytest.mark.parametrize("choice", [{}, {"message": None}, {"message": 5}, {"message": None, "delta": None}])
def test_a_choice_without_a_message_says_nothing(choice: Body):
    assert choice_of(choice) == {"index": 0, "delta": {}, "finish_reason": "stop"}


def test_a_delta_in_place_of_a_message():
    assert choice_of({"delta": {"content": "a"}})["delta"] == {"content": "a"}


@pytest.mark.parametrize("calls", [None, [], {}, [None], [{}]])
def test_no_tool_calls(calls: object):
    found = choice_of({"message": {"content": None, "tool_calls": calls}})
    assert found["delta"] == {"content": None}
    assert found["finish_reason"] == "stop"


def test_tool_calls_of_any_shape():
    calls = [
        {"function": {"name": "f", "arguments": {"x": 1}}},
        None,
        {**CALL, "index": 7},
        CALL,
        {"id": "c2", "function": {"name": "g", "arguments": None}},
    ]
    found = choice_of({"message": {"tool_calls": calls}})
    made = [
        (call["index"], call["function"]["name"], call["function"]["arguments"])
        for call in found["delta"]["tool_calls"]
    ]
    assert made == [(0, "f", '{"x":1}'), (1, "f", "{}"), (2, "f", "{}"), (3, "g", "{}")]
    ids = [call["id"] for call in found["delta"]["tool_calls"]]
    assert ids[1:] == ["c1", "c1", "c2"]
    assert ids[0].startswith("call_")
    assert found["finish_reason"] == "tool_calls"


def test_several_choices_keep_their_places():
    chunk = completion_chunk(
        {"choices": [{"message": {"content": "a"}}, {"index": 5, "message": {"content": "b"}}]}
    )
    assert [choice["index"] for choice in chunk.events[0]["choices"]] == [0, 5]


def test_numbers_over_64_bits_are_written_again():
    answer = orjson.loads(b'{"created": 99999999999999999999999, "choices": [{"message": {"content": "a"}}]}')
    assert orjson.loads(completion_chunk(answer).raw.removeprefix(b"data: "))["created"] == 1e23
