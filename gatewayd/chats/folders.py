"""Folders of chats: a tree for each user, without cycles, in which no folder has two children of one name."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.permissions import require
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import clean, clean_object
from gatewayd.chats.access import require_chat
from gatewayd.chats.interfaces import ChatStore, FolderStore
from gatewayd.chats.parser import MAX_ID_CHARACTERS
from gatewayd.chats.records import ChatChange, ChatFolder, ChatQuery
from gatewayd.chats.service import Chats, Record
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found, shorten
from gatewayd.text import casefold_nfc
from gatewayd.transactions import Transactor

MAX_FOLDERS: Final = 1_000
"""Maximum number of folders of one user."""

MAX_FOLDER_DEPTH: Final = 16
"""Maximum number of folders above each other."""

MAX_FOLDER_META_BYTES: Final = 4_096
MAX_FOLDER_DATA_BYTES: Final = 65_536
"""Maximum size of `meta` and of `data` of one folder as JSON."""


@dataclass(frozen=True, slots=True)
class FolderFields:
    """The fields of a new folder, or the changed ones of an existing folder; None leaves a field as it is."""

    name: str | None = None
    parent_id: str | None = None
    meta: Mapping[str, Any] | None = None
    data: Mapping[str, Any] | None = None


def name_key(name: str) -> str:
    """Return the form of a folder's name that compares and finds it: one case, `_` for blanks."""
    return casefold_nfc(name.strip()).replace(" ", "_")


