"""Collections of any size, put into a database by the stores themselves: what much ingesting leaves.

Texts are real prose. Vectors lie around those of real passages, in clusters as real ones do: each is a
mixture of two real ones with a little noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gatewayd import ids
from gatewayd.ingest.records import (
    EmbeddingSpace,
    ExtractionResult,
    File,
    FileStatus,
    TextChunk,
    VectorBatch,
    pack_ids,
)
from gatewayd.knowledge.records import Collection, CollectionLink
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.migrate import migrate_open
from gatewayd.storage.engine.readers import open_reader
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.search.embedding_spaces import TortoiseSpaces
from gatewayd.storage.search.passages import TortoisePassages
from tests.bench.documents_corpus import Writer

OWNER: Final = "bench"
AT: Final = 1_750_000_000
IN_FILE: Final = 200
AT_ONCE: Final = 20
NOISE: Final = 0.25

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Filled:
    """A collection, and what a search in it is compared with: the ids and vectors of all of its passages."""

    id: str
    passages: Sequence[int]
    vectors: Rows


class Vectors:
    """Makes vectors of length 1 that lie as those of real passages do."""

    def __init__(self, real: Rows, seed: int = 3) -> None:
        self._real = real
        self._chance = np.random.default_rng(seed)

    def make(self, count: int) -> Rows:
        """Return so many rows."""
        chance, real = self._chance, self._real
        first, second = chance.integers(0, len(real), (2, count))
        share = chance.uniform(0.5, 1.0, (count, 1)).astype(np.float32)
        noise = chance.standard_normal((count, real.shape[1]), np.float32) * (NOISE / np.sqrt(real.shape[1]))
        rows: Rows = share * real[first] + (1 - share) * real[second] + noise.astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Filler:
    """Fills an open database."""

    def __init__(
        self, passages: TortoisePassages, space: EmbeddingSpace, vectors: Vectors, seed: int = 11
    ) -> None:
        self._files = TortoiseFiles()
        self._collections = TortoiseCollections()
        self._passages = passages
        self._space = space
        self._vectors = vectors
        self._writer = Writer(seed)

    async def collection(self, database: Database, size: int) -> Filled:
        """Add a collection of so many passages."""
        made = Collection(ids.new_id(), OWNER, f"collection of {size}", created_at=AT, updated_at=AT)
        await self._collections.add(made)
        numbers: list[int] = []
        rows = self._vectors.make(size)
        for start in range(0, size, AT_ONCE * IN_FILE):
            async with database.transaction():
                for at in range(start, min(start + AT_ONCE * IN_FILE, size), IN_FILE):
                    numbers += await self._file(made.id, rows[at : min(at + IN_FILE, size)])
        return Filled(made.id, numbers, rows)

    async def _file(self, collection_id: str, rows: Rows) -> Sequence[int]:
        texts = [self._writer.passage() for _ in rows]
        extraction = _extraction(texts)
        file = File(
            ids.new_id(),
            OWNER,
            "prose.txt",
            len(extraction.text),
            digest=ids.new_id(),
            checksum="",
            status=FileStatus.COMPLETED,
            text_hash=ids.new_id(),
            characters=len(extraction.text),
            chunks=len(texts),
            created_at=AT,
            updated_at=AT,
        )
        await self._files.add(file)
        await self._collections.link(CollectionLink(collection_id, file.id, OWNER, created_at=AT))
        await self._passages.stage(file.id, extraction)
        staged = await self._passages.missing(file.id, self._space.name, len(texts))
        numbers = [number for number, _ in staged]
        batch = VectorBatch(file.id, pack_ids(numbers), rows.astype("<f4").tobytes())
        await self._passages.add_vectors(self._space.name, batch)
        await self._passages.publish(file)
        return numbers


def _extraction(texts: Sequence[str]) -> ExtractionResult:
    chunks: list[TextChunk] = []
    start = 0
    for number, text in enumerate(texts):
        chunks.append(TextChunk(number, start, start + len(text)))
        start += len(text) + 2
    return ExtractionResult("\n\n".join(texts), tuple(chunks))


async def fill(
    location: DatabaseLocation, space: EmbeddingSpace, real: Rows, sizes: Sequence[int]
) -> list[Filled]:
    """Fill an empty database with collections of these sizes, in a space that is searched."""
    async with Database.open(location) as database:
        await migrate_open(database)
        async with open_reader(location) as reader:
            spaces = TortoiseSpaces(reader)
            await spaces.add(space)
            await spaces.activate(space.name)
            filler = Filler(TortoisePassages(reader), space, Vectors(real))
            made = [await filler.collection(database, size) for size in sizes]
        # What the database does by itself within minutes of such a load.
        await database.engine.execute_query_dict("ANALYZE")
        if not location.is_sqlite:
            await database.engine.execute_query_dict("VACUUM")
        return made
