"""Stored chats for plugins."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.chats.records import ITEM_KINDS, ChatQuery
from gatewayd.chats.service import Chats
from gatewayd.chats.tags import ChatTags, render_tag
from gatewayd.errors import invalid, not_found
from gatewayd.events.interfaces import MessageEffects
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugin_host.not_found import none_if_not_found
from gatewayd.plugins.interfaces import Record


class ChatsForPlugins:
    """A `plugins.interfaces.HostChats` over the services of stored chats.

    Where a user is named, a chat of anybody else does not exist, be the user an administrator.
    """

    def __init__(self, chats: Chats, tags: ChatTags, effects: MessageEffects, actors: PluginActors) -> None:
        self._chats = chats
        self._tags = tags
        self._effects = effects
        self._actors = actors

    async def find(self, chat_id: str, user_id: str | None) -> Record | None:
        """Return a chat with its messages."""
        chat = await self._chats.find_record(chat_id)
        return None if chat is None or user_id not in (None, chat["user_id"]) else chat

    async def list(self, user_id: str, offset: int, limit: int | None) -> Sequence[Record]:
        """Return the chats of a user that are not archived, last changed first, without their messages."""
        actor = await self._actors.of(user_id)
        if actor is None:
            return []
        found, _ = await self._chats.list(actor, ChatQuery(archived=False, offset=offset, limit=limit))
        return found

    async def create(self, user_id: str, document: Record) -> Record:
        """Keep a new chat; not_found when there is no such user."""
        actor = await self._actors.of(user_id)
        if actor is None:
            raise not_found("user", user_id)
        return await self._chats.create(actor, document)

    async def change(self, chat_id: str, document: Record) -> Record | None:
        """Merge into a chat; messages that it has already get the members that are named."""
        owner = await self._owner(chat_id)
        return (
            None if owner is None else await none_if_not_found(self._chats.change(owner, chat_id, document))
        )

    async def find_message(self, chat_id: str, message_id: str) -> Record | None:
        """Return a message with its place in the tree."""
        return _messages(await self._chats.find_record(chat_id)).get(message_id)

    async def put_message(self, chat_id: str, message_id: str, fields: Record) -> bool:
        """Merge into a message, or add it after the current one, which it then is."""
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
        """Delete a chat; for a user only the user's own, and forbidden without the permission chat.delete."""
        owner_id = await self._chats.find_owner(chat_id)
        if owner_id is None or user_id not in (None, owner_id):
            return False
        actor = await (self._actors.owner(owner_id) if user_id is None else self._actors.of(owner_id))
        return actor is not None and await none_if_not_found(self._removed(actor, chat_id)) is not None

    async def tags(self, chat_id: str) -> Sequence[Record]:
        """Return the tags of a chat."""
        owner = await self._owner(chat_id)
        found = None if owner is None else await none_if_not_found(self._tags.list(owner, chat_id))
        return [render_tag(tag) for tag in found or ()]

    async def append_items(
        self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]
    ) -> Sequence[Any] | None:
        """Add to a list of a message and return the whole list; None when there is no such message.

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
