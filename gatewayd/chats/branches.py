"""Service of the branches of a chat: one page of messages at a time, and the removal of a branch."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import is_plain
from gatewayd.chats.access import ChatAccess, require_chat
from gatewayd.chats.interfaces import ChatStore, MessageStore
from gatewayd.chats.message_merge import chat_lock_name
from gatewayd.chats.records import ChatChange, Message, MessageLink
from gatewayd.chats.renderer import acyclic_parents, render_head, render_message
from gatewayd.errors import not_found
from gatewayd.time_slices import LoopPacer
from gatewayd.transactions import Transactor

MAX_PAGE_MESSAGES: Final = 200
"""Maximum number of messages in one page of a branch."""

DEFAULT_PAGE_MESSAGES: Final = 100


Still = Callable[[str, str, Sequence[str]], AbstractAsyncContextManager[tuple[str, Mapping[str, str]]]]
"""Keeps messages of a chat of a user from changing within a block: `events.service.EventService.still`.

It gives the id of the newest event, and the texts of running answers that may not be stored yet.
"""


@dataclass(frozen=True, slots=True)
class BranchQuery:
    """A page of a branch: at most `limit` messages that end before the message `before`, or at the leaf.

    The branch is the current one if `through` is empty or a message of it, else the one through that message
    and its newest descendants.
    """

    through: str = ""
    before: str = ""
    limit: int = DEFAULT_PAGE_MESSAGES


class ChatBranches:
    """Reads and removes branches of chats without reading all of their messages."""

    def __init__(
        self,
        chats: ChatStore,
        messages: MessageStore,
        access: ChatAccess,
        transactor: Transactor,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._chats = chats
        self._messages = messages
        self._access = access
        self._transactor = transactor
        self._clock = clock

    async def page(self, actor: Actor, chat_id: str, query: BranchQuery, still: Still) -> dict[str, Any]:
        """Return a page of a branch: the chat, its messages, the leaf, and whether earlier ones exist.

        The messages are read while they are `still`; `event_id` is the newest event by then.
        Raises not_found for a chat that the actor may not read, and for a message that is not in the branch.
        """
        chat = await self._access.owned(actor, chat_id)
        tree = await _MessageTree.of(await self._messages.outline(chat_id))
        leaf = tree.current(chat.current_id)
        branch, sizes = tree.branch(leaf), await tree.sizes()
        if query.through and query.through not in branch:
            leaf = tree.leaf_below(query.through)
            branch = tree.branch(leaf)
        end = len(branch)
        if query.before:
            if query.before not in branch:
                raise not_found("message", query.before)
            end = branch.index(query.before)
        start = max(0, end - query.limit)
        async with still(chat.user_id, chat_id, branch[start:end]) as (event_id, texts):
            stored = await self._messages.select(chat_id, branch[start:end])
        by_id = {message.id: _with_text(message, texts.get(message.id, "")) for message in stored}
        shown = [
            {
                **render_message(by_id[each], tree.parents[each], tree.children[each]),
                "siblingIds": tree.siblings(each),
                "descendantCount": sizes[each] - 1,
            }
            for each in branch[start:end]
            if each in by_id
        ]
        return {
            "chat": render_head(chat),
            "messages": shown,
            "leaf_id": leaf,
            "has_earlier": start > 0,
            "count": len(branch),
            "event_id": event_id,
        }

    async def remove(self, actor: Actor, chat_id: str, message_id: str) -> int:
        """Delete a message and all messages below it, and return their number.

        Its parent becomes current if the current message was among them. Needs the permission
        chat.delete_message. Raises not_found if the chat or the message does not exist.
        """
        require_chat(actor, "delete_message")
        async with self._transactor.exclusive(chat_lock_name(chat_id)):
            chat = await self._access.get_changeable(actor, chat_id)
            tree = await _MessageTree.of(await self._messages.outline(chat_id))
            if message_id not in tree.parents:
                raise not_found("message", message_id)
            gone = tree.below(message_id)
            await self._messages.remove_all(chat_id, gone)
            current_id = None
            if chat.current_id in gone:
                current_id = tree.parents[message_id] or ""
            await self._chats.change(chat_id, ChatChange(current_id=current_id), self._clock())
        return len(gone)


def _with_text(message: Message, text: str) -> Message:
    """Return a running answer with its text so far."""
    is_running = message.done is False and message.parts is None
    return replace(message, content=text) if is_running and len(text) > len(message.content) else message


class _MessageTree:
    """The tree of the messages of a chat, without their contents."""

    def __init__(self, parents: dict[str, str | None], children: Mapping[str, list[str]]) -> None:
        self.parents = parents
        self.children = children

    @classmethod
    async def of(cls, links: Sequence[MessageLink]) -> "_MessageTree":
        parents = acyclic_parents(links)
        children: dict[str, list[str]] = {each: [] for each in parents}
        pace = LoopPacer()
        for message_id, parent_id in parents.items():
            await pace.turn()
            if parent_id is not None:
                children[parent_id].append(message_id)
        return cls(parents, children)

    def current(self, current_id: str | None) -> str | None:
        """Return the current message: the last one if `current_id` names none; None in an empty chat."""
        if current_id in self.parents:
            return current_id
        return next(reversed(self.parents), None)

    def leaf_below(self, message_id: str) -> str:
        """Return the leaf that is reached from a message by its newest children."""
        if not is_plain(message_id) or message_id not in self.parents:
            raise not_found("message", message_id)
        while self.children[message_id]:
            message_id = self.children[message_id][-1]
        return message_id

    def branch(self, leaf_id: str | None) -> list[str]:
        """Return the ids of the messages from the root to a leaf."""
        found = []
        while leaf_id is not None:
            found.append(leaf_id)
            leaf_id = self.parents[leaf_id]
        return found[::-1]

    def siblings(self, message_id: str) -> list[str]:
        """Return the ids of the messages with the same parent, itself included, in order of creation."""
        parent_id = self.parents[message_id]
        if parent_id is not None:
            return self.children[parent_id]
        return [each for each, parent in self.parents.items() if parent is None]

    def below(self, message_id: str) -> list[str]:
        """Return the ids of a message and of all messages below it."""
        found = [message_id]
        for each in found:
            found += self.children[each]
        return found

    async def sizes(self) -> Mapping[str, int]:
        """Return how many messages each message has below it, itself included."""
        pace = LoopPacer()
        order = [each for each, parent in self.parents.items() if parent is None]
        for each in order:
            await pace.turn()
            order += self.children[each]
        found = dict.fromkeys(order, 1)
        for each in reversed(order):
            await pace.turn()
            parent_id = self.parents[each]
            if parent_id is not None:
                found[parent_id] += found[each]
        return found
