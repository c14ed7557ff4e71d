from dataclasses import replace

import pytest

from gatewayd.catalog.interfaces import CallContext, EmbeddingSource, ForwardingSource, RuntimeSource
from gatewayd.catalog.model_list import MAX_MODELS
from gatewayd.catalog.records import Model
from gatewayd.dialects.providers.family import TEXT_EMBEDDERS
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources import provider_client
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.openai import OpenAiSource
from tests.fakes.providers.upstream import (
    FakeUpstream,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    sse,
)

CONTEXT = CallContext("r1", "u1", "Ada", "ada@example.com", "admin")
MODEL = Model("acme.m", "m", "openai", "acme", "m")


@pytest.fixture
async def opened(fake):
    sources = []

    def open_it(**fields):
        source = OpenAiSource(ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url, **fields))
        sources.append(source)
        return source

    yield open_it
    for source in sources:
        await source.close()


async def test_models(opened, fake):
    fake.models = ["a", "b"]
    source = opened(key="hunter2", prefix="acme.", models=("b",), index=3)
    assert source.name == "acme"
    (model,) = await source.list_models()
    listed = {"id": "b", "object": "model", "created": 1_700_000_000, "owned_by": "fake"}
    detail = {"openai": listed, "urlIdx": 3}
    assert model == Model("acme.b", "b", "openai", "acme", "b", 1_700_000_000, "external", detail)
    assert fake.requests[0].headers["Authorization"] == "Bearer hunter2"


async def test_models_of_a_provider_without_a_list(opened, fake):
    fake.script(*[json_reply({}, 404)] * 2, json_reply({}, 401))
    source = opened(models=("b", "a"))
    assert [model.id for model in await source.list_models()] == ["b", "a"]
    with pytest.raises(GatewayError):
        await opened().list_models()
    with pytest.raises(GatewayError):
        await source.list_models()


async def test_a_list_that_is_none(opened, fake):
    fake.script(json_reply({"models": []}))
    with pytest.raises(GatewayError) as caught:
        await opened().list_models()
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


async def test_a_long_list_is_read_in_slices_and_cut(opened, fake):
    fake.script(json_reply({"data": [{"id": f"m{number}"} for number in range(20_000)]}))
    assert len(await opened().list_models()) == MAX_MODELS + 1


async def test_a_list_over_the_limit_is_a_failure(opened, fake, monkeypatch):
    monkeypatch.setattr(provider_client, "MAX_LIST_BYTES", 100)
    fake.models = [f"model-{number}" for number in range(50)]
    with pytest.raises(GatewayError, match="100 bytes") as caught:
        await opened().list_models()
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "tool_choice": "required",
    "response_format": {"type": "json_object"},
    "logit_bias": {"5": -1},
    "odd": {"nested": [None, 1.5]},
}


async def test_complete(opened, fake):
    raw = b' {"choices": [ ], "odd": 1}'
    fake.script(Reply(steps=[raw], content_type="application/json"))
    completion = await opened().complete(dict(BODY), MODEL, CONTEXT)
    assert completion.raw == raw
    assert completion.body == {"choices": [], "odd": 1}
    (request,) = fake.requests
    assert request.json == BODY
    assert "Authorization" not in request.headers
    assert "ada" not in str(request.headers).lower()


async def test_complete_asks_for_no_stream_and_lets_the_body_be(opened, fake):
    body = {**BODY, "stream": True}
    await opened().complete(body, MODEL, CONTEXT)
    assert fake.requests[0].json["stream"] is False
    assert body["stream"] is True


async def test_complete_leaves_the_options_of_streams_out(opened, fake):
    body = {**BODY, "stream_options": {"include_usage": True}}
    await opened().complete(body, MODEL, CONTEXT)
    await opened().complete({**body, "stream": True}, MODEL, CONTEXT)
    assert [request.json for request in fake.requests] == [BODY, {**BODY, "stream": False}]
    assert "stream_options" in body


