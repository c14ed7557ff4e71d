"""Writes the answer of a run to its stored message: at the start, during the stream and at the end."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.chats.interfaces import ChatStore, MessageStore
from gatewayd.chats.json_limits import fit_members, replace_unstorable_values
from gatewayd.chats.message_merge import MessageMerger, chat_lock_name
from gatewayd.chats.parser import MAX_ID_CHARACTERS, read_id, read_node
from gatewayd.chats.records import ITEM_KINDS, Chat, ChatChange, Message, MessageChange, MessageState
from gatewayd.errors import invalid, not_found, shorten
from gatewayd.transactions import Transactor

RESTARTED: Final = "the gateway was restarted while this was answered"


class RunMessageWriter:
    """Writes model answers to their messages; unstorable characters of an answer are replaced."""

    def __init__(
        self, messages: MessageStore, chats: ChatStore, transactor: Transactor, clock: ids.Clock = ids.now
    ) -> None:
        self._messages = messages
        self._chats = chats
        self._transactor = transactor
        self._clock = clock
        self._merging = MessageMerger(messages)

    async def begin(
        self,
        chat_id: str,
        message_id: str,
        parent_id: str | None,
        model: str,
        user_message: Mapping[str, Any] | None = None,
    ) -> Message:
        """Store the user's message and the placeholder of the answer, and make it current.

        All of it is one transaction. `user_message` is the client's object (`{"id", "content", ...}`),
        inserted or merged. An existing answer keeps its place in the tree, loses its lists and its error, and
        starts over. A new answer follows `parent_id`, else the user's message, else the current message.
        Raises not_found for an unknown chat, and invalid_request if the answer would replace a message of
        the user.
        """
        message_id = _checked(message_id, "id")
        parent_id = read_id(parent_id, "parent_id")
        if parent_id == message_id:
            raise invalid("cannot accept parent_id: a message cannot follow itself", param="parent_id")
        async with self._transactor.exclusive(chat_lock_name(chat_id)):
            chat = await self._chats.find(chat_id)
            if chat is None:
                raise not_found("chat", chat_id)
            known = await self._messages.find(chat_id, message_id)
            if known is not None and known.role == "user" and (known.content or known.parts):
                name = shorten(message_id)
                raise invalid(f"cannot answer in message {name!r}: it is a message of the user", param="id")
            asked = await self._put_question(chat, user_message, message_id)
            follows = parent_id or asked or (_other(chat, message_id) if known is None else None)
            answer = await self._put_answer(chat_id, known, self._placeholder(message_id, follows, model))
            await self._chats.change(chat_id, ChatChange(current_id=message_id), self._clock())
        return answer

    async def save(self, chat_id: str, message_id: str, content: str) -> bool:
        """Store the partial answer; return False if its message is gone."""
        return await self._messages.change(
            chat_id, message_id, MessageChange(content=replace_unstorable_values(content))
        )

    async def finish(
        self,
        chat_id: str,
        message_id: str,
        *,
        content: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> bool:
        """End an answer: set `done` and the state IDLE. Return False if its message is gone.

        Without `content` the stored text stays. `attributes` (`usage`, `error`, `output`, ...) are merged,
        except those that exceed the number of values of a message. A list of ITEM_KINDS among them replaces
        the values that events added.
        """
        given = replace_unstorable_values(dict(attributes or {}))
        items = {kind: given.pop(kind) for kind in ITEM_KINDS if isinstance(given.get(kind), list)}
        change = MessageChange(
            content=None if content is None else replace_unstorable_values(content),
            done=True,
            state=MessageState.IDLE,
            attributes=fit_members(given) or None,
            items=items or None,
        )
        if not await self._messages.change(chat_id, message_id, change):
            return False
        await self._chats.touch(chat_id, self._clock())
        return True

    async def end_running(self) -> int:
        """End every answer whose run died with the previous process; return the count. Called at start."""
        return await self._messages.end_running({"content": RESTARTED})

    async def end_unclaimed(self) -> int:
        """End every answer whose run died with its node; return the count."""
        return await self._messages.end_running({"content": RESTARTED}, unclaimed=True)

    def _placeholder(self, message_id: str, parent_id: str | None, model: str) -> Message:
        return Message(
            id=message_id,
            parent_id=parent_id,
            role="assistant",
            done=False,
            state=MessageState.RUNNING,
            attributes={"model": replace_unstorable_values(model)},
            timestamp=self._clock(),
        )

    async def _put_answer(self, chat_id: str, known: Message | None, answer: Message) -> Message:
        if known is None:
            await self._merging.check_size(chat_id)
            await self._messages.put(chat_id, [answer])
            return answer
        if known.parent_id is None and answer.parent_id is not None:
            # Only a root whose question was not stored yet has no parent; give it one now.
            known = replace(known, parent_id=answer.parent_id)
            await self._messages.put(chat_id, [known])
        restart = MessageChange(
            role=answer.role,
            content="",
            done=False,
            state=MessageState.RUNNING,
            attributes={**answer.attributes, "error": None},
            items={kind: [] for kind in known.items},
        )
        await self._messages.change(chat_id, answer.id, restart)
        kept = {name: value for name, value in known.attributes.items() if name != "error"}
        return replace(
            answer,
            parent_id=known.parent_id,
            timestamp=known.timestamp,
            attributes={**kept, **answer.attributes},
        )

    async def _put_question(
        self, chat: Chat, user_message: Mapping[str, Any] | None, answer_id: str
    ) -> str | None:
        """Store the user's message and return its id."""
        if user_message is None:
            return None
        node = await read_node(user_message, "user_message")
        node = replace(node, id=node.id or ids.new_id(), values={"role": "user", **node.values})
        if node.id == answer_id:
            raise invalid(
                "cannot accept user_message.id: it is the id of the answer", param="user_message.id"
            )
        known = await self._messages.find(chat.id, node.id)
        if known is not None:
            await self._merging.rewrite(chat.id, known, node)
        else:
            await self._merging.add(replace(chat, current_id=_other(chat, answer_id)), node, self._clock())
        return node.id


def _other(chat: Chat, message_id: str) -> str | None:
    return chat.current_id if chat.current_id != message_id else None


def _checked(message_id: str, where: str) -> str:
    checked = read_id(message_id, where)
    if checked is None:
        raise invalid(
            f"cannot accept {where}: expected an id of 1 to {MAX_ID_CHARACTERS} characters", param=where
        )
    return checked
