"""Interfaces of the audit log."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from gatewayd.audit.records import AuditQuery, AuditRow, ChainHead


class AuditStore(Protocol):
    """The rows of the chain. Only `sweep` deletes rows, and nothing changes one."""

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
        """Return the selected rows after the base in the order of the chain."""
        ...

    def rows(self) -> AsyncIterator[AuditRow]:
        """Yield the rows after the base in the order of the chain."""
        ...

    async def last_before(self, at: int) -> ChainHead | None:
        """Return the place of the last of the first rows that are older than a time in epoch microseconds.

        A row that a clock set back made old, after a row that is not old, does not count, nor does one up to
        the base. None without one.
        """
        ...

    async def rebase(self, place: ChainHead) -> None:
        """Make a place the base: the rows up to it no longer belong to the chain."""
        ...

    async def sweep(self) -> int:
        """Delete the rows up to the base in several transactions; return how many were deleted.

        Other writers are not blocked. What a killed process leaves, the next call deletes.
        """
        ...


class AuditReceiver(Protocol):
    """Takes rows at another place: a syslog server or a webhook."""

    async def send(self, rows: Sequence[AuditRow]) -> None:
        """Send rows; raises GatewayError unless the receiver has taken them."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...
