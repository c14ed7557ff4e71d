"""Mutual exclusion with a time limit: one holder at a time, unless it exceeds the limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class ImportTurn:
    """The right to run; it can be ended once."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._loop = asyncio.get_running_loop()
        self._is_over = False

    def end(self) -> None:
        """Release the lock for the next turn."""
        if not self._is_over:
            self._is_over = True
            self._lock.release()

    def end_soon(self) -> None:
        """Release the lock for the next turn; may be called from any thread."""
        # On a closed loop no turn is waiting.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.end)


class ImportTurns:
    """Grants turns in the order of the requests.

    A turn ends after `limit` seconds even if its holder is still running.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[ImportTurn]:
        """Wait for a turn, which ends with the block at the latest."""
        await self._lock.acquire()
        turn = ImportTurn(self._lock)
        late = asyncio.get_running_loop().call_later(self._limit, turn.end)
        try:
            yield turn
        finally:
            late.cancel()
            turn.end()
