"""What stored chats need from storage; every implementation passes one conformance suite.

All changes are committed when a method returns, or, inside a block of `commits.Transactor`, when it ends. A
write to a message never rewrites its chat: it touches `updated_at` alone.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from gatewayd.chats.records import (
    Chat,
    ChatChange,
    ChatQuery,
    Message,
    MessageChange,
    NewChat,
    SharedChat,
    Tag,
)


class ChatStore(Protocol):
    """Chats, their tags and what was shared of them."""

    async def add(self, chat: Chat, messages: Sequence[Message], *, is_copy: bool = False) -> None:
        """Insert a chat with its messages; conflict when the id is taken.

        Copies of messages that are stored already may be over the limits of a message.
        """
        ...

    async def add_all(self, chats: AsyncIterator[NewChat]) -> None:
        """Insert chats with their messages and tags, all or none; conflict when an id is taken.

        No reader finds one before all are stored. Others may write meanwhile. When the process dies, or the
        database is away before a failed addition is taken back, no chat is found, and `list_unfinished`
        returns what is left.
        """
        ...

    async def check(self, messages: Sequence[Message]) -> None:
        """Raise too_large for a message over the limits of a stored one."""
        ...

    async def find(self, chat_id: str) -> Chat | None:
        """Return one chat."""
        ...

    async def list(self, query: ChatQuery) -> tuple[Sequence[Chat], int]:
        """Return one page of chats without their messages, and the count of all that match."""
        ...

    async def change(self, chat_id: str, change: ChatChange, at: int) -> bool:
        """Change a chat; `at` is its new `updated_at`. False when there is none."""
        ...

    async def touch(self, chat_id: str, at: int) -> bool:
        """Set `updated_at` alone."""
        ...

    async def hide(self, chat_id: str) -> bool:
        """Make a chat unfinished, as the first step to delete it; False when there is none.

        No reader finds it from then on. `purge` deletes it.
        """
        ...

    async def hide_all(self, user_id: str) -> Sequence[str]:
        """Make every chat of a user unfinished, and return their ids."""
        ...

    async def list_unfinished(self) -> Sequence[str]:
        """Return the ids of the chats of which a process that died has left a part; for the start alone."""
        ...

    async def purge(self, chat_ids: Sequence[str]) -> None:
        """Delete unfinished chats, their messages, tags and what was shared. Others may write meanwhile."""
        ...

    async def archive_all(self, user_id: str, *, archived: bool) -> None:
        """Set `archived` of every chat of a user; `updated_at` stays. Others may write meanwhile."""
        ...

    async def add_tag(self, chat_id: str, tag: Tag) -> None:
        """Give a chat a tag; nothing happens when it has it. Raises not_found when there is no such chat."""
        ...

    async def remove_tags(self, chat_id: str, tag_ids: Sequence[str] | None = None) -> None:
        """Take these tags from a chat, or all."""
        ...

    async def tags(self, *, user_id: str | None = None, chat_id: str | None = None) -> Sequence[Tag]:
        """Return the tags of a chat, or all that the chats of a user have, each once, by name."""
        ...

    async def share(self, shared: SharedChat) -> None:
        """Keep a chat as it is now, in place of what was shared of it before; not_found when it is gone."""
        ...

    async def find_shared(self, share_id: str) -> SharedChat | None:
        """Return what was shared under an id."""
        ...

    async def unshare(self, chat_id: str) -> bool:
        """Forget what was shared of a chat."""
        ...


class MessageStore(Protocol):
    """The messages of chats, a row each; the lists of ITEM_KINDS are rows of their own."""

    async def list(self, chat_id: str) -> Sequence[Message]:
        """Return all messages of a chat in the order of their making."""
        ...

    async def count(self, chat_id: str) -> int:
        """Return how many messages a chat has."""
        ...

    async def size(self, chat_id: str) -> int:
        """Return how many bytes the messages of a chat hold: texts, and what is kept of them as JSON."""
        ...

    async def find(self, chat_id: str, message_id: str) -> Message | None:
        """Return one message."""
        ...

    async def branch(self, chat_id: str, message_id: str) -> Sequence[Message]:
        """Return the messages from the root to this one; a parent that is missing or repeated ends it."""
        ...

    async def put(self, chat_id: str, messages: Sequence[Message]) -> None:
        """Insert messages, or replace them whole, in one transaction; not_found without such a chat."""
        ...

    async def change(self, chat_id: str, message_id: str, change: MessageChange) -> bool:
        """Change one message, in one transaction; False when there is none."""
        ...

    async def remove(self, chat_id: str, message_id: str) -> bool:
        """Delete a message; its children get its parent."""
        ...

    async def end_running(self, error: Mapping[str, Any]) -> int:
        """Make every message in the state RUNNING done with `error`: its writer died. Return how many."""
        ...
