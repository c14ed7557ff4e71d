"""Store of texts and passages: staging, publication, and their vectors."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.ingest.records import (
    ID_BYTES,
    ExtractionResult,
    File,
    FileStatus,
    ScopeKind,
    SearchScope,
    VectorBatch,
    pack_ids,
    unpack_ids,
)
from gatewayd.knowledge.records import StoredPassage
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import check_text, fits_columns
from gatewayd.storage.engine.readers import QueryReader
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import placeholder, write_transaction
from gatewayd.storage.files import columns_of
from gatewayd.storage.search import fts, passage_removal
from gatewayd.storage.search.bigrams import segment_text
from gatewayd.storage.search.vectors import TortoiseVectors
from gatewayd.storage.tables.documents import (
    FileRow,
    FileTextRow,
    JobRow,
    LinkRow,
    PassageRow,
    SpaceRow,
    VectorBatchRow,
)
from gatewayd.transactions import after_commit

FLOAT_BYTES: Final = 4
PAGE_SIZE: Final = 500
STAGING_BATCH_SIZE: Final = 2000
"""Passages that one transaction inserts, about 2 MB."""
INSERT_TEXT: Final = "INSERT INTO file_texts (file_id, staged, text) VALUES ({}, {}, {})"
COLUMNS: Final = ("file_id", "staged", "number", "start", "page", "heading", "text", "segmented")

# The oldest completed file with the same text whose passages all have vectors.
SELECT_TWIN: Final = (
    "SELECT id FROM (SELECT f.id, f.created_at, "
    "(SELECT COUNT(*) FROM passages p WHERE p.file_id = f.id AND NOT p.staged) AS needed, "
    "(SELECT SUM(LENGTH(b.ids)) FROM vector_batches b"
    " WHERE b.file_id = f.id AND b.space_id = {space} AND NOT b.staged) AS bytes "
    "FROM files f WHERE f.text_hash = {hash} AND f.status = {status}) AS twins "
    "WHERE bytes = needed * {id_bytes} ORDER BY created_at, id LIMIT 1"
)
SELECT_PAIRS: Final = (
    "SELECT s.id AS source, t.id AS target FROM passages s JOIN passages t "
    "ON t.file_id = {target} AND t.staged AND t.number = s.number "
    "WHERE s.file_id = {source} AND NOT s.staged AND s.start = t.start AND s.text = t.text ORDER BY t.id"
)
# Links with the same place key. A newer link of a pending file is excluded: that file will replace this one.
SELECT_REPLACED: Final = (
    "SELECT o.id AS id, o.file_id AS file_id, o.collection_id AS collection_id, c.number AS number "
    "FROM collection_files l JOIN collection_files o ON o.collection_id = l.collection_id "
    "AND o.place = l.place AND o.file_id <> l.file_id JOIN collections c ON c.id = o.collection_id "
    "JOIN files f ON f.id = o.file_id "
    "WHERE l.file_id = {file} AND l.place <> '' AND (o.id < l.id OR f.status <> {pending}) ORDER BY o.id"
)

COLLECTION_PASSAGES: Final = (
    "collection_files l JOIN passages p ON p.file_id = l.file_id WHERE l.collection_id = $1"
)
FILE_PASSAGES: Final = "passages p WHERE p.file_id = $1"


class TortoisePassages(TortoiseVectors):
    """Implements `ingest.interfaces.PassageStore` and `knowledge.interfaces.PassageReader`.

    `wake` is called when stale passages remain to be purged.
    """

    def __init__(self, reader: QueryReader, wake: Callable[[], object] = lambda: None) -> None:
        super().__init__(reader)
        self._wake = wake
        self._texts = reader

    async def stage(
        self, file_id: str, extraction: ExtractionResult, check: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Stage a text and its chunks for a file, replacing earlier staged ones; conflict without the file.

        On SQLite, which has one writer, others can write between the batches, unless the caller has begun a
        transaction.
        """
        # In a thread and in batches, because there may be many rows.
        rows = await asyncio.to_thread(_rows, file_id, extraction)
        async with AsyncExitStack() as stack:
            if SqlStatement(PassageRow._meta.db).is_postgres:
                await stack.enter_async_context(write_transaction("keep the text of the file"))
            if check is not None:
                await check()
            await self.unstage(file_id)
            for at in range(0, len(rows), STAGING_BATCH_SIZE):
                await _insert_staged(rows[at : at + STAGING_BATCH_SIZE])
            # The text is last: passages without a staged text do not count as staged.
            async with write_transaction("keep the text of the file") as client:
                query = INSERT_TEXT.format(*_places(client, 3))
                await client.execute_query(query, [file_id, True, extraction.text])

    async def is_staged(self, file_id: str) -> bool:
        """Return whether a text is staged for a file."""
        if not fits_columns(FileRow, id=file_id):
            return False
        with translate_errors("look for a text"):
            return await FileTextRow.filter(file_id=file_id, staged=True).exists()

    async def missing(self, file_id: str, space: str, limit: int) -> Sequence[tuple[int, str]]:
        """Return the ids and texts of the first passages without a vector: staged ones if there are any."""
        if not fits_columns(FileRow, id=file_id) or not fits_columns(SpaceRow, name=space):
            return []
        with translate_errors("look for passages without vectors"):
            staged = await self.is_staged(file_id)
            batches = await _batches(file_id, space, staged=staged)
            passages = PassageRow.filter(file_id=file_id, staged=staged).order_by("number")
            last = max((_ends(ids)[1] for ids in batches), default=0)
            # Vectors are added in the order of the passages: without a gap, the missing ones follow the last
            # one.
            if last and await passages.filter(id__lte=last).count() * ID_BYTES == sum(map(len, batches)):
                passages = passages.filter(id__gt=last)
            elif last:
                have = {number for ids in batches for number in unpack_ids(ids)}
                ids: list[Any] = list(await passages.values_list("id", flat=True))
                wanted = [number for number in ids if number not in have][:limit]
                passages = passages.filter(id__in=wanted)
            found: list[Any] = list(await passages.limit(max(limit, 0)).values_list("id", "text"))
        return [(number, text) for number, text in found]

    async def add_vectors(self, space: str, batch: VectorBatch) -> None:
        """Store vectors of passages that have none; vectors of removed passages are dropped.

        Raises not_found without the space, internal when the numbers of vectors and ids differ.
        """
        async with write_transaction("keep vectors"):
            row = await SpaceRow.get_or_none(name=space) if fits_columns(SpaceRow, name=space) else None
            if row is None:
                raise not_found("embedding space", space)
            await _add_vectors(row, batch)

    async def prepare(self, file_id: str) -> None:
        """Do the slow part of `publish` in advance, in short transactions; search results do not change."""
        if fits_columns(FileRow, id=file_id):
            await passage_removal.prepare(file_id)

    async def publish(self, file: File) -> Sequence[str]:
        """Replace the passages of a file by the staged ones and write its record, in one transaction.

        Returns the ids of the collections that contain the file; not_found without the file.
        """
        columns = columns_of(file)
        is_left = False
        async with write_transaction("publish the file") as client:
            if (
                not fits_columns(FileRow, id=file.id)
                or not await FileRow.filter(id=file.id).select_for_update()
            ):
                raise not_found("file", file.id)
            collections = await _lock_collections(client, file.id)
            if await FileTextRow.filter(file_id=file.id, staged=True).exists():
                is_left = await passage_removal.discard(client, file.id, staged=False)
                for row in (VectorBatchRow, PassageRow, FileTextRow):
                    await row.filter(file_id=file.id, staged=False).delete()
                    await row.filter(file_id=file.id, staged=True).update(staged=False)
            for number in collections.values():
                await fts.add(client, number, file.id)
            for link in await _replaced(client, file.id):
                is_left |= await passage_removal.detach(client, link["number"], [link["file_id"]])
                await LinkRow.filter(id=link["id"]).delete()
            await JobRow.filter(file_id=file.id).delete()
            await FileRow.filter(id=file.id).update(**columns)
        if is_left:
            after_commit(self._wake)
        return list(collections)

    async def find_replaced(self, file_id: str) -> Sequence[tuple[str, str]]:
        """Return the links that `publish` would remove now, as (collection id, file id)."""
        if not fits_columns(FileRow, id=file_id):
            return []
        with translate_errors("look for what the file replaces"):
            links = await _replaced(LinkRow._meta.db, file_id)
        return [(link["collection_id"], link["file_id"]) for link in links]

    async def unstage(self, file_id: str) -> None:
        """Delete the staged text and passages of a file."""
        if fits_columns(FileRow, id=file_id):
            async with write_transaction("drop the staged text") as client:
                await FileRow.filter(id=file_id).select_for_update()
                is_left = await passage_removal.discard(client, file_id, staged=True)
                for row in (VectorBatchRow, FileTextRow):
                    await row.filter(file_id=file_id, staged=True).delete()
            if is_left:
                after_commit(self._wake)

    async def find_text(self, file_id: str) -> str | None:
        """Return the published text of a file."""
        if not fits_columns(FileRow, id=file_id):
            return None
        with translate_errors("read a text"):
            rows = await self._texts.rows(
                "SELECT text FROM file_texts WHERE file_id = $1 AND NOT staged", file_id
            )
        return rows[0][0] if rows else None

    async def count(self, scope: SearchScope) -> int:
        """Return the number of published passages of a scope."""
        if not fits_columns(FileRow, id=scope.id):
            return 0
        source = COLLECTION_PASSAGES if scope.kind is ScopeKind.COLLECTION else FILE_PASSAGES
        with translate_errors("count passages"):
            [[count]] = await self._texts.rows(f"SELECT COUNT(*) FROM {source} AND NOT p.staged", scope.id)  # noqa: S608
        return int(count)

    async def find_twin(self, text_hash: str, space: str) -> str | None:
        """Return a completed file with this text hash whose passages all have vectors in the space."""
        if not fits_columns(FileRow, text_hash=text_hash) or not fits_columns(SpaceRow, name=space):
            return None
        with translate_errors("look for the same text"):
            row = await SpaceRow.get_or_none(name=space)
            if row is None:
                return None
            statement = SqlStatement(FileRow._meta.db)
            places = {
                "space": statement.bind(row.id),
                "hash": statement.bind(text_hash),
                "status": statement.bind(FileStatus.COMPLETED.value),
            }
            rows = await statement.run(SELECT_TWIN.format(**places, id_bytes=ID_BYTES))
        return rows[0]["id"] if rows else None

    async def copy_vectors(self, source_id: str, file_id: str, space: str) -> bool:
        """Copy the vectors of another file to the staged passages of a file; False when they do not match."""
        if (
            not fits_columns(FileRow, id=source_id)
            or not fits_columns(FileRow, id=file_id)
            or not fits_columns(SpaceRow, name=space)
        ):
            return False
        async with write_transaction("copy vectors") as client:
            row = await SpaceRow.get_or_none(name=space)
            pairs = await _pairs(client, source_id, file_id)
            if row is None or not pairs:
                return False
            batches = await VectorBatchRow.filter(file_id=source_id, space_id=row.id, staged=False)
            if not pairs.keys() <= {number for batch in batches for number in unpack_ids(batch.ids)}:
                return False
            for batch in batches:
                mine = pack_ids([pairs[number] for number in unpack_ids(batch.ids)])
                await _add_vectors(row, VectorBatch(file_id, mine, batch.vectors))
        return True

    async def read(self, passage_ids: Sequence[int]) -> Mapping[int, StoredPassage]:
        """Return the published ones of these passages, by id."""
        found: dict[int, StoredPassage] = {}
        wanted = list(dict.fromkeys(passage_ids))
        for at in range(0, len(wanted), PAGE_SIZE):
            numbers = ", ".join(str(int(number)) for number in wanted[at : at + PAGE_SIZE])
            query = (
                "SELECT id, file_id, number, text, start, page, heading FROM passages "  # noqa: S608 - numbers
                f"WHERE id IN ({numbers}) AND NOT staged"
            )
            with translate_errors("read passages"):
                found |= {row[0]: StoredPassage(*row) for row in await self._texts.rows(query)}
        return found


