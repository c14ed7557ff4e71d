"""Interfaces of the change log, and of what tells whether a node may trust its memory."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from gatewayd.cluster.records import LogReading


class Freshness(Protocol):
    """Tells whether what this process remembers of the database may be used."""

    def is_fresh(self) -> bool:
        """Whether every change that was committed a second ago is applied."""
        ...

    async def renew(self) -> None:
        """Apply every change that other processes committed before this call.

        Raises unavailable if that fails.
        """
        ...


class ChangeLink(Protocol):
    """A connection that hears of changes."""

    async def read(self, after: int) -> LogReading:
        """Read the log after a version; raises unavailable."""
        ...


class ChangeLog(Protocol):
    """The log in the database."""

    async def read(self, after: int) -> LogReading:
        """Read the log after a version, on any connection; raises unavailable."""
        ...

    def listen(self, notice: Callable[[], None]) -> AbstractAsyncContextManager[ChangeLink]:
        """Open a connection of its own, which calls `notice` after each commit of changes and at its end.

        `notice` does not block. Raises unavailable.
        """
        ...
