"""Tests for gatewayd.assembly.media_routes."""

from collections.abc import Sequence

from gatewayd.assembly.media_routes import reranker_sources
from gatewayd.settings import load


class Zeros:
    """A reranker."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [0.0 for _ in texts]


async def test_the_configured_reranker_is_a_model_of_its_name() -> None:
    settings = load(None, {"RAG_RERANKING_MODEL": "cross"})
    (source,) = reranker_sources(settings, Zeros())
    assert [model.id for model in await source.list_models()] == ["cross"]
    assert reranker_sources(settings, None) == ()
