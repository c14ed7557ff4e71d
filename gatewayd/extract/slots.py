"""Slots for documents that are read at a time, given round robin over the owners of the documents."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gatewayd.ingest.round_robin import RoundRobin


@dataclass(eq=False, slots=True)
class _Request:
    """A document that waits for a slot, and then holds it."""

    owner: str
    granted: asyncio.Future[None] = field(default_factory=asyncio.Future)
    timer: asyncio.TimerHandle | None = None
    is_long: bool = False


class ReaderSlots:
    """Lets `count` documents be read at a time, of one owner and of all.

    While the document of an owner waits who has none at work, one that has been read for more than `turn`
    seconds does not count; there are at most `spare` slots more for that.
    """

    def __init__(self, count: int, spare: int, turn: float) -> None:
        self._count = count
        self._spare = spare
        self._turn = turn
        self._owners = RoundRobin()
        self._waiting: list[_Request] = []
        self._reading: list[_Request] = []

    @asynccontextmanager
    async def held(self, owner: str) -> AsyncIterator[None]:
        """Hold a slot for a document of an owner; waits until one is free."""
        request = _Request(owner)
        self._waiting.append(request)
        try:
            self._grant()
            await request.granted
            yield
        finally:
            self._release(request)

    def _grant(self) -> None:
        """Grant the slots that are free."""
        while (request := self._next()) is not None:
            self._waiting.remove(request)
            self._reading.append(request)
            self._owners.begin(request.owner)
            request.timer = asyncio.get_running_loop().call_later(self._turn, self._mark_long, request)
            if not request.granted.done():
                request.granted.set_result(None)

    def _next(self) -> _Request | None:
        """Return the request to grant next, None when no slot is free for any."""
        in_time = sum(not request.is_long for request in self._reading)
        if in_time >= self._count or len(self._reading) >= self._count + self._spare:
            return None
        # A slot beyond the count is only for owners who have none.
        most = self._count if len(self._reading) < self._count else 1
        able = [request for request in self._waiting if self._owners.active(request.owner) < most]
        return min(able, key=lambda request: self._owners.priority(request.owner), default=None)

    def _mark_long(self, request: _Request) -> None:
        request.is_long = True
        self._grant()

    def _release(self, request: _Request) -> None:
        if request in self._waiting:
            self._waiting.remove(request)
            return
        if request.timer is not None:
            request.timer.cancel()
        self._reading.remove(request)
        self._owners.end(request.owner)
        self._grant()
