"""Counter of the open calls of a plugin, which delay its end."""

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager


class OpenCalls:
    """Counts calls, on the loop on which it was made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open = 0
        self._owners: set[weakref.ref[object]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_idle(self) -> bool:
        """Whether no call is open."""
        return self._idle.is_set()

    async def wait_idle(self) -> None:
        """Wait until no call is open."""
        await self._idle.wait()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count a block as an open call."""
        self.enter()
        try:
            yield
        finally:
            self._leave()

    def keep_for(self, owner: object) -> None:
        """Count an object as an open call until it is garbage-collected."""
        self.enter()
        self._owners.add(weakref.ref(owner, self._forget))

    def enter(self) -> None:
        """Count a call that starts."""
        self._open += 1
        self._idle.clear()

    def leave_soon(self) -> None:
        """Count a call that has ended; may be called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._leave)

    def _forget(self, owner: weakref.ref[object]) -> None:
        self._owners.discard(owner)
        self.leave_soon()

    def _leave(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._idle.set()
