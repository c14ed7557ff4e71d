"""Fair admission: turns between size classes, and inside a class between owners."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gatewayd.ingest.round_robin import RoundRobin
from gatewayd.ingest.size_classes import QueueKey, SizeClass


@dataclass(eq=False, slots=True)
class GateRequest:
    """Work that waits to be admitted, and then is under way."""

    key: QueueKey
    admitted: asyncio.Future[None] = field(default_factory=asyncio.Future)


class FairGate:
    """Admits work, `count` at a time.

    The class with the least work under way is next, and of those the one that was next longest ago; likewise
    the owner in the class. Work of one owner and class is admitted in the order in which it came.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._classes: RoundRobin[SizeClass] = RoundRobin()
        self._owners: dict[SizeClass, RoundRobin[str]] = {size: RoundRobin() for size in SizeClass}
        self._waiting: list[GateRequest] = []
        self._admitted: list[GateRequest] = []

    @asynccontextmanager
    async def held(self, key: QueueKey) -> AsyncIterator[None]:
        """Run a block once it is admitted."""
        request = GateRequest(key)
        self._waiting.append(request)
        try:
            self._admit()
            await request.admitted
            yield
        finally:
            self._release(request)

    def _is_free(self, key: QueueKey) -> bool:
        """Tell whether work of a key can be admitted now."""
        return len(self._admitted) < self._count

    def _begin(self, request: GateRequest) -> None:
        """Note that work is under way."""
        self._admitted.append(request)
        self._classes.begin(request.key.size)
        self._owners[request.key.size].begin(request.key.owner)

    def _end(self, request: GateRequest) -> None:
        """Note that work has ended."""
        self._admitted.remove(request)
        self._classes.end(request.key.size)
        self._owners[request.key.size].end(request.key.owner)

    def _admit(self) -> None:
        while able := [request for request in self._waiting if self._is_free(request.key)]:
            request = min(able, key=self._priority)
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
