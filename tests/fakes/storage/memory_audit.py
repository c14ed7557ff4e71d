"""The audit log in memory, which can fail as a database does."""

from collections.abc import AsyncIterator, Callable, Sequence
from itertools import takewhile

from gatewayd.audit.records import AuditQuery, AuditRow, ChainHead
from gatewayd.errors import ErrorKind, GatewayError


class MemoryAuditLog:
    """Implements `AuditStore`; with `is_away` it refuses every write."""

    def __init__(self) -> None:
        self.kept: list[AuditRow] = []
        self.place = ChainHead()
        self.is_away = False
        self.batches: list[int] = []

    async def append(self, make: Callable[[ChainHead], Sequence[AuditRow]]) -> Sequence[AuditRow]:
        if self.is_away:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot write the audit log")
        made = make(await self.head())
        self.kept += made
        self.batches.append(len(made))
        return made

    async def head(self) -> ChainHead:
        return self.kept[-1].place if self.kept else self.place

    async def base(self) -> ChainHead:
        return self.place

    async def find(self, query: AuditQuery) -> Sequence[AuditRow]:
        found = [
            row
            for row in self.kept
            if row.sequence > (query.after or 0)
            and query.who in row.actor
            and query.action in row.action
            and query.target in f"{row.target} {row.subject}"
            and (query.since or 0) <= row.at < (query.until or 10**18)
        ]
        return found[-query.limit :] if query.newest else found[: query.limit]

    async def rows(self) -> AsyncIterator[AuditRow]:
        for row in list(self.kept):
            if row.sequence > self.place.sequence:
                yield row

    async def last_before(self, at: int) -> ChainHead | None:
        found = list(takewhile(lambda row: row.at < at, self.kept))
        return found[-1].place if found and found[-1].sequence > self.place.sequence else None

    async def rebase(self, place: ChainHead) -> None:
        self.place = place

    async def sweep(self) -> int:
        before = len(self.kept)
        self.kept = [row for row in self.kept if row.sequence > self.place.sequence]
        return before - len(self.kept)
