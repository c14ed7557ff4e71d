"""Import of chats with their folders and shared copies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gatewayd.chats.folders import MAX_FOLDER_DEPTH, MAX_FOLDERS, name_key
from gatewayd.chats.records import Chat, ChatFolder, Message, SharedChat
from gatewayd.chats.renderer import render_chat
from gatewayd.chats.shares import snapshot_of
from gatewayd.errors import invalid
from gatewayd.imports.chats import read_chat, read_folder
from gatewayd.imports.records import ImportKind
from gatewayd.imports.rows import ForeignRow
from gatewayd.imports.trees import mend_tree, roots_first
from gatewayd.offline.imports.run import NO_OWNER, SHARED, ImportRun


class ChatImport:
    """Imports the folders and chats of the users who are here."""

    def __init__(self, run: ImportRun) -> None:
        self._run = run
        self._stores = run.stores
        self._folders: dict[str, str] = {}
        """The owner of each folder that is here."""
        self._tags: dict[str, dict[str, str]] = {}

    async def import_folders(self) -> None:
        """Store the new folders of each user."""
        by_user: dict[str, list[ForeignRow]] = {}
        async for values in self._run.source.rows("folder"):
            row = ForeignRow(values)
            by_user.setdefault(row.text("user_id"), []).append(row)
        for user_id, rows in by_user.items():
            owner = self._run.known.users.get(user_id)
            if owner is None:
                for row in rows:
                    self._run.ledger.leave_out(ImportKind.FOLDER, row.text("id"), row.text("name"), NO_OWNER)
            else:
                await self._import_tree(owner, rows)

    async def import_chats(self) -> None:
        """Store the new chats, each with its messages, tags and shared copy."""
        async for values in self._run.source.rows("tag"):
            row = ForeignRow(values)
            self._tags.setdefault(row.text("user_id"), {})[row.text("id")] = row.text("name")
        if not self._run.dry_run:
            # What an interrupted import has left.
            await self._stores.chats.purge(await self._stores.chats.list_unfinished())
        async for values in self._run.source.rows("chat"):
            row = ForeignRow(values)
            if not row.text("user_id").startswith(SHARED):
                with self._run.record(ImportKind.CHAT, row.text("id"), row.text("title")):
                    await self._import_chat(row)

    async def _import_tree(self, owner: str, rows: Sequence[ForeignRow]) -> None:
        folders: dict[str, tuple[ChatFolder, tuple[str, ...]]] = {}
        for row in rows:
            with self._run.record(ImportKind.FOLDER, row.text("id"), row.text("name")):
                folder, changes = read_folder(row, owner, self._run.now)
                folders[folder.id] = folder, changes
        parents, cut = mend_tree({each: folder.parent_id for each, (folder, _) in folders.items()})
        here = {each.id: each for each in await self._stores.folders.list(owner)}
        names = {(each.parent_id, name_key(each.name)) for each in here.values()}
        depths: dict[str | None, int] = {None: 0}
        for folder_id in roots_first(parents):
            folder, changes = folders[folder_id]
            if folder_id in here:
                self._folders[folder_id] = owner
                depths[folder_id] = _depth(here, folder_id)
                self._run.ledger.present(ImportKind.FOLDER)
                continue
            with self._run.record(ImportKind.FOLDER, folder_id, folder.name):
                if len(here) >= MAX_FOLDERS:
                    raise invalid(f"its user has {MAX_FOLDERS} folders, the maximum")
                if await self._stores.folders.find(folder_id) is not None:
                    raise invalid("another user has a folder with its id")
                noted = [*changes, *(["its parent is missing"] if folder_id in cut else [])]
                parent = parents[folder_id]
                if depths.get(parent, MAX_FOLDER_DEPTH) >= MAX_FOLDER_DEPTH:
                    noted.append("it is at the top, as its parent is too deep or left out")
                    parent = None
                placed = _named(replace(folder, parent_id=parent), names, noted)
                if not self._run.dry_run:
                    await self._stores.folders.add(placed)
                here[folder_id] = placed
                depths[folder_id] = depths[parent] + 1
                self._folders[folder_id] = owner
                self._run.ledger.imported(ImportKind.FOLDER)
                self._run.ledger.remark(ImportKind.FOLDER, folder_id, folder.name, noted)

    async def _import_chat(self, row: ForeignRow) -> None:
        chat_id, user_id = row.text("id"), row.text("user_id")
        owner = self._run.known.users.get(user_id)
        if owner is None:
            raise invalid(NO_OWNER)
        held = await self._stores.chats.find(chat_id)
        if held is not None:
            self._run.ledger.present(ImportKind.CHAT)
            await self._note_share(row, held)
            return
        rows = self._run.source.rows(
            "chat_message", where={"chat_id": chat_id}, order_by=("created_at", "id")
        )
        found = await read_chat(row, rows, self._tags.get(user_id, {}), owner, self._check)
        chat, changes = found.new.chat, list(found.changes)
        if chat.folder_id is not None and self._folders.get(chat.folder_id) != owner:
            changes.append("its folder is not here")
            chat = replace(chat, folder_id=None)
        new = replace(found.new, chat=chat)

        async def one() -> Any:
            yield new

        if not self._run.dry_run:
            await self._stores.chats.add_all(one())
        self._run.ledger.imported(ImportKind.CHAT)
        self._run.ledger.remark(ImportKind.CHAT, chat.id, chat.title, changes)
        await self._import_share(row, chat)

    async def _check(self, message: Message) -> None:
        await self._stores.chats.check([message])

    async def _import_share(self, row: ForeignRow, chat: Chat) -> None:
        """Share the copy of a chat under its id there, as soon as the chat is here."""
        copy = await self._copy_of(row)
        if copy is None:
            return
        share_id = copy.text("id")
        with self._run.record(ImportKind.SHARE, share_id, chat.title):
            values = {"id": share_id, "title": copy.text("title"), "chat": copy.json("chat", levels=120)}
            made_at = copy.moment("created_at", self._run.now)
            snapshot = ForeignRow({**values, "created_at": made_at, "updated_at": made_at})
            read = await read_chat(snapshot, _nothing(), {}, chat.user_id, self._check)
            record = await render_chat(replace(read.new.chat, id=chat.id), read.new.messages)
            if await self._stores.chats.find_shared(share_id) is not None:
                raise invalid("another chat here has its id")
            shared = SharedChat(share_id, chat.id, chat.user_id, snapshot_of(record, share_id), made_at)
            if not self._run.dry_run:
                await self._stores.chats.share(shared)
            self._run.ledger.imported(ImportKind.SHARE)

    async def _note_share(self, row: ForeignRow, held: Chat) -> None:
        copy = await self._copy_of(row)
        if copy is None:
            return
        if held.share_id == copy.text("id"):
            self._run.ledger.present(ImportKind.SHARE)
        else:
            reason = "its chat was here before: share it again"
            self._run.ledger.leave_out(ImportKind.SHARE, copy.text("id"), held.title, reason)

    async def _copy_of(self, row: ForeignRow) -> ForeignRow | None:
        """Return the shared copy of a chat: a row of its own table, or a chat of a made-up user."""
        share_id = row.text("share_id")
        if not share_id:
            return None
        for table in ("shared_chat", "chat"):
            async for values in self._run.source.rows(table, where={"id": share_id}):
                found = ForeignRow(values)
                if table == "shared_chat" or found.text("user_id").startswith(SHARED):
                    return found
        return None


async def _nothing() -> Any:
    nothing: tuple[Any, ...] = ()
    for each in nothing:
        yield each


def _depth(folders: Mapping[str, ChatFolder], folder_id: str) -> int:
    seen: set[str] = set()
    at: str | None = folder_id
    while at is not None and at in folders and at not in seen:
        seen.add(at)
        at = folders[at].parent_id
    return len(seen)


def _named(folder: ChatFolder, names: set[tuple[str | None, str]], noted: list[str]) -> ChatFolder:
    """Return a folder with a name that no other folder of its parent has, and add it to `names`."""
    name, number = folder.name, 1
    while (folder.parent_id, name_key(name)) in names:
        number += 1
        name = f"{folder.name[:240]} ({number})"
    if name != folder.name:
        noted.append(f"another folder has its name, it is {name!r}")
    names.add((folder.parent_id, name_key(name)))
    return replace(folder, name=name)