async def test_a_converted_request_is_stripped_of_what_only_another_protocol_knows(opened, fake):
    part = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    body = {"model": "m", "messages": [{"role": "user", "content": [part]}], "thinking": {}, "max_tokens": 5}
    source, converted = opened(), replace(CONTEXT, is_converted=True)
    await source.complete(body, MODEL, converted)
    async for _ in source.stream(body, MODEL, converted):
        pass
    await source.complete(body, MODEL, CONTEXT)
    whole, streamed, untouched = [request.json for request in fake.requests]
    assert whole.keys() == {"model", "messages", "max_tokens"}
    assert "hi" in str(whole)
    assert "cache_control" not in str(whole)
    assert streamed == {**whole, "stream": True}
    assert untouched == body


async def test_complete_drops_a_foreign_event(opened, fake):
    fake.script(json_reply({**openai_completion("hi"), "event": {"type": "execute"}}))
    completion = await opened().complete(dict(BODY), MODEL, CONTEXT)
    assert b"execute" not in completion.raw


async def test_complete_needs_choices(opened, fake):
    fake.script(json_reply({"id": "x"}))
    with pytest.raises(GatewayError, match="no 'choices'"):
        await opened().complete(dict(BODY), MODEL, CONTEXT)


async def test_stream(opened, fake):
    reads = [
        sse(openai_chunk(content="a")),
        sse({**openai_chunk(), "choices": [], "usage": {}}, openai_chunk(finish_reason="stop")),
    ]
    fake.script(Reply(steps=[*reads, sse(b"[DONE]")]))
    body = {**BODY, "stream_options": {"include_usage": True}}
    chunks = [chunk async for chunk in opened().stream(body, MODEL, CONTEXT)]
    assert b"".join(chunk.raw for chunk in chunks) == b"".join(reads)
    assert fake.requests[0].json == {**body, "stream": True}
    assert "stream" not in body


async def test_stream_that_comes_whole(opened, fake):
    fake.script(json_reply(openai_completion("hi")), json_reply({"id": "x"}))
    source = opened()
    (chunk,) = [chunk async for chunk in source.stream(dict(BODY), MODEL, CONTEXT)]
    assert chunk.events[0]["choices"][0]["delta"]["content"] == "hi"
    with pytest.raises(GatewayError, match="no 'choices'"):
        await anext(source.stream(dict(BODY), MODEL, CONTEXT))


async def test_what_it_also_does(opened):
    source = opened(prefix="acme.")
    assert isinstance(source, EmbeddingSource)
    assert isinstance(source, ForwardingSource)
    assert not isinstance(source, RuntimeSource)


ASKED = {"model": "m", "input": ["a", "b"], "dimensions": 2, "encoding_format": "base64"}


async def test_embed(opened, fake):
    answer = await opened(key="hunter2").embed(dict(ASKED), MODEL, CONTEXT)
    assert [len(item["embedding"]) for item in answer["data"]] == [32, 32]
    (request,) = fake.requests
    assert (request.method, request.path) == ("POST", "/v1/embeddings")
    assert request.json == {**ASKED, "encoding_format": "float"}
    assert request.headers["Authorization"] == "Bearer hunter2"


@pytest.mark.parametrize("maker", sorted(TEXT_EMBEDDERS))
@pytest.mark.parametrize("tokens", [[[1, 2]], [[1], [2]]])
async def test_embed_refuses_tokens_at_makers_that_take_texts(opened, fake, maker, tokens):
    with pytest.raises(GatewayError, match="no lists of tokens") as caught:
        await opened(maker=maker).embed({"model": "m", "input": tokens}, MODEL, CONTEXT)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "input")
    assert fake.requests == []


async def test_embed_passes_tokens_to_others(opened, fake):
    fake.script(json_reply({"data": [{"embedding": [1], "index": 0}]}))
    await opened().embed({"model": "m", "input": [[1, 2]]}, MODEL, CONTEXT)
    assert fake.requests[-1].json["input"] == [[1, 2]]


async def test_embed_puts_vectors_in_their_order(opened, fake):
    first, second = {"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [2.0]}
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    fake.script(json_reply({"object": "list", "data": [second, first], "usage": usage}))
    answer = await opened().embed(dict(ASKED), MODEL, CONTEXT)
    assert (answer["data"], answer["usage"]) == ([first, second], usage)


async def test_embed_takes_vectors_without_numbers_as_they_come(opened, fake):
    data = [{"embedding": [2.0]}, {"embedding": [1.0]}]
    fake.script(json_reply({"data": data}))
    assert (await opened().embed(dict(ASKED), MODEL, CONTEXT))["data"] == data


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"index": 0},
        [{"index": 0}, "b"],
        [{"index": 0}, {}],
        [{"index": 0}, {"index": 0}],
        [{"index": 1}, {"index": 2}],
        [{"index": False}, {"index": True}],
        [{"index": [0]}, {"index": [1]}],
    ],
)
async def test_embed_needs_numbered_vectors(opened, fake, data):
    fake.script(json_reply({"data": data}))
    with pytest.raises(GatewayError) as caught:
        await opened().embed(dict(ASKED), MODEL, CONTEXT)
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert "'acme'" in caught.value.message


