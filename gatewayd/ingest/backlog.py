"""Chooses the files to process next, so that neither large files nor other owners' delay one."""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final

from gatewayd.ingest.interfaces import JobStore
from gatewayd.ingest.records import IngestJob
from gatewayd.ingest.round_robin import RoundRobin
from gatewayd.ingest.size_classes import QueueKey, SizeClass

WAITING_JOBS_PER_SECOND: Final = 32
"""Jobs of an owner and a size class that are read for each second until the next reading."""

PAUSE_FACTOR: Final = 20
"""A reading takes one part of so many of the time: the others who use the database wait for it."""

MAX_PAUSE_SECONDS: Final = 30
"""A reading may take long for other reasons than what waits, such as a database that was away."""


class JobBacklog:
    """Leases jobs: up to `room` of each size class under way, owners of files in turn, each with at most
    `share` in a class; of one owner and class the oldest first.

    What waits is read again when nothing of it is left, and otherwise once a second at most, less often when
    that takes long: it takes longer the more there is.
    """

    def __init__(
        self,
        jobs: JobStore,
        lease_owner: str,
        share: int,
        room: int,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = jobs
        self._lease_owner = lease_owner
        self._share = share
        self._room = room
        self._timer = timer
        self._owners: dict[SizeClass, RoundRobin[str]] = {size: RoundRobin() for size in SizeClass}
        self._active: Counter[SizeClass] = Counter()
        self._waiting: dict[QueueKey, deque[str]] = {}
        self._read_at = 0
        self._pause = 0.0
        self._pause_until = 0.0
        self.is_stale = False
        """Whether the last call of `lease` did not look for new jobs."""

    @property
    def has_room(self) -> bool:
        """Whether a job of any class can be under way beside those that are."""
        return any(self._active[size] < self._room for size in SizeClass)

    async def lease(self, *, now: int, until: int) -> Sequence[tuple[QueueKey, IngestJob]]:
        """Take jobs and return them with their keys; the turn of each lasts until `end`."""
        self.is_stale = bool(self._waiting) and (now == self._read_at or self._timer() < self._pause_until)
        if not self.is_stale:
            await self._read(now)
        chosen: dict[str, QueueKey] = {}
        leased: dict[str, IngestJob] = {}
        for size in SizeClass:
            while (key := self._next(size)) is not None:
                chosen[self._pop(key)] = key
                self._begin(key)
        try:
            jobs = await self._jobs.lease(self._lease_owner, list(chosen), now=now, until=until)
            leased = {job.file_id: job for job in jobs}
        finally:
            for file_id, key in chosen.items():
                if file_id not in leased:
                    self.end(key)
        return [(key, leased[file_id]) for file_id, key in chosen.items() if file_id in leased]

    def end(self, key: QueueKey) -> None:
        """Note that a job of a key is no longer under way."""
        self._active[key.size] -= 1
        self._owners[key.size].end(key.owner)

    def _begin(self, key: QueueKey) -> None:
        self._active[key.size] += 1
        self._owners[key.size].begin(key.owner)

    async def _read(self, now: int) -> None:
        self._waiting.clear()
        begun = self._timer()
        # As many as are done until the next time, or it would come earlier.
        for key, file_id in await self._jobs.waiting(
            now, WAITING_JOBS_PER_SECOND * max(1, math.ceil(self._pause))
        ):
            self._waiting.setdefault(key, deque()).append(file_id)
        self._read_at = now
        ended = self._timer()
        pause = min(PAUSE_FACTOR * (ended - begun), MAX_PAUSE_SECONDS)
        self._pause = pause if pause > 1 else 0.0
        self._pause_until = ended + self._pause

    def _next(self, size: SizeClass) -> QueueKey | None:
        """Return whose turn it is in a class."""
        if self._active[size] >= self._room:
            return None
        owners = self._owners[size]
        able = [key for key in self._waiting if key.size is size and owners.active(key.owner) < self._share]
        return min(able, key=lambda key: owners.priority(key.owner), default=None)

    def _pop(self, key: QueueKey) -> str:
        waiting = self._waiting[key]
        file_id = waiting.popleft()
        if not waiting:
            del self._waiting[key]
        return file_id
