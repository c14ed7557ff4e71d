"""Gives passages their vectors, a batch at a time."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.interfaces import Embedder, PassageStore
from gatewayd.ingest.records import EmbeddingPurpose, EmbeddingSpace, VectorBatch
from gatewayd.ingest.size_classes import OTHER_WORK, QueueKey
from gatewayd.ingest.vector_codec import pack_ids

BATCH_SIZE: Final = 64
FLOAT_SIZE: Final = 4


@dataclass(frozen=True, slots=True)
class EmbeddingTarget:
    """A space and the model that makes its vectors."""

    space: EmbeddingSpace
    embedder: Embedder

    async def embed(
        self, texts: Sequence[str], purpose: EmbeddingPurpose, key: QueueKey = OTHER_WORK
    ) -> bytes:
        """Return the vectors of texts; upstream_failed when they do not have the shape of the space."""
        vectors = await self.embedder.embed(texts, purpose, key)
        expected = FLOAT_SIZE * self.space.dimension * len(texts)
        if len(vectors) != expected:
            sizes = f"{len(vectors)} bytes came, not {expected}"
            raise GatewayError(
                ErrorKind.UPSTREAM_FAILED, f"cannot use the vectors of {self.space.name}: {sizes}"
            )
        return vectors


async def embed_missing(
    passages: PassageStore, file_id: str, target: EmbeddingTarget, key: QueueKey
) -> AsyncIterator[int]:
    """Embed the passages of a file that lack a vector, staged ones if any are; yield the size of each batch.

    A batch is kept before it is yielded, so that who comes again goes on where this one ended.
    """
    last: list[int] = []
    while rows := await passages.missing(file_id, target.space.name, BATCH_SIZE):
        numbers = [number for number, _ in rows]
        if numbers == last:
            # The file went while its passages were embedded, and a store drops those vectors silently.
            return
        last = numbers
        vectors = await target.embed([text for _, text in rows], EmbeddingPurpose.PASSAGE, key)
        await passages.add_vectors(target.space.name, VectorBatch(file_id, pack_ids(numbers), vectors))
        yield len(rows)


async def embed_texts(texts: Sequence[str], target: EmbeddingTarget, key: QueueKey) -> list[bytes]:
    """Return the vectors of texts in batches of BATCH, for passages that have no ids yet."""
    return [
        await target.embed(texts[start : start + BATCH_SIZE], EmbeddingPurpose.PASSAGE, key)
        for start in range(0, len(texts), BATCH_SIZE)
    ]


async def add_embedded(passages: PassageStore, file_id: str, space: str, batches: Sequence[bytes]) -> None:
    """Keep what `embed_texts` returned for the passages of a file that were staged since, in their order."""
    rows = await passages.missing(file_id, space, BATCH_SIZE * len(batches))
    for number, vectors in enumerate(batches):
        ids = [passage_id for passage_id, _ in rows[number * BATCH_SIZE : (number + 1) * BATCH_SIZE]]
        await passages.add_vectors(space, VectorBatch(file_id, pack_ids(ids), vectors))
