"""Tests for gatewayd.http.public.completions.embeddings, from client to provider."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, InternalServerError, NotFoundError, RateLimitError

from gatewayd.http.public.completions.embeddings import EmbeddingRoutes
from gatewayd.http.routes import BASES
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.pipeline import NoFilters
from gatewayd.upstream.sources.bedrock import BedrockSource
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from tests.fakes.http.public_app import Client, bearer
from tests.fakes.providers.catalog import three_providers
from tests.fakes.providers.strict.bedrock import StrictBedrock
from tests.fakes.providers.strict.bedrock_embeddings import EMBEDDERS
from tests.fakes.providers.upstream import SILENCE, FakeUpstream, Reply, json_reply

BODY = {"model": "acme.m", "input": "hello"}


@pytest.fixture
async def gateway() -> AsyncIterator[tuple[FakeUpstream, Client]]:
    async with three_providers(
        lambda catalog: EmbeddingRoutes(EmbeddingService(catalog, NoFilters()), body_limit=1_000_000).routes()
    ) as made:
        yield made


@pytest.fixture
async def fake(gateway: tuple[FakeUpstream, Client]) -> FakeUpstream:
    return gateway[0]


@pytest.fixture
async def client(gateway: tuple[FakeUpstream, Client]) -> Client:
    return gateway[1]


@pytest.fixture
async def openai(client: Client) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key="admin", base_url=str(client.make_url("/v1")), max_retries=0) as made:
        yield made


def expected(text: str) -> list[float]:
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()]


@pytest.mark.parametrize("base", BASES)
async def test_answers_under_every_alias_to_those_who_may(client: Client, base: str) -> None:
    path = f"{base}/embeddings"
    assert (await client.post(path, json=BODY)).status == 401
    assert (await client.post(path, json=BODY, headers=bearer("pending"))).status == 403
    assert (await client.post(path, json=BODY, headers=bearer("user"))).status == 404
    reply = await client.post(path, json=BODY, headers=bearer("admin"))
    assert reply.status == 200
    assert await reply.json() == {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": expected("hello")}],
        "model": "acme.m",
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }


async def test_official_client_with_its_base64_and_with_floats(
    openai: AsyncOpenAI, fake: FakeUpstream
) -> None:
    packed = await openai.embeddings.create(model="acme.m", input=["a", "b"])
    floats = await openai.embeddings.create(model="acme.m", input=["a", "b"], encoding_format="float")
    assert [item.embedding for item in floats.data] == [expected("a"), expected("b")]
    for one, other in zip(packed.data, floats.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, rel=1e-6)
        assert one.index == other.index
    assert {request.json["encoding_format"] for request in fake.requests} == {"float"}
    assert {request.json["model"] for request in fake.requests} == {"m"}
    assert packed.model == "acme.m"


async def test_limits_of_the_provider_reach_the_caller(client: Client, fake: FakeUpstream) -> None:
    vectors = {"object": "list", "data": [{"index": 0, "embedding": [0.5]}]}
    fake.script(json_reply(vectors, X_RateLimit_Limit_Requests="60"))
    body = {"model": "acme.m", "input": "x"}
    reply = await client.post("/v1/embeddings", json=body, headers=bearer("admin"))
    assert (reply.status, reply.headers["x-ratelimit-limit-requests"]) == (200, "60")


async def test_official_client_with_many_inputs(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    texts = [str(number) for number in range(130)]
    answer = await openai.embeddings.create(model="acme.m", input=texts, dimensions=32)
    assert sorted(len(request.json["input"]) for request in fake.requests) == [2, 64, 64]
    assert {request.json["dimensions"] for request in fake.requests} == {32}
    assert [item.index for item in answer.data] == list(range(130))
    for item, text in zip(answer.data, texts, strict=True):
        assert item.embedding == pytest.approx(expected(text), rel=1e-6)


async def test_official_client_with_a_local_runtime(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    texts = [str(number) for number in range(65)]
    answer = await openai.embeddings.create(model="local.m", input=texts)
    assert {(request.path, request.json["model"]) for request in fake.requests} == {("/api/embed", "m")}
    for item, text in zip(answer.data, texts, strict=True):
        assert item.embedding == pytest.approx(expected(text), rel=1e-6)


async def test_official_client_with_tokens(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(json_reply({"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": 2}}))
    answer = await openai.embeddings.create(model="acme.m", input=[5, 6])
    assert fake.requests[0].json["input"] == [[5, 6]]
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 2


async def test_refusals_reach_the_official_client(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    with pytest.raises(BadRequestError) as bad:
        await openai.embeddings.create(model="acme.m", input=[])
    assert bad.value.param == "input"
    with pytest.raises(NotFoundError) as unknown:
        await openai.embeddings.create(model="nothing", input="a")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(NotFoundError) as missing:
        await openai.embeddings.create(model="claude.m", input="a")
    assert missing.value.code == "endpoint_not_found"
    assert "'claude'" in missing.value.message
    assert fake.requests == []


async def test_one_failing_batch_is_the_providers_failure(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(json_reply({"error": {"message": "slow down"}}, 429, Retry_After="5"))
    with pytest.raises(RateLimitError) as caught:
        await openai.embeddings.create(model="acme.m", input=["a"] * 130)
    assert "'acme'" in caught.value.message
    assert "slow down" in caught.value.message
    assert caught.value.response.headers["Retry-After"] == "5"


ONE = {"index": 0, "embedding": [1.0]}


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (json_reply({"data": [ONE]}), "1 embeddings for 2 inputs"),
        (json_reply({"data": [ONE, ONE]}), "not numbered"),
        (json_reply({"data": [ONE, {"index": 1, "embedding": [1.0, 2.0]}]}), "differ in length"),
        (json_reply({"data": [ONE, {"index": 1, "embedding": "AACAPw=="}]}), "not a list of numbers"),
        (json_reply({"vectors": []}), "'data'"),
        (Reply(steps=[b'{"data": [{"embedding": [NaN]}]}'], content_type="application/json"), "not JSON"),
        (Reply(steps=[b'{"data": [{"embedding": [1e999]}]}'], content_type="application/json"), "not JSON"),
        (json_reply({"error": "no vectors"}), "no vectors"),
        (json_reply({"error": "key"}, 401), "answered 401"),
    ],
)
async def test_a_providers_nonsense_names_it(
    openai: AsyncOpenAI, fake: FakeUpstream, reply: Reply, sentence: str
) -> None:
    fake.script(reply)
    with pytest.raises(InternalServerError) as caught:
        await openai.embeddings.create(model="acme.m", input=["a", "b"])
    assert caught.value.status_code == 502
    assert "'acme'" in caught.value.message
    assert sentence in caught.value.message


async def test_a_provider_without_embeddings(client: Client, fake: FakeUpstream) -> None:
    fake.script(Reply(404, steps=[b"<html>"], content_type="text/html"))
    reply = await client.post("/api/embeddings", json=BODY, headers=bearer("admin"))
    answer: dict[str, Any] = await reply.json()
    assert (reply.status, answer["error"]["code"]) == (404, "endpoint_not_found")
    assert answer["detail"] == answer["error"]["message"]


async def test_leaving_closes_every_connection_to_the_provider(client: Client, fake: FakeUpstream) -> None:
    fake.script(*[Reply(before=SILENCE) for _ in range(4)])
    body = {"model": "acme.m", "input": ["a"] * 640}
    loop = asyncio.get_running_loop()
    asking = loop.create_task(client.post("/v1/embeddings", json=body, headers=bearer("admin")))
    await fake.silent.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.wait_for(fake.closed.wait(), 1)
    assert len(fake.requests) <= 4


async def test_a_deployment_is_a_model(client: Client) -> None:
    path = "/openai/deployments/acme.m/embeddings?api-version=2024-10-21"
    reply = await client.post(path, json={"input": "hello"}, headers={"api-key": "admin"})
    assert (await reply.json())["data"][0]["embedding"] == expected("hello")


@pytest.mark.parametrize("name", EMBEDDERS)
async def test_bedrock(name: str) -> None:
    """The official client gets base64 by default; 100 texts are several requests to each model."""
    pytest.importorskip("botocore", reason="botocore is not installed")
    async with StrictBedrock(EMBEDDERS) as region:
        config = ProviderConfig("aws", SourceKind.BEDROCK, region.base_url, region.key, "aws.")
        source = BedrockSource(config)
        async with three_providers(
            lambda catalog: EmbeddingRoutes(
                EmbeddingService(catalog, NoFilters()), body_limit=1_000_000
            ).routes(),
            [source],
        ) as (_, client):
            url = str(client.make_url("/v1"))
            async with AsyncOpenAI(api_key="admin", base_url=url, max_retries=0) as made:
                texts = ["a" * number for number in range(1, 101)]
                answer = await made.embeddings.create(model=f"aws.{name}", input=texts)
                assert [item.embedding[0] for item in answer.data] == [float(len(text)) for text in texts]
                assert answer.usage.prompt_tokens == 100
                with pytest.raises(BadRequestError) as caught:
                    await made.embeddings.create(model=f"aws.{name}", input=[[1, 2], [3]])
                assert caught.value.param == "input"
                with pytest.raises(NotFoundError):
                    await made.embeddings.create(model="aws.amazon.nova-2-lite-v1:0", input="a")
        await source.close()
