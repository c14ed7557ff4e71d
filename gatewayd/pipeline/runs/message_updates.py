"""Stores the changes that filters and actions made to messages of chats."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import is_plain
from gatewayd.chats.interfaces import ChatStore, MessageStore
from gatewayd.chats.json_limits import MAX_VALUES, count_values
from gatewayd.chats.message_merge import MessageMerger
from gatewayd.chats.parser import MAX_ID_CHARACTERS, read_node
from gatewayd.chats.records import MessageChange
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import GatewayError, not_found
from gatewayd.events.records import EventTarget
from gatewayd.write_attempt import Work

log = logging.getLogger(__name__)

Messages = Sequence[Any]
"""Messages as clients send them; elements that are no objects are ignored."""


class MessageUpdates:
    """Writes changed messages of chats; refuses chats of other users, ignores unknown messages.

    With `deferred`, used for runs and actions, a write that fails during a database outage is repeated later,
    because no client would repeat it.
    """

    def __init__(
        self, chats: ChatStore, messages: MessageStore, deferred: DeferredWrites | None = None
    ) -> None:
        self._chats = chats
        self._messages = messages
        self._deferred = deferred
        self._merger = MessageMerger(messages)

    async def is_stored(self, actor: Actor, chat_id: str) -> bool:
        """Return True if a chat is stored; raise not_found for another user's chat."""
        if not 0 < len(chat_id) <= MAX_ID_CHARACTERS or not is_plain(chat_id):
            return False
        chat = await self._chats.find(chat_id)
        if chat is not None and chat.user_id != actor.user_id:
            raise not_found("chat", chat_id)
        return chat is not None

    async def keep_contents(self, target: EventTarget, before: Messages, after: Messages) -> None:
        """Store changed contents of a chat, with the old ones as `originalContent`.

        Only messages that have the same id in both lists are compared. Contents that the chat could not load
        again are logged and skipped.
        """
        known = _by_id(before)
        for message_id, message in _by_id(after).items():
            if message_id not in known or "content" not in message:
                continue
            old, new = known[message_id].get("content"), message["content"]
            if old == new:
                continue
            if count_values([old, new]) > MAX_VALUES:
                log.warning("changed content not stored: it has over %d values", MAX_VALUES)
                continue
            attributes = {"originalContent": old}
            if isinstance(new, str):
                change = MessageChange(content=new, attributes=attributes)
            elif isinstance(new, list) and all(isinstance(part, dict) for part in new):
                change = MessageChange(parts=new, attributes=attributes)
            else:
                log.warning("changed content not stored: it is neither text nor a list of parts")
                continue
            await self._change(target, message_id, change)

    async def keep_messages(self, target: EventTarget, before: Messages, after: Messages) -> None:
        """Store every changed member of stored messages.

        A message that cannot be stored is logged and skipped.
        """
        known = _by_id(before)
        for message_id, message in _by_id(after).items():
            sent = known.get(message_id, {})
            changed = {name: part for name, part in message.items() if name not in sent or sent[name] != part}
            if not changed:
                continue
            try:
                work = partial(self._rewrite, target, message_id, changed)
                await self._write(target, message_id, work, changed)
            except GatewayError as error:
                extra = {**target.log_fields, "message_id": message_id}
                log.warning("changed message not stored: %s", error.full_message, extra=extra)

    async def _rewrite(
        self, target: EventTarget, message_id: str, changed: Mapping[str, Any], is_superseded: bool
    ) -> None:
        stored = await self._messages.find(target.chat_id, message_id)
        if stored is None:
            return
        # A newer content from another writer stays.
        kept = {name: part for name, part in changed.items() if not (is_superseded and name == "content")}
        node = await read_node(kept, "message", message_id)
        await self._merger.rewrite(target.chat_id, stored, node)

    async def _change(self, target: EventTarget, message_id: str, change: MessageChange) -> None:
        async def write(is_superseded: bool) -> None:
            if not is_superseded:
                await self._messages.change(target.chat_id, message_id, change)

        await self._write(target, message_id, write, change)

    async def _write(self, target: EventTarget, message_id: str, work: Work, values: object) -> None:
        if self._deferred is None:
            await work(False)
            return
        key, owner, request_id = (target.chat_id, message_id), target.user_id, target.request_id
        await self._deferred.write(key, work, values, owner=owner, is_answer=True, request_id=request_id)


def messages_of(value: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a body; the last gets the body's id if it has none."""
    messages = list(as_sequence(value.get("messages")))
    message_id = as_text(value.get("id"))
    if messages and message_id and isinstance(messages[-1], dict) and not messages[-1].get("id"):
        messages[-1] = {**messages[-1], "id": message_id}
    return messages


def _by_id(messages: Messages) -> dict[str, Mapping[str, Any]]:
    found = (as_mapping(message) for message in messages)
    return {
        message["id"]: message
        for message in found
        if isinstance(message.get("id"), str)
        and 0 < len(message["id"]) <= MAX_ID_CHARACTERS
        and is_plain(message["id"])
    }
