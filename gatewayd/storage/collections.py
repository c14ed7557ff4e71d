"""Store of collections and their access lists."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gatewayd.catalog.records import Grant
from gatewayd.ids import digest
from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.records import Collection
from gatewayd.storage import grants
from gatewayd.storage.collection_directories import TortoiseCollectionDirectories
from gatewayd.storage.collection_links import TortoiseCollectionLinks
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, fits_columns
from gatewayd.storage.engine.statements import SqlStatement, contains_pattern, storable_ids
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.grants import GrantResource
from gatewayd.storage.search import fts
from gatewayd.storage.tables.accounts import UserRow
from gatewayd.storage.tables.documents import CollectionRow, FileRow
from gatewayd.text import casefold_nfc

UNFINISHED: Final = ", ".join(
    f"'{status.value}'" for status in FileStatus if status is not FileStatus.COMPLETED
)
SELECT: Final = "SELECT c.* FROM collections c"
# A subquery per collection uses the index only.
COUNT_LINKS: Final = (
    "SELECT c.id AS id, (SELECT COUNT(*) FROM collection_files l WHERE l.collection_id = c.id) AS files"
    " FROM collections c WHERE c.id {among}"
)
# Most files are completed, so the others are selected by their status; SQLite keeps the order of a cross
# join.
COUNT_UNFINISHED: Final = (
    "SELECT l.collection_id AS id, COUNT(*) AS files FROM files f CROSS JOIN collection_files l"  # noqa: S608
    f" WHERE f.status IN ({UNFINISHED}) AND l.file_id = f.id{{only}} GROUP BY l.collection_id"
)
# Hexadecimal digits: 60 bits, which fit into a signed 64-bit column.
NUMBER_DIGITS: Final = 15


class TortoiseCollections(TortoiseCollectionLinks, TortoiseCollectionDirectories):
    """Implements `knowledge.interfaces.CollectionStore`."""

    async def add(self, collection: Collection) -> None:
        """Insert a collection with its grants and an empty lexical index; conflict when the id is taken."""
        number = _number_of(collection.id)
        columns = {
            **_columns(collection),
            "id": collection.id,
            "number": number,
            "user_id": collection.user_id,
            "created_at": collection.created_at,
        }
        async with write_transaction("add the collection") as client:
            await CollectionRow(**columns).save(force_create=True)
            await grants.write(GrantResource.KNOWLEDGE, collection.id, collection.grants)
            await fts.create(client, number)

    async def find(self, collection_id: str) -> Collection | None:
        """Return the collection with this id and its grants; `file_count` is None."""
        if not fits_columns(CollectionRow, id=collection_id):
            return None
        with translate_errors("read a collection"):
            statement = SqlStatement(CollectionRow._meta.db)
            found = await _read(statement, f" WHERE c.id = {statement.bind(collection_id)}")
        return found[0] if found else None

    async def find_by_name(self, name: str) -> Sequence[Collection]:
        """Return the collections of exactly this name, oldest first; `file_count` is None."""
        if not fits_columns(CollectionRow, name=name):
            return []
        with translate_errors("read collections"):
            statement = SqlStatement(CollectionRow._meta.db)
            key, exact = statement.bind(casefold_nfc(name)), statement.bind(name)
            where = f" WHERE c.name_key = {key} AND c.name = {exact} ORDER BY c.created_at, c.id"
            return await _read(statement, where)

    async def list(
        self,
        *,
        reader: tuple[str, Sequence[str]] | None = None,
        orphaned: bool = False,
        query: str = "",
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[Collection], int]:
        """Return one page of collections, last changed first, and the total count, in five statements."""
        pattern = contains_pattern(query)
        if pattern is None or (reader is not None and not fits_columns(CollectionRow, user_id=reader[0])):
            return [], 0
        statement = SqlStatement(CollectionRow._meta.db)
        conditions = []
        if reader is not None:
            user_id, group_ids = reader
            readable = grants.readable_condition(
                statement, GrantResource.KNOWLEDGE, "c.id", (user_id, storable_ids(UserRow, group_ids))
            )
            conditions.append(f"(c.user_id = {statement.bind(user_id)} OR {readable})")
        if orphaned:
            conditions.append("NOT EXISTS (SELECT 1 FROM users u WHERE u.id = c.user_id)")
        if query:
            like = statement.like(pattern)
            conditions.append(f"(c.name_key {like} OR c.description_key {like})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        counting = statement.copy()
        page = f"{where} ORDER BY c.updated_at DESC, c.id DESC{statement.window(offset, limit)}"
        with translate_errors("list collections"):
            [counted] = await counting.run(f"SELECT COUNT(*) AS total FROM collections c{where}")  # noqa: S608
            found = await _read(statement, page)
            counts = await _count(statement.client, [each.id for each in found])
        return [replace(each, file_count=counts.get(each.id, 0)) for each in found], counted["total"]

    async def holding(self, file_ids: Sequence[str]) -> Mapping[str, Sequence[Collection]]:
        """Return the collections that contain each of the files, oldest link first, in three statements."""
        statement = SqlStatement(CollectionRow._meta.db)
        among = statement.among(storable_ids(FileRow, file_ids))
        with translate_errors("read the collections of files"):
            links = await statement.run(
                f"SELECT file_id, collection_id FROM collection_files WHERE file_id {among} ORDER BY id"  # noqa: S608
            )
            reading = SqlStatement(statement.client)
            wanted = reading.among(list({link["collection_id"] for link in links}))
            known = {each.id: each for each in await _read(reading, f" WHERE c.id {wanted}")}
        found: dict[str, list[Collection]] = {}
        for link in links:
            if link["collection_id"] in known:
                found.setdefault(link["file_id"], []).append(known[link["collection_id"]])
        return found

    async def count_files(self, collection_id: str) -> int:
        """Return the number of completed files of a collection."""
        if not fits_columns(CollectionRow, id=collection_id):
            return 0
        with translate_errors("count the files of the collection"):
            counts = await _count(CollectionRow._meta.db, [collection_id])
        return counts.get(collection_id, 0)

    async def has_files(self, collection_id: str) -> bool:
        """Return whether a collection has a completed file, without counting them."""
        if not fits_columns(CollectionRow, id=collection_id):
            return False
        statement = SqlStatement(CollectionRow._meta.db)
        mine, completed = statement.bind(collection_id), statement.bind(FileStatus.COMPLETED.value)
        query = (
            "SELECT 1 AS found FROM collection_files l CROSS JOIN files f "  # noqa: S608 - no values
            f"WHERE l.collection_id = {mine} AND f.id = l.file_id AND f.status = {completed} LIMIT 1"
        )
        with translate_errors("look for files in the collection"):
            return bool(await statement.run(query))

    async def change(self, collection: Collection) -> bool:
        """Write owner, name, description, meta, grants and updated_at; False when it does not exist."""
        columns = {**_columns(collection), "user_id": collection.user_id}
        if not fits_columns(CollectionRow, id=collection.id):
            return False
        async with write_transaction("change the collection"):
            if not await CollectionRow.filter(id=collection.id).update(**columns):
                return False
            await grants.write(GrantResource.KNOWLEDGE, collection.id, collection.grants)
        return True

    async def remove(self, collection_id: str) -> bool:
        """Delete a collection but not its files; foreign keys delete its links and directories."""
        if not fits_columns(CollectionRow, id=collection_id):
            return False
        async with write_transaction("remove the collection") as client:
            if not await CollectionRow.filter(id=collection_id).delete():
                return False
            await grants.remove(GrantResource.KNOWLEDGE, collection_id)
            await fts.drop(client, _number_of(collection_id))
        return True


async def _read(statement: SqlStatement, clauses: str) -> list[Collection]:
    """Run SELECT with these clauses and return its collections with their grants."""
    rows = await statement.run(f"{SELECT}{clauses}")
    access = await grants.read(GrantResource.KNOWLEDGE, [row["id"] for row in rows])
    return [_collection_of(row, access.get(row["id"], ())) for row in rows]


async def _count(client: Any, ids: Sequence[str]) -> Mapping[str, int]:
    """Return the number of completed files of collections, by collection id."""
    if not ids:
        return {}
    linked, unfinished = SqlStatement(client), SqlStatement(client)
    links = await linked.run(COUNT_LINKS.format(among=linked.among(ids)))
    # For several collections, one pass over the unfinished files is faster than one query per collection.
    only = f" AND l.collection_id = {unfinished.bind(ids[0])}" if len(ids) == 1 else ""
    rest = {row["id"]: row["files"] for row in await unfinished.run(COUNT_UNFINISHED.format(only=only))}
    return {row["id"]: max(row["files"] - rest.get(row["id"], 0), 0) for row in links}


def _number_of(collection_id: str) -> int:
    """Return the number that names the lexical index of a collection.

    It is derived from the id: a sequence would make concurrent transactions wait.
    """
    return int(digest(collection_id)[:NUMBER_DIGITS], 16)


def _columns(collection: Collection) -> dict[str, Any]:
    return {
        "name": collection.name,
        "name_key": casefold_nfc(collection.name),
        "description": collection.description,
        "description_key": casefold_nfc(collection.description),
        "meta": encode(collection.meta, "meta"),
        "updated_at": collection.updated_at,
    }


def _collection_of(columns: Mapping[str, Any], access: tuple[Grant, ...]) -> Collection:
    row = CollectionRow._init_from_db(**columns)
    return Collection(
        id=row.id,
        user_id=row.user_id,
        name=row.name,
        description=row.description,
        meta=decode(row.meta, f"the meta of collection {row.id}"),
        grants=access,
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
