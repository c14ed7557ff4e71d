import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.dialects.providers.rules import Protocol, Rules
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.sources.openai import OpenAiSource
from gatewayd.upstream.sources.provider_client import ProviderClient
from gatewayd.upstream.sources.responses import ResponsesProtocol, uses_responses
from tests.fakes.providers.completion_assembler import Gatherer
from tests.fakes.providers.strict.responses import StrictResponses
from tests.fakes.providers.upstream import CUT, Reply, anthropic_events, json_reply

HELLO = {"model": "gpt-6-astra", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def strict():
    async with StrictResponses() as server:
        yield server


@pytest.fixture
async def protocol(strict, short):
    config = ProviderConfig("acme", SourceKind.OPENAI, strict.openai_url, strict.key, timeouts=short)
    exchange = ProviderClient(config, {"Authorization": f"Bearer {strict.key}"})
    yield ResponsesProtocol("acme", exchange, ModelRules(config))
    await exchange.close()


def model_of(body):
    return Model(body["model"], body["model"], "openai", "acme", body["model"])


def context_of(warnings):
    return CallContext("r1", "u1", warnings=warnings)


async def whole(protocol, body, warnings):
    return (await protocol.complete(body, model_of(body), context_of(warnings))).body


async def streamed(protocol, body, warnings):
    gatherer = Gatherer()
    body = {**body, "stream_options": {"include_usage": True}}
    async for chunk in protocol.stream(body, model_of(body), context_of(warnings)):
        gatherer.feed(chunk.events)
    return gatherer.completion()


@pytest.mark.parametrize("ask", [whole, streamed])
async def test_reasoning_of_another_organization_is_left_out(strict, protocol, ask):
    warnings = []
    first = await ask(protocol, HELLO, warnings)
    message = first["choices"][0]["message"]
    again = {**HELLO, "messages": [*HELLO["messages"], message, HELLO["messages"][0]]}
    assert (await ask(protocol, again, warnings))["choices"][0]["message"]["content"]
    assert len(strict.requests) == 2
    assert warnings == []
    strict.organization = "another"
    await ask(protocol, again, warnings)
    assert len(strict.requests) == 4
    assert warnings == ["left out the reasoning of earlier turns: the provider cannot read it"]


@pytest.mark.parametrize("ask", [whole, streamed])
@pytest.mark.parametrize(("model", "tries"), [("plain", 2), ("gpt-4o", 1), ("gpt-6-astra", 2)])
async def test_what_a_model_lacks_is_asked_once(strict, protocol, ask, model, tries):
    strict.has_summaries = False
    for _ in range(2):
        await ask(protocol, {**HELLO, "model": model}, [])
    assert len(strict.requests) == tries + 1
    assert "summary" not in strict.requests[-1].json.get("reasoning", {})


@pytest.mark.parametrize("ask", [whole, streamed])
async def test_a_refusal_is_not_repeated(strict, protocol, ask):
    function = {"name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": True}
    body = {**HELLO, "model": "unknown", "tools": [{"type": "function", "function": function}]}
    with pytest.raises(GatewayError, match="Invalid schema for function 'weather'") as caught:
        await ask(protocol, body, [])
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "tools[0].parameters")
    assert len(strict.requests) == 1


FAILED = {"id": "r", "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow down"}}


@pytest.mark.parametrize("ask", [whole, streamed])
async def test_a_failed_answer(strict, protocol, ask):
    strict.script(json_reply(FAILED))
    with pytest.raises(GatewayError, match="slow down") as caught:
        await ask(protocol, HELLO, [])
    assert caught.value.kind is ErrorKind.RATE_LIMITED


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([anthropic_events({"type": "response.failed", "response": FAILED})], "slow down"),
        ([anthropic_events({"type": "error", "message": "broke", "code": "server_error"})], "broke"),
        ([anthropic_events({"type": "response.created", "response": {"id": "r"}})], "before it was complete"),
        ([anthropic_events({"type": "response.created", "response": {"id": "r"}}), CUT], "acme"),
    ],
)
async def test_a_stream_that_fails(strict, protocol, steps, words):
    strict.script(Reply(steps=steps))
    with pytest.raises(GatewayError, match=words):
        await streamed(protocol, HELLO, [])


