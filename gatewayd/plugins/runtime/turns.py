"""Work that is done one at a time, as long as nobody keeps the others waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class ImportTurn:
    """The right to run now; it ends once, whoever ends it first."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._loop = asyncio.get_running_loop()
        self._is_over = False

    def end(self) -> None:
        """Let the next one begin."""
        if not self._is_over:
            self._is_over = True
            self._lock.release()

    def end_soon(self) -> None:
        """Let the next one begin; called from any thread."""
        # A loop that is closed has nobody who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.end)


class ImportTurns:
    """Gives turns in the order in which they are asked for.

    Whoever keeps a turn for `limit` seconds loses it: the next one begins beside it.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[ImportTurn]:
        """Wait for a turn, which lasts until the end of the block at the longest."""
        await self._lock.acquire()
        turn = ImportTurn(self._lock)
        late = asyncio.get_running_loop().call_later(self._limit, turn.end)
        try:
            yield turn
        finally:
            late.cancel()
            turn.end()
