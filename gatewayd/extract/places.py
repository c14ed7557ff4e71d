"""Who may have a process that reads documents: the owners in turn, beside a long document of another one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gatewayd.ingest.turns import Turns


@dataclass(eq=False, slots=True)
class _Visit:
    """A document that waits for a place, and then has it."""

    owner: str
    admitted: asyncio.Future[None] = field(default_factory=asyncio.Future)
    alarm: asyncio.TimerHandle | None = None
    is_long: bool = False


class Places:
    """Lets `count` documents be read at a time, of one owner and of all.

    While the document of an owner waits who has none at work, one that has been read for more than `turn`
    seconds does not count; there are at most `spare` places more for that.
    """

    def __init__(self, count: int, spare: int, turn: float) -> None:
        self._count = count
        self._spare = spare
        self._turn = turn
        self._turns = Turns()
        self._waiting: list[_Visit] = []
        self._reading: list[_Visit] = []

    @asynccontextmanager
    async def taken(self, owner: str) -> AsyncIterator[None]:
        """Hold a place for a document of an owner; waits until there is one."""
        visit = _Visit(owner)
        self._waiting.append(visit)
        try:
            self._admit()
            await visit.admitted
            yield
        finally:
            self._leave(visit)

    def _admit(self) -> None:
        """Let in whoever may come in."""
        while (visit := self._next()) is not None:
            self._waiting.remove(visit)
            self._reading.append(visit)
            self._turns.begin(visit.owner)
            visit.alarm = asyncio.get_running_loop().call_later(self._turn, self._lengthen, visit)
            if not visit.admitted.done():
                visit.admitted.set_result(None)

    def _next(self) -> _Visit | None:
        """Return the document whose turn it is, None when there is no place for any."""
        in_time = sum(not visit.is_long for visit in self._reading)
        if in_time >= self._count or len(self._reading) >= self._count + self._spare:
            return None
        # A place beyond the count is only for owners who have none.
        most = self._count if len(self._reading) < self._count else 1
        able = [visit for visit in self._waiting if self._turns.under_way(visit.owner) < most]
        return min(able, key=lambda visit: self._turns.rank(visit.owner), default=None)

    def _lengthen(self, visit: _Visit) -> None:
        visit.is_long = True
        self._admit()

    def _leave(self, visit: _Visit) -> None:
        if visit in self._waiting:
            self._waiting.remove(visit)
            return
        if visit.alarm is not None:
            visit.alarm.cancel()
        self._reading.remove(visit)
        self._turns.end(visit.owner)
        self._admit()
