"""Every accident of every protocol, through a source: what is said comes through, what fails is told."""

import asyncio
from contextlib import aclosing
from typing import Any

import orjson
import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.deltas import reasoning_of, usage_of
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import GatewayError
from gatewayd.upstream.sources.anthropic import AnthropicSource
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.ollama import OllamaSource
from gatewayd.upstream.sources.openai import OpenAiSource
from tests.fakes.providers.completion_assembler import Gatherer
from tests.fakes.providers.stream_failure import Accident
from tests.fakes.providers.stream_failures import ACCIDENTS
from tests.fakes.providers.upstream import FakeUpstream

CONTEXT = CallContext("r1", "u1")
MODEL = Model("m", "m", "x", "acme", "m")
BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


@pytest.fixture
async def sources(fake, short):
    made = {
        "openai": OpenAiSource(ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url, timeouts=short)),
        "anthropic": AnthropicSource(
            ProviderConfig("acme", SourceKind.ANTHROPIC, fake.base_url, timeouts=short)
        ),
        "ollama": OllamaSource(ProviderConfig("acme", SourceKind.OLLAMA, fake.base_url, timeouts=short)),
    }
    yield made
    for source in made.values():
        await source.close()


async def play(sources: Any, fake: FakeUpstream, accident: Accident) -> tuple[list[Any], str | None]:
    """Return the events that came through, and the sentence of the failure."""
    fake.script(accident.reply)
    chunks: list[CompletionChunk] = []
    try:
        async with aclosing(sources[accident.kind].stream(dict(BODY), MODEL, CONTEXT)) as stream:
            async for chunk in stream:
                chunks.append(chunk)
    except GatewayError as error:
        return events_of(chunks), error.message
    finally:
        fake.release.set()
    return events_of(chunks), None


def events_of(chunks: list[CompletionChunk]) -> list[Any]:
    text = b"".join(chunk.raw for chunk in chunks)
    assert b"canary" not in text
    assert b"event" not in text
    frames = text.split(b"\n\n")
    assert frames.pop() == b""
    assert all(frame.startswith(b"data: {") for frame in frames)
    return [orjson.loads(frame[6:]) for frame in frames]


@pytest.mark.parametrize("name", ACCIDENTS)
async def test_accident(sources: Any, fake: FakeUpstream, name: str) -> None:
    accident = ACCIDENTS[name]
    events, message = await play(sources, fake, accident)
    choices = [choice for event in events for choice in event["choices"]]
    assert not any(event.get("error") for event in events)
    if accident.error is None:
        assert message is None
    else:
        assert message is not None
        assert "'acme'" in message
        assert accident.error in message
        assert len(message) < 1000
    gatherer = Gatherer()
    gatherer.feed(events)
    (choice,) = gatherer.completion()["choices"]
    said = choice["message"]
    calls = [
        (call["function"]["name"], orjson.loads(call["function"]["arguments"]))
        for call in said.get("tool_calls", ())
    ]
    assert (said["content"] or "") == accident.text
    assert said.get("reasoning_content", "") == accident.thoughts
    assert calls == list(accident.tool_calls)
    reasons = {choice["finish_reason"] for choice in choices if choice.get("finish_reason")}
    assert reasons == ({accident.finish_reason} - {None})
    assert bool(events) is accident.is_begun
    if accident.error is None:
        usage = [usage_of(event) for event in events if usage_of(event)]
        counts = {(item["prompt_tokens"], item["completion_tokens"]) for item in usage}
        assert counts == ({accident.usage} - {None})


def test_thoughts_are_never_said_twice() -> None:
    accident = ACCIDENTS["openai: reasoning twice"]
    (first, *_) = accident.reply.steps
    assert isinstance(first, bytes)
    assert reasoning_of(orjson.loads(first.strip()[6:])["choices"][0]["delta"]) == accident.thoughts


async def test_all_at_once_nothing_is_mixed_up(sources: Any) -> None:
    """Each accident at its own provider, all at the same time: no outcome changes."""
    well = [accident for accident in ACCIDENTS.values() if accident.error is None]

    async def one(accident: Accident) -> str:
        async with FakeUpstream() as fake:
            url = fake.openai_url if accident.kind == "openai" else fake.base_url
            config = ProviderConfig("acme", SourceKind(accident.kind), url)
            source = type(sources[accident.kind])(config)
            events, message = await play({accident.kind: source}, fake, accident)
            await source.close()
        assert message is None
        gatherer = Gatherer()
        gatherer.feed(events)
        return gatherer.completion()["choices"][0]["message"]["content"] or ""

    assert await asyncio.gather(*map(one, well)) == [accident.text for accident in well]
