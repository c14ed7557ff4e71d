"""Merges the messages that clients send into the stored messages of a chat."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gatewayd import ids
from gatewayd.chats.interfaces import MessageStore
from gatewayd.chats.json_limits import check_merged
from gatewayd.chats.parser import MAX_MESSAGES, UNTITLED, ChatDocument, MessageNode, link_messages
from gatewayd.chats.records import MAX_CHAT_BYTES, Chat, Message, MessageChange, chat_too_large
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.time_slices import LoopPacer


async def new_chat(user_id: str, document: ChatDocument, now: int) -> tuple[Chat, Sequence[Message]]:
    """Return a new chat with its messages; without a named current message the last one is current."""
    document = await link_messages(document, (), ids.new_id)
    messages = await _fresh(document.nodes, now)
    known = {message.id for message in messages}
    last = messages[-1].id if messages else None
    chat = Chat(
        id=ids.new_id(),
        user_id=user_id,
        title=document.title or UNTITLED,
        head=document.head,
        current_id=document.current_id if document.current_id in known else last,
        updated_at=now,
        created_at=now,
    )
    return chat, messages


def chat_lock_name(chat_id: str) -> str:
    """Return the lock name that serialises whole changes of one chat."""
    return f"chat {chat_id}"


class MessageMerger:
    """Writes only the differences of each message, because runs and plugins may write to it as well."""

    def __init__(self, messages: MessageStore) -> None:
        self._messages = messages

    async def merge(self, chat: Chat, document: ChatDocument, now: int) -> str | None:
        """Merge the messages of a document into a chat.

        Returns the id of the new current message, or None if the current message stays.
        """
        if document.is_linear and chat.current_id is not None:
            branch = await self._messages.branch(chat.id, chat.current_id)
            document = await link_messages(document, branch, ids.new_id)
        document = await link_messages(document, (), ids.new_id)
        stored = {message.id: message for message in await self._messages.list(chat.id)}
        new = await _fresh([node for node in document.nodes if node.id not in stored], now)
        _check_room(chat, len(stored) + len(new))
        if document.nodes and await self._is_full(chat.id):
            known = [node for node in document.nodes if node.id in stored]
            if new or any(node.merged(stored[node.id]) != stored[node.id] for node in known):
                raise chat_too_large(chat.id)
        if new:
            await self._messages.put(chat.id, new)
        pace = LoopPacer()
        for node in document.nodes:
            await pace.turn()
            if node.id in stored:
                await self._write(chat.id, stored[node.id], node.merged(stored[node.id]))
        if document.current_id in {*stored, *(message.id for message in new)}:
            return document.current_id
        return new[-1].id if new and chat.current_id is None else None

    async def add(self, chat: Chat, node: MessageNode, now: int) -> Message:
        """Add a message and return it; it follows the current message unless it names its parent."""
        _check_room(chat, await self._messages.count(chat.id) + 1)
        await self.check_size(chat.id)
        made = node.fresh(now)
        if "parent_id" not in node.values:
            made = replace(made, parent_id=chat.current_id)
        if "role" not in node.values and made.parent_id is not None:
            parent = await self._messages.find(chat.id, made.parent_id)
            if parent is not None:
                made = replace(made, role="assistant" if parent.role == "user" else "user")
        await self._messages.put(chat.id, [made])
        return made

    async def check_size(self, chat_id: str) -> None:
        """Raise too_large if a chat has reached its maximum size."""
        if await self._is_full(chat_id):
            raise chat_too_large(chat_id)

    async def rewrite(self, chat_id: str, known: Message, node: MessageNode) -> Message:
        """Merge the given members into a message and return the result."""
        merged = node.merged(known)
        if merged != known:
            await self.check_size(chat_id)
            await self._write(chat_id, known, merged)
        return merged

    async def _is_full(self, chat_id: str) -> bool:
        return await self._messages.size(chat_id) > MAX_CHAT_BYTES

    async def _write(self, chat_id: str, known: Message, merged: Message) -> None:
        if merged == known:
            return
        if merged.attributes != known.attributes:
            check_merged(merged.attributes, f"messages.{known.id}")
        change = _difference(known, merged)
        if change is None:
            await self._messages.put(chat_id, [merged])
        else:
            await self._messages.change(chat_id, known.id, change)


async def _fresh(nodes: Sequence[MessageNode], now: int) -> list[Message]:
    made = []
    pace = LoopPacer()
    for node in nodes:
        await pace.turn()
        made.append(node.fresh(now))
    return made


def _check_room(chat: Chat, messages: int) -> None:
    if messages > MAX_MESSAGES:
        raise GatewayError(
            ErrorKind.TOO_LARGE,
            f"cannot add to chat {chat.id!r}: it would have more than {MAX_MESSAGES} messages",
            param="messages",
        )


def _difference(known: Message, merged: Message) -> MessageChange | None:
    """Return the change between two messages; None if the message must be replaced whole."""
    attributes = {
        name: value
        for name, value in merged.attributes.items()
        if name not in known.attributes or known.attributes[name] != value
    }
    moved = (known.parent_id, known.timestamp) != (merged.parent_id, merged.timestamp)
    if moved or None in attributes.values() or (merged.done is None and known.done is not None):
        return None
    values: dict[str, Any] = {
        name: getattr(merged, name)
        for name in ("role", "done", "parts")
        if getattr(merged, name) != getattr(known, name)
    }
    if merged.parts is None and (merged.content, known.parts) != (known.content, None):
        values["content"] = merged.content
    kinds = {*known.items, *merged.items}
    items = {kind: merged.items.get(kind, []) for kind in kinds}
    changed = {kind: kept for kind, kept in items.items() if kept != known.items.get(kind, [])}
    return MessageChange(**values, attributes=attributes or None, items=changed or None)
