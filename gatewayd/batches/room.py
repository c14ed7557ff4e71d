"""Room of the files of a user, which uploads that run side by side reserve before they write."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gatewayd.batches.interfaces import BatchFileStore
from gatewayd.errors import ErrorKind, GatewayError


@dataclass(slots=True)
class _Account:
    """The files of one user while uploads of them run: those of the database at the first, and changes."""

    uploads: int = 0
    count: int = 0
    size: int = 0
    is_read: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class FileRoom:
    """Bounds the number and the bytes of the files of each user.

    Changes that others make in the database are seen once no upload of the user runs.
    """

    def __init__(self, rows: BatchFileStore, most: int, most_bytes: int) -> None:
        self._rows = rows
        self._most = most
        self._most_bytes = most_bytes
        self._accounts: dict[str, _Account] = {}

    @asynccontextmanager
    async def reserved(self, user_id: str) -> AsyncIterator["RoomReservation"]:
        """Reserve room for one file, whose bytes are reserved as they come; raises conflict without any.

        The room is released unless the file is kept.
        """
        account = self._accounts.setdefault(user_id, _Account())
        account.uploads += 1
        reservation = RoomReservation(account, self._most_bytes)
        try:
            async with account.lock:
                if not account.is_read:
                    account.count, account.size = await self._rows.usage(user_id)
                    account.is_read = True
            if account.count >= self._most or account.size >= self._most_bytes:
                raise _full(account)
            account.count += 1
            try:
                yield reservation
            finally:
                if not reservation.is_kept:
                    account.count -= 1
                    account.size -= reservation.size
        finally:
            account.uploads -= 1
            if not account.uploads:
                del self._accounts[user_id]

    def note(self, user_id: str, count: int, size: int) -> None:
        """Note files that were stored, or deleted with negative numbers, without a reservation."""
        account = self._accounts.get(user_id)
        if account is not None and account.is_read:
            account.count += count
            account.size += size


class RoomReservation:
    """Room for one file; `is_kept` says that the file was stored."""

    def __init__(self, account: _Account, most_bytes: int) -> None:
        self._account = account
        self._most_bytes = most_bytes
        self.size = 0
        self.is_kept = False

    async def fill(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the bytes of the file, each piece after its reservation; raises conflict over the room."""
        async for piece in stream:
            if self._account.size + len(piece) > self._most_bytes:
                raise _full(self._account)
            self._account.size += len(piece)
            self.size += len(piece)
            yield piece


def _full(account: _Account) -> GatewayError:
    return GatewayError(
        ErrorKind.CONFLICT,
        f"cannot store the file: you have {account.count} files of {account.size} bytes; delete some of them",
        code="too_many_files",
    )
