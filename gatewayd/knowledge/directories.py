"""Directories of collections, made by sync clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import clean
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.knowledge.members import LINK_LOCK, CollectionMembers, CollectionServices, get_ancestors
from gatewayd.knowledge.paths import MAX_PATH_CHARACTERS, MAX_PATH_LEVELS, directory_paths, subtree
from gatewayd.knowledge.records import CollectionDirectory
from gatewayd.text import compose_nfc

MAX_DIRECTORIES: Final = 100_000


@dataclass(frozen=True, slots=True)
class DirectoryChange:
    """Changes of a directory: None leaves the name unchanged.

    With `moves` the parent becomes `parent_id`, None for the root.
    """

    name: str | None = None
    parent_id: str | None = None
    moves: bool = False


class DirectoryService:
    """Creates, moves and removes directories; changes need write access to the collection."""

    def __init__(self, services: CollectionServices, members: CollectionMembers) -> None:
        self._services = services
        self._members = members
        self._collections = services.collections
        self._store = services.store

    async def list(self, actor: Actor, collection_id: str) -> Sequence[CollectionDirectory]:
        """Return all directories of a collection."""
        await self._collections.get(actor, collection_id)
        return await self._store.list_directories(collection_id)

    async def create(
        self, actor: Actor, collection_id: str, name: str, parent_id: str | None = None
    ) -> CollectionDirectory:
        """Add a directory.

        Raises conflict when the parent has a directory of this name, invalid_request for a path of over 4096
        characters or 100 parts.
        """
        await self._collections.get_writable(actor, collection_id)
        now = self._services.clock()
        directory = CollectionDirectory(
            ids.new_id(), collection_id, parent_id, _name(name), actor.user_id, updated_at=now, created_at=now
        )
        async with self._services.transactor.exclusive(LINK_LOCK):
            if await self._store.count_directories(collection_id) >= MAX_DIRECTORIES:
                raise GatewayError(
                    ErrorKind.TOO_LARGE,
                    f"cannot create the directory: the collection already has {MAX_DIRECTORIES}",
                )
            above = (
                await self._store.find_ancestors(collection_id, parent_id) if parent_id is not None else []
            )
            _check_paths(directory_paths([*above, directory]))
            await self._store.add_directory(directory)
        return directory

    async def change(
        self, actor: Actor, collection_id: str, directory_id: str, change: DirectoryChange
    ) -> CollectionDirectory:
        """Rename or move a directory with its files. Raises the errors of `create`."""
        await self._collections.get_writable(actor, collection_id)
        async with self._services.transactor.exclusive(LINK_LOCK):
            known = await self._store.list_directories(collection_id)
            before = _find(known, directory_id)
            directory = replace(
                before,
                name=before.name if change.name is None else _name(change.name),
                parent_id=change.parent_id if change.moves else before.parent_id,
                updated_at=self._services.clock(),
            )
            below = subtree({each.id: each.parent_id for each in known}, [directory_id])
            if directory.parent_id in below:
                raise invalid(
                    "cannot move the directory: parent_id is inside the directory", param="parent_id"
                )
            _check_place(known, directory)
            paths = directory_paths([directory if each.id == directory_id else each for each in known])
            _check_paths({each: paths[each] for each in below})
            await self._store.change_directory(directory)
            await self._store.clear_paths(collection_id, below)
        return directory

    async def remove(
        self, actor: Actor, collection_id: str, directory_id: str, *, move_files: bool = True
    ) -> None:
        """Remove a directory and all directories below it.

        With `move_files` its files move to the parent. Otherwise they are removed from the collection and
        deleted under the conditions of `CollectionMembers.remove_file`.
        """
        await self._collections.get_writable(actor, collection_id)
        async with self._services.transactor.exclusive(LINK_LOCK):
            known = await self._store.list_directories(collection_id)
            directory = _find(known, directory_id)
            file_ids = await self._store.remove_directories(collection_id, [directory_id])
            if move_files:
                await self._store.move_files(collection_id, file_ids, directory.parent_id)
        if not move_files:
            await self._members.remove_many(actor, collection_id, file_ids)

    async def remove_many(self, actor: Actor, collection_id: str, directory_ids: Sequence[str]) -> None:
        """Remove directories, ignoring missing ones; their files stay in the collection."""
        await self._collections.get_writable(actor, collection_id)
        async with self._services.transactor.exclusive(LINK_LOCK):
            known = {each.id for each in await self._store.list_directories(collection_id)}
            found = [each for each in directory_ids if each in known]
            if found:
                file_ids = await self._store.remove_directories(collection_id, found)
                await self._store.move_files(collection_id, file_ids, None)

    async def move_file(
        self, actor: Actor, collection_id: str, file_id: str, directory_id: str | None
    ) -> None:
        """Put a file of the collection into a directory, None for the root."""
        await self._collections.get_writable(actor, collection_id)
        async with self._services.transactor.exclusive(LINK_LOCK):
            if directory_id is not None:
                await get_ancestors(self._store, collection_id, directory_id)
            if not await self._store.move_files(collection_id, [file_id], directory_id):
                raise not_found(f"in collection {collection_id!r} the file", file_id)


def _find(known: Sequence[CollectionDirectory], directory_id: str) -> CollectionDirectory:
    for directory in known:
        if directory.id == directory_id:
            return directory
    raise not_found("directory", directory_id)


def _check_place(known: Sequence[CollectionDirectory], directory: CollectionDirectory) -> None:
    if directory.parent_id is not None:
        _find(known, directory.parent_id)
    for each in known:
        if each.id != directory.id and (each.parent_id, each.name) == (directory.parent_id, directory.name):
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot use name {directory.name!r}: the parent has a directory of this name",
                param="name",
            )


def _check_paths(paths: Mapping[str, str]) -> None:
    if any(len(path) > MAX_PATH_CHARACTERS or path.count("/") >= MAX_PATH_LEVELS for path in paths.values()):
        raise invalid(
            f"cannot store the directory: its path would have over {MAX_PATH_CHARACTERS} characters"
            f" or {MAX_PATH_LEVELS} parts",
            param="name",
        )


def _name(name: str) -> str:
    text = clean(compose_nfc(name), "name")
    if "/" in text or text in {".", ".."}:
        raise invalid("cannot accept name: it contains a slash, or is . or ..", param="name")
    return text