async def test_forward(opened, fake):
    raw = b'event: odd\ndata: {"type":"odd"}\n\ndata: [DONE]\n\n'
    fake.script(Reply(201, steps=[raw], content_type="text/event-stream"))
    answer = await opened(key="hunter2").forward("POST", "/responses", {"model": "m", "odd": None})
    assert (answer.status, answer.content_type) == (201, "text/event-stream")
    assert b"".join([read async for read in answer]) == raw
    await answer.aclose()
    (request,) = fake.requests
    assert (request.method, request.path, request.json) == (
        "POST",
        "/v1/responses",
        {"model": "m", "odd": None},
    )
    assert request.headers["Authorization"] == "Bearer hunter2"


async def test_forward_without_the_path(opened, fake):
    with pytest.raises(GatewayError) as caught:
        await opened().forward("POST", "/nothing", {})
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert "/v1/nothing" in caught.value.message


async def test_unix_socket(tmp_path):
    fake = FakeUpstream()
    path = str(tmp_path / "model.sock")
    await fake.start(path)
    config = ProviderConfig(
        "built-in",
        SourceKind.OPENAI,
        "http://localhost/v1",
        socket_path=path,
        owned_by="local",
        connection_type="local",
    )
    source = OpenAiSource(config)
    try:
        (model,) = await source.list_models()
        assert (model.owned_by, model.connection_type) == ("local", "local")
        completion = await source.complete({"model": "m", "messages": []}, model, CONTEXT)
        assert completion.body["choices"][0]["message"]["content"] == "Hello from m"
    finally:
        await source.close()
        await fake.stop()


CACHE = {"type": "ephemeral"}


@pytest.mark.parametrize(
    ("model", "maker", "kept"),
    [
        ("anthropic/claude-sonnet-5", "openrouter", 4),
        ("anthropic/claude-sonnet-5", "", 4),
        ("team-model", "", 0),
        ("claude-sonnet-5", "openai", 0),
        ("openai/gpt-5", "openrouter", 0),
    ],
)
async def test_the_cache_of_a_messages_request_reaches_claude_behind_a_proxy(
    opened, fake, model, maker, kept
):
    def cached(text):
        return {"type": "text", "text": text, "cache_control": CACHE}

    tool = {"type": "function", "function": {"name": "f", "parameters": {}}, "cache_control": CACHE}
    messages = [
        {"role": "system", "content": [cached("a"), cached("b")]},
        {"role": "user", "content": [cached("c"), {"type": "text", "text": "d"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "e"}]},
        {"role": "user", "content": [cached("f")]},
    ]
    body = {"model": "m", "messages": messages, "tools": [tool]}
    context = CallContext("r1", "u1", is_converted=True)
    fake.script(json_reply(openai_completion("x")))
    await opened(maker=maker).complete(body, replace(MODEL, upstream_id=model), context)
    sent = fake.requests[-1].json
    assert str(sent).count("cache_control") == kept
    assert ("left out cache_control of all but the last 4 blocks" in context.warnings) is bool(kept)
    assert sent["messages"][2]["content"] == "e"
    assert (sent["messages"][-1]["content"] == "f") is not bool(kept)
    assert str(body).count("cache_control") == 5


async def test_a_family_tells_that_an_alias_is_claude(opened, fake):
    fake.script(json_reply(openai_completion("x")))
    part = {"type": "text", "text": "a", "cache_control": CACHE}
    body = {"model": "m", "messages": [{"role": "user", "content": [part]}]}
    context = CallContext("r1", "u1", is_converted=True)
    await opened().complete(body, replace(MODEL, family="claude-opus-4-8"), context)
    assert fake.requests[-1].json["messages"] == body["messages"]
