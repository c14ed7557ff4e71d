"""Stored chats in memory: what `gatewayd.chats.interfaces` and `MessageEffects` promise, over one state."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gatewayd.chats.folders import name_key
from gatewayd.chats.records import (
    Chat,
    ChatChange,
    ChatFolder,
    ChatQuery,
    FavouriteMessage,
    MatchedMessage,
    Message,
    MessageChange,
    MessageLink,
    MessageState,
    NewChat,
    SharedChat,
    Tag,
)
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.storage.engine.fields import encode_sanitised
from gatewayd.storage.message_limits import check_content, check_items


@dataclass
class ChatState:
    """What the fakes of one gateway keep together."""

    chats: dict[str, Chat] = field(default_factory=dict)
    messages: dict[str, dict[str, Message]] = field(default_factory=dict)
    tags: dict[str, dict[str, Tag]] = field(default_factory=dict)
    shared: dict[str, SharedChat] = field(default_factory=dict)
    folders: dict[str, ChatFolder] = field(default_factory=dict)
    outage: GatewayError | None = None
    """What every use of a message, and every change of a chat, raises while the database is away."""

    def chat(self, chat_id: str) -> Chat:
        """Return a copy of a chat with its tags and share id."""
        share = next((one.id for one in self.shared.values() if one.chat_id == chat_id), None)
        tags = tuple(sorted(self.tags.get(chat_id, {})))
        return deepcopy(replace(self.chats[chat_id], tags=tags, share_id=share))

    def require(self, chat_id: str) -> None:
        """Raise not_found when there is no such chat."""
        if chat_id not in self.chats:
            raise not_found("chat", chat_id)

    def message(self, chat_id: str, message_id: str) -> Message | None:
        """Return one message itself, not a copy."""
        self.fail()
        return self.messages.get(chat_id, {}).get(message_id)

    def fail(self) -> None:
        """Raise what the database raises while it is away."""
        if self.outage is not None:
            raise self.outage


class MemoryChats:
    """A `ChatStore` in memory."""

    def __init__(self, state: ChatState) -> None:
        self._state = state

    async def add(self, chat: Chat, messages: Sequence[Message], *, is_copy: bool = False) -> None:
        """Insert a chat with its messages and tags' ids; conflict when the id is taken."""
        self._check_free(chat.id)
        self._state.chats[chat.id] = deepcopy(chat)
        self._state.messages[chat.id] = {message.id: deepcopy(message) for message in messages}

    def _check_free(self, chat_id: str) -> None:
        if chat_id in self._state.chats:
            raise GatewayError(ErrorKind.CONFLICT, f"cannot add chat {chat_id!r}: the id is taken")

    async def add_all(self, chats: AsyncIterator[NewChat]) -> None:
        """Insert chats with their messages and tags, all or none."""
        added = [each async for each in chats]
        for new in added:
            self._check_free(new.chat.id)
        for new in added:
            await self.add(new.chat, new.messages)
            for tag in new.tags:
                await self.add_tag(new.chat.id, tag)

    async def check(self, messages: Sequence[Message]) -> None:
        """Raise too_large for a message over the limits of a stored one."""
        for message in messages:
            check_content(message.content)
            for kind, values in message.items.items():
                check_items(kind, [encode_sanitised(value, kind) for value in values])

    async def find(self, chat_id: str) -> Chat | None:
        """Return one chat."""
        return self._state.chat(chat_id) if chat_id in self._state.chats else None

    async def list(self, query: ChatQuery) -> tuple[Sequence[Chat], int]:
        """Return one page and the count of all."""
        every = [self._state.chat(chat_id) for chat_id in self._state.chats]
        found = [chat for chat in every if self._matches(chat, query)]
        key = query.sort_by
        found.sort(
            key=lambda chat: (chat.title.lower() if key == "title" else getattr(chat, key), chat.id),
            reverse=query.descending,
        )
        last = None if query.limit is None else query.offset + query.limit
        return found[query.offset : last], len(found)

    async def change(self, chat_id: str, change: ChatChange, at: int) -> bool:
        """Change a chat; False when there is none."""
        self._state.fail()
        chat = self._state.chats.get(chat_id)
        if chat is None:
            return False
        given = {one.name: getattr(change, one.name) for one in fields(change)}
        values = {name: deepcopy(value) for name, value in given.items() if value is not None}
        for name in ("folder_id", "current_id"):
            if values.get(name) == "":
                values[name] = None
        self._state.chats[chat_id] = replace(chat, **values, updated_at=at)
        return True

    async def touch(self, chat_id: str, at: int) -> bool:
        """Set `updated_at` alone."""
        return await self.change(chat_id, ChatChange(), at)

    async def hide(self, chat_id: str) -> bool:
        """Delete a chat with all that hangs on it: nobody can see the difference."""
        found = self._state.chats.pop(chat_id, None)
        self._state.messages.pop(chat_id, None)
        self._state.tags.pop(chat_id, None)
        await self.unshare(chat_id)
        return found is not None

    async def hide_all(self, user_id: str) -> Sequence[str]:
        """Delete every chat of a user, and return their ids."""
        mine = [chat.id for chat in self._state.chats.values() if chat.user_id == user_id]
        for chat_id in mine:
            await self.hide(chat_id)
        return mine

    async def list_unfinished(self) -> Sequence[str]:
        """Return nothing: all ends with the process."""
        return ()

    async def purge(self, chat_ids: Sequence[str]) -> None:
        """Delete unfinished chats, which are gone already."""
        assert not self._state.chats.keys() & set(chat_ids)

    async def archive_all(self, user_id: str, *, archived: bool) -> None:
        """Set `archived` of every chat of a user."""
        for chat in list(self._state.chats.values()):
            if chat.user_id == user_id:
                self._state.chats[chat.id] = replace(chat, archived=archived)

    async def add_tag(self, chat_id: str, tag: Tag) -> None:
        """Give a chat a tag; not_found when there is no such chat."""
        self._state.fail()
        self._state.require(chat_id)
        self._state.tags.setdefault(chat_id, {}).setdefault(tag.id, tag)

    async def remove_tags(self, chat_id: str, tag_ids: Sequence[str] | None = None) -> None:
        """Take these tags from a chat, or all."""
        kept = self._state.tags.get(chat_id, {})
        for tag_id in list(kept) if tag_ids is None else tag_ids:
            kept.pop(tag_id, None)

    async def tags(self, *, user_id: str | None = None, chat_id: str | None = None) -> Sequence[Tag]:
        """Return the tags of a chat or of a user, each once, by name."""
        found = {
            tag.id: tag
            for one, tags in self._state.tags.items()
            if chat_id in (None, one)
            for tag in tags.values()
            if user_id in (None, tag.user_id)
        }
        return sorted(found.values(), key=lambda tag: (tag.name, tag.id))

    async def share(self, shared: SharedChat) -> None:
        """Keep a chat as it is now; not_found when it is gone."""
        self._state.require(shared.chat_id)
        await self.unshare(shared.chat_id)
        self._state.shared[shared.id] = deepcopy(shared)

    async def find_shared(self, share_id: str) -> SharedChat | None:
        """Return what was shared under an id."""
        return deepcopy(self._state.shared.get(share_id))

    async def unshare(self, chat_id: str) -> bool:
        """Forget what was shared of a chat."""
        gone = [one.id for one in self._state.shared.values() if one.chat_id == chat_id]
        for share_id in gone:
            del self._state.shared[share_id]
        return bool(gone)

    def _matches(self, chat: Chat, query: ChatQuery) -> bool:
        wanted = {"user_id", "archived", "pinned"}
        if any(getattr(query, name) not in (None, getattr(chat, name)) for name in wanted):
            return False
        folder = self._state.folders.get(chat.folder_id or "")
        if query.is_loose and folder is not None:
            return False
        if query.folder_ids is not None and chat.folder_id not in query.folder_ids:
            return False
        if query.folder_name is not None and (
            folder is None or folder.user_id != chat.user_id or name_key(folder.name) != query.folder_name
        ):
            return False
        if query.shared not in (None, chat.share_id is not None) or not set(query.tags) <= set(chat.tags):
            return False
        texts = [chat.title, *(one.content for one in self._state.messages.get(chat.id, {}).values())]
        return any(query.text.lower() in text.lower() for text in texts)


