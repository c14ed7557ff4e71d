from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.local import LocalKind, LocalOptions
from gatewayd.vectors.models.catalogue import TOKENIZER_FILE
from gatewayd.vectors.models.reranker import LocalReranker
from tests.fakes.providers.embedding_models import write_cross_encoder

LIGHTHOUSE = 10171


@pytest.fixture
async def reranker(minilm: Path, tmp_path: Path, tasks: TaskRegistry) -> AsyncIterator[LocalReranker]:
    write_cross_encoder(tmp_path / "m", minilm / TOKENIZER_FILE, LIGHTHOUSE)
    options = LocalOptions(LocalKind.DIRECTORY, str(tmp_path / "m"), tmp_path)
    reranker = LocalReranker(options, tasks)
    yield reranker
    await reranker.close()


async def test_texts_are_scored_in_their_order(reranker: LocalReranker) -> None:
    texts = ["the keeper of the lighthouse, the lighthouse " * 20, "nothing of it", "one lighthouse"]
    scores = await reranker.rerank("lighthouse", texts)
    assert len(scores) == 3
    assert scores[0] > 0.99
    assert [round(score, 4) for score in scores[1:]] == [0.2689, 0.5]
    assert list(await reranker.rerank("lighthouse", [])) == []


async def test_a_built_in_reranker_there_is_not(tmp_path: Path, tasks: TaskRegistry) -> None:
    reranker = LocalReranker(LocalOptions(LocalKind.BUILTIN, "minilm", tmp_path), tasks)
    with pytest.raises(GatewayError, match="none is built in") as refusal:
        await reranker.rerank("a", ["b"])
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED
    await reranker.close()
