import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.gemini import MAX_PAGES, GeminiSource
from tests.fakes.providers.strict.gemini import StrictGemini, answer
from tests.fakes.providers.upstream import Reply, json_reply, sse

CONTEXT = CallContext("r1", "u1")
MODEL = Model("g/gemini-3-flash", "m", "google", "acme", "gemini-3-flash")
HELLO = {"model": "gemini-3-flash", "messages": [{"role": "user", "content": "hi"}]}
BLOCKED = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 1}}


@pytest.fixture
async def strict():
    async with StrictGemini() as server:
        yield server


@pytest.fixture(params=["", "/v1beta", "/v1beta/"])
async def source(request, strict, short):
    opened = GeminiSource(config_of(strict, short, base_url=strict.base_url + request.param))
    yield opened
    await opened.close()


def config_of(strict, short, **fields):
    base = {"base_url": strict.base_url, "key": strict.key, "prefix": "g/", "timeouts": short}
    return ProviderConfig("acme", SourceKind.GEMINI, **{**base, **fields})


async def complete(source, **fields):
    return (await source.complete({**HELLO, **fields}, MODEL, CONTEXT)).body


async def streamed(source, **fields):
    return [
        event async for chunk in source.stream({**HELLO, **fields}, MODEL, CONTEXT) for event in chunk.events
    ]


async def test_models_with_their_limits(strict, short):
    source = GeminiSource(config_of(strict, short))
    others = [
        {"name": "models/veo", "supportedGenerationMethods": ["predictLongRunning"]},
        {"name": "models/new"},
    ]
    first = {
        "models": [{"name": "models/a", "inputTokenLimit": 9, "outputTokenLimit": 4}],
        "nextPageToken": "a/b",
    }
    strict.script(json_reply(first), json_reply({"models": others}))
    one, two = await source.list_models()
    await source.close()
    assert (one.id, one.upstream_id, one.owned_by) == ("g/a", "a", "google")
    assert one.detail["openai"] == {"id": "a", "context_length": 9, "max_completion_tokens": 4}
    assert two.id == "g/new"
    assert strict.requests[1].query == {"pageSize": "1000", "pageToken": "a/b"}


async def test_an_endless_list_ends(strict, short):
    source = GeminiSource(config_of(strict, short))
    strict.script(*[json_reply({"models": [], "nextPageToken": "a"})] * MAX_PAGES)
    with pytest.raises(GatewayError, match="over 20 pages"):
        await source.list_models()
    await source.close()


@pytest.mark.parametrize("ask", [complete, streamed])
async def test_a_wrong_key_is_not_the_callers(strict, short, ask):
    source = GeminiSource(config_of(strict, short, key="AIza-wrong"))
    with pytest.raises(GatewayError, match="API key not valid") as caught:
        await ask(source)
    await source.close()
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


@pytest.mark.parametrize("ask", [complete, streamed])
async def test_an_unknown_model(source, ask):
    with pytest.raises(GatewayError, match="is not found for API version v1beta") as caught:
        other = Model("x", "x", "google", "acme", "gone")
        if ask is complete:
            await source.complete(HELLO, other, CONTEXT)
        await anext(source.stream(HELLO, other, CONTEXT))
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("ask", "reply"), [(complete, json_reply(BLOCKED)), (streamed, Reply(steps=[sse(BLOCKED)]))]
)
async def test_a_blocked_prompt(strict, short, ask, reply):
    source = GeminiSource(config_of(strict, short))
    strict.script(reply)
    with pytest.raises(GatewayError, match="PROHIBITED_CONTENT") as caught:
        await ask(source)
    await source.close()
    assert (caught.value.kind, caught.value.provider_code) == (
        ErrorKind.INVALID_REQUEST,
        "content_policy_violation",
    )


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(steps=[sse(answer([{"text": "a"}]))]), "before it was complete"),
        (Reply(steps=[sse({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}})]), "busy"),
        (json_reply({}), "no 'candidates'"),
    ],
)
async def test_a_stream_that_fails(strict, short, reply, words):
    source = GeminiSource(config_of(strict, short))
    strict.script(reply)
    with pytest.raises(GatewayError, match=words):
        await streamed(source)
    await source.close()


async def test_the_signature_of_a_text_goes_back(source, strict):
    message = (await complete(source))["choices"][0]["message"]
    await complete(source, messages=[*HELLO["messages"], message, *HELLO["messages"]])
    parts = strict.requests[-1].json["contents"][1]["parts"]
    assert parts == [{"text": message["content"], "thoughtSignature": "c2lnbmVk"}]


async def test_native_fields_pass_and_others_are_told(source, strict):
    context = CallContext("r1", "u1")
    settings = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    body = {**HELLO, "top_k": 3, "safety_settings": settings, "logit_bias": {"1": 1}}
    await source.complete(body, MODEL, context)
    sent = strict.requests[-1].json
    assert (sent["generationConfig"]["topK"], sent["safetySettings"]) == (3, settings)
    assert len(context.warnings) == 1
    assert "logit_bias" in context.warnings[0]


async def test_embeddings(source, strict):
    answered = await source.embed({"input": ["a", "b"], "dimensions": 2}, MODEL, CONTEXT)
    assert [item["embedding"] for item in answered["data"]] == [[0.5, 0.25]] * 2
    assert strict.requests[-1].json["requests"][1] == {
        "model": "models/gemini-3-flash",
        "content": {"parts": [{"text": "b"}]},
        "outputDimensionality": 2,
    }
    with pytest.raises(GatewayError, match="no lists of tokens"):
        await source.embed({"input": [[1, 2]]}, MODEL, CONTEXT)
    strict.script(json_reply({"embeddings": [{"values": [1]}]}))
    with pytest.raises(GatewayError, match="a vector for each input"):
        await source.embed({"input": ["a", "b"]}, MODEL, CONTEXT)
