"""One conversation with thinking, a picture, a call and a schema through every kind of source."""

import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind, UpstreamTimeouts
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.providers.completion_assembler import Gatherer
from tests.fakes.providers.strict.azure import StrictAzure
from tests.fakes.providers.strict.bedrock import StrictBedrock
from tests.fakes.providers.strict.conversation import (
    FIRST_FACTS,
    SECOND_FACTS,
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
    return (await source.complete({**body, "stream": False}, model, context)).body


async def streamed(source, body, model, context):
    gatherer = Gatherer()
    body = {**body, "stream": True, "stream_options": {"include_usage": True}}
    async for chunk in source.stream(body, model, context):
        gatherer.feed(chunk.events)
    return gatherer.completion()


@pytest.mark.parametrize("ask", [whole, streamed])
@pytest.mark.parametrize("site", SITES)
async def test_one_conversation(site, ask, short):
    server, name, config = site()
    async with server:
        url = server.openai_url if config["kind"] is SourceKind.OPENAI else server.base_url
        base = {"base_url": url, "key": server.key, "timeouts": short}
        source = open_source(ProviderConfig(name="acme", **{**base, **config}))
        try:
            model = next(each for each in await source.list_models() if each.upstream_id == name)
            context = CallContext("r1", "u1")
            first = first_request(name)
            answer = await ask(source, first, model, context)
            assert facts_of(answer) == FIRST_FACTS | LACKING.get(site, {})
            second = second_request(first, answer["choices"][0]["message"])
            answer = await ask(source, second, model, context)
            assert facts_of(answer) == SECOND_FACTS | LACKING.get(site, {})
        finally:
            await source.close()
    assert isinstance(model, Model)
    assert context.warnings == []
