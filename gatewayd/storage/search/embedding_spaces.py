"""Store of embedding spaces, and the counts of their vectors."""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.errors import not_found
from gatewayd.ingest.records import EmbeddingSpace, FileStatus
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.readers import QueryReader
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.documents import SpaceRow, VectorBatchRow

REMOVAL_BATCH_SIZE: Final = 100

SELECT_BEHIND: Final = (
    "SELECT f.id FROM files f JOIN (SELECT file_id, COUNT(*) AS needed FROM passages WHERE NOT staged"
    " GROUP BY file_id) n ON n.file_id = f.id "
    "LEFT JOIN (SELECT file_id, SUM(LENGTH(ids)) / 8 AS present FROM vector_batches"
    " WHERE NOT staged AND space_id = (SELECT id FROM embedding_spaces WHERE name = $1)"
    " GROUP BY file_id) h ON h.file_id = f.id "
    "WHERE f.status = $2 AND n.needed > COALESCE(h.present, 0) ORDER BY f.created_at, f.id LIMIT $3"
)
SELECT_COUNTS: Final = (
    "SELECT (SELECT COALESCE(SUM(LENGTH(ids)), 0) / 8 FROM vector_batches"
    " WHERE NOT staged AND space_id = (SELECT id FROM embedding_spaces WHERE name = $1)),"
    " (SELECT COUNT(*) FROM passages WHERE NOT staged)"
)


def vector_table(space_id: int) -> str:
    """Return the name of pgvector's table with the vectors of a space."""
    return f"space_vectors_{int(space_id)}"


class TortoiseSpaces:
    """Implements `ingest.interfaces.SpaceStore`."""

    def __init__(self, reader: QueryReader) -> None:
        self._reader = reader

    async def add(self, space: EmbeddingSpace) -> None:
        """Insert a space unless it exists."""
        row = SpaceRow(name=space.name, dimension=space.dimension, is_active=False)
        async with write_transaction("add the embedding space"):
            await SpaceRow.bulk_create([row], ignore_conflicts=True)

    async def list(self) -> Sequence[EmbeddingSpace]:
        """Return all spaces, oldest first."""
        with translate_errors("list embedding spaces"):
            return [_space_of(row) for row in await SpaceRow.all().order_by("id")]

    async def find_active(self) -> EmbeddingSpace | None:
        """Return the space that is searched, None before the first `activate`."""
        with translate_errors("read the embedding space"):
            row = await SpaceRow.filter(is_active=True).order_by("id").first()
        return None if row is None else _space_of(row)

    async def activate(self, name: str) -> None:
        """Make a space the one that is searched; not_found without it."""
        async with write_transaction("change the embedding space"):
            # All transactions lock the rows in the same order.
            known = await SpaceRow.all().order_by("id").select_for_update()
            if name not in {row.name for row in known}:
                raise not_found("embedding space", name)
            await SpaceRow.filter(is_active=True).exclude(name=name).update(is_active=False)
            await SpaceRow.filter(name=name).update(is_active=True)

    async def remove(self, name: str) -> None:
        """Delete a space and its vectors, in batches between which others can write."""
        if not fits_columns(SpaceRow, name=name):
            return
        with translate_errors("remove the embedding space"):
            row = await SpaceRow.get_or_none(name=name)
        if row is None:
            return
        while await _remove_batch(row.id):
            pass
        async with write_transaction("remove the embedding space") as client:
            await SpaceRow.filter(id=row.id).delete()
            if client.capabilities.dialect == "postgres":
                await client.execute_script(f"DROP TABLE IF EXISTS {vector_table(row.id)}")

    async def behind(self, name: str, limit: int) -> Sequence[str]:
        """Return the ids of up to `limit` completed files that lack vectors in a space, oldest first."""
        if not fits_columns(SpaceRow, name=name):
            return []
        with translate_errors("look for files without vectors"):
            rows = await self._reader.rows(SELECT_BEHIND, name, FileStatus.COMPLETED.value, max(limit, 0))
        return [row[0] for row in rows]

    async def counts(self, name: str) -> tuple[int, int]:
        """Return the number of published passages with a vector in a space, and the number of all."""
        known = name if fits_columns(SpaceRow, name=name) else ""
        with translate_errors("count vectors"):
            [[present, needed]] = await self._reader.rows(SELECT_COUNTS, known)
        return int(present), int(needed)


async def _remove_batch(space_id: int) -> bool:
    async with write_transaction("remove vectors"):
        batch_ids: list[Any] = list(
            await VectorBatchRow.filter(space_id=space_id)
            .limit(REMOVAL_BATCH_SIZE)
            .values_list("id", flat=True)
        )
        if batch_ids:
            await VectorBatchRow.filter(id__in=batch_ids).delete()
    return bool(batch_ids)


def _space_of(row: SpaceRow) -> EmbeddingSpace:
    return EmbeddingSpace(row.name, row.dimension)