class MemoryFolders:
    """A `FolderStore` in memory."""

    def __init__(self, state: ChatState) -> None:
        self._state = state

    async def add(self, folder: ChatFolder) -> None:
        """Insert a folder; conflict when the id is taken."""
        if folder.id in self._state.folders:
            raise GatewayError(ErrorKind.CONFLICT, "cannot add the folder: the id is taken")
        self._state.folders[folder.id] = deepcopy(folder)

    async def find(self, folder_id: str) -> ChatFolder | None:
        """Return one folder with its data."""
        return deepcopy(self._state.folders.get(folder_id))

    async def list(self, user_id: str) -> Sequence[ChatFolder]:
        """Return all folders of a user by name, without their data."""
        mine = [replace(one, data={}) for one in self._state.folders.values() if one.user_id == user_id]
        return deepcopy(sorted(mine, key=lambda one: (name_key(one.name), one.id)))

    async def put(self, folder: ChatFolder) -> bool:
        """Replace a folder; False when there is none."""
        is_there = folder.id in self._state.folders
        if is_there:
            self._state.folders[folder.id] = deepcopy(folder)
        return is_there

    async def remove(self, folder_ids: Sequence[str]) -> None:
        """Delete folders."""
        for folder_id in folder_ids:
            self._state.folders.pop(folder_id, None)

    async def empty(self, user_id: str, folder_ids: Sequence[str]) -> None:
        """Take the chats of a user out of folders."""
        for chat in list(self._state.chats.values()):
            if chat.user_id == user_id and chat.folder_id in folder_ids:
                self._state.chats[chat.id] = replace(chat, folder_id=None)


