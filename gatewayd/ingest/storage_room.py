"""Room for the bytes of new files: the interface of quotas, and storage without any."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class StorageReservation(Protocol):
    """Room for one new file of a user."""

    def fill(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the bytes of a file, each piece after its reservation; raises too_large over a quota."""
        ...

    def settled(self, size: int) -> AbstractAsyncContextManager[None]:
        """Run the block that adds the row of the file, which has this size in bytes.

        Raises too_large if the stored rows leave no room for it, whatever other uploads, also of other
        processes, add at the same time.
        """
        ...


class StorageLimiter(Protocol):
    """The quotas of all users."""

    def reserved(self, user_id: str, size: int = 0) -> AbstractAsyncContextManager[StorageReservation]:
        """Reserve room for a file that has at least this size; raises too_large without it.

        The room is released at the end of the block.
        """
        ...


class UnlimitedStorage:
    """Storage without quotas: a `StorageLimiter`, and the `StorageReservation` that it gives."""

    @asynccontextmanager
    async def reserved(self, user_id: str, size: int = 0) -> AsyncIterator[StorageReservation]:
        """Refuse nothing."""
        del user_id, size
        yield self

    def fill(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Return the stream."""
        return stream

    @asynccontextmanager
    async def settled(self, size: int) -> AsyncIterator[None]:
        """Run the block."""
        del size
        yield
