"""Store of the directories of collections."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, not_found, shorten
from gatewayd.knowledge.paths import subtree
from gatewayd.knowledge.records import CollectionDirectory
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.statements import SqlStatement, storable_ids, stored_values
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.documents import CollectionRow, DirectoryRow, FileRow, LinkRow

# A directory and its ancestors; the depth limit ends a cycle in a damaged database.
SELECT_ANCESTORS: Final = (
    "WITH RECURSIVE line(id, parent_id, depth) AS ("
    "SELECT id, parent_id, 0 FROM collection_directories WHERE collection_id = {collection} AND id = {id} "
    "UNION ALL SELECT d.id, d.parent_id, line.depth + 1 FROM line JOIN collection_directories d "
    "ON d.id = line.parent_id WHERE d.collection_id = {collection} AND line.depth < {deepest}) "
    "SELECT d.* FROM line JOIN collection_directories d ON d.id = line.id ORDER BY line.depth DESC"
)
MAX_DEPTH: Final = 10_000
# A sync client over HTTP (no origin) identifies a file by its path, which a move invalidates. `gatewayctl
# ingest` (with an origin) keeps its own paths.
CLEAR_PLACE: Final = (
    "path = CASE WHEN origin = '' THEN '' ELSE path END, place = CASE WHEN origin = '' THEN '' ELSE place END"
)


class TortoiseCollectionDirectories:
    """The methods of `knowledge.interfaces.CollectionStore` for the directories of a collection."""

    async def add_directory(self, directory: CollectionDirectory) -> None:
        """Insert a directory.

        Raises conflict when its parent has one of this name, not_found without the collection or the parent.
        """
        async with write_transaction("add the directory"):
            await _lock(directory.collection_id)
            await _check(directory)
            row = DirectoryRow(
                id=directory.id,
                collection_id=directory.collection_id,
                parent_id=directory.parent_id,
                name=directory.name,
                user_id=directory.user_id,
                updated_at=directory.updated_at,
                created_at=directory.created_at,
            )
            await row.save(force_create=True)

    async def list_directories(self, collection_id: str) -> Sequence[CollectionDirectory]:
        """Return the directories of a collection by id."""
        if not fits_columns(CollectionRow, id=collection_id):
            return []
        with translate_errors("list the directories of the collection"):
            rows = await DirectoryRow.filter(collection_id=collection_id).order_by("id")
        return [_directory_of(row) for row in rows]

    async def count_directories(self, collection_id: str) -> int:
        """Return the number of directories of a collection."""
        if not fits_columns(CollectionRow, id=collection_id):
            return 0
        with translate_errors("count the directories of the collection"):
            return await DirectoryRow.filter(collection_id=collection_id).count()

    async def find_ancestors(self, collection_id: str, directory_id: str) -> Sequence[CollectionDirectory]:
        """Return a directory and its ancestors, the highest first; empty without the directory."""
        if not fits_columns(CollectionRow, id=collection_id) or not fits_columns(
            DirectoryRow, id=directory_id
        ):
            return []
        statement = SqlStatement(DirectoryRow._meta.db)
        places = {"collection": statement.bind(collection_id), "id": statement.bind(directory_id)}
        with translate_errors("read a directory of the collection"):
            rows = await statement.run(SELECT_ANCESTORS.format(**places, deepest=MAX_DEPTH))
        return [_directory_of(DirectoryRow._init_from_db(**row)) for row in rows]

    async def move_files(
        self, collection_id: str, file_ids: Sequence[str], directory_id: str | None
    ) -> Sequence[str]:
        """Move files of a collection into a directory (None: the root); return the ids of the moved ones.

        Files without an origin lose their paths.
        """
        wanted = storable_ids(FileRow, file_ids)
        if not wanted or not fits_columns(CollectionRow, id=collection_id):
            return []
        async with write_transaction("move files of the collection") as client:
            statement = SqlStatement(client)
            # Raises for an id that the column cannot store.
            [place] = stored_values(LinkRow, {"directory_id": directory_id})
            target = statement.bind(place)
            mine, among = statement.bind(collection_id), statement.among(wanted)
            rows = await statement.run(
                f"UPDATE collection_files SET directory_id = {target}, {CLEAR_PLACE} "  # noqa: S608 - no values
                f"WHERE collection_id = {mine} AND file_id {among} RETURNING file_id"
            )
        return [row["file_id"] for row in rows]

    async def clear_paths(self, collection_id: str, directory_ids: Sequence[str]) -> None:
        """Clear the paths of the files without an origin in directories that were moved."""
        wanted = storable_ids(DirectoryRow, directory_ids)
        if not wanted or not fits_columns(CollectionRow, id=collection_id):
            return
        async with write_transaction("move files of the collection") as client:
            statement = SqlStatement(client)
            mine, among = statement.bind(collection_id), statement.among(wanted)
            await statement.run(
                f"UPDATE collection_files SET {CLEAR_PLACE} "  # noqa: S608 - no values
                f"WHERE collection_id = {mine} AND directory_id {among} AND path <> '' RETURNING id"
            )

    async def change_directory(self, directory: CollectionDirectory) -> bool:
        """Write name, parent and updated_at; False when the directory does not exist.

        Raises the errors of `add_directory`, and conflict when the directory would be inside itself.
        """
        if not fits_columns(DirectoryRow, id=directory.id):
            return False
        async with write_transaction("change the directory"):
            await _lock(directory.collection_id)
            mine = DirectoryRow.filter(id=directory.id, collection_id=directory.collection_id)
            if not await mine.exists():
                return False
            await _check(directory)
            await _check_above(directory)
            columns = {
                "name": directory.name,
                "parent_id": directory.parent_id,
                "updated_at": directory.updated_at,
            }
            return await mine.update(**columns) > 0

    async def remove_directories(self, collection_id: str, directory_ids: Sequence[str]) -> Sequence[str]:
        """Delete directories and all below them; return the ids of their files, which move to the root."""
        wanted = storable_ids(DirectoryRow, directory_ids)
        if not wanted or not fits_columns(CollectionRow, id=collection_id):
            return []
        async with write_transaction("remove directories") as client:
            await _lock(collection_id)
            gone = subtree(await _parents(collection_id), wanted)
            statement = SqlStatement(client)
            mine, among = statement.bind(collection_id), statement.among(gone)
            files = await statement.copy().run(
                "UPDATE collection_files SET directory_id = NULL "  # noqa: S608 - no values
                f"WHERE collection_id = {mine} AND directory_id {among} RETURNING id, file_id"
            )
            await statement.run(
                f"DELETE FROM collection_directories WHERE collection_id = {mine} AND id {among}"  # noqa: S608
            )
        return [row["file_id"] for row in sorted(files, key=_number)]


async def _lock(collection_id: str) -> None:
    """Lock a collection for changes of its directories; not_found without it."""
    found = None
    if fits_columns(CollectionRow, id=collection_id):
        found = await CollectionRow.filter(id=collection_id).select_for_update(no_key=True).first()
    if found is None:
        raise not_found("collection", collection_id)


async def _parents(collection_id: str) -> Mapping[str, str | None]:
    """Return the parent of each directory of a collection."""
    rows: Any = await DirectoryRow.filter(collection_id=collection_id).values_list("id", "parent_id")
    return dict(rows)


async def _check(directory: CollectionDirectory) -> None:
    """Raise not_found without the parent, conflict when it has another directory of this name."""
    beside = DirectoryRow.filter(collection_id=directory.collection_id)
    parent_id = directory.parent_id
    if parent_id is not None and not (
        fits_columns(DirectoryRow, id=parent_id) and await beside.filter(id=parent_id).exists()
    ):
        raise not_found("directory", parent_id)
    if not fits_columns(DirectoryRow, name=directory.name):
        # The write refuses the name with the reason.
        return
    if await beside.filter(parent_id=parent_id, name=directory.name).exclude(id=directory.id).exists():
        sentence = f"cannot store the directory: the name {shorten(directory.name)!r} is taken"
        raise GatewayError(ErrorKind.CONFLICT, sentence, param="name")


async def _check_above(directory: CollectionDirectory) -> None:
    """Raise conflict when a directory would be below itself."""
    parents = await _parents(directory.collection_id)
    above = directory.parent_id
    while above is not None:
        if above == directory.id:
            sentence = f"cannot move the directory {directory.id!r}: it would be inside itself"
            raise GatewayError(ErrorKind.CONFLICT, sentence, param="parent_id")
        above = parents.get(above)


def _number(row: Mapping[str, Any]) -> int:
    return int(row["id"])


def _directory_of(row: Any) -> CollectionDirectory:
    return CollectionDirectory(
        id=row.id,
        collection_id=row.collection_id,
        parent_id=row.parent_id,
        name=row.name,
        user_id=row.user_id,
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