class MemoryMessageSearch:
    """A `MessageSearch` in memory."""

    def __init__(self, state: ChatState) -> None:
        self._state = state

    async def favourites(self, user_id: str, offset: int, limit: int) -> Sequence[FavouriteMessage]:
        """Return a page of the favourite messages of a user, the newest first."""
        found = [
            FavouriteMessage(
                chat.id,
                chat.title,
                chat.folder_id,
                each.id,
                each.role,
                str(each.attributes.get("model", "")),
                each.content[:600],
                each.timestamp,
            )
            for chat in self._state.chats.values()
            if chat.user_id == user_id
            for each in self._state.messages.get(chat.id, {}).values()
            if each.attributes.get("favorite") is True
        ]
        found.sort(key=lambda one: one.timestamp, reverse=True)
        return found[offset : offset + limit]

    async def matches(self, chat_ids: Sequence[str], text: str) -> Sequence[MatchedMessage]:
        """Return the newest match of each of the chats whose messages contain a text."""
        found = {}
        for chat_id in chat_ids if text else ():
            for each in self._state.messages.get(chat_id, {}).values():
                if text.lower() in each.content.lower():
                    found[chat_id] = MatchedMessage(chat_id, each.id, " ".join(each.content.split()))
        return list(found.values())


class MemoryMessages:
    """A `MessageStore` in memory."""

    def __init__(self, state: ChatState) -> None:
        self._state = state

    async def list(self, chat_id: str) -> Sequence[Message]:
        """Return all messages of a chat in the order of their making."""
        return deepcopy(list(self._state.messages.get(chat_id, {}).values()))

    async def count(self, chat_id: str) -> int:
        """Return how many messages a chat has."""
        return len(self._state.messages.get(chat_id, {}))

    async def size(self, chat_id: str) -> int:
        """Return how many bytes the messages of a chat hold."""
        return sum(
            len(each.content.encode()) + len(json.dumps([each.parts, each.attributes, each.items]))
            for each in self._state.messages.get(chat_id, {}).values()
        )

    async def find(self, chat_id: str, message_id: str) -> Message | None:
        """Return one message."""
        return deepcopy(self._state.message(chat_id, message_id))

    async def branch(self, chat_id: str, message_id: str) -> Sequence[Message]:
        """Return the messages from the root to this one."""
        found: dict[str, Message] = {}
        at = self._state.message(chat_id, message_id)
        while at is not None and at.id not in found:
            found[at.id] = at
            at = None if at.parent_id is None else self._state.message(chat_id, at.parent_id)
        return deepcopy(list(reversed(found.values())))

    async def outline(self, chat_id: str) -> Sequence[MessageLink]:
        """Return the ids and parents of all messages of a chat."""
        return [MessageLink(one.id, one.parent_id) for one in self._state.messages.get(chat_id, {}).values()]

    async def select(self, chat_id: str, message_ids: Sequence[str]) -> Sequence[Message]:
        """Return the messages with these ids."""
        kept = self._state.messages.get(chat_id, {})
        return deepcopy([one for one in kept.values() if one.id in set(message_ids)])

    async def put(self, chat_id: str, messages: Sequence[Message]) -> None:
        """Insert messages, or replace them whole; not_found when there is no such chat."""
        self._state.require(chat_id)
        self._state.messages.setdefault(chat_id, {}).update({one.id: deepcopy(one) for one in messages})

    async def change(self, chat_id: str, message_id: str, change: MessageChange) -> bool:
        """Change one message; False when there is none."""
        message = self._state.message(chat_id, message_id)
        if message is None:
            return False
        values: dict[str, Any] = {
            name: deepcopy(getattr(change, name))
            for name in ("role", "content", "parts", "done", "state")
            if getattr(change, name) is not None
        }
        if change.content is not None:
            values["parts"] = None
        elif change.parts is not None:
            values["content"] = ""
        attributes = {**message.attributes, **deepcopy(change.attributes or {})}
        values["attributes"] = {name: value for name, value in attributes.items() if value is not None}
        items = {**message.items, **deepcopy(change.items or {})}
        values["items"] = {kind: kept for kind, kept in items.items() if kept}
        self._state.messages[chat_id][message_id] = replace(message, **values)
        return True

    async def remove(self, chat_id: str, message_id: str) -> bool:
        """Delete a message; its children get its parent."""
        kept = self._state.messages.get(chat_id, {})
        gone = kept.pop(message_id, None)
        if gone is None:
            return False
        for one in list(kept.values()):
            if one.parent_id == message_id:
                kept[one.id] = replace(one, parent_id=gone.parent_id)
        return True

    async def remove_all(self, chat_id: str, message_ids: Sequence[str]) -> None:
        """Delete messages; the parents of others stay as they are."""
        kept = self._state.messages.get(chat_id, {})
        for message_id in message_ids:
            kept.pop(message_id, None)

    async def end_running(self, error: Mapping[str, Any], *, unclaimed: bool = False) -> int:
        """Make every running message done with `error`."""
        running = [
            (chat_id, one.id)
            for chat_id, kept in self._state.messages.items()
            for one in kept.values()
            if one.state is MessageState.RUNNING
        ]
        ended = MessageChange(done=True, state=MessageState.IDLE, attributes={"error": dict(error)})
        for chat_id, message_id in running:
            await self.change(chat_id, message_id, ended)
        return len(running)


