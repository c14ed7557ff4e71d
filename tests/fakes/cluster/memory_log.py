"""A change log in memory: tests commit to it, and hold or break its answers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gatewayd.cluster.records import Change, LogReading
from gatewayd.errors import ErrorKind, GatewayError


class MemoryLog:
    """Implements `cluster.interfaces.ChangeLog`."""

    def __init__(self) -> None:
        self.identity = "1/00000001/1"
        self.version = 0
        self.contraction = ""
        self.changes: list[Change] = []
        self.reads = 0
        self.links = 0
        self.is_broken = False
        self.answers = asyncio.Event()
        self.answers.set()
        self._notices: list[Callable[[], None]] = []

    def commit(self, *changes: tuple[str, str], is_told: bool = True) -> None:
        """Log changes as one transaction, and tell the listeners unless their link is silent."""
        for kind, subject in changes:
            self.version += 1
            self.changes.append(Change(self.version, kind, subject))
        if is_told:
            for notice in self._notices:
                notice()

    async def read(self, after: int) -> LogReading:
        """Return the state at the time of the question, once answers are not held."""
        self.reads += 1
        if self.is_broken:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read the change log: it is broken")
        found = [change for change in self.changes if change.version > after]
        reading = LogReading(self.identity, self.version, self.contraction, found)
        await self.answers.wait()
        return reading

    @asynccontextmanager
    async def listen(self, notice: Callable[[], None]) -> AsyncIterator["MemoryLog"]:
        """Yield the log itself."""
        if self.is_broken:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot listen to the database: it is broken")
        self.links += 1
        self._notices.append(notice)
        try:
            yield self
        finally:
            self._notices.remove(notice)