@pytest.mark.parametrize("ask", [whole, streamed])
async def test_an_answer_without_output(strict, protocol, ask):
    strict.script(json_reply({"id": "r", "status": "completed"}))
    with pytest.raises(GatewayError, match="no 'output'"):
        await ask(protocol, HELLO, [])


async def test_a_whole_answer_to_a_stream(strict, protocol):
    expected = await whole(protocol, HELLO, [])
    response = strict.requests[-1]
    assert "stream" not in response.json
    strict.script(strict._respond({**response.json, "stream": False}))
    assert (await streamed(protocol, HELLO, []))["choices"] == expected["choices"]


TOOLS = {"tools": [{"type": "function", "function": {"name": "weather"}}]}


@pytest.mark.parametrize(
    ("fields", "protocol", "forced", "expected"),
    [
        ({}, Protocol.CHAT, "", False),
        (TOOLS, Protocol.CHAT, "", False),
        ({}, Protocol.RESPONSES, "", True),
        ({}, Protocol.RESPONSES_WITH_TOOLS, "", False),
        ({"tools": []}, Protocol.RESPONSES_WITH_TOOLS, "", False),
        (TOOLS, Protocol.RESPONSES_WITH_TOOLS, "", True),
        ({**TOOLS, "reasoning_effort": "none"}, Protocol.RESPONSES_WITH_TOOLS, "", False),
        ({}, Protocol.CHAT, "responses", True),
        (TOOLS, Protocol.CHAT, "responses_with_tools", True),
        (TOOLS, Protocol.RESPONSES, "chat", False),
        (TOOLS, Protocol.RESPONSES, ["nonsense"], True),
    ],
)
def test_which_protocol(fields, protocol, forced, expected):
    assert uses_responses(fields, Rules(protocol=protocol), forced) is expected


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"upstream": "responses"}, {}),
        ({}, {"protocol": "responses"}),
    ],
)
async def test_a_source_of_chat_completions_hands_over(strict, short, fields, rules):
    config = ProviderConfig(
        "acme", SourceKind.OPENAI, strict.openai_url, strict.key, timeouts=short, **fields
    )
    source = OpenAiSource(config)
    model = Model("m", "m", "openai", "acme", "gpt-6-astra", rules=rules)
    completion = await source.complete(HELLO, model, context_of([]))
    chunks = [chunk async for chunk in source.stream(HELLO, model, context_of([]))]
    await source.close()
    assert completion.body["choices"][0]["message"]["content"]
    assert chunks
    assert [request.path for request in strict.requests] == ["/v1/responses"] * 2


async def test_a_family_that_takes_tools_there_only(strict, short):
    config = ProviderConfig(
        "acme", SourceKind.OPENAI, strict.openai_url, strict.key, timeouts=short, maker="openai"
    )
    source = OpenAiSource(config)
    model = Model("m", "m", "openai", "acme", "gpt-5.6-sol")
    body = {**HELLO, "model": "gpt-5.6-sol"}
    for fields in ({}, TOOLS, {**TOOLS, "reasoning_effort": "none"}):
        await source.complete({**body, **fields}, model, context_of([]))
    await source.close()
    paths = [request.path.removeprefix("/v1") for request in strict.requests]
    assert paths == ["/chat/completions", "/responses", "/chat/completions"]


async def test_another_server_of_the_family_is_asked_in_chat_completions(strict, short):
    config = ProviderConfig("acme", SourceKind.OPENAI, strict.openai_url, strict.key, timeouts=short)
    source = OpenAiSource(config)
    model = Model("m", "m", "openai", "acme", "gpt-5.6-sol")
    await source.complete({**HELLO, **TOOLS, "model": "gpt-5.6-sol"}, model, context_of([]))
    await source.close()
    assert [request.path for request in strict.requests] == ["/v1/chat/completions"]
