"""Messages that others than runs change: what a run could not write yet does not overwrite them."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.chats.interfaces import MessageStore
from gatewayd.chats.records import Message, MessageChange
from gatewayd.commits import after_commit
from gatewayd.deferred import DeferredWrites


class EditedMessages:
    """A `chats.interfaces.MessageStore` that tells deferred writes of each change that is committed."""

    def __init__(self, store: MessageStore, deferred: DeferredWrites) -> None:
        self._store = store
        self._deferred = deferred

    async def list(self, chat_id: str) -> Sequence[Message]:
        """Return all messages of a chat in the order of their making."""
        return await self._store.list(chat_id)

    async def count(self, chat_id: str) -> int:
        """Return how many messages a chat has."""
        return await self._store.count(chat_id)

    async def size(self, chat_id: str) -> int:
        """Return how many bytes the messages of a chat hold."""
        return await self._store.size(chat_id)

    async def find(self, chat_id: str, message_id: str) -> Message | None:
        """Return one message."""
        return await self._store.find(chat_id, message_id)

    async def branch(self, chat_id: str, message_id: str) -> Sequence[Message]:
        """Return the messages from the root to this one."""
        return await self._store.branch(chat_id, message_id)

    async def put(self, chat_id: str, messages: Sequence[Message]) -> None:
        """Insert messages, or replace them whole; their contents stay."""
        await self._store.put(chat_id, messages)
        for message in messages:
            self._supersede(chat_id, message.id)

    async def change(self, chat_id: str, message_id: str, change: MessageChange) -> bool:
        """Change one message; a content that is given stays."""
        is_there = await self._store.change(chat_id, message_id, change)
        if change.content is not None or change.parts is not None:
            self._supersede(chat_id, message_id)
        return is_there

    async def remove(self, chat_id: str, message_id: str) -> bool:
        """Delete a message, and what waits to be written to it."""
        is_there = await self._store.remove(chat_id, message_id)
        after_commit(lambda: self._deferred.drop((chat_id, message_id)))
        return is_there

    async def end_running(self, error: Mapping[str, Any]) -> int:
        """Make every message in the state RUNNING done with `error`."""
        return await self._store.end_running(error)

    def _supersede(self, chat_id: str, message_id: str) -> None:
        after_commit(lambda: self._deferred.supersede((chat_id, message_id)))
