"""Tests for gatewayd.http.public.media.rerank, from client to provider and to the gateway's own reranker."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from gatewayd.catalog.service import Catalog
from gatewayd.errors import GatewayError
from gatewayd.http.public.media.rerank import RerankRoutes
from gatewayd.knowledge.reranker_source import MAX_RERANKED_DOCUMENTS, RerankerSource
from gatewayd.pipeline.media.rerank import RerankService
from gatewayd.pipeline.pipeline import NoFilters
from tests.fakes.http.public_app import Client, bearer
from tests.fakes.providers.catalog import three_providers
from tests.fakes.providers.models import make_model
from tests.fakes.providers.upstream import FakeUpstream, json_reply

ADMIN = bearer("admin")
BODY = {"model": "acme.m", "query": "q", "documents": ["a", "b"], "return_documents": True}


class Lengths:
    """A reranker that prefers long texts."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [len(text) / 10 for text in texts]


@pytest.fixture
async def gateway() -> AsyncIterator[tuple[FakeUpstream, Client]]:
    catalogs: list[Catalog] = []

    def rows(catalog: Catalog) -> Any:
        catalogs.append(catalog)
        kept = [item.source for item in catalog.listings()]
        catalog.use([*kept, RerankerSource(Lengths(), "own")])
        return RerankRoutes(RerankService(catalog, NoFilters()), body_limit=1_000_000).routes()

    async with three_providers(rows) as made:
        yield made


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/api/rerank"])
@pytest.mark.parametrize(
    "answer",
    [
        {"id": "x", "results": [{"index": 0, "relevance_score": 0.2}, {"index": 1, "relevance_score": 3}]},
        {
            "object": "list",
            "data": [{"index": 1, "relevance_score": 3}, {"index": 0, "relevance_score": 0.2}],
        },
        [{"index": 1, "score": 3}, {"index": 0, "score": 0.2}],
    ],
    ids=["cohere", "voyage", "tei"],
)
async def test_every_form_of_an_answer_becomes_one(
    gateway: tuple[FakeUpstream, Client], path: str, answer: Any
) -> None:
    fake, client = gateway
    fake.script(json_reply(answer))
    reply = await client.post(path, json=BODY, headers=ADMIN)
    told = await reply.json()
    assert told["results"] == [
        {"index": 1, "relevance_score": 3, "document": {"text": "b"}},
        {"index": 0, "relevance_score": 0.2, "document": {"text": "a"}},
    ]
    assert told["model"] == "acme.m"
    assert told["id"]
    (request,) = fake.requests
    assert (request.path, request.json) == (
        "/v1/rerank",
        {"model": "m", "query": "q", "documents": ["a", "b"]},
    )


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"results": {}},
        {"results": [{"index": 2, "relevance_score": 1}]},
        {"results": [{"index": -1, "relevance_score": 1}]},
        {"results": [{"index": 0}]},
        {"results": [{"index": 0, "relevance_score": "1"}]},
        {"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 1}]},
        [5],
    ],
)
async def test_an_unusable_answer_is_a_failure_of_the_provider(
    gateway: tuple[FakeUpstream, Client], answer: Any
) -> None:
    fake, client = gateway
    fake.script(json_reply(answer))
    reply = await client.post("/v1/rerank", json=BODY, headers=ADMIN)
    assert reply.status == 502
    assert "'acme'" in (await reply.json())["error"]["message"]


async def test_sources_without_reranking_are_named(gateway: tuple[FakeUpstream, Client]) -> None:
    _, client = gateway
    for model in ("claude.m", "acme.m"):
        reply = await client.post("/v2/rerank", json={**BODY, "model": model}, headers=ADMIN)
        error = (await reply.json())["error"]
        assert (reply.status, error["code"]) == (404, "endpoint_not_supported")
        assert model.partition(".")[0] in error["message"]
    assert (await client.post("/v2/rerank", json=BODY, headers=bearer("user"))).status == 404


async def test_the_own_reranker_is_a_model(gateway: tuple[FakeUpstream, Client]) -> None:
    fake, client = gateway
    body = {**BODY, "model": "own", "documents": ["a", "long", "ab"], "top_n": 2}
    told = await (await client.post("/v1/rerank", json=body, headers=ADMIN)).json()
    assert [(item["index"], item["relevance_score"]) for item in told["results"]] == [(1, 0.4), (2, 0.2)]
    many = {**body, "documents": ["a"] * (MAX_RERANKED_DOCUMENTS + 1)}
    reply = await client.post("/v1/rerank", json=many, headers=ADMIN)
    assert (reply.status, (await reply.json())["error"]["param"]) == (400, "documents")
    assert fake.requests == []


async def test_the_own_reranker_writes_no_text() -> None:
    source, model = RerankerSource(Lengths(), ""), make_model("reranker")
    assert [each.id for each in await source.list_models()] == ["reranker"]
    with pytest.raises(GatewayError, match="only reranks"):
        await source.complete({}, model, None)  # type: ignore[arg-type]
    with pytest.raises(GatewayError, match="only reranks"):
        source.stream({}, model, None)  # type: ignore[arg-type]