class ChatFolders:
    """Manages the folders of users; another user's folder is reported as not found.

    Each method needs the permission features.folders, which administrators have.
    """

    def __init__(
        self,
        store: FolderStore,
        chats: Chats,
        chat_store: ChatStore,
        transactor: Transactor,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._store = store
        self._chats = chats
        self._chat_store = chat_store
        self._transactor = transactor
        self._clock = clock

    async def list(self, actor: Actor) -> Sequence[ChatFolder]:
        """Return all folders of the actor by name, without their data."""
        _require(actor)
        return await self._store.list(actor.user_id)

    async def get(self, actor: Actor, folder_id: str) -> ChatFolder:
        """Return a folder of the actor; raise not_found."""
        _require(actor)
        found = await self._store.find(folder_id) if 0 < len(folder_id) <= MAX_ID_CHARACTERS else None
        if found is None or found.user_id != actor.user_id:
            raise not_found("folder", folder_id)
        return found

    async def subtree(self, actor: Actor, folder_id: str) -> tuple[str, ...]:
        """Return the ids of a folder of the actor and of all folders below it; raise not_found."""
        await self.get(actor, folder_id)
        return _subtree(await self._store.list(actor.user_id), folder_id)

    async def create(self, actor: Actor, wanted: FolderFields) -> ChatFolder:
        """Create a folder and return it.

        Raises conflict if the parent has a folder of this name, not_found for a foreign parent, too_large
        above MAX_FOLDERS, and invalid_request for a bad name or below MAX_FOLDER_DEPTH folders.
        """
        _require(actor)
        now = self._clock()
        folder = ChatFolder(
            id=ids.new_id(),
            user_id=actor.user_id,
            name=clean(wanted.name or "", "name"),
            parent_id=wanted.parent_id or None,
            meta=_clean_object(wanted.meta or {}, "meta", MAX_FOLDER_META_BYTES),
            data=_clean_object(wanted.data or {}, "data", MAX_FOLDER_DATA_BYTES),
            updated_at=now,
            created_at=now,
        )
        async with self._transactor.exclusive(lock_name(actor.user_id)):
            others = await self._store.list(actor.user_id)
            if len(others) >= MAX_FOLDERS:
                raise GatewayError(
                    ErrorKind.TOO_LARGE, f"cannot add a folder: there are {MAX_FOLDERS}", param="name"
                )
            _check_place(folder, others)
            await self._store.add(folder)
        return folder

    async def change(self, actor: Actor, folder_id: str, wanted: FolderFields) -> ChatFolder:
        """Rename a folder or merge members into its `meta` and `data`; return it. Errors as of `create`."""
        async with self._transactor.exclusive(lock_name(actor.user_id)):
            folder = await self.get(actor, folder_id)
            changed = replace(
                folder,
                name=folder.name if wanted.name is None else clean(wanted.name, "name"),
                meta=_clean_object({**folder.meta, **(wanted.meta or {})}, "meta", MAX_FOLDER_META_BYTES),
                data=_clean_object({**folder.data, **(wanted.data or {})}, "data", MAX_FOLDER_DATA_BYTES),
            )
            return await self._put(changed)

    async def move(self, actor: Actor, folder_id: str, parent_id: str | None) -> ChatFolder:
        """Move a folder below another one, None for the top, and return it.

        Raises conflict if it would be inside itself, otherwise as `create`.
        """
        async with self._transactor.exclusive(lock_name(actor.user_id)):
            return await self._put(replace(await self.get(actor, folder_id), parent_id=parent_id or None))

    async def expand(self, actor: Actor, folder_id: str, *, is_expanded: bool) -> ChatFolder:
        """Store whether clients show the contents of a folder, and return it."""
        async with self._transactor.exclusive(lock_name(actor.user_id)):
            return await self._put(replace(await self.get(actor, folder_id), is_expanded=is_expanded))

    async def remove(self, actor: Actor, folder_id: str, *, delete_contents: bool) -> None:
        """Delete a folder and all below it, with their chats or without.

        Chats that stay are outside folders then. Deletion of chats needs the permission chat.delete.
        """
        async with self._transactor.exclusive(lock_name(actor.user_id)):
            gone = await self.subtree(actor, folder_id)
            chats, _ = await self._chats.find(actor, ChatQuery(folder_ids=gone))
            if chats and delete_contents:
                require_chat(actor, "delete")
            await self._store.remove(gone)
        if delete_contents:
            for chat in chats:
                await self._chats.remove(actor, chat.id)
        # Also chats that were added meanwhile.
        await self._store.empty(actor.user_id, gone)

    async def place(self, actor: Actor, chat_id: str, folder_id: str | None) -> Record:
        """Move a chat into a folder, None for none, and return its record; `updated_at` stays."""
        async with self._transactor.exclusive(lock_name(actor.user_id)):
            chat = await self._chats.access.get_changeable(actor, chat_id)
            if folder_id:
                await self.get(actor, folder_id)
            await self._chat_store.change(chat_id, ChatChange(folder_id=folder_id or ""), chat.updated_at)
        return await self._chats.record(chat_id)

    async def create_chat(self, actor: Actor, document: Any, folder_id: str | None) -> Record:
        """Create a chat in a folder and return its record; raise not_found for a foreign folder."""
        if folder_id:
            await self.get(actor, folder_id)
        return await self._chats.create(actor, document, folder_id or None)

    async def _put(self, folder: ChatFolder) -> ChatFolder:
        folder = replace(folder, updated_at=self._clock())
        _check_place(folder, await self._store.list(folder.user_id))
        await self._store.put(folder)
        return folder


def _require(actor: Actor) -> None:
    if not actor.is_admin:
        require(actor, "features", "folders")


def lock_name(user_id: str) -> str:
    """Return the name of the lock that changes of the folders of a user hold."""
    return f"folders:{user_id}"


def _clean_object(value: Mapping[str, Any], name: str, limit: int) -> dict[str, Any]:
    cleaned = clean_object(value, name)
    if len(json.dumps(cleaned)) > limit:
        raise GatewayError(ErrorKind.TOO_LARGE, f"cannot accept {name}: it is over {limit} bytes", param=name)
    return cleaned


def _check_place(folder: ChatFolder, others: Sequence[ChatFolder]) -> None:
    """Raise the errors of a folder's name and parent among the other folders of its user."""
    parents = {other.id: other.parent_id for other in others}
    if folder.parent_id is not None and folder.parent_id not in parents:
        raise not_found("folder", folder.parent_id)
    above: list[str] = []
    at = folder.parent_id
    while at is not None and at not in above:
        above.append(at)
        at = parents.get(at)
    if folder.id in above:
        sentence = f"cannot move the folder {folder.id!r}: it would be inside itself"
        raise GatewayError(ErrorKind.CONFLICT, sentence, param="parent_id")
    if len(above) + _height(others, folder.id) > MAX_FOLDER_DEPTH:
        raise invalid(
            f"cannot store the folder: it would be below {MAX_FOLDER_DEPTH} folders", param="parent_id"
        )
    for other in others:
        is_beside = other.id != folder.id and other.parent_id == folder.parent_id
        if is_beside and name_key(other.name) == name_key(folder.name):
            sentence = f"cannot store the folder: the name {shorten(folder.name)!r} is taken"
            raise GatewayError(ErrorKind.CONFLICT, sentence, param="name")


def _children(folders: Sequence[ChatFolder]) -> dict[str | None, Sequence[str]]:
    children: dict[str | None, list[str]] = {}
    for folder in folders:
        children.setdefault(folder.parent_id, []).append(folder.id)
    return {parent_id: tuple(found) for parent_id, found in children.items()}


def _subtree(folders: Sequence[ChatFolder], folder_id: str) -> tuple[str, ...]:
    """Return the ids of a folder and of all below it; a cycle of a damaged database ends."""
    children, found = _children(folders), dict.fromkeys([folder_id])
    waiting = [folder_id]
    while waiting:
        below = [each for each in children.get(waiting.pop(), ()) if each not in found]
        found.update(dict.fromkeys(below))
        waiting += below
    return tuple(found)


def _height(folders: Sequence[ChatFolder], folder_id: str) -> int:
    """Return the number of folders above each other in a subtree, 1 for a folder without children."""
    children, level, height = _children(folders), [folder_id], 0
    while level and height <= MAX_FOLDER_DEPTH:
        height += 1
        level = [each for above in level for each in children.get(above, ())]
    return height
