"""Fair semaphore: admits work round robin over size classes, and inside a class over owners."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gatewayd.ingest.round_robin import RoundRobin
from gatewayd.ingest.size_classes import QueueKey, SizeClass


@dataclass(eq=False, slots=True)
class GateRequest:
    """A request for admission; `admitted` is done once it is granted."""

    key: QueueKey
    admitted: asyncio.Future[None] = field(default_factory=asyncio.Future)


class FairGate:
    """Admits `count` requests at a time.

    The size class with the fewest active requests is next; among equals, the least recently admitted class.
    The owner inside the class is chosen in the same way. Requests of one owner and class are first in, first
    out.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._classes: RoundRobin[SizeClass] = RoundRobin()
        self._owners: dict[SizeClass, RoundRobin[str]] = {size: RoundRobin() for size in SizeClass}
        self._waiting: list[GateRequest] = []
        self._admitted: list[GateRequest] = []

    @property
    def waiting(self) -> int:
        """Number of requests that wait for admission."""
        return len(self._waiting)

    @property
    def active(self) -> int:
        """Number of admitted requests."""
        return len(self._admitted)

    @asynccontextmanager
    async def held(self, key: QueueKey) -> AsyncIterator[None]:
        """Wait for admission, run the block, and release the place."""
        request = GateRequest(key)
        self._waiting.append(request)
        try:
            self._admit()
            await request.admitted
            yield
        finally:
            self._release(request)

    def _is_free(self, key: QueueKey) -> bool:
        """Return whether a request with this key can be admitted now."""
        return len(self._admitted) < self._count

    def _begin(self, request: GateRequest) -> None:
        """Count a request as active."""
        self._admitted.append(request)
        self._classes.begin(request.key.size)
        self._owners[request.key.size].begin(request.key.owner)

    def _end(self, request: GateRequest) -> None:
        """Count a request as finished."""
        self._admitted.remove(request)
        self._classes.end(request.key.size)
        self._owners[request.key.size].end(request.key.owner)

    def _admit(self) -> None:
        while eligible := [request for request in self._waiting if self._is_free(request.key)]:
            request = min(eligible, key=self._priority)
            self._waiting.remove(request)
            self._begin(request)
            if not request.admitted.done():
                request.admitted.set_result(None)

    def _priority(self, request: GateRequest) -> tuple[tuple[int, int], tuple[int, int]]:
        key = request.key
        return self._classes.priority(key.size), self._owners[key.size].priority(key.owner)

    def _release(self, request: GateRequest) -> None:
        if request in self._waiting:
            self._waiting.remove(request)
            return
        self._end(request)
        self._admit()
