"""Store wrappers that keep deferred run writes from overwriting edits by users and filters."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from gatewayd.chats.interfaces import ChatStore, MessageStore
from gatewayd.chats.records import (
    Chat,
    ChatChange,
    ChatQuery,
    Message,
    MessageChange,
    MessageLink,
    NewChat,
    SharedChat,
    Tag,
)
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.transactions import after_commit
from gatewayd.write_attempt import CHAT_ITSELF_ID


class EditedMessages:
    """A `chats.interfaces.MessageStore` that reports each committed change to the deferred writes."""

    def __init__(self, store: MessageStore, deferred: DeferredWrites) -> None:
        self._store = store
        self._deferred = deferred

    async def list(self, chat_id: str) -> Sequence[Message]:
        """Return all messages of a chat in the order of creation."""
        return await self._store.list(chat_id)

    async def count(self, chat_id: str) -> int:
        """Return how many messages a chat has."""
        return await self._store.count(chat_id)

    async def size(self, chat_id: str) -> int:
        """Return the total size of the messages of a chat in bytes."""
        return await self._store.size(chat_id)

    async def find(self, chat_id: str, message_id: str) -> Message | None:
        """Return one message."""
        return await self._store.find(chat_id, message_id)

    async def branch(self, chat_id: str, message_id: str) -> Sequence[Message]:
        """Return the messages from the root to this message."""
        return await self._store.branch(chat_id, message_id)

    async def outline(self, chat_id: str) -> Sequence[MessageLink]:
        """Return the ids and parents of all messages of a chat in the order of creation."""
        return await self._store.outline(chat_id)

    async def select(self, chat_id: str, message_ids: Sequence[str]) -> Sequence[Message]:
        """Return the messages of a chat that have one of these ids."""
        return await self._store.select(chat_id, message_ids)

    async def put(self, chat_id: str, messages: Sequence[Message]) -> None:
        """Insert messages, or replace them whole; their contents supersede deferred writes."""
        await self._store.put(chat_id, messages)
        for message in messages:
            self._supersede(chat_id, message.id)

    async def change(self, chat_id: str, message_id: str, change: MessageChange) -> bool:
        """Change one message; a given content supersedes deferred writes to it."""
        is_there = await self._store.change(chat_id, message_id, change)
        if change.content is not None or change.parts is not None:
            self._supersede(chat_id, message_id)
        return is_there

    async def remove(self, chat_id: str, message_id: str) -> bool:
        """Delete a message and the deferred writes to it."""
        is_there = await self._store.remove(chat_id, message_id)
        self._drop_writes(chat_id, message_id)
        return is_there

    async def remove_all(self, chat_id: str, message_ids: Sequence[str]) -> None:
        """Delete messages and the deferred writes to them."""
        await self._store.remove_all(chat_id, message_ids)
        for message_id in message_ids:
            self._drop_writes(chat_id, message_id)

    async def end_running(self, error: Mapping[str, Any], *, unclaimed: bool = False) -> int:
        """Make every message in the state RUNNING done with `error`."""
        return await self._store.end_running(error, unclaimed=unclaimed)

    def _drop_writes(self, chat_id: str, message_id: str) -> None:
        after_commit(lambda: self._deferred.drop((chat_id, message_id)))

    def _supersede(self, chat_id: str, message_id: str) -> None:
        after_commit(lambda: self._deferred.supersede((chat_id, message_id)))


class EditedChats:
    """A `chats.interfaces.ChatStore` that reports new titles and removals to the deferred writes."""

    def __init__(self, store: ChatStore, deferred: DeferredWrites) -> None:
        self._store = store
        self._deferred = deferred

    async def add(self, chat: Chat, messages: Sequence[Message], *, is_copy: bool = False) -> None:
        """Insert a chat with its messages."""
        await self._store.add(chat, messages, is_copy=is_copy)

    async def add_all(self, chats: AsyncIterator[NewChat]) -> None:
        """Insert chats with their messages and tags, all or none."""
        await self._store.add_all(chats)

    async def check(self, messages: Sequence[Message]) -> None:
        """Raise too_large for a message over the limits of a stored one."""
        await self._store.check(messages)

    async def find(self, chat_id: str) -> Chat | None:
        """Return one chat."""
        return await self._store.find(chat_id)

    async def list(self, query: ChatQuery) -> tuple[Sequence[Chat], int]:
        """Return one page of chats without their messages, and the count of all matches."""
        return await self._store.list(query)

    async def change(self, chat_id: str, change: ChatChange, at: int) -> bool:
        """Change a chat; a given title supersedes deferred writes of a title."""
        is_there = await self._store.change(chat_id, change, at)
        if change.title is not None:
            after_commit(lambda: self._deferred.supersede((chat_id, CHAT_ITSELF_ID)))
        return is_there

    async def touch(self, chat_id: str, at: int) -> bool:
        """Set only `updated_at`."""
        return await self._store.touch(chat_id, at)

    async def hide(self, chat_id: str) -> bool:
        """Mark a chat as unfinished and drop the deferred writes to it."""
        is_there = await self._store.hide(chat_id)
        self._drop(chat_id)
        return is_there

    async def hide_all(self, user_id: str) -> Sequence[str]:
        """Mark every chat of a user as unfinished and drop the deferred writes to them."""
        hidden = await self._store.hide_all(user_id)
        for chat_id in hidden:
            self._drop(chat_id)
        return hidden

    async def list_unfinished(self) -> Sequence[str]:
        """Return the ids of the chats that a dead process left incomplete."""
        return await self._store.list_unfinished()

    async def purge(self, chat_ids: Sequence[str]) -> None:
        """Delete unfinished chats with their messages, tags and shared snapshots."""
        await self._store.purge(chat_ids)

    async def archive_all(self, user_id: str, *, archived: bool) -> None:
        """Set `archived` of every chat of a user."""
        await self._store.archive_all(user_id, archived=archived)

    async def add_tag(self, chat_id: str, tag: Tag) -> None:
        """Add a tag to a chat."""
        await self._store.add_tag(chat_id, tag)

    async def remove_tags(self, chat_id: str, tag_ids: Sequence[str] | None = None) -> None:
        """Remove the given tags, or all tags, from a chat."""
        await self._store.remove_tags(chat_id, tag_ids)

    async def tags(self, *, user_id: str | None = None, chat_id: str | None = None) -> Sequence[Tag]:
        """Return the tags of a chat, or of all chats of a user."""
        return await self._store.tags(user_id=user_id, chat_id=chat_id)

    async def share(self, shared: SharedChat) -> None:
        """Store a snapshot of a chat; it replaces the earlier snapshot."""
        await self._store.share(shared)

    async def find_shared(self, share_id: str) -> SharedChat | None:
        """Return a shared snapshot by its share id."""
        return await self._store.find_shared(share_id)

    async def unshare(self, chat_id: str) -> bool:
        """Delete the shared snapshot of a chat."""
        return await self._store.unshare(chat_id)

    def _drop(self, chat_id: str) -> None:
        after_commit(lambda: self._deferred.drop((chat_id, CHAT_ITSELF_ID)))
