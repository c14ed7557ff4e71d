"""Scheduler that chooses the files to process next, fairly between size classes and between owners."""

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
"""Jobs that one read of the queue fetches per owner and size class, for each second until the next read."""

PAUSE_FACTOR: Final = 20
"""Pause after a read, in multiples of its duration: reads take at most 1/20 of the database's time."""

MAX_PAUSE_SECONDS: Final = 30
"""Upper bound of that pause: a read can also be slow because the database was unreachable."""


class JobBacklog:
    """Leases jobs from the job store, round robin over the owners of files.

    At most `capacity` jobs of each size class are active, at most `share` of them for one owner. The jobs of
    one owner and class are leased oldest first. The waiting jobs are read again when none is left in memory,
    and otherwise at most once a second, or less often when a read is slow (a long queue makes it slow).
    """

    def __init__(
        self,
        jobs: JobStore,
        lease_owner: str,
        share: int,
        capacity: int,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs = jobs
        self._lease_owner = lease_owner
        self._share = share
        self._capacity = capacity
        self._timer = timer
        self._owners: dict[SizeClass, RoundRobin[str]] = {size: RoundRobin() for size in SizeClass}
        self._active: Counter[SizeClass] = Counter()
        self._waiting: dict[QueueKey, deque[str]] = {}
        self._read_at = 0
        self._pause = 0.0
        self._pause_until = 0.0
        self.is_stale = False
        """Whether the last call of `lease` did not read new jobs from the store."""

    @property
    def has_room(self) -> bool:
        """Whether some size class has fewer active jobs than its capacity."""
        return any(self._active[size] < self._capacity for size in SizeClass)

    async def lease(self, *, now: int, until: int) -> Sequence[tuple[QueueKey, IngestJob]]:
        """Lease jobs and return them with their keys; each counts as active until `end` is called for it."""
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
        """Count a job of a key as no longer active."""
        self._active[key.size] -= 1
        self._owners[key.size].end(key.owner)

    def _begin(self, key: QueueKey) -> None:
        self._active[key.size] += 1
        self._owners[key.size].begin(key.owner)

    async def _read(self, now: int) -> None:
        self._waiting.clear()
        begun = self._timer()
        # Enough jobs to last until the next read: an empty backlog causes an earlier one.
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
        """Return the key to lease from next in a class, None when the class is full or nothing is left."""
        if self._active[size] >= self._capacity:
            return None
        owners = self._owners[size]
        eligible = [
            key for key in self._waiting if key.size is size and owners.active(key.owner) < self._share
        ]
        return min(eligible, key=lambda key: owners.priority(key.owner), default=None)

    def _pop(self, key: QueueKey) -> str:
        waiting = self._waiting[key]
        file_id = waiting.popleft()
        if not waiting:
            del self._waiting[key]
        return file_id
