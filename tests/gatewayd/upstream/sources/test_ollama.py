import pytest

from gatewayd.catalog.interfaces import CallContext, EmbeddingSource, RuntimeSource
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.ollama import OllamaSource
from tests.fakes.providers.upstream import CUT, SILENCE, Reply, json_reply, ndjson, ollama_reply

CONTEXT = CallContext("r1", "u1")
MODEL = Model("m", "m", "ollama", "runtime", "m")
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def source(fake, short):
    config = ProviderConfig("runtime", SourceKind.OLLAMA, fake.base_url + "/api/", index=2, timeouts=short)
    opened = OllamaSource(config)
    yield opened
    await opened.close()


async def collect(source, events):
    async for chunk in source.stream(BODY, MODEL, CONTEXT):
        events += chunk.events


async def test_models(source, fake):
    fake.models = ["llama:1b"]
    (model,) = await source.list_models()
    assert (model.id, model.name, model.owned_by, model.connection_type) == (
        "llama:1b",
        "llama:1b",
        "ollama",
        "local",
    )
    assert model.detail["ollama"]["urls"] == [2]
    assert model.detail["ollama"]["details"] == {"family": "fake"}
    assert model.detail["ollama"]["connection_type"] == "local"
    assert fake.requests[0].path == "/api/tags"


async def test_complete(source, fake):
    completion = await source.complete({**BODY, "temperature": 0.5}, MODEL, CONTEXT)
    assert completion.body["choices"][0]["message"]["content"] == "Hello from m"
    assert completion.body["usage"]["total_tokens"] == 5
    assert fake.requests[0].path == "/api/chat"
    assert fake.requests[0].json == {**BODY, "stream": False, "options": {"temperature": 0.5}}


@pytest.mark.parametrize(
    ("reply", "said"),
    [(json_reply({"done": True}), "no 'message'"), (json_reply({"error": "oom"}), "reported: oom")],
)
async def test_complete_that_is_no_answer(source, fake, reply, said):
    fake.script(reply)
    with pytest.raises(GatewayError, match=said):
        await source.complete(BODY, MODEL, CONTEXT)


async def test_unknown_model(source, fake):
    fake.script(json_reply({"error": "model 'm' not found"}, 404))
    with pytest.raises(GatewayError) as caught:
        await source.complete(BODY, MODEL, CONTEXT)
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/json"])
async def test_stream(source, fake, content_type):
    replies = [ollama_reply("a", done=False), ollama_reply("b", done=False), ollama_reply("")]
    text = ndjson(*replies).rstrip()
    fake.script(Reply(steps=[text[:70], text[70:]], content_type=content_type))
    body = {**BODY, "stream_options": {"include_usage": True}}
    events = [event async for chunk in source.stream(body, MODEL, CONTEXT) for event in chunk.events]
    assert [choice["delta"].get("content") for event in events for choice in event["choices"]] == [
        "a",
        "b",
        None,
    ]
    assert events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"]["eval_count"] == 2


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ([ndjson({"error": "out of memory"})], "it reported: out of memory"),
        ([], "ended before it was complete"),
        ([CUT], "broke off"),
        ([b"garbage\n"], "not JSON"),
        ([b"[]\n"], "not a JSON object"),
        ([b"x" * 1_100_000], "over 1048576 bytes"),
    ],
)
async def test_stream_failures(source, fake, rest, said):
    fake.script(Reply(steps=[ndjson(ollama_reply("a", done=False)), *rest]))
    events = []
    with pytest.raises(GatewayError, match=said):
        await collect(source, events)
    assert [event["choices"][0]["delta"]["content"] for event in events] == ["a"]


async def test_embed(source, fake):
    assert isinstance(source, EmbeddingSource)
    body = {"model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2}
    answer = await source.embed(body, MODEL, CONTEXT)
    assert [item["index"] for item in answer["data"]] == [0, 1]
    assert all(isinstance(item["embedding"], list) for item in answer["data"])
    assert (answer["object"], answer["model"]) == ("list", "m")
    assert fake.requests[0].path == "/api/embed"
    assert fake.requests[0].json == {"model": "m", "input": ["a", "b"], "dimensions": 2}


@pytest.mark.parametrize("answer", [{}, {"embeddings": 5}, {"embeddings": [1]}])
async def test_embed_that_is_no_answer(source, fake, answer):
    fake.script(json_reply(answer))
    with pytest.raises(GatewayError, match="'runtime': its answer has no list of 'embeddings'") as caught:
        await source.embed({"model": "m", "input": ["a"]}, MODEL, CONTEXT)
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


async def test_forward_passes_bytes_on(source, fake):
    assert isinstance(source, RuntimeSource)
    assert source.prefix == ""
    fake.script(Reply(status=201, steps=[b"{ }", b"\n"], content_type="application/x-ndjson"))
    answer = await source.forward("DELETE", "/api/delete", {"model": "m"})
    assert (answer.status, answer.content_type) == (201, "application/x-ndjson")
    assert b"".join([read async for read in answer]) == b"{ }\n"
    await answer.aclose()
    (request,) = fake.requests
    assert (request.method, request.path, request.json) == ("DELETE", "/api/delete", {"model": "m"})


async def test_forward_without_a_body(source, fake):
    answer = await source.forward("GET", "/api/tags", None)
    await answer.aclose()
    assert fake.requests[0].body == b""


async def test_a_page_is_no_answer(source, fake):
    fake.script(Reply(steps=[b"<html>", SILENCE], content_type="text/html; charset=utf-8"))
    with pytest.raises(GatewayError, match="HTML page"):
        await source.forward("POST", "/api/chat", BODY)
    await fake.closed.wait()
