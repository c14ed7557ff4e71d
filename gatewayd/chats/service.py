"""Service of stored chats: creates, reads, changes and removes chats and their messages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import is_plain
from gatewayd.chats.access import ChatAccess, require_chat
from gatewayd.chats.interfaces import ChatStore, ChatTaskStopper, MessageStore
from gatewayd.chats.json_limits import check_merged
from gatewayd.chats.message_merge import MessageMerger, chat_lock_name, new_chat
from gatewayd.chats.parser import (
    MAX_TITLE_CHARACTERS,
    UNTITLED,
    read_document,
    read_id,
    read_node,
    read_title,
)
from gatewayd.chats.records import Chat, ChatChange, ChatQuery, Message, MessageState
from gatewayd.chats.renderer import current_of, render_branch, render_chat, render_list_item
from gatewayd.errors import invalid, not_found
from gatewayd.transactions import Transactor

MAX_SEARCH_CHARACTERS: Final = 1000
SORT_FIELDS: Final = ("updated_at", "created_at", "title")

Record = dict[str, Any]
"""A chat or message as clients get it."""

Records = list[Record]


class Chats:
    """Manages the chats of users; the `tasks` of a chat are stopped before the chat is deleted."""

    def __init__(
        self,
        store: ChatStore,
        messages: MessageStore,
        transactor: Transactor,
        clock: ids.Clock = ids.now,
        *,
        admin_access: bool,
        tasks: ChatTaskStopper | None = None,
    ) -> None:
        self.access = ChatAccess(store, admin_access=admin_access)
        self._store = store
        self._messages = messages
        self._transactor = transactor
        self._clock = clock
        self._tasks = tasks
        self._merging = MessageMerger(messages)

    async def create(self, actor: Actor, document: Any, folder_id: str | None = None) -> Record:
        """Create a chat from a client's `chat` object and return its record.

        `folders.ChatFolders.create_chat` checks `folder_id`.
        """
        now = self._clock()
        chat, messages = await new_chat(actor.user_id, await read_document(document), now)
        await self._store.add(replace(chat, folder_id=folder_id), messages)
        return await self.record(chat.id)

    async def copy(self, actor: Actor, chat_id: str, title: str | None = None) -> Record:
        """Copy a chat that the actor may read into a new chat of the actor, and return the copy's record.

        Messages are copied unchanged, even if they exceed the current limits.
        """
        await self.access.owned(actor, chat_id)
        messages = await self._messages.list(chat_id)
        # Look the chat up again: a deletion that began meanwhile may have removed some of the messages.
        chat, now = await self.access.owned(actor, chat_id), self._clock()
        current_id = current_of(messages, chat.current_id)
        copy = Chat(
            id=ids.new_id(),
            user_id=actor.user_id,
            title=read_title((title or f"Clone of {chat.title}")[:MAX_TITLE_CHARACTERS], "title") or UNTITLED,
            head={**chat.head, "originalChatId": chat.id, "branchPointMessageId": current_id},
            current_id=current_id,
            folder_id=chat.folder_id if chat.user_id == actor.user_id else None,
            updated_at=now,
            created_at=now,
        )
        idle = [replace(message, state=MessageState.IDLE) for message in messages]
        await self._store.add(copy, idle, is_copy=True)
        return await self.record(copy.id)

    async def get(self, actor: Actor, chat_id: str) -> Record:
        """Return the record of a chat that the actor may read."""
        chat = await self.access.owned(actor, chat_id)
        return await render_chat(chat, await self._messages.list(chat_id))

    async def owned(self, actor: Actor, chat_id: str) -> Chat:
        """Return a chat of the actor, or any chat if the actor may read all of them; else not_found."""
        return await self.access.owned(actor, chat_id)

    async def record(self, chat_id: str) -> Record:
        """Return the record of a chat without an access check; raise not_found if it does not exist."""
        found = await self.find_record(chat_id)
        if found is None:
            raise not_found("chat", chat_id)
        return found

    async def find_record(self, chat_id: str) -> Record | None:
        """Return the record of a chat without an access check; None if it does not exist."""
        chat = await self._store.find(chat_id)
        return None if chat is None else await render_chat(chat, await self._messages.list(chat_id))

    async def find_owner(self, chat_id: str) -> str | None:
        """Return the id of a chat's owner without an access check; None if the chat does not exist."""
        chat = await self._store.find(chat_id)
        return None if chat is None else chat.user_id

    async def list(self, actor: Actor, query: ChatQuery) -> tuple[Records, int]:
        """Return one page of the actor's own chats as list elements, and the count of all."""
        found, total = await self.find(actor, query)
        return [render_list_item(chat) for chat in found], total

    async def list_of(self, actor: Actor, user_id: str, query: ChatQuery) -> tuple[Records, int]:
        """Return one page of the chats of any user; forbidden unless the actor may read them."""
        found, total = await self.find_all(actor, replace(query, user_id=user_id))
        return [render_list_item(chat) for chat in found], total

    async def find(self, actor: Actor, query: ChatQuery) -> tuple[Sequence[Chat], int]:
        """Return one page of the actor's own chats, and the count of all matches."""
        return await self._search(replace(query, user_id=actor.user_id))

    async def find_all(self, actor: Actor, query: ChatQuery) -> tuple[Sequence[Chat], int]:
        """Return one page of all users' chats, and the count; forbidden unless the actor may read them."""
        self.access.require_all(actor)
        return await self._search(query)

    async def change(self, actor: Actor, chat_id: str, document: Any) -> Record:
        """Merge a partial `chat` object into a chat, as `merge` does, and return its record."""
        await self.merge(actor, chat_id, document)
        return await self.record(chat_id)

    async def merge(self, actor: Actor, chat_id: str, document: Any) -> None:
        """Merge a partial `chat` object into a chat.

        Top-level members replace those of the same name. Messages are merged by id, and within a message by
        member; the rest stays. The current message stays unless the object names another.
        """
        read = await read_document(document)
        async with self._transactor.exclusive(chat_lock_name(chat_id)):
            chat = await self.access.get_changeable(actor, chat_id)
            now = self._clock()
            current_id = await self._merging.merge(chat, read, now)
            head = {**chat.head, **read.head} if read.head else None
            check_merged(head or {}, "chat")
            await self._store.change(chat_id, ChatChange(read.title, head, current_id), now)

    async def put_message(self, actor: Actor, chat_id: str, message_id: str, message: Any) -> Message:
        """Change a message, or add it after the current one and make it current; return it.

        `message` is `{"content", ...}`; a new message takes every member. A change of an existing message
        needs the permission chat.edit. Raises invalid_request for an invalid message, and not_found for a
        chat that does not exist or that the actor may not read.
        """
        node = await read_node(message, "message", read_id(message_id, "message_id"))
        if not node.id:
            raise invalid("cannot accept message_id: it is empty", param="message_id")
        async with self._transactor.exclusive(chat_lock_name(chat_id)):
            chat = await self.access.owned(actor, chat_id)
            known = await self._messages.find(chat_id, node.id)
            if known is not None:
                require_chat(actor, "edit")
                made = await self._merging.rewrite(chat_id, known, node)
                await self._store.touch(chat_id, self._clock())
                return made
            made = await self._merging.add(chat, node, self._clock())
            await self._store.change(chat_id, ChatChange(current_id=made.id), self._clock())
            return made

    async def remove_message(self, actor: Actor, chat_id: str, message_id: str) -> None:
        """Delete a message; its children move to its parent, which becomes current if the message was.

        Needs the permission chat.delete_message. Raises not_found if the chat or the message does not exist.
        """
        require_chat(actor, "delete_message")
        async with self._transactor.exclusive(chat_lock_name(chat_id)):
            chat = await self.access.owned(actor, chat_id)
            known = await self._messages.find(chat_id, message_id) if is_plain(message_id) else None
            if known is None:
                raise not_found("message", message_id)
            await self._messages.remove(chat_id, message_id)
            current_id = (known.parent_id or "") if chat.current_id == message_id else None
            await self._store.change(chat_id, ChatChange(current_id=current_id), self._clock())

    async def branch(self, chat_id: str, message_id: str) -> Records:
        """Return the messages from the root to this message, without an access check."""
        return render_branch(await self._messages.branch(chat_id, message_id))

    async def toggle_pinned(self, actor: Actor, chat_id: str) -> Record:
        """Pin or unpin a chat and return its record."""
        async with self._transactor.exclusive(chat_lock_name(chat_id)):
            chat = await self.access.get_changeable(actor, chat_id)
            await self._store.change(chat_id, ChatChange(pinned=not chat.pinned), chat.updated_at)
        return await self.record(chat_id)

    async def toggle_archived(self, actor: Actor, chat_id: str) -> Record:
        """Archive or unarchive a chat and return its record."""
        async with self._transactor.exclusive(chat_lock_name(chat_id)):
            chat = await self.access.get_changeable(actor, chat_id)
            await self._store.change(chat_id, ChatChange(archived=not chat.archived), chat.updated_at)
        return await self.record(chat_id)

    async def archive_all(self, actor: Actor, *, archived: bool) -> None:
        """Archive or unarchive every chat of the actor."""
        await self._store.archive_all(actor.user_id, archived=archived)

    async def remove(self, actor: Actor, chat_id: str) -> None:
        """Stop the tasks of a chat and delete it; needs the permission chat.delete. Raises not_found."""
        require_chat(actor, "delete")
        await self.access.owned(actor, chat_id)
        await self._stop([chat_id])
        # A change in progress ends first; a later one finds no chat.
        async with self._transactor.exclusive(chat_lock_name(chat_id)):
            is_hidden = await self._store.hide(chat_id)
        if not is_hidden:
            raise not_found("chat", chat_id)
        await self._store.purge([chat_id])

    async def remove_all(self, actor: Actor) -> int:
        """Delete every chat of the actor and return the count."""
        require_chat(actor, "delete")
        found, _ = await self.find(actor, ChatQuery())
        await self._stop([chat.id for chat in found])
        hidden = await self._store.hide_all(actor.user_id)
        await self._store.purge(hidden)
        return len(hidden)

    async def _search(self, query: ChatQuery) -> tuple[Sequence[Chat], int]:
        if query.sort_by not in SORT_FIELDS:
            raise invalid(f"cannot sort by {query.sort_by[:50]!r}: expected {', '.join(SORT_FIELDS)}")
        if not all(map(is_plain, (query.text, *query.tags))) or len(query.text) > MAX_SEARCH_CHARACTERS:
            return [], 0
        return await self._store.list(query)

    async def _stop(self, chat_ids: Sequence[str]) -> None:
        if self._tasks is not None:
            await self._tasks.stop(chat_ids)