class MemoryEffects:
    """`MessageEffects` in memory."""

    def __init__(self, state: ChatState) -> None:
        self._state = state

    async def append_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Add text to the end of the content."""
        message = self._state.message(chat_id, message_id)
        if message is None:
            return False
        check_content(message.content + text)
        return self._put(chat_id, replace(message, content=message.content + text))

    async def replace_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Make the content this text."""
        message = self._state.message(chat_id, message_id)
        check_content(text)
        return message is not None and self._put(chat_id, replace(message, content=text, parts=None))

    async def append_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Add values to the end of a list of a message."""
        before = await self.items(chat_id, message_id, kind)
        return await self.replace_items(chat_id, message_id, kind, [*before, *values])

    async def put_item(self, chat_id: str, message_id: str, kind: str, value: Mapping[str, Any]) -> bool:
        """Replace the object of the same type and id, or add it."""
        values = list(await self.items(chat_id, message_id, kind))
        keys = [(one.get("type"), one.get("id")) if isinstance(one, dict) else None for one in values]
        key = (value["type"], value["id"])
        place = keys.index(key) if key in keys else len(values)
        values[place : place + 1] = [dict(value)]
        return await self.replace_items(chat_id, message_id, kind, values)

    async def replace_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Make a list of a message these values."""
        message = self._state.message(chat_id, message_id)
        if message is None:
            return False
        check_items(kind, [encode_sanitised(value, kind) for value in values])
        items = {**message.items, kind: deepcopy(list(values))}
        return self._put(
            chat_id, replace(message, items={name: kept for name, kept in items.items() if kept})
        )

    async def items(self, chat_id: str, message_id: str, kind: str) -> Sequence[Any]:
        """Return the values of a list of a message."""
        message = self._state.message(chat_id, message_id)
        return [] if message is None else deepcopy(message.items.get(kind, []))

    def _put(self, chat_id: str, message: Message) -> bool:
        self._state.messages[chat_id][message.id] = message
        return True
