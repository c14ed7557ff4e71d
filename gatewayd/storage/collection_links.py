"""Store of the links between collections and files."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gatewayd.errors import not_found
from gatewayd.ids import digest
from gatewayd.ingest.records import File
from gatewayd.knowledge.records import CollectionLink
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.statements import SqlStatement, contains_pattern, storable_ids, stored_values
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.files import COLUMNS, file_from
from gatewayd.storage.search import fts, passage_removal
from gatewayd.storage.tables.documents import CollectionRow, FileRow, LinkRow
from gatewayd.transactions import after_commit

BATCH_SIZE: Final = 500
LINKED_FILE: Final = (
    "l.collection_id AS collection_id, l.user_id AS linked_by, l.origin AS origin, l.path AS path, "
    "l.directory_id AS directory_id, l.created_at AS linked_at, "
    + ", ".join(f"f.{name} AS {name}" for name in COLUMNS)
)


class TortoiseCollectionLinks:
    """The methods of `knowledge.interfaces.CollectionStore` for the files of a collection.

    `wake` is called when stale words remain to be purged.
    """

    def __init__(self, wake: Callable[[], object] = lambda: None) -> None:
        self._wake = wake

    async def link(self, link: CollectionLink) -> bool:
        """Link a file to a collection and index its words; False when it was linked.

        An existing link takes over path, origin and directory, including empty ones. Raises not_found without
        the collection, conflict without the file.
        """
        columns = _columns(link)
        async with write_transaction("add the file to the collection") as client:
            number = await _number(link.collection_id)
            statement = SqlStatement(client)
            inserted = await statement.run(
                f"INSERT INTO collection_files ({', '.join(columns)}) "  # noqa: S608 - no values
                f"VALUES ({statement.bind_all(stored_values(LinkRow, columns))}) "
                "ON CONFLICT (collection_id, file_id) DO NOTHING RETURNING id"
            )
            if inserted:
                await fts.add(client, number, link.file_id)
                return True
            moved = {name: columns[name] for name in ("origin", "path", "place", "directory_id")}
            there = LinkRow.filter(collection_id=link.collection_id, file_id=link.file_id)
            await there.update(**moved)
            return False

    async def unlink(self, collection_id: str, file_ids: Sequence[str]) -> Sequence[str]:
        """Unlink files and remove their words from the index; return the ids of those that were linked."""
        wanted = storable_ids(FileRow, file_ids)
        if not wanted or not fits_columns(CollectionRow, id=collection_id):
            return []
        async with write_transaction("take files out of the collection") as client:
            statement = SqlStatement(client)
            mine, among = statement.bind(collection_id), statement.among(wanted)
            rows = await statement.run(
                f"DELETE FROM collection_files WHERE collection_id = {mine} AND file_id {among} "  # noqa: S608
                "RETURNING file_id"
            )
            gone = {row["file_id"] for row in rows}
            taken = [file_id for file_id in wanted if file_id in gone]
            is_left = False
            if taken:
                is_left = await passage_removal.detach(client, await _number(collection_id), taken)
        if is_left:
            after_commit(self._wake)
        return taken

    async def find_links(self, collection_id: str, file_ids: Sequence[str]) -> Mapping[str, CollectionLink]:
        """Return the links of the given files in the collection, by file id, in one statement."""
        wanted = storable_ids(FileRow, file_ids)
        if not wanted or not fits_columns(CollectionRow, id=collection_id):
            return {}
        statement = SqlStatement(LinkRow._meta.db)
        mine, among = statement.bind(collection_id), statement.among(wanted)
        with translate_errors("read the files of the collection"):
            rows = await statement.run(
                f"SELECT * FROM collection_files WHERE collection_id = {mine} AND file_id {among}"  # noqa: S608
            )
        found = {row["file_id"]: _link_of(LinkRow._init_from_db(**row)) for row in rows}
        return {file_id: found[file_id] for file_id in wanted if file_id in found}

    async def list_files(
        self,
        collection_id: str,
        *,
        origin: str | None = None,
        directory_id: str | None = None,
        query: str = "",
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[tuple[CollectionLink, File]], int]:
        """Return one page of files in any status, in the order of linking, and the total count.

        An empty `directory_id` selects the files in no directory.
        """
        statement = SqlStatement(LinkRow._meta.db)
        source = _links_source(statement, collection_id, (origin, directory_id), query)
        if source is None:
            return [], 0
        counting = statement.copy()
        with translate_errors("list the files of the collection"):
            [counted] = await counting.run(f"SELECT COUNT(*) AS total FROM {source}")  # noqa: S608
            ids = f"SELECT l.id FROM {source} ORDER BY l.id{statement.window(offset, limit)}"  # noqa: S608
            # In batches, so that other queries run between them.
            wanted = [row["id"] for row in await statement.run(ids)]
            pieces = [wanted[at : at + BATCH_SIZE] for at in range(0, len(wanted), BATCH_SIZE)]
            found = [each for piece in pieces for each in await _read(piece)]
        return found, counted["total"]

    async def find_same_text(self, collection_id: str, text_hash: str, *, but: str) -> str | None:
        """Return a file other than `but` in the collection that has this text and no path.

        Files with a path are ignored: a synchronised tree may contain the same text twice.
        """
        if not fits_columns(FileRow, text_hash=text_hash, id=but) or not fits_columns(
            CollectionRow, id=collection_id
        ):
            return None
        statement = SqlStatement(LinkRow._meta.db)
        same, mine, own = statement.bind(text_hash), statement.bind(collection_id), statement.bind(but)
        # SQLite keeps the order of a cross join: few files have the same text, many may be in the collection.
        query = (
            "SELECT l.file_id AS file_id FROM files f CROSS JOIN collection_files l "  # noqa: S608 - no values
            f"WHERE f.text_hash = {same} AND l.collection_id = {mine} AND l.file_id = f.id AND l.path = '' "
            f"AND l.file_id <> {own} ORDER BY l.id LIMIT 1"
        )
        with translate_errors("read the files of the collection"):
            rows = await statement.run(query)
        return rows[0]["file_id"] if rows else None


def place_key(origin: str, path: str) -> str:
    """Return the lookup key of an origin and a path, "" without a path."""
    return digest(f"{origin}\x00{path}") if path else ""


async def _number(collection_id: str) -> int:
    found: Any = None
    if fits_columns(CollectionRow, id=collection_id):
        found = await CollectionRow.filter(id=collection_id).values_list("number", flat=True)
    if not found:
        raise not_found("collection", collection_id)
    return int(found[0])


def _links_source(
    statement: SqlStatement, collection_id: str, place: tuple[str | None, str | None], query: str
) -> str | None:
    """Return the FROM and WHERE of the links `l` of `list_files`, None when none can match.

    `place` is origin and directory.
    """
    given = dict(zip(("origin", "directory_id"), place, strict=True))
    texts = {name: text for name, text in given.items() if text is not None}
    pattern = contains_pattern(query)
    if pattern is None or not fits_columns(LinkRow, collection_id=collection_id, **texts):
        return None
    conditions = [f"l.collection_id = {statement.bind(collection_id)}"]
    for name, text in texts.items():
        is_none = name == "directory_id" and not text
        conditions.append(f"l.{name} IS NULL" if is_none else f"l.{name} = {statement.bind(text)}")
    files = ""
    if query:
        files = " JOIN files f ON f.id = l.file_id"
        conditions.append(f"f.name_key {statement.like(pattern)}")
    return f"collection_files l{files} WHERE {' AND '.join(conditions)}"


async def _read(link_ids: Sequence[int]) -> list[tuple[CollectionLink, File]]:
    """Return links with their files, in the order of the links."""
    statement = SqlStatement(LinkRow._meta.db)
    numbers = ", ".join(str(int(number)) for number in link_ids)
    rows = await statement.run(
        f"SELECT {LINKED_FILE} FROM collection_files l JOIN files f ON f.id = l.file_id "  # noqa: S608 - numbers
        f"WHERE l.id IN ({numbers}) ORDER BY l.id"
    )
    return [(_link_from(row), file_from(row)) for row in rows]


def _link_from(row: Mapping[str, Any]) -> CollectionLink:
    """Return the link of a row with the columns of LINKED_FILE."""
    return CollectionLink(
        collection_id=row["collection_id"],
        file_id=row["id"],
        user_id=row["linked_by"],
        origin=row["origin"],
        path=row["path"],
        directory_id=row["directory_id"],
        created_at=row["linked_at"],
    )


def _columns(link: CollectionLink) -> dict[str, Any]:
    return {
        "collection_id": link.collection_id,
        "file_id": link.file_id,
        "user_id": link.user_id,
        "origin": link.origin,
        "path": link.path,
        "place": place_key(link.origin, link.path),
        "directory_id": link.directory_id,
        "created_at": link.created_at,
    }


def _link_of(row: Any) -> CollectionLink:
    return CollectionLink(
        collection_id=row.collection_id,
        file_id=row.file_id,
        user_id=row.user_id,
        origin=row.origin,
        path=row.path,
        directory_id=row.directory_id,
        created_at=row.created_at,
    )
