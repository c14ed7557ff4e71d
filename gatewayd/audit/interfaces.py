"""Interfaces of the audit log."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from gatewayd.audit.records import AuditQuery, AuditRow, ChainHead


class AuditStore(Protocol):
    """The rows of the chain. Only `prune` deletes rows, and nothing changes one."""

    async def append(self, make: Callable[[ChainHead], Sequence[AuditRow]]) -> Sequence[AuditRow]:
        """Store the rows that `make` returns for the last place of the chain, in one transaction.

        Excludes other writers, in other processes too. Raises unavailable.
        """
        ...

    async def head(self) -> ChainHead:
        """Return the place of the last row, or of the last removed one if there is no row."""
        ...

    async def base(self) -> ChainHead:
        """Return the place of the last row that retention removed."""
        ...

    async def find(self, query: AuditQuery) -> Sequence[AuditRow]:
        """Return the selected rows in the order of the chain."""
        ...

    def rows(self) -> AsyncIterator[AuditRow]:
        """Yield all rows in the order of the chain."""
        ...

    async def last_before(self, at: int) -> ChainHead | None:
        """Return the place of the last of the first rows that are older than a time in epoch microseconds.

        A row that a clock set back made old, after a row that is not old, does not count. None without one.
        """
        ...

    async def prune(self, place: ChainHead) -> int:
        """Delete the rows up to a place, which becomes the base; return how many were deleted."""
        ...


class AuditReceiver(Protocol):
    """Takes rows at another place: a syslog server or a webhook."""

    async def send(self, rows: Sequence[AuditRow]) -> None:
        """Send rows; raises GatewayError unless the receiver has taken them."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...
