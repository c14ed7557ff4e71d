"""Tests for gatewayd.metering.answers: events of usage that the caller did not ask for."""

import sys

from gatewayd.completions.records import CompletionChunk
from gatewayd.metering.answers import MeteredChunks, without_usage_event
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, TokenUsage
from tests.fakes.providers.models import make_actor
from tests.fakes.providers.upstream import openai_chunk


class Chunks:
    """The chunks of an answer, from a list."""

    def __init__(self, *chunks: CompletionChunk) -> None:
        self._left = list(reversed(chunks))

    async def __anext__(self) -> CompletionChunk:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()

    async def aclose(self) -> None:
        self._left.clear()


async def test_a_provider_may_tell_its_usage_without_end() -> None:
    """Each of many events that are hidden costs no frame of the stack; the last of them counts."""
    count = sys.getrecursionlimit() + 100
    told = [
        CompletionChunk(events=[{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": number}}])
        for number in range(count)
    ]
    text = CompletionChunk(events=[openai_chunk(content="a")])
    meter = CallMeter()
    call = meter.begin(make_actor(), "m", "chat", is_stream=True)
    chunks = MeteredChunks(Chunks(text, *told), call, meter, hides_usage=True)
    assert [chunk async for chunk in chunks] == [text]
    assert call.outcome is CallOutcome.ANSWERED
    assert call.usage == TokenUsage(prompt=7, completion=count - 1)


def test_events_beside_the_usage_stay_byte_for_byte() -> None:
    text = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'
    shown = without_usage_event(CompletionChunk(raw=text + usage))
    assert shown is not None
    assert shown.raw == text
    assert without_usage_event(CompletionChunk(raw=usage)) is None


def test_only_events_of_usage_alone_are_hidden() -> None:
    text = b'data: {"choices":[{"index":0,"delta":{"content":"\\"usage\\""}}],"usage":null}\n\n'
    ended = b'data: {"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":1}}\n\n'
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'
    for sent, left in (
        ([text, text, usage], [text, text]),
        ([text, ended], [text, ended]),
        ([ended, text], [ended, text]),
        ([usage, text], [text]),
        ([text, usage, usage], [text]),
        ([usage, text, usage], [text]),
    ):
        shown = without_usage_event(CompletionChunk(raw=b"".join(sent)))
        assert shown is not None
        assert shown.raw == b"".join(left), sent
