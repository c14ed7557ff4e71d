"""Locks by key: the holders of one key follow each other in the order of their arrival."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class _Lock:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class KeyedLocks(Generic[Key]):
    """One lock for each key; waiters of different keys do not wait for each other."""

    def __init__(self) -> None:
        self._locks: dict[Key, _Lock] = {}

    @property
    def count(self) -> int:
        """The number of keys that are held or waited for."""
        return len(self._locks)

    @asynccontextmanager
    async def of(self, key: Key) -> AsyncIterator[None]:
        """Hold the lock of `key` within the block."""
        await self.begin(key)
        try:
            yield
        finally:
            self.end(key)

    async def begin(self, key: Key) -> None:
        """Wait for the lock of `key` behind earlier callers, and hold it until `end`."""
        entry = self._locks.setdefault(key, _Lock())
        entry.users += 1
        try:
            await entry.lock.acquire()
        except asyncio.CancelledError:
            self._leave(key, entry)
            raise

    def end(self, key: Key) -> None:
        """Release the lock to the caller that waits longest."""
        entry = self._locks[key]
        entry.lock.release()
        self._leave(key, entry)

    def _leave(self, key: Key, entry: _Lock) -> None:
        entry.users -= 1
        if not entry.users:
            del self._locks[key]
