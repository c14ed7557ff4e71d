"""Reranker over HTTP, with the request and reply that most services share."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.metering.service_calls import MeteredService, ServiceCalls
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.services.client import (
    ServiceOptions,
    make_service_client,
    service_maker,
    translate_refusals,
)

PROVIDER: Final = "reranker"
"""Name of the service in usage and prices, which is also that of its model in the catalogue."""

MAX_LOGIT: Final = 700.0
"""Bound for logits, beyond which the exponential overflows."""


class ExternalReranker:
    """A `knowledge.interfaces.Reranker` over `POST {base_url}`."""

    def __init__(
        self, service: ServiceOptions, model: str, calls: ServiceCalls, client: UpstreamClient | None = None
    ) -> None:
        self._model = model
        self._calls = calls
        self._service = MeteredService(PROVIDER, model or PROVIDER, "rerank", service_maker(service))
        self._exchange = make_service_client(f"reranking model {model}", service, client)

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score from 0 to 1 for each text, in order.

        Logits are mapped to that range. Raises GatewayError: upstream_unreachable, upstream_failed,
        rate_limited, timeout.
        """
        if not texts:
            return []
        documents = [_clean(text) for text in texts]
        body = {
            "model": self._model,
            "query": _clean(query),
            "documents": documents,
            "top_n": len(documents),
        }
        with translate_refusals():
            answer = await self._calls.run(self._service, body, lambda: self._post(body))
            return _bounded(self._scores(answer, len(documents)))

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

    async def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return (await self._exchange.post("", body))[1]

    def _scores(self, answer: Mapping[str, Any], count: int) -> list[float]:
        results = answer.get("results")
        found: dict[int, float] = {}
        for result in results if isinstance(results, list) else []:
            index, score = _entry(result)
            if index is not None and score is not None:
                found[index] = score
        if found.keys() != set(range(count)):
            raise self._exchange.failures.broken(f"its 'results' are not a score for each of {count} texts")
        return [found[index] for index in range(count)]


def _entry(result: object) -> tuple[int | None, float | None]:
    """Return index and score of a result, None for a missing one."""
    if not isinstance(result, dict):
        return None, None
    index, score = result.get("index"), result.get("relevance_score")
    is_score = isinstance(score, int | float) and math.isfinite(score)
    return index if type(index) is int else None, score if is_score else None


def _bounded(scores: list[float]) -> list[float]:
    if all(0 <= score <= 1 for score in scores):
        return scores
    return [1 / (1 + math.exp(-max(min(score, MAX_LOGIT), -MAX_LOGIT))) for score in scores]


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