def _places(client: Any, count: int) -> list[str]:
    return [placeholder(client, place) for place in range(1, count + 1)]


def _rows(file_id: str, extraction: ExtractionResult) -> list[tuple[Any, ...]]:
    """Return the values of COLUMNS for each chunk; invalid_request for an unstorable text."""
    check_text(extraction.text, "text")
    rows: list[tuple[Any, ...]] = []
    for chunk in extraction.chunks:
        if chunk.heading is not None:
            check_text(chunk.heading, "heading")
        text = extraction.passage(chunk)
        row = (file_id, True, chunk.number, chunk.start, chunk.page, chunk.heading, text, segment_text(text))
        rows.append(row)
    return rows


async def _insert_staged(rows: Sequence[tuple[Any, ...]]) -> None:
    async with write_transaction("keep the passages of the file") as client:
        # Plain SQL: the ORM would check the values again, in the event loop.
        places = ", ".join(_places(client, len(COLUMNS)))
        query = f"INSERT INTO passages ({', '.join(COLUMNS)}) VALUES ({places})"  # noqa: S608
        await client.execute_many(query, list(rows))


async def _batches(file_id: str, space: str, **which: Any) -> Sequence[bytes]:
    """Return the packed ids of each batch of vectors of a file; a batch is sorted by id."""
    batches = VectorBatchRow.filter(file_id=file_id, space__name=space, **which)
    found: list[Any] = list(await batches.values_list("ids", flat=True))
    return [bytes(ids) for ids in found if ids]


