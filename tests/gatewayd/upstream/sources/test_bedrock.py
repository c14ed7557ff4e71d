import asyncio
from dataclasses import replace

import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.bedrock import BedrockSource
from gatewayd.upstream.sources.bedrock_client import endpoint_of, region_of
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind, UpstreamTimeouts
from gatewayd.upstream.tools.identity import IdentityHeaders
from tests.fakes.providers.strict.bedrock import STREAM_TYPE, StrictBedrock, frame
from tests.fakes.providers.strict.bedrock_embeddings import (
    COHERE_3,
    COHERE_4,
    EMBEDDERS,
    TITAN_1,
    TITAN_2,
    TITAN_IMAGE,
)
from tests.fakes.providers.upstream import CUT, SILENCE, Reply

NAME = "us.anthropic.claude-opus-4-6-v1"
CONTEXT = CallContext("r1", "u1")
MODEL = Model(NAME, NAME, "amazon", "acme", NAME)
HELLO = {"model": NAME, "messages": [{"role": "user", "content": "hi"}]}
START = frame("messageStart", {"role": "assistant"})
DELTA = frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hel"}})

# The first call makes a client, which takes a while.
PATIENT = UpstreamTimeouts(connect=2.0, first_byte=10.0, idle=0.3)

pytest.importorskip("botocore", reason="botocore is not installed")


@pytest.fixture
async def strict():
    async with StrictBedrock() as server:
        yield server


def opened(strict, **fields):
    base = {"base_url": strict.base_url, "key": strict.key, "timeouts": PATIENT}
    return BedrockSource(ProviderConfig("acme", SourceKind.BEDROCK, **{**base, **fields}))


@pytest.fixture
async def source(strict):
    made = opened(strict)
    yield made
    await made.close()


async def complete(source, **fields):
    return (await source.complete({**HELLO, **fields}, MODEL, CONTEXT)).body


async def streamed(source, **fields):
    return [
        event async for chunk in source.stream({**HELLO, **fields}, MODEL, CONTEXT) for event in chunk.events
    ]


async def test_models_and_profiles(source):
    one, two, three = await source.list_models()
    assert (one.id, one.name, two.id) == ("amazon.nova-2-lite-v1:0", "Nova", TITAN_2)
    assert three.id == NAME


async def test_headers_of_the_settings_and_of_the_user(strict):
    identity = IdentityHeaders()
    source = opened(strict, headers=(("X-Team", "red"),), identity=identity)
    await source.complete(HELLO, MODEL, CallContext("r1", "u7"))
    await source.close()
    sent = strict.requests[-1].headers
    assert sent["X-Team"] == "red"
    assert "u7" in sent.values()


@pytest.mark.parametrize(
    ("key", "is_taken"),
    [("right", True), ("wrong", False), ("AKID:other", True), ("other:secret-access-key", False)],
)
async def test_the_forms_of_a_key(strict, key, is_taken):
    source = opened(strict, key=key)
    try:
        if is_taken:
            assert await complete(source)
        else:
            with pytest.raises(GatewayError, match="security token is invalid") as caught:
                await complete(source)
            assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    finally:
        await source.close()


@pytest.mark.parametrize("ask", [complete, streamed])
@pytest.mark.parametrize(
    ("fields", "model", "kind", "words"),
    [
        ({"messages": [{"role": "assistant", "content": "a"}]}, NAME, ErrorKind.INVALID_REQUEST, "prefill"),
        ({"temperature": "hot"}, NAME, ErrorKind.INVALID_REQUEST, "Parameter validation failed"),
    ],
)
async def test_refusals(source, ask, fields, model, kind, words):
    with pytest.raises(GatewayError, match=words) as caught:
        await ask(source, **fields)
    assert caught.value.kind is kind


async def test_an_unknown_model(source):
    with pytest.raises(GatewayError, match="model identifier is invalid") as caught:
        await source.complete({**HELLO, "model": "gone"}, Model("g", "g", "x", "acme", "gone"), CONTEXT)
    assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("steps", "kind", "words"),
    [
        (
            [START, frame("throttlingException", {"message": "slow down"}, "exception")],
            ErrorKind.RATE_LIMITED,
            "slow down",
        ),
        (
            [START, frame("modelStreamErrorException", {"message": "died"}, "exception")],
            ErrorKind.UPSTREAM_FAILED,
            "died",
        ),
        ([START, DELTA], ErrorKind.UPSTREAM_FAILED, "before it was complete"),
        ([START, DELTA, CUT], ErrorKind.UPSTREAM_FAILED, "acme"),
        ([START, DELTA[:-4] + b"0000"], ErrorKind.UPSTREAM_FAILED, "acme"),
        ([START, SILENCE], ErrorKind.TIMEOUT, "in time"),
    ],
)
async def test_a_stream_that_fails(strict, source, steps, kind, words):
    strict.script(Reply(steps=steps, content_type=STREAM_TYPE))
    with pytest.raises(GatewayError, match=words) as caught:
        await streamed(source)
    assert caught.value.kind is kind


