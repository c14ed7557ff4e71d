"""Files with passages and vectors, as the stores of documents get them."""

import math
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from gatewayd.ids import digest
from gatewayd.ingest.interfaces import LexicalIndex
from gatewayd.ingest.records import (
    EmbeddingSpace,
    ExtractionResult,
    File,
    FileStatus,
    ScopeKind,
    SearchScope,
    TextChunk,
    VectorBatch,
    pack_ids,
)
from gatewayd.knowledge.records import Collection, CollectionLink
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.readers import PoolReader, SqliteReader, open_reader
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.search.embedding_spaces import TortoiseSpaces
from gatewayd.storage.search.lexical import open_lexical
from gatewayd.storage.search.passages import TortoisePassages

SPACE = EmbeddingSpace("test:four", 4)


@dataclass(frozen=True)
class Shelf:
    """The stores of documents over one database, and short ways to fill them."""

    database: Database
    reader: SqliteReader | PoolReader
    files: TortoiseFiles
    passages: TortoisePassages
    collections: TortoiseCollections
    spaces: TortoiseSpaces
    words: LexicalIndex

    async def collect(self, collection_id: str) -> SearchScope:
        """Make a collection and return its scope."""
        await self.collections.add(Collection(collection_id, "u", collection_id))
        return SearchScope(ScopeKind.COLLECTION, collection_id)

    async def upload(self, file_id: str, collection_id: str | None = None, *, path: str = "") -> None:
        """Add a pending file, and its link."""
        await self.files.add(document(file_id))
        if collection_id is not None:
            await self.collections.link(CollectionLink(collection_id, file_id, "u", "", path))

    async def embed(self, file_id: str, space: EmbeddingSpace = SPACE) -> Sequence[int]:
        """Give all passages of a file a vector, which `direction` says by its text; return their ids."""
        rows = await self.passages.missing(file_id, space.name, 1_000_000)
        ids = [number for number, _ in rows]
        vectors = b"".join(direction(text, space.dimension) for _, text in rows)
        await self.passages.add_vectors(space.name, VectorBatch(file_id, pack_ids(ids), vectors))
        return ids

    async def publish(self, file_id: str, *texts: str, embed: bool = True) -> Sequence[str]:
        """Take a file that is there from texts to completed; return the collections that hold it."""
        await self.passages.stage(file_id, extraction(*texts))
        if embed:
            await self.embed(file_id)
        found = await self.files.find(file_id)
        assert found is not None
        return await self.passages.publish(
            replace(found, status=FileStatus.COMPLETED, chunks=len(texts), text_hash=digest("\n".join(texts)))
        )

    async def find(self, scope: SearchScope, query: str, limit: int = 10) -> Sequence[str]:
        """Return the texts of the passages with a word of the query, best first."""
        hits = await self.words.search(scope, query, limit)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        return await self.texts([hit.passage_id for hit in hits])

    async def texts(self, passage_ids: Sequence[int]) -> Sequence[str]:
        """Return the texts of published passages."""
        stored = await self.passages.read(passage_ids)
        return [stored[number].text for number in passage_ids]

    async def loaded(self, scope: SearchScope, space: str = SPACE.name) -> dict[str, list[float]]:
        """Return the vectors of a scope by the text of their passage."""
        found: dict[int, list[float]] = {}
        async for batch in self.passages.load(space, scope):
            rows = array("f", batch.vectors)
            width = len(rows) // (len(batch.ids) // 8)
            for at, number in enumerate(array("q", batch.ids)):
                found[number] = list(rows[at * width :][:width])
        return dict(zip(await self.texts(list(found)), found.values(), strict=True))


@asynccontextmanager
async def open_shelf(database: Database) -> AsyncIterator[Shelf]:
    """Yield the stores over an open database, with one embedding space."""
    async with open_reader(database.location) as reader, open_lexical(reader) as lexical:
        spaces = TortoiseSpaces(reader)
        await spaces.add(SPACE)
        passages = TortoisePassages(reader)
        yield Shelf(database, reader, TortoiseFiles(), passages, TortoiseCollections(), spaces, lexical)


def document(file_id: str, **changes: Any) -> File:
    """Return a pending file."""
    file = File(file_id, "u", f"{file_id}.txt", 1, "d", "c", status=FileStatus.PENDING)
    return replace(file, **changes)


def extraction(*texts: str) -> ExtractionResult:
    """Return a document whose chunks are these texts."""
    whole = "\n".join(texts)
    starts = [sum(len(text) + 1 for text in texts[:number]) for number in range(len(texts))]
    chunks = [TextChunk(number, at, at + len(texts[number])) for number, at in enumerate(starts)]
    return ExtractionResult(whole, tuple(chunks))


def direction(text: str, dimension: int = SPACE.dimension) -> bytes:
    """Return a vector of length 1 that depends on the text alone."""
    numbers = [math.sin(1 + place + sum(text.encode())) for place in range(dimension)]
    return array("f", [number / math.hypot(*numbers) for number in numbers]).tobytes()
