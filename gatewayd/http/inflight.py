"""How many requests are being answered, so that a stop can wait for them."""

import asyncio
from types import TracebackType


class InFlight:
    """Counts the requests inside `with` blocks."""

    def __init__(self) -> None:
        self.count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __enter__(self) -> None:
        self.count += 1
        self._idle.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.count -= 1
        if self.count == 0:
            self._idle.set()

    async def drained(self, seconds: float) -> bool:
        """Wait until nothing is in flight; False when that took longer than `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