@pytest.mark.parametrize("reads", [True, False])
async def test_a_stream_that_is_left_ends_its_connection_and_gives_its_place(strict, reads):
    source = opened(strict, connections=1, timeouts=replace(PATIENT, idle=5.0))
    for _ in range(2):
        strict.script(Reply(steps=[START, DELTA, SILENCE], content_type=STREAM_TYPE))
        chunks = source.stream(HELLO, MODEL, CONTEXT)
        await anext(chunks)
        await anext(chunks)
        await strict.silent.wait()
        if reads:
            waiting = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0.02)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            await chunks.aclose()
        await asyncio.wait_for(strict.closed.wait(), 2)
        strict.closed.clear()
        strict.silent.clear()
    assert await complete(source)
    await source.close()


async def test_calls_are_bounded(strict):
    source = opened(strict, connections=1, timeouts=replace(PATIENT, connect=0.1, idle=2.0))
    strict.script(Reply(steps=[START, SILENCE], content_type=STREAM_TYPE))
    chunks = source.stream(HELLO, MODEL, CONTEXT)
    await anext(chunks)
    with pytest.raises(GatewayError, match="all of its 1 connections are in use") as caught:
        await complete(source)
    assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE
    await chunks.aclose()
    await source.close()


async def test_a_provider_that_is_not_there():
    config = ProviderConfig("acme", SourceKind.BEDROCK, "http://127.0.0.1:1", "AKID:secret", timeouts=PATIENT)
    source = BedrockSource(config)
    with pytest.raises(GatewayError, match="acme") as caught:
        await complete(source)
    assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE
    await source.close()


@pytest.mark.parametrize(
    ("url", "region", "control"),
    [
        (
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            "eu-west-1",
            "https://bedrock.eu-west-1.amazonaws.com",
        ),
        ("http://127.0.0.1:1", "us-east-1", "http://127.0.0.1:1"),
        ("https://proxy.example.org/bedrock", "us-east-1", "https://proxy.example.org/bedrock"),
    ],
)
def test_regions(url, region, control):
    assert (region_of(url), endpoint_of("bedrock", url).rstrip("/")) == (region, control)
    assert endpoint_of("bedrock-runtime", url) == url


def test_what_the_source_says_of_itself() -> None:
    url = "https://bedrock-runtime.us-east-1.amazonaws.com"
    source = BedrockSource(ProviderConfig("acme", SourceKind.BEDROCK, url, prefix="aws."))
    assert (source.name, source.model_prefix) == ("acme", "aws.")
    assert source.prepares(MODEL)


def embedder(name):
    return Model(name, name, "amazon", "acme", name)


@pytest.mark.parametrize(
    ("name", "fields", "size", "calls"),
    [
        (TITAN_1, {"dimensions": 1536}, 1536, 3),
        (TITAN_2, {"dimensions": 256}, 256, 3),
        (TITAN_IMAGE, {"dimensions": 384}, 384, 3),
        (COHERE_3, {"input_type": "query"}, 1024, 1),
        (COHERE_4, {"dimensions": 512}, 512, 1),
    ],
)
@pytest.mark.parametrize("connections", [1, 100])
async def test_embeddings(strict, name, fields, size, calls, connections):
    strict.models = EMBEDDERS
    source = opened(strict, connections=connections)
    body = {"model": name, "input": ["one", "two words", "and three words"], **fields}
    answer = await source.embed(body, embedder(name), CONTEXT)
    await source.close()
    assert [item["index"] for item in answer["data"]] == [0, 1, 2]
    assert [item["embedding"][0] for item in answer["data"]] == [3.0, 9.0, 15.0]
    assert {len(item["embedding"]) for item in answer["data"]} == {size}
    assert answer["usage"] == {"prompt_tokens": 6, "total_tokens": 6}
    assert [request.path for request in strict.requests] == [f"/model/{name}/invoke"] * calls


async def test_embeddings_that_fail(strict, source):
    strict.models = EMBEDDERS
    with pytest.raises(GatewayError, match="enum value") as caught:
        await source.embed({"model": TITAN_2, "input": ["a"], "dimensions": 7}, embedder(TITAN_2), CONTEXT)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    with pytest.raises(GatewayError, match="is not known") as caught:
        await source.embed({"model": NAME, "input": ["a"]}, MODEL, CONTEXT)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    for content in (b"{", b"[1]"):
        strict.script(Reply(steps=[content], content_type="application/json"))
        with pytest.raises(GatewayError, match="is not") as caught:
            await source.embed({"model": TITAN_2, "input": ["a"]}, embedder(TITAN_2), CONTEXT)
        assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


async def test_an_answer_of_an_embedder_has_a_limit(strict, source, monkeypatch):
    strict.models = EMBEDDERS
    monkeypatch.setattr("gatewayd.upstream.sources.bedrock_client.MAX_ANSWER_BYTES", 100)
    with pytest.raises(GatewayError, match="over 100 bytes"):
        await source.embed({"model": TITAN_2, "input": ["a"]}, embedder(TITAN_2), CONTEXT)
