"""Vectors for passages, batch by batch."""

from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.embedder import BATCH_SIZE, EmbeddingTarget, embed_missing
from gatewayd.ingest.records import EmbeddingPurpose, EmbeddingSpace
from gatewayd.ingest.size_classes import OTHER_WORK
from tests.fakes.documents.ingest_services import Ingest
from tests.fakes.documents.memory_stores import DIMENSION, HashEmbedder, extraction_of

NAME = "test:hash:1"


async def staged(ingest: Ingest) -> str:
    """Return a file with more than one batch of staged passages."""
    await ingest.queue.close()
    file = await ingest.upload("a.txt", "text")
    await ingest.passages.stage(file.id, extraction_of(" ".join(f"word{n}" for n in range(3000))))
    return file.id


async def test_each_batch_is_kept_before_it_is_told(ingest: Ingest) -> None:
    file_id = await staged(ingest)
    target = EmbeddingTarget(EmbeddingSpace(NAME, DIMENSION), HashEmbedder())
    kept = 0
    async for count in embed_missing(ingest.passages, file_id, target, OTHER_WORK):
        assert count <= BATCH_SIZE
        kept += count
        assert len(ingest.library.tables.vectors) == kept
    assert kept == len(ingest.library.tables.passages) > BATCH_SIZE


async def test_a_file_that_goes_meanwhile_ends_it(ingest: Ingest, tmp_path: Path) -> None:
    file_id = await staged(ingest)
    target = EmbeddingTarget(EmbeddingSpace(NAME, DIMENSION), HashEmbedder())
    async for _ in embed_missing(ingest.passages, file_id, target, OTHER_WORK):
        assert await ingest.files_store.remove(file_id)
    assert ingest.library.tables.vectors == {}


async def test_vectors_of_another_shape_are_refused() -> None:
    target = EmbeddingTarget(EmbeddingSpace(NAME, 3), HashEmbedder())
    with pytest.raises(GatewayError, match="expected 12 bytes, got 256") as refused:
        await target.embed(["text"], EmbeddingPurpose.PASSAGE)
    assert refused.value.kind is ErrorKind.UPSTREAM_FAILED
