"""Bulk reads of published vectors.

Passage ids and vectors are stored in batches of one file (`ingest.records.VectorBatch`). A batch never
changes, so a list of the present batches is a snapshot, whose batches can be read page by page.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from gatewayd.ingest.records import ID_BYTES, ScopeKind, SearchScope, VectorBatch
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.readers import QueryReader
from gatewayd.storage.tables.documents import FileRow, SpaceRow

PAGE_BYTES: Final = 1 << 20
PAGE_BATCHES: Final = 200

SCOPE_SOURCES: Final = {
    ScopeKind.COLLECTION: (
        "collection_files l JOIN vector_batches b ON b.file_id = l.file_id WHERE l.collection_id = $2"
    ),
    ScopeKind.FILE: "vector_batches b WHERE b.file_id = $2",
}
IS_PUBLISHED: Final = (
    " AND b.space_id = (SELECT s.id FROM embedding_spaces s WHERE s.name = $1) AND NOT b.staged"
)


class TortoiseVectors:
    """Implements `ingest.interfaces.VectorReader`."""

    def __init__(self, reader: QueryReader) -> None:
        self._reader = reader

    async def load(self, space: str, scope: SearchScope) -> AsyncIterator[VectorBatch]:
        """Yield the vectors of a scope by ascending passage id, with one page in memory.

        Batches that are removed meanwhile are left out, and those that are published meanwhile are not
        included.
        """
        for page in _pages(await self._list(space, scope)):
            for batch in await self._read(page):
                yield batch

    async def load_file(self, space: str, scope: SearchScope, file_id: str) -> Sequence[VectorBatch]:
        """Return the batches of one file; empty when it is not in the scope or has no vectors."""
        found: list[VectorBatch] = []
        for page in _pages(await self._list(space, scope, file_id)):
            found += await self._read(page)
        return found

    async def load_ids(self, space: str, scope: SearchScope) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the file id and the passage ids of each batch of `load`."""
        for _, file_id, ids, _ in await self._list(space, scope):
            yield file_id, ids

    async def count_vectors(self, space: str, scope: SearchScope) -> int:
        """Return the number of vectors of a scope."""
        if not fits_columns(SpaceRow, name=space) or not fits_columns(FileRow, id=scope.id):
            return 0
        query = f"SELECT COALESCE(SUM(LENGTH(b.ids)), 0) FROM {SCOPE_SOURCES[scope.kind]}{IS_PUBLISHED}"  # noqa: S608
        with translate_errors("count vectors"):
            [[size]] = await self._reader.rows(query, space, scope.id)
        return int(size) // ID_BYTES

    async def _list(self, space: str, scope: SearchScope, file_id: str | None = None) -> list[Sequence[Any]]:
        """Return id, file id, passage ids and size of the batches of a scope, or of one file in it,
        sorted."""
        values = [space, scope.id] if file_id is None else [space, scope.id, file_id]
        if not fits_columns(SpaceRow, name=space) or not all(
            fits_columns(FileRow, id=each) for each in values[1:]
        ):
            return []
        of_file = "" if file_id is None else " AND b.file_id = $3"
        query = (
            "SELECT b.id, b.file_id, b.ids, LENGTH(b.vectors) "  # noqa: S608
            f"FROM {SCOPE_SOURCES[scope.kind]}{IS_PUBLISHED}{of_file}"
        )
        with translate_errors("list vectors"):
            rows = await self._reader.rows(query, *values)
        # In a thread, because there may be many.
        return await asyncio.to_thread(sorted, rows, key=_age)

    async def _read(self, page: Sequence[int]) -> list[VectorBatch]:
        """Return the existing ones of these batches, in this order."""
        numbers = ", ".join(map(str, page))
        query = f"SELECT id, file_id, ids, vectors FROM vector_batches WHERE id IN ({numbers})"  # noqa: S608
        with translate_errors("read vectors"):
            rows = await self._reader.rows(query)
        found = {row[0]: VectorBatch(row[1], bytes(row[2]), bytes(row[3])) for row in rows}
        return [found[number] for number in page if number in found]


def _age(batch: Sequence[Any]) -> tuple[int, int]:
    return int.from_bytes(batch[2][:ID_BYTES], "little"), batch[0]


def _pages(batches: Sequence[Sequence[Any]]) -> Iterator[Sequence[int]]:
    """Split batches into pages of at most PAGE_BYTES and PAGE_BATCHES; a larger batch is a page."""
    page: list[int] = []
    size = 0
    for number, _, _, length in batches:
        if page and (size + length > PAGE_BYTES or len(page) == PAGE_BATCHES):
            yield page
            page, size = [], 0
        page.append(number)
        size += length
    if page:
        yield page
