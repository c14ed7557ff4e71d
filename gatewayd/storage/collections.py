"""Collections with their access lists."""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.accounts.texts import folded
from gatewayd.catalog.records import Grant
from gatewayd.ids import digest
from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.records import Collection
from gatewayd.storage import grants, words
from gatewayd.storage.collection_directories import CollectionDirectories
from gatewayd.storage.collection_links import CollectionLinks
from gatewayd.storage.failures import translated
from gatewayd.storage.fields import decode, encode, fits
from gatewayd.storage.grants import Resource
from gatewayd.storage.rows import CollectionRow, UserRow
from gatewayd.storage.statements import Statement, containing, possible
from gatewayd.storage.transactions import writing

SELECT: Final = (
    "SELECT c.*, (SELECT COUNT(*) FROM collection_files l JOIN files f ON f.id = l.file_id"
    f" WHERE l.collection_id = c.id AND f.status = '{FileStatus.COMPLETED.value}') AS file_count"
    " FROM collections c"  # noqa: S608 - our own text
)
COUNT: Final = "SELECT COUNT(*) AS total FROM collections c"
# Hexadecimal ones, so that 63 bits hold the number.
NUMBER_DIGITS: Final = 15


class TortoiseCollections(CollectionLinks, CollectionDirectories):
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
        async with writing("add the collection") as client:
            await CollectionRow(**columns).save(force_create=True)
            await grants.write(Resource.KNOWLEDGE, collection.id, collection.grants)
            await words.create(client, number)

    async def find(self, collection_id: str) -> Collection | None:
        """Return the collection with this id, its grants and file count."""
        if not fits(CollectionRow, id=collection_id):
            return None
        with translated("read a collection"):
            statement = Statement(CollectionRow._meta.db)
            found = await _read(statement, f" WHERE c.id = {statement.bind(collection_id)}")
        return found[0] if found else None

    async def find_by_name(self, name: str) -> Sequence[Collection]:
        """Return the collections of exactly this name, oldest first."""
        if not fits(CollectionRow, name=name):
            return []
        with translated("read collections"):
            statement = Statement(CollectionRow._meta.db)
            key, exact = statement.bind(folded(name)), statement.bind(name)
            where = f" WHERE c.name_key = {key} AND c.name = {exact} ORDER BY c.created_at, c.id"
            return await _read(statement, where)

    async def list(
        self,
        *,
        reader: tuple[str, Sequence[str]] | None = None,
        query: str = "",
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[Collection], int]:
        """Return one page of collections, last changed first, and the count of all, in three statements."""
        pattern = containing(query)
        if pattern is None or (reader is not None and not fits(CollectionRow, user_id=reader[0])):
            return [], 0
        statement = Statement(CollectionRow._meta.db)
        conditions = []
        if reader is not None:
            user_id, group_ids = reader
            readable = grants.readable(
                statement, Resource.KNOWLEDGE, "c.id", (user_id, possible(UserRow, group_ids))
            )
            conditions.append(f"(c.user_id = {statement.bind(user_id)} OR {readable})")
        if query:
            like = statement.like(pattern)
            conditions.append(f"(c.name_key {like} OR c.description_key {like})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        counting = statement.copy()
        page = f"{where} ORDER BY c.updated_at DESC, c.id DESC{statement.window(offset, limit)}"
        with translated("list collections"):
            [counted] = await counting.run(f"{COUNT}{where}")
            return await _read(statement, page), counted["total"]

    async def change(self, collection: Collection) -> bool:
        """Write name, description, meta, grants and updated_at; False when it is gone."""
        columns = _columns(collection)
        if not fits(CollectionRow, id=collection.id):
            return False
        async with writing("change the collection"):
            if not await CollectionRow.filter(id=collection.id).update(**columns):
                return False
            await grants.write(Resource.KNOWLEDGE, collection.id, collection.grants)
        return True

    async def remove(self, collection_id: str) -> bool:
        """Delete a collection; links and directories go along by their foreign keys, and files stay."""
        if not fits(CollectionRow, id=collection_id):
            return False
        async with writing("remove the collection") as client:
            if not await CollectionRow.filter(id=collection_id).delete():
                return False
            await grants.remove(Resource.KNOWLEDGE, collection_id)
            await words.drop(client, _number_of(collection_id))
        return True


async def _read(statement: Statement, clauses: str) -> list[Collection]:
    """Return the collections that the end of a statement asks for."""
    rows = await statement.run(f"{SELECT}{clauses}")
    access = await grants.read(Resource.KNOWLEDGE, [row["id"] for row in rows])
    return [_collection_of(dict(row), access.get(row["id"], ())) for row in rows]


def _number_of(collection_id: str) -> int:
    """Return the number that names the lexical index of a collection.

    It comes from the id, so that nobody has to wait to learn which number is free.
    """
    return int(digest(collection_id)[:NUMBER_DIGITS], 16)


def _columns(collection: Collection) -> dict[str, Any]:
    return {
        "name": collection.name,
        "name_key": folded(collection.name),
        "description": collection.description,
        "description_key": folded(collection.description),
        "meta": encode(collection.meta, "meta"),
        "updated_at": collection.updated_at,
    }


def _collection_of(columns: dict[str, Any], access: tuple[Grant, ...]) -> Collection:
    file_count = columns.pop("file_count")
    row = CollectionRow._init_from_db(**columns)
    return Collection(
        id=row.id,
        user_id=row.user_id,
        name=row.name,
        description=row.description,
        meta=decode(row.meta, f"the meta of collection {row.id}"),
        grants=access,
        file_count=file_count,
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
