"""Turns by key: what belongs to one thing passes one after the other, in the order in which it came."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class KeyedLocks(Generic[Key]):
    """Keeps a line for each key; the lines do not wait for each other."""

    def __init__(self) -> None:
        self._turns: dict[Key, _Turn] = {}

    @property
    def count(self) -> int:
        """How many keys have a line."""
        return len(self._turns)

    @asynccontextmanager
    async def of(self, key: Key) -> AsyncIterator[None]:
        """Wait until those who came before are done; the place is given up at the end."""
        await self.begin(key)
        try:
            yield
        finally:
            self.end(key)

    async def begin(self, key: Key) -> None:
        """Wait until those who came before are done, then hold the turn until `end`."""
        turn = self._turns.setdefault(key, _Turn())
        turn.users += 1
        try:
            await turn.lock.acquire()
        except asyncio.CancelledError:
            self._leave(key, turn)
            raise

    def end(self, key: Key) -> None:
        """Give the turn to who waits longest."""
        turn = self._turns[key]
        turn.lock.release()
        self._leave(key, turn)

    def _leave(self, key: Key, turn: _Turn) -> None:
        turn.users -= 1
        if not turn.users:
            del self._turns[key]
