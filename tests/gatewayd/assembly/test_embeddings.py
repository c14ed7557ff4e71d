"""The embedding model and the reranker that the settings name."""

from pathlib import Path

import pytest

from gatewayd.assembly.embeddings import make_embedder, make_embedding, make_reranker, word_weight
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings import Settings, load
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.services.embedders import OllamaEmbedder, OpenAiEmbedder
from gatewayd.upstream.services.reranker import ExternalReranker
from gatewayd.vectors.local import LocalEmbedder
from gatewayd.vectors.models.reranker import LocalReranker
from tests.fakes.metering.service_calls import ServiceMeter

CALLS = ServiceMeter()
URL = "http://127.0.0.1:9"


def settings_for(state: Path, **values: str) -> Settings:
    return load(None, {"DATA_DIR": str(state), **values})


async def test_the_engine_decides_which_model_is_asked(state: Path) -> None:
    tasks = TaskRegistry()
    cases = {
        "": LocalEmbedder,
        "fastembed": LocalEmbedder,
        "directory": LocalEmbedder,
        "openai": OpenAiEmbedder,
        "ollama": OllamaEmbedder,
    }
    for engine, kind in cases.items():
        values = {"RAG_OPENAI_API_BASE_URL": URL, "RAG_OLLAMA_BASE_URL": URL}
        embedder = make_embedder(settings_for(state, RAG_EMBEDDING_ENGINE=engine, **values), tasks, CALLS)
        assert type(embedder) is kind
        await embedder.close()
    await tasks.close()


def test_a_model_that_is_none_stops_the_start(state: Path) -> None:
    with pytest.raises(GatewayError) as caught:
        make_embedder(settings_for(state, RAG_EMBEDDING_MODEL="maxilm"), TaskRegistry(), CALLS)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    assert "maxilm" in caught.value.message


def test_the_model_decides_how_much_words_count_unless_the_settings_do(state: Path) -> None:
    assert word_weight(settings_for(state)) == 0.5
    assert word_weight(settings_for(state, RAG_EMBEDDING_MODEL="e5-small")) == 0.4
    asked = {"RAG_EMBEDDING_MODEL": "e5-small", "RAG_HYBRID_BM25_WEIGHT": "0.7"}
    assert word_weight(settings_for(state, **asked)) == 0.7
    elsewhere = {"RAG_EMBEDDING_ENGINE": "openai", "RAG_EMBEDDING_MODEL": "e5-small"}
    assert word_weight(settings_for(state, **elsewhere, RAG_OPENAI_API_BASE_URL=URL)) == 0.5
    assert word_weight(settings_for(state, RAG_HYBRID_BM25_WEIGHT="")) == 0.5


async def test_a_former_space_is_opened_by_its_name(state: Path) -> None:
    tasks = TaskRegistry()
    name = (await make_embedding(settings_for(state), tasks, CALLS).configured.space()).name
    embedding = make_embedding(settings_for(state, RAG_EMBEDDING_QUERY_PREFIX="ask: "), tasks, CALLS)
    assert (await embedding.configured.space()).name != name
    former = embedding.open_space(name)
    assert former is not None
    assert (await former.space()).name == name
    for other in (f"{name}x", "builtin:minilm", "openai:text-embedding-3-small", "", "builtin:e7:1"):
        assert embedding.open_space(other) is None
    await embedding.close()
    await tasks.close()


async def test_the_reranker_is_optional(state: Path) -> None:
    tasks = TaskRegistry()
    assert make_reranker(settings_for(state), tasks, CALLS) is None
    local = make_reranker(
        settings_for(state, RAG_RERANKING_ENGINE="local", RAG_RERANKING_MODEL="/srv/model"),
        tasks,
        ServiceMeter(),
    )
    external = make_reranker(
        settings_for(state, RAG_RERANKING_ENGINE="external", RAG_EXTERNAL_RERANKER_URL=URL),
        tasks,
        ServiceMeter(),
    )
    assert isinstance(local, LocalReranker)
    assert isinstance(external, ExternalReranker)
    await local.close()
    await external.close()
    await tasks.close()
