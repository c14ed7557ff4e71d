"""Store of files, without their bytes and passages."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from gatewayd.ingest.records import File, FileStatus
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, fits_columns
from gatewayd.storage.engine.statements import SqlStatement, like_pattern, storable_ids
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.search import passage_removal
from gatewayd.storage.tables.documents import REMOVED, FileRow, LinkRow
from gatewayd.text import casefold_nfc
from gatewayd.transactions import after_commit

PAGE_SIZE: Final = 1000
COLUMNS: Final = tuple(each.name for each in fields(File))
"""The columns of a record, which have the names of its fields."""


class TortoiseFiles:
    """Implements `ingest.interfaces.FileStore`; `wake` is called when stale passages remain to be purged."""

    def __init__(self, wake: Callable[[], object] = lambda: None) -> None:
        self._wake = wake

    async def add(self, file: File) -> None:
        """Insert a file."""
        async with write_transaction("add the file"):
            await FileRow(id=file.id, **columns_of(file)).save(force_create=True)

    async def find(self, file_id: str) -> File | None:
        """Return the file with this id."""
        if passage_removal.is_marker(file_id) or not fits_columns(FileRow, id=file_id):
            return None
        with translate_errors("read a file"):
            row = await FileRow.get_or_none(id=file_id)
        return None if row is None else file_of(row)

    async def find_many(self, file_ids: Sequence[str]) -> Mapping[str, File]:
        """Return the existing ones of these files, by id, in one statement."""
        statement = SqlStatement(FileRow._meta.db)
        wanted = statement.among(
            [each for each in storable_ids(FileRow, file_ids) if not passage_removal.is_marker(each)]
        )
        with translate_errors("read files"):
            rows = await statement.run(f"SELECT * FROM files WHERE id {wanted}")  # noqa: S608 - no values
        found = {row["id"]: file_from(row) for row in rows}
        return {file_id: found[file_id] for file_id in dict.fromkeys(file_ids) if file_id in found}

    async def list(
        self,
        *,
        user_id: str | None = None,
        orphaned: bool = False,
        pattern: str = "",
        status: FileStatus | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[File], int]:
        """Return one page of files, newest first, and the total count."""
        name = like_pattern(pattern)
        if name is None or (user_id is not None and not fits_columns(FileRow, user_id=user_id)):
            return [], 0
        statement = SqlStatement(FileRow._meta.db)
        # Markers have no owner.
        conditions = (
            [f"status <> '{REMOVED}'"] if user_id is None else [f"user_id = {statement.bind(user_id)}"]
        )
        if orphaned:
            conditions.append("NOT EXISTS (SELECT 1 FROM users u WHERE u.id = files.user_id)")
        if status is not None:
            conditions.append(f"status = {statement.bind(status.value)}")
        if name:
            conditions.append(f"name_key {statement.like(name)}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        counting = statement.copy()
        page = f"{where} ORDER BY created_at DESC, id DESC{statement.window(offset, limit)}"
        with translate_errors("list files"):
            [counted] = await counting.run(f"SELECT COUNT(*) AS total FROM files{where}")  # noqa: S608
            rows = await statement.run(f"SELECT * FROM files{page}")  # noqa: S608 - no values
        return [file_from(row) for row in rows], counted["total"]

    async def change(self, file: File) -> bool:
        """Write every field of a file; False when it does not exist."""
        columns = columns_of(file)
        if not fits_columns(FileRow, id=file.id):
            return False
        async with write_transaction("change the file"):
            return await FileRow.filter(id=file.id).update(**columns) > 0

    async def remove(self, file_id: str) -> bool:
        """Delete a file and the words of its passages; foreign keys delete the rest."""
        if not fits_columns(FileRow, id=file_id):
            return False
        async with write_transaction("remove the file") as client:
            # The lock order of `publish`.
            await FileRow.filter(id=file_id).select_for_update()
            is_left = await passage_removal.discard(client, file_id)
            is_removed = await FileRow.filter(id=file_id).delete() > 0
        if is_left:
            after_commit(self._wake)
        return is_removed

    async def ids(self) -> AsyncIterator[str]:
        """Yield the ids of all files in ascending order, with one page in memory."""
        last = ""
        while True:
            with translate_errors("list files"):
                rows = FileRow.filter(id__gt=last).exclude(status=REMOVED).order_by("id").limit(PAGE_SIZE)
                found: Sequence[Any] = await rows.values_list("id", flat=True)
            if not found:
                return
            for file_id in found:
                yield str(file_id)
            last = str(found[-1])

    async def blob_keys(self) -> AsyncIterator[str]:
        """Yield the keys of the bytes of all files, with one page in memory."""
        last = ""
        while True:
            with translate_errors("list files"):
                rows = FileRow.filter(id__gt=last).exclude(status=REMOVED).order_by("id").limit(PAGE_SIZE)
                found: Sequence[Any] = await rows.values_list("id", "blob")
            if not found:
                return
            for file_id, blob in found:
                yield str(blob or file_id)
            last = str(found[-1][0])

    async def collections_of(self, file_id: str) -> Sequence[str]:
        """Return the ids of the collections that contain a file, in the order of linking."""
        if not fits_columns(FileRow, id=file_id):
            return []
        with translate_errors("read the collections of the file"):
            links: Any = (
                LinkRow.filter(file_id=file_id).order_by("id").values_list("collection_id", flat=True)
            )
            return [str(collection_id) for collection_id in await links]


def columns_of(file: File) -> dict[str, Any]:
    """Return the columns of a file's row without its id."""
    return {
        "user_id": file.user_id,
        "name": file.name,
        "name_key": casefold_nfc(file.name),
        "size": file.size,
        "digest": file.digest,
        "checksum": file.checksum,
        "content_type": file.content_type,
        "status": file.status.value,
        "error": file.error,
        "text_hash": file.text_hash,
        "characters": file.characters,
        "chunks": file.chunks,
        "pages": file.pages,
        "blank_pages": file.blank_pages,
        "data": encode(file.data, "data"),
        "blob": file.blob,
        "updated_at": file.updated_at,
        "created_at": file.created_at,
    }


def file_of(row: FileRow) -> File:
    """Return the record of a row."""
    return file_from({name: getattr(row, name) for name in COLUMNS})


def file_from(columns: Mapping[str, Any]) -> File:
    """Return the record of a row as selected from the database, by column."""
    return File(
        id=columns["id"],
        user_id=columns["user_id"],
        name=columns["name"],
        size=columns["size"],
        digest=columns["digest"],
        checksum=columns["checksum"],
        content_type=columns["content_type"],
        status=FileStatus(columns["status"]),
        error=columns["error"],
        text_hash=columns["text_hash"],
        characters=columns["characters"],
        chunks=columns["chunks"],
        pages=columns["pages"],
        blank_pages=columns["blank_pages"],
        data=decode(columns["data"], f"the data of file {columns['id']}"),
        blob=columns["blob"],
        updated_at=columns["updated_at"],
        created_at=columns["created_at"],
    )
