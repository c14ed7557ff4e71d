from collections.abc import AsyncIterator

import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.knowledge.reranker_source import RerankerSource
from gatewayd.metering.records import TokenUsage
from gatewayd.metering.service_calls import WorkOwner, paid_by
from gatewayd.upstream.services.client import ServiceOptions
from gatewayd.upstream.services.reranker import ExternalReranker
from tests.fakes.metering.service_calls import ServiceMeter
from tests.fakes.providers.upstream import FakeUpstream, json_reply


@pytest.fixture
async def reranker(fake: FakeUpstream) -> AsyncIterator[ExternalReranker]:
    service = ServiceOptions(f"{fake.base_url}/v1/rerank", key="k")
    reranker = ExternalReranker(service, "judge", ServiceMeter())
    yield reranker
    await reranker.close()


def results(*scores: object) -> dict[str, object]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in scores]}  # type: ignore[misc]


async def test_scores_are_in_the_order_of_the_texts(reranker: ExternalReranker, fake: FakeUpstream) -> None:
    fake.script(json_reply(results((2, 0.9), (0, 0.5), (1, 0))))
    assert list(await reranker.rerank("q", ["a", "b", "c\udc00"])) == [0.5, 0, 0.9]
    (request,) = fake.requests
    assert (request.method, request.path) == ("POST", "/v1/rerank")
    assert request.json == {"model": "judge", "query": "q", "documents": ["a", "b", "c?"], "top_n": 3}
    assert list(await reranker.rerank("q", [])) == []


async def test_logits_become_scores_from_0_to_1(reranker: ExternalReranker, fake: FakeUpstream) -> None:
    fake.script(json_reply(results((0, -4000.0), (1, 0.0), (2, 3.5))))
    found = await reranker.rerank("q", ["a", "b", "c"])
    assert found == [pytest.approx(0), 0.5, pytest.approx(0.9707, abs=1e-4)]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"results": {}},
        results((0, 0.1)),
        results((0, 0.1), (2, 0.2)),
        results((0, 0.1), (1, "high")),
        results((0, 0.1), ("1", 0.2)),
        {"results": ["a", "b"]},
    ],
)
async def test_what_is_not_a_score_for_each_text_is_a_failure(
    reranker: ExternalReranker, fake: FakeUpstream, answer: dict[str, object]
) -> None:
    fake.script(json_reply(answer))
    with pytest.raises(GatewayError, match="'reranking model judge': its 'results'") as failure:
        await reranker.rerank("q", ["a", "b"])
    assert failure.value.kind is ErrorKind.UPSTREAM_FAILED


async def test_a_refusal_is_the_service_s_failure(reranker: ExternalReranker, fake: FakeUpstream) -> None:
    fake.script(json_reply({"error": {"message": "no such model"}}, 404))
    with pytest.raises(GatewayError, match="no such model") as failure:
        await reranker.rerank("q", ["a"])
    assert failure.value.kind is ErrorKind.UPSTREAM_FAILED


async def test_a_request_is_metered_in_the_terms_of_each_service(fake: FakeUpstream) -> None:
    calls = ServiceMeter()
    reranker = ExternalReranker(ServiceOptions(f"{fake.base_url}/v1/rerank"), "judge", calls)
    scores = results((0, 0.5))
    told: list[dict[str, object]] = [
        {"usage": {"total_tokens": 9}},
        {"meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": 8, "output_tokens": 0}}},
        {"meta": {"tokens": "many"}, "usage": None},
    ]
    for each in told:
        fake.script(json_reply({**scores, **each}))
        with paid_by(WorkOwner("ada")):
            await reranker.rerank("q" * 4, ["a" * 8])
    same = ("ada", "", "reranker", "judge", "rerank")
    assert calls.usages() == [(*same, TokenUsage(prompt)) for prompt in (9, 8, 3)]
    # Within a metered call of the model, the answer carries what the service tells.
    fake.script(json_reply({**scores, "usage": {"total_tokens": 9}}))
    source = RerankerSource(reranker, "judge")
    [model] = await source.list_models()
    answer = await source.rerank({"query": "q", "documents": ["a"]}, model, CallContext("r", "u"))
    assert answer == {"results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 9}}
    assert len(calls.usages()) == 3
    await reranker.close()
