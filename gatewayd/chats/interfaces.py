"""Storage interfaces of stored chats; one conformance suite tests every implementation.

Each change is committed when the method returns, or at the end of an enclosing block of
`transactions.Transactor`. A write to a message never rewrites its chat: it only touches `updated_at`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from gatewayd.chats.records import (
    Chat,
    ChatChange,
    ChatFolder,
    ChatQuery,
    FavouriteMessage,
    MatchedMessage,
    Message,
    MessageChange,
    MessageLink,
    NewChat,
    SharedChat,
    Tag,
)


class ChatStore(Protocol):
    """Chats, their tags and their shared snapshots."""

    async def add(self, chat: Chat, messages: Sequence[Message], *, is_copy: bool = False) -> None:
        """Insert a chat with its messages; raise conflict if the id is in use.

        With `is_copy` the messages may exceed the message limits, because they are copies of stored ones.
        """
        ...

    async def add_all(self, chats: AsyncIterator[NewChat]) -> None:
        """Insert chats with their messages and tags, all or none; raise conflict if an id is in use.

        Readers find no chat before all are stored. Other writers are not blocked. If the process dies, or the
        database fails before a failed insert is undone, no chat becomes visible, and `list_unfinished`
        returns the leftovers.
        """
        ...

    async def check(self, messages: Sequence[Message]) -> None:
        """Raise too_large for a message that exceeds the limits of stored messages."""
        ...

    async def find(self, chat_id: str) -> Chat | None:
        """Return one chat."""
        ...

    async def list(self, query: ChatQuery) -> tuple[Sequence[Chat], int]:
        """Return one page of chats without their messages, and the count of all matches."""
        ...

    async def change(self, chat_id: str, change: ChatChange, at: int) -> bool:
        """Change a chat; `at` is its new `updated_at`. Return False if the chat does not exist."""
        ...

    async def touch(self, chat_id: str, at: int) -> bool:
        """Set only `updated_at`."""
        ...

    async def hide(self, chat_id: str) -> bool:
        """Mark a chat as unfinished, the first step of its deletion; return False if it does not exist.

        Readers no longer find it. `purge` deletes it.
        """
        ...

    async def hide_all(self, user_id: str) -> Sequence[str]:
        """Mark every chat of a user as unfinished and return their ids."""
        ...

    async def list_unfinished(self) -> Sequence[str]:
        """Return the ids of the chats that a dead process left incomplete; called only at start."""
        ...

    async def purge(self, chat_ids: Sequence[str]) -> None:
        """Delete unfinished chats with their messages, tags and snapshots; other writers are not blocked."""
        ...

    async def archive_all(self, user_id: str, *, archived: bool) -> None:
        """Set `archived` on every chat of a user; `updated_at` stays. Other writers are not blocked."""
        ...

    async def add_tag(self, chat_id: str, tag: Tag) -> None:
        """Add a tag to a chat if it lacks it; raise not_found if the chat does not exist."""
        ...

    async def remove_tags(self, chat_id: str, tag_ids: Sequence[str] | None = None) -> None:
        """Remove the given tags, or all tags, from a chat."""
        ...

    async def tags(self, *, user_id: str | None = None, chat_id: str | None = None) -> Sequence[Tag]:
        """Return the tags of a chat, or of all chats of a user, without duplicates, sorted by name."""
        ...

    async def share(self, shared: SharedChat) -> None:
        """Store a snapshot of a chat in place of the earlier one; raise not_found if the chat is gone."""
        ...

    async def find_shared(self, share_id: str) -> SharedChat | None:
        """Return a shared snapshot by its share id."""
        ...

    async def unshare(self, chat_id: str) -> bool:
        """Delete the shared snapshot of a chat."""
        ...


class MessageStore(Protocol):
    """Messages of chats, one row each; the lists of ITEM_KINDS have their own rows."""

    async def list(self, chat_id: str) -> Sequence[Message]:
        """Return all messages of a chat in the order of creation."""
        ...

    async def count(self, chat_id: str) -> int:
        """Return how many messages a chat has."""
        ...

    async def size(self, chat_id: str) -> int:
        """Return the total size of the messages of a chat in bytes: texts, and the JSON of other members."""
        ...

    async def find(self, chat_id: str, message_id: str) -> Message | None:
        """Return one message."""
        ...

    async def branch(self, chat_id: str, message_id: str) -> Sequence[Message]:
        """Return the messages from the root to this message; stop at a missing or repeated parent."""
        ...

    async def outline(self, chat_id: str) -> Sequence[MessageLink]:
        """Return the ids and parents of all messages of a chat in the order of creation."""
        ...

    async def select(self, chat_id: str, message_ids: Sequence[str]) -> Sequence[Message]:
        """Return the messages of a chat that have one of these ids, in the order of creation."""
        ...

    async def put(self, chat_id: str, messages: Sequence[Message]) -> None:
        """Insert or replace whole messages in one transaction; raise not_found if the chat does not exist."""
        ...

    async def change(self, chat_id: str, message_id: str, change: MessageChange) -> bool:
        """Change one message in one transaction; return False if it does not exist."""
        ...

    async def remove(self, chat_id: str, message_id: str) -> bool:
        """Delete a message; its children move to its parent."""
        ...

    async def remove_all(self, chat_id: str, message_ids: Sequence[str]) -> None:
        """Delete messages in one transaction; the parents of other messages stay as they are."""
        ...

    async def end_running(self, error: Mapping[str, Any], *, unclaimed: bool = False) -> int:
        """End every message in the state RUNNING with `error`, since its writer died; return the count.

        With `unclaimed` only those that no run of a node claims.
        """
        ...


class FolderStore(Protocol):
    """Folders of chats. Names, limits and cycles are checked by the service."""

    async def add(self, folder: ChatFolder) -> None:
        """Insert a folder; raise conflict if the id is in use."""
        ...

    async def find(self, folder_id: str) -> ChatFolder | None:
        """Return one folder with its data."""
        ...

    async def list(self, user_id: str) -> Sequence[ChatFolder]:
        """Return all folders of a user by name, without their data."""
        ...

    async def put(self, folder: ChatFolder) -> bool:
        """Replace a folder; return False if it does not exist."""
        ...

    async def remove(self, folder_ids: Sequence[str]) -> None:
        """Delete folders; their chats keep the ids and count as chats outside folders."""
        ...

    async def empty(self, user_id: str, folder_ids: Sequence[str]) -> None:
        """Take the chats of a user out of folders. Other writers are not blocked."""
        ...


class MessageSearch(Protocol):
    """Searches in the messages of several chats."""

    async def favourites(self, user_id: str, offset: int, limit: int) -> Sequence[FavouriteMessage]:
        """Return a page of the messages of a user with the attribute `favorite`, the newest first."""
        ...

    async def matches(self, chat_ids: Sequence[str], text: str) -> Sequence[MatchedMessage]:
        """Return one match for each of the chats whose messages contain a text, in any case of letters."""
        ...


class ChatTaskStopper(Protocol):
    """Stops the tasks of chats."""

    async def stop(self, chat_ids: Sequence[str]) -> None:
        """Stop the tasks of chats on every node, and wait for their end."""
        ...
