"""Chooses the files to process next, so that the files of one owner do not delay those of another."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from gatewayd.ingest.interfaces import JobStore
from gatewayd.ingest.records import Job
from gatewayd.ingest.round_robin import RoundRobin

DEPTH: Final = 32
"""Jobs of an owner that are read at a time."""


class Backlog:
    """Leases jobs: owners of files in turn, each with at most `share` under way; of one owner the oldest
    first.

    What waits is read again when nothing of it is left, and otherwise once a second at most, for that takes
    longer the more there is.
    """

    def __init__(self, jobs: JobStore, lease_owner: str, share: int) -> None:
        self._jobs = jobs
        self._lease_owner = lease_owner
        self._share = share
        self._owners = RoundRobin()
        self._waiting: dict[str, deque[str]] = {}
        self._read_at = 0
        self.is_stale = False
        """Whether the last call of `lease` did not look for new jobs."""

    async def lease(self, *, now: int, until: int, room: int) -> Sequence[tuple[str, Job]]:
        """Take up to `room` jobs and return them with the owners of their files; each owner's turn lasts
        until `end`."""
        self.is_stale = bool(self._waiting) and now == self._read_at
        if not self.is_stale:
            await self._read(now)
        chosen: dict[str, str] = {}
        leased: dict[str, Job] = {}
        while len(chosen) < room and (user_id := self._next()) is not None:
            chosen[self._pop(user_id)] = user_id
            self._owners.begin(user_id)
        try:
            jobs = await self._jobs.lease(self._lease_owner, list(chosen), now=now, until=until)
            leased = {job.file_id: job for job in jobs}
        finally:
            for file_id, user_id in chosen.items():
                if file_id not in leased:
                    self._owners.end(user_id)
        return [(user_id, leased[file_id]) for file_id, user_id in chosen.items() if file_id in leased]

    def end(self, user_id: str) -> None:
        """Note that a job of an owner is no longer under way."""
        self._owners.end(user_id)

    async def _read(self, now: int) -> None:
        self._waiting.clear()
        for user_id, file_id in await self._jobs.waiting(now, DEPTH):
            self._waiting.setdefault(user_id, deque()).append(file_id)
        self._read_at = now

    def _next(self) -> str | None:
        """Return whose turn it is."""
        able = [user_id for user_id in self._waiting if self._owners.active(user_id) < self._share]
        return min(able, key=self._owners.priority, default=None)

    def _pop(self, user_id: str) -> str:
        waiting = self._waiting[user_id]
        file_id = waiting.popleft()
        if not waiting:
            del self._waiting[user_id]
        return file_id