def _ends(ids: bytes) -> tuple[int, int]:
    """Return the lowest and the highest id of a batch."""
    first, last = ids[:ID_BYTES], ids[-ID_BYTES:]
    return int.from_bytes(first, "little"), int.from_bytes(last, "little")


async def _add_vectors(space: SpaceRow, batch: VectorBatch) -> None:
    ids = unpack_ids(batch.ids)
    width = space.dimension * FLOAT_BYTES
    if len(batch.vectors) != len(ids) * width:
        raise GatewayError(
            ErrorKind.INTERNAL,
            f"cannot store vectors of file {batch.file_id}: expected {len(ids)} of dimension "
            f"{space.dimension}, got {len(batch.vectors)} bytes",
        )
    # The lock keeps `publish` from changing which passages are staged.
    if (
        not ids
        or not fits_columns(FileRow, id=batch.file_id)
        or not await FileRow.filter(id=batch.file_id).select_for_update()
    ):
        return
    # Only batches near these passages are read, because a file may have many thousands.
    low, high = min(ids), max(ids)
    near = [one for one in await _batches(batch.file_id, space.name) if _ends(one)[1] >= low]
    have = {number for one in near if _ends(one)[0] <= high for number in unpack_ids(one)}
    passages = PassageRow.filter(file_id=batch.file_id, id__gte=low, id__lte=high)
    known: Sequence[Any] = await passages.values_list("id", "staged")
    staged = dict(known)
    positions = {number: at for at, number in enumerate(ids) if number in staged and number not in have}
    for flag in (False, True):
        kept = sorted(number for number in positions if staged[number] is flag)
        if kept:
            vectors = b"".join(batch.vectors[positions[n] * width :][:width] for n in kept)
            row = VectorBatchRow(file_id=batch.file_id, space_id=space.id, staged=flag, ids=pack_ids(kept))
            row.vectors = vectors
            await row.save(force_create=True)


