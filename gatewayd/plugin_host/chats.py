"""Implementation of `HostChats`: stored chats for plugins."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.chats.records import ITEM_KINDS, ChatQuery
from gatewayd.chats.service import Chats
from gatewayd.chats.tags import ChatTags, render_tag
from gatewayd.errors import invalid, not_found
from gatewayd.events.interfaces import MessageEffects
from gatewayd.plugin_host.actors import PluginActors, none_if_not_found
from gatewayd.plugins.interfaces import Record


class ChatsForPlugins:
    """A `plugins.interfaces.HostChats` over the services of stored chats.

    A method with a `user_id` finds only chats of that user, even for an administrator.
    """

    def __init__(self, chats: Chats, tags: ChatTags, effects: MessageEffects, actors: PluginActors) -> None:
        self._chats = chats
        self._tags = tags
        self._effects = effects
        self._actors = actors

    async def find(self, chat_id: str, user_id: str | None) -> Record | None:
        """Return the chat with its messages; None when absent or owned by another user."""
        chat = await self._chats.find_record(chat_id)
        return None if chat is None or user_id not in (None, chat["user_id"]) else chat

    async def list(self, user_id: str, offset: int, limit: int | None) -> Sequence[Record]:
        """Return the unarchived chats of a user without messages, most recently changed first."""
        actor = await self._actors.of(user_id)
        if actor is None:
            return []
        found, _ = await self._chats.list(actor, ChatQuery(archived=False, offset=offset, limit=limit))
        return found

    async def create(self, user_id: str, document: Record) -> Record:
        """Store a new chat; not_found when the user does not exist."""
        actor = await self._actors.of(user_id)
        if actor is None:
            raise not_found("user", user_id)
        return await self._chats.create(actor, document)

    async def change(self, chat_id: str, document: Record) -> Record | None:
        """Merge `document` into a chat and return it; existing messages are updated field by field."""
        owner = await self._owner(chat_id)
        return (
            None if owner is None else await none_if_not_found(self._chats.change(owner, chat_id, document))
        )

    async def find_message(self, chat_id: str, message_id: str) -> Record | None:
        """Return a message with its place in the tree; None when absent."""
        return _messages(await self._chats.find_record(chat_id)).get(message_id)

    async def put_message(self, chat_id: str, message_id: str, fields: Record) -> bool:
        """Merge `fields` into a message, or append a new one and make it current; False without the chat."""
        chat = await self._chats.find_record(chat_id)
        owner = None if chat is None else await self._actors.owner(chat["user_id"])
        if owner is None:
            return False
        if message_id in _messages(chat):
            history = {"messages": {message_id: dict(fields)}}
            return (
                await none_if_not_found(self._chats.change(owner, chat_id, {"history": history})) is not None
            )
        added = self._chats.put_message(owner, chat_id, message_id, {**fields, "id": message_id})
        return await none_if_not_found(added) is not None

    async def remove(self, chat_id: str, user_id: str | None) -> bool:
        """Delete a chat; False when absent.

        With a `user_id` the chat must belong to that user, who needs the permission chat.delete (forbidden).
        """
        owner_id = await self._chats.find_owner(chat_id)
        if owner_id is None or user_id not in (None, owner_id):
            return False
        actor = await (self._actors.owner(owner_id) if user_id is None else self._actors.of(owner_id))
        return actor is not None and await none_if_not_found(self._removed(actor, chat_id)) is not None

    async def tags(self, chat_id: str) -> Sequence[Record]:
        """Return the tags of a chat; empty when the chat is absent."""
        owner = await self._owner(chat_id)
        found = None if owner is None else await none_if_not_found(self._tags.list(owner, chat_id))
        return [render_tag(tag) for tag in found or ()]

    async def append_items(
        self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]
    ) -> Sequence[Any] | None:
        """Append to a list of a message and return the whole list; None when the message is absent.

        Raises invalid_request for a list that messages do not have.
        """
        if kind not in ITEM_KINDS:
            raise invalid(f"cannot add to {kind!r}: expected one of {', '.join(ITEM_KINDS)}", param="kind")
        if not await self._effects.append_items(chat_id, message_id, kind, values):
            return None
        return await self._effects.items(chat_id, message_id, kind)

    async def _removed(self, actor: Actor, chat_id: str) -> bool:
        await self._chats.remove(actor, chat_id)
        return True

    async def _owner(self, chat_id: str) -> Actor | None:
        owner_id = await self._chats.find_owner(chat_id)
        return None if owner_id is None else await self._actors.owner(owner_id)


def _messages(chat: Record | None) -> Mapping[str, Any]:
    messages: Mapping[str, Any] = {} if chat is None else chat["chat"]["history"]["messages"]
    return messages
