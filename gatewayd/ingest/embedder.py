"""Embedding of passages in batches."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.interfaces import Embedder, PassageStore
from gatewayd.ingest.records import EmbeddingPurpose, EmbeddingSpace, VectorBatch, pack_ids
from gatewayd.ingest.size_classes import OTHER_WORK, QueueKey

BATCH_SIZE: Final = 64
FLOAT_SIZE: Final = 4


@dataclass(frozen=True, slots=True)
class EmbeddingTarget:
    """An embedding space and the model that computes its vectors."""

    space: EmbeddingSpace
    embedder: Embedder

    async def embed(
        self, texts: Sequence[str], purpose: EmbeddingPurpose, key: QueueKey = OTHER_WORK
    ) -> bytes:
        """Return the vectors of texts; upstream_failed when their size does not match the space."""
        vectors = await self.embedder.embed(texts, purpose, key)
        expected = FLOAT_SIZE * self.space.dimension * len(texts)
        if len(vectors) != expected:
            sizes = f"expected {expected} bytes, got {len(vectors)}"
            raise GatewayError(
                ErrorKind.UPSTREAM_FAILED, f"cannot use the vectors of {self.space.name}: {sizes}"
            )
        return vectors


async def embed_missing(
    passages: PassageStore,
    file_id: str,
    target: EmbeddingTarget,
    key: QueueKey,
    step: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> AsyncIterator[int]:
    """Embed the passages of a file that lack a vector, staged ones if any are; yield the size of each batch.

    A batch is stored, inside of `step`, before it is yielded: a later call continues after the last stored
    batch.
    """
    last: list[int] = []
    while rows := await passages.missing(file_id, target.space.name, BATCH_SIZE):
        numbers = [number for number, _ in rows]
        if numbers == last:
            # The file was removed during the embedding, and the store dropped its vectors silently.
            return
        last = numbers
        vectors = await target.embed([text for _, text in rows], EmbeddingPurpose.PASSAGE, key)
        async with step():
            await passages.add_vectors(target.space.name, VectorBatch(file_id, pack_ids(numbers), vectors))
        yield len(rows)


async def embed_texts(texts: Sequence[str], target: EmbeddingTarget, key: QueueKey) -> list[bytes]:
    """Return the vectors of texts in batches of BATCH_SIZE, for passages that have no ids yet."""
    return [
        await target.embed(texts[start : start + BATCH_SIZE], EmbeddingPurpose.PASSAGE, key)
        for start in range(0, len(texts), BATCH_SIZE)
    ]


async def add_embedded(passages: PassageStore, file_id: str, space: str, batches: Sequence[bytes]) -> None:
    """Store the batches of `embed_texts` for the passages of a file that were staged since, in order."""
    rows = await passages.missing(file_id, space, BATCH_SIZE * len(batches))
    for number, vectors in enumerate(batches):
        ids = [passage_id for passage_id, _ in rows[number * BATCH_SIZE : (number + 1) * BATCH_SIZE]]
        await passages.add_vectors(space, VectorBatch(file_id, pack_ids(ids), vectors))