async def _lock_collections(client: Any, file_id: str) -> dict[str, int]:
    """Return numbers by id of the collections that contain a file, locked against other publications."""
    statement = SqlStatement(client)
    lock = " FOR UPDATE OF c" if client.capabilities.dialect == "postgres" else ""
    rows = await statement.run(
        "SELECT c.id AS id, c.number AS number FROM collection_files l JOIN collections c "  # noqa: S608
        f"ON c.id = l.collection_id WHERE l.file_id = {statement.bind(file_id)} ORDER BY c.id{lock}"
    )
    return {row["id"]: row["number"] for row in rows}


async def _replaced(client: Any, file_id: str) -> list[dict[str, Any]]:
    statement = SqlStatement(client)
    places = {"file": statement.bind(file_id), "pending": statement.bind(FileStatus.PENDING.value)}
    return await statement.run(SELECT_REPLACED.format(**places))


async def _pairs(client: Any, source_id: str, file_id: str) -> dict[int, int]:
    """Return the staged passage id for each published one of another file; empty unless all match."""
    statement = SqlStatement(client)
    places = {"source": statement.bind(source_id), "target": statement.bind(file_id)}
    rows = await statement.run(SELECT_PAIRS.format(**places))
    totals = {
        await PassageRow.filter(file_id=source_id, staged=False).count(),
        await PassageRow.filter(file_id=file_id, staged=True).count(),
    }
    return {row["source"]: row["target"] for row in rows} if totals == {len(rows)} else {}
