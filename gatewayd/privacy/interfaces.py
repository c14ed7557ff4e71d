"""Interfaces of the storage that the limits of age use."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol


class AgedRowStore(Protocol):
    """Chats, files and rows of usage by their age; times are epoch seconds.

    A chat is old if it was changed before a time, is not pinned, and no answer is being written to it. A file
    is old if it was changed before a time, waits for no processing, and is in no collection, model or folder
    of its owner's chats.
    """

    def old_chats(self, before: int) -> AsyncIterator[str]:
        """Yield the ids of the old chats of all users, the oldest first, with one page in memory."""
        ...

    async def hide_old_chat(self, chat_id: str, before: int) -> bool:
        """Hide a chat as `ChatStore.hide` does if it is still old; return whether this call has hidden it."""
        ...

    def old_files(self, before: int) -> AsyncIterator[str]:
        """Yield the ids of the old files of all users, the oldest first, with one page in memory."""
        ...

    async def is_old_file(self, file_id: str, before: int) -> bool:
        """Return whether a file is old."""
        ...

    async def count_usage(self, day: str) -> int:
        """Return the number of rows of usage before a day (YYYY-MM-DD)."""
        ...

    async def remove_usage(self, day: str) -> int:
        """Delete the rows of usage before a day in several transactions; return their number."""
        ...


class RemovedFiles(Protocol):
    """Removes files with their rows, bytes and index entries."""

    async def remove(self, file_id: str, *, unused: bool = False) -> bool:
        """Remove a file; False if it does not exist, or with `unused` if a collection contains it."""
        ...


class HiddenChats(Protocol):
    """Deletes chats that are hidden."""

    async def purge(self, chat_ids: Sequence[str]) -> None:
        """Delete hidden chats with their messages, tags and snapshots."""
        ...
