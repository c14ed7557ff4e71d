"""One conversation with thinking, a picture, a call and a schema through every kind of source."""

from contextlib import asynccontextmanager

import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind, UpstreamTimeouts
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.providers.completion_assembler import Gatherer
from tests.fakes.providers.strict.azure import StrictAzure
from tests.fakes.providers.strict.bedrock import StrictBedrock
from tests.fakes.providers.strict.conversation import (
    FIRST_FACTS,
    SECOND_FACTS,
    TOOL,
    facts_of,
    first_request,
    second_request,
)
from tests.fakes.providers.strict.gemini import StrictGemini
from tests.fakes.providers.strict.responses import StrictResponses


def responses_site():
    return StrictResponses(), "gpt-6-astra", {"kind": SourceKind.OPENAI, "upstream": "responses"}


def azure_site():
    config = {"kind": SourceKind.AZURE, "upstream": "responses", "models": ("gpt-6-astra",)}
    return StrictAzure(["gpt-6-astra"]), "gpt-6-astra", config


def gemini_site():
    return StrictGemini(), "gemini-3-flash", {"kind": SourceKind.GEMINI}


def bedrock_site():
    pytest.importorskip("botocore", reason="botocore is not installed")
    return (
        StrictBedrock(),
        "us.anthropic.claude-opus-4-6-v1",
        {"kind": SourceKind.BEDROCK, "timeouts": UpstreamTimeouts(first_byte=10.0)},
    )


SITES = [responses_site, azure_site, gemini_site, bedrock_site]

LACKING = {bedrock_site: {"reasoning": 0}}
"""What a protocol does not tell."""


async def whole(source, body, model, context):
    body = await source.prepare(body, model, context)
    return (await source.complete({**body, "stream": False}, model, context)).body


async def streamed(source, body, model, context):
    gatherer = Gatherer()
    body = await source.prepare(body, model, context)
    body = {**body, "stream": True, "stream_options": {"include_usage": True}}
    async for chunk in source.stream(body, model, context):
        gatherer.feed(chunk.events)
    return gatherer.completion()


OPAQUE = {
    responses_site: b'"encrypted_content":"sealed for org"',
    azure_site: b'"encrypted_content":"sealed for org"',
    gemini_site: b'"thoughtSignature":"c2lnbmVk"',
    bedrock_site: b'"signature": "c2lnbmVk"',
}
"""What the provider gets back of its own reasoning."""


@asynccontextmanager
async def opened(site, short):
    server, name, config = site()
    async with server:
        url = server.openai_url if config["kind"] is SourceKind.OPENAI else server.base_url
        base = {"base_url": url, "key": server.key, "timeouts": short}
        source = open_source(ProviderConfig(name="acme", **{**base, **config}))
        try:
            model = next(each for each in await source.list_models() if each.upstream_id == name)
            yield server, source, model
        finally:
            await source.close()


@pytest.mark.parametrize("ask", [whole, streamed])
@pytest.mark.parametrize("site", SITES)
async def test_one_conversation(site, ask, short):
    context = CallContext("r1", "u1")
    async with opened(site, short) as (server, source, model):
        first = first_request(model.upstream_id)
        answer = await ask(source, first, model, context)
        assert facts_of(answer) == FIRST_FACTS | LACKING.get(site, {})
        second = second_request(first, answer["choices"][0]["message"])
        answer = await ask(source, second, model, context)
        assert facts_of(answer) == SECOND_FACTS | LACKING.get(site, {})
        assert OPAQUE[site] in server.requests[-1].body
    assert context.warnings == []


@pytest.mark.parametrize("site", SITES)
async def test_a_turn_of_another_maker(site, short):
    """Its call has a long id of other letters, and nothing that this maker signed."""
    call = {"id": "call:" + "x" * 80, "type": "function", "function": {"name": TOOL, "arguments": ""}}
    turn = {"role": "assistant", "content": "", "reasoning_content": "Hm", "tool_calls": [call]}
    async with opened(site, short) as (_, source, model):
        body = second_request(first_request(model.upstream_id), turn)
        answer = await whole(source, body, model, CallContext("r1", "u1"))
    assert facts_of(answer) == SECOND_FACTS | LACKING.get(site, {})
