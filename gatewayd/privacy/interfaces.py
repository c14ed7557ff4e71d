"""Interfaces of the storage and the services that limits of age and the erasure of people use."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol


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


class PersonRowStore(Protocol):
    """Everything that belongs to one person, by kind. `email` is "" if the account is gone."""

    def may_be_id(self, text: str) -> bool:
        """Return whether a text can be the id of a person."""
        ...

    async def counts(self, user_id: str, email: str) -> Mapping[str, int]:
        """Return the numbers of rows by kind, those of 0 included."""
        ...

    async def collections(self, user_id: str) -> Sequence[str]:
        """Return the ids of the collections of a person."""
        ...

    async def remove(self, user_id: str, email: str) -> None:
        """Delete what neither goes with the account nor has a service of its own, in small transactions."""
        ...

    async def rename(self, user_id: str, pseudonym: str) -> None:
        """Replace a person as the owner of what stays, in small transactions."""
        ...


class OwnedCollections(Protocol):
    """Removes collections."""

    async def remove_any(self, collection_id: str) -> None:
        """Delete a collection but not its files; nothing if it does not exist."""
        ...


class PersonUsage(Protocol):
    """The usage of people, stored and not yet stored."""

    async def rename(self, user_id: str, pseudonym: str) -> None:
        """Replace a person by a pseudonym without keys, in all rows and those of calls that end later."""
        ...


class PersonRecords(Protocol):
    """Everything that belongs to one person, to be read."""

    def pages(self, user_id: str, email: str) -> AsyncIterator[tuple[str, Sequence[Mapping[str, Any]]]]:
        """Yield pages of rows as JSON values with their kind, in a fixed order, without secrets."""
        ...

    def ids(self, table: str, user_id: str) -> AsyncIterator[str]:
        """Yield the ids of the rows of `chats`, `files` or `batch_files` of a person, in order."""
        ...
