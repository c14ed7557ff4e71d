"""Folders of exported and imported chats, as the names of the folders above each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import clean
from gatewayd.chats.folders import MAX_FOLDER_DEPTH, MAX_FOLDERS, lock_name, name_key
from gatewayd.chats.interfaces import FolderStore
from gatewayd.chats.json_limits import invalid_field
from gatewayd.chats.records import ChatFolder
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.transactions import Transactor

FOLDER_PATH: Final = "folder_path"
"""Member of an exported chat: the names of its folders, the outermost first."""

NamePath = tuple[str, ...]


@dataclass(slots=True)
class ImportedPlaces:
    """The folders that the chats of an import name, and where they are: None until they are there."""

    known: dict[tuple[str, NamePath], str | None] = field(default_factory=dict)

    def of(self, form: Mapping[str, Any], where: str) -> str | None:
        """Return the folder of an exported chat; raise invalid_request for a bad path, too_large for too many
        of them."""
        folder_id = form.get("folder_id")
        key = (folder_id if isinstance(folder_id, str) else "", _read_path(form, where))
        if key == ("", ()):
            return None
        found = self.known.setdefault(key, None)
        if len(self.known) > MAX_FOLDERS:
            raise GatewayError(
                ErrorKind.TOO_LARGE, f"cannot import chats of more than {MAX_FOLDERS} folders", param=where
            )
        return found


class FolderPaths:
    """Finds the paths of folders, and the folders of paths."""

    def __init__(self, store: FolderStore, transactor: Transactor, clock: ids.Clock = ids.now) -> None:
        self._store = store
        self._transactor = transactor
        self._clock = clock

    async def of_user(self, user_id: str) -> Mapping[str, Sequence[str]]:
        """Return the path of each folder of a user."""
        folders = {folder.id: folder for folder in await self._store.list(user_id)}
        return {folder_id: _path_of(folders, folder_id) for folder_id in folders}

    async def make(self, user_id: str, places: ImportedPlaces) -> None:
        """Find the places among the folders of a user, by the id first, and make those that are missing.

        Raises too_large above MAX_FOLDERS; then nothing is made.
        """
        async with self._transactor.exclusive(lock_name(user_id)):
            folders = await self._store.list(user_id)
            own = {folder.id for folder in folders}
            inside = {(folder.parent_id, name_key(folder.name)): folder.id for folder in folders}
            for folder_id, path in places.known:
                at = folder_id if folder_id in own else None
                for name in path if at is None else ():
                    place = (at, name_key(name))
                    if place not in inside:
                        inside[place] = await self._add(user_id, name, at, len(inside))
                    at = inside[place]
                places.known[folder_id, path] = at

    async def _add(self, user_id: str, name: str, parent_id: str | None, count: int) -> str:
        if count >= MAX_FOLDERS:
            raise GatewayError(
                ErrorKind.TOO_LARGE, f"cannot add a folder: there are {MAX_FOLDERS}", param=FOLDER_PATH
            )
        now = self._clock()
        folder = ChatFolder(
            id=ids.new_id(),
            user_id=user_id,
            name=name,
            parent_id=parent_id,
            meta={},
            data={},
            updated_at=now,
            created_at=now,
        )
        await self._store.add(folder)
        return folder.id


def may_use_folders(actor: Actor) -> bool:
    """Return whether the chats that somebody imports go into folders."""
    return actor.is_admin or actor.may("features", "folders")


def _path_of(folders: Mapping[str, ChatFolder], folder_id: str) -> Sequence[str]:
    """Return the names from the top to a folder; a cycle of a damaged database ends."""
    path, at = list[str](), folders.get(folder_id)
    while at is not None and len(path) < MAX_FOLDER_DEPTH:
        path.append(at.name)
        at = None if at.parent_id is None else folders.get(at.parent_id)
    return path[::-1]


def _read_path(form: Mapping[str, Any], where: str) -> NamePath:
    names = form.get(FOLDER_PATH)
    if names is None:
        return ()
    field_name = f"{where}.{FOLDER_PATH}"
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise invalid_field(field_name, "expected a list of names")
    if len(names) > MAX_FOLDER_DEPTH:
        raise invalid_field(field_name, f"there are more than {MAX_FOLDER_DEPTH} folders above each other")
    return tuple(clean(name, field_name) for name in names)
