"""The queue of files to process: leases, attempts, and the tasks that work on them."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError, full_message
from gatewayd.ingest.backlog import JobBacklog
from gatewayd.ingest.interfaces import OUT_OF_TIME, WORKER_DIED
from gatewayd.ingest.processor import FileProcessor
from gatewayd.ingest.records import FileStatus, IngestJob
from gatewayd.ingest.size_classes import QueueKey
from gatewayd.ingest.updates import IngestStores
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

PERMANENT_ERROR_KINDS: Final = frozenset(
    {ErrorKind.INVALID_REQUEST, ErrorKind.TOO_LARGE, ErrorKind.EMPTY_CONTENT}
)
"""Failures that another attempt would meet again."""

COSTLY_ERROR_CODES: Final = frozenset({OUT_OF_TIME, WORKER_DIED})
"""Failures of reading that take much of the machine: there is one other attempt, which may find it less
busy."""

MAX_LEASES: Final = 20
"""Leases after which a file is given up of whose attempts nobody heard: the gateway ended, each time."""

MAX_PAUSE_SECONDS: Final = 3600
MAX_JITTER: Final = 1.25
"""Chance makes a pause at most so many times as long; at least it is MIN_JITTER times as long."""
MIN_JITTER: Final = 0.75
MIN_WAIT_SECONDS: Final = 1.0

RELEASE_SECONDS: Final = 5.0
"""How long the end of the queue waits for its leases to be given back."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """How many files of one owner are worked on at a time in each size class, and how many more of others;
    how often one is tried; seconds: of a lease, and of the pause after the first failure, which each further
    one makes four times longer."""

    workers: int = 3
    others: int = 8
    attempts: int = 5
    lease: int = 60
    pause: int = 5


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many files wait, are worked on, and have failed."""

    waiting: int
    working: int
    failed: int


class IngestQueue:
    """Works through the jobs of the database, several of each size class at a time: the owners of files in
    turn, of each the oldest first.

    What is leased when the daemon is killed is begun again at the next start; one queue owns a database.
    """

    def __init__(
        self,
        stores: IngestStores,
        processor: FileProcessor,
        tasks: TaskRegistry,
        options: QueueOptions,
        clock: ids.Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._stores = stores
        self._processor = processor
        self._tasks = tasks
        self._options = options
        # Pauses and leases are durations, whatever the wall clock is set to.
        self._clock = clock or ids.steady_clock()
        self._chance = chance
        self._owner = ids.new_id()
        room = options.workers + options.others
        self._backlog = JobBacklog(stores.jobs, self._owner, options.workers, room)
        self._working: dict[str, str] = {}
        # Tasks that give a lease back: another round may have taken the job again already.
        self._returning: set[str] = set()
        # How attempts ended that could not be written down yet: the database was away.
        self._unsettled: dict[str, tuple[IngestJob, GatewayError]] = {}
        self._renew_at = 0
        self._is_recovered = False
        self._woken = asyncio.Event()
        self._loop: str | None = None

    def start(self) -> None:
        """Begin to work."""
        self._loop = self._tasks.spawn("ingest queue", self._run())

    def wake(self) -> None:
        """Look for jobs now: one was put into the queue."""
        self._woken.set()

    async def close(self) -> None:
        """Stop the work and give the leases back; what was kept of it is gone on with at the next start."""
        if self._loop is not None:
            await self._tasks.stop(self._loop)
        for task_id in [*self._working.values(), *self._returning]:
            await self._tasks.stop(task_id)
        self._working.clear()
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._stores.jobs.release(self._owner)
        except (GatewayError, TimeoutError) as error:
            # The next start voids them.
            reason = full_message(error) or "the database takes its time"
            log.warning("the leases of the ingest queue are not given back: %s", reason)

    async def state(self) -> QueueState:
        """Count the files of the queue, and those that failed."""
        jobs = await self._stores.jobs.count()
        # The task of a file that is done already may not have ended.
        working = min(len(self._working), jobs)
        _, failed = await self._stores.files.list(status=FileStatus.FAILED, limit=1)
        return QueueState(jobs - working, working, failed)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                seconds = await self._round()
            except GatewayError as error:
                log.warning("the ingest queue cannot go on now: %s", error.full_message)
                seconds = MIN_WAIT_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()

    async def _round(self) -> float | None:
        """Hold what is worked on, begin what is due, and return the seconds until there may be more to do."""
        if not self._is_recovered:
            await self._recover()
            self._is_recovered = True
        if self._working and self._clock() >= self._renew_at:
            await self._renew()
        for file_id in list(self._unsettled):
            await self._settle(*self._unsettled.pop(file_id))
        now = self._clock()
        if self._backlog.has_room:
            for key, job in await self._backlog.lease(now=now, until=now + self._options.lease):
                self._begin(key, job)
        return await self._wait_seconds(now)

    async def _wait_seconds(self, now: int) -> float | None:
        if self._unsettled:
            return MIN_WAIT_SECONDS
        times = [self._renew_at] if self._working else []
        if self._backlog.has_room:
            if self._backlog.is_stale:
                return MIN_WAIT_SECONDS
            due = await self._stores.jobs.next_due(now)
            times += [] if due is None else [due]
        return max(MIN_WAIT_SECONDS, float(min(times) - now)) if times else None

    async def _recover(self) -> None:
        """Free what a killed daemon had leased.

        The attempt counts only when nothing came of it, and then a second one waits, so that other files come
        first. No file waits longer than its pause, as it would when the clock was set back meanwhile.
        """
        for job in await self._stores.jobs.list(leased=True):
            free = replace(job, lease_owner="", lease_until=0)
            if await self._stores.passages.is_staged(job.file_id):
                free = replace(free, attempts=max(0, job.attempts - 1))
            elif job.attempts > 1:
                free = replace(free, not_before=self._clock() + self._pause_after(1))
            await self._stores.jobs.put(free)
        for attempts in range(1, MAX_LEASES + 1):
            latest = self._clock() + round(self._longest_pause(attempts) * MAX_JITTER)
            await self._stores.jobs.hasten(attempts, latest)

    async def _renew(self) -> None:
        until = self._clock() + self._options.lease
        for file_id, task_id in list(self._working.items()):
            is_held = await self._stores.jobs.renew(file_id, self._owner, until)
            if not is_held and await self._stores.files.find(file_id) is None:
                await self._tasks.stop(task_id)
        self._renew_at = self._clock() + self._options.lease // 3

    def _begin(self, key: QueueKey, job: IngestJob) -> None:
        if job.file_id in self._working:
            # Its lease ended while it was worked on: it is ours again.
            self._backlog.end(key)
            return
        if not self._working:
            self._renew_at = self._clock() + self._options.lease // 3
        self._working[job.file_id] = self._tasks.spawn(f"document {job.file_id}", self._work(key, job))

    async def _work(self, key: QueueKey, job: IngestJob) -> None:
        task_id = self._working[job.file_id]
        try:
            if not await self._attempt(key, job):
                del self._working[job.file_id]
                self._returning.add(task_id)
                await self._give_back(job)
        finally:
            # What nobody foresaw is logged with the task, and the lease ends in its time.
            self._returning.discard(task_id)
            if self._working.get(job.file_id) == task_id:
                del self._working[job.file_id]
            self._backlog.end(key)
            self.wake()

    async def _attempt(self, key: QueueKey, job: IngestJob) -> bool:
        """Process a file and settle how that ended; False when it belongs to another size class."""
        if job.attempts > MAX_LEASES:
            sentence = f"gave up: processing it was begun {MAX_LEASES} times and never ended"
            await self._processor.fail(job.file_id, sentence)
            return True
        try:
            return await self._processor.process(job.file_id, key.size)
        except GatewayError as error:
            await self._settle(job, error)
            return True

    async def _give_back(self, job: IngestJob) -> None:
        """Have a file wait in the class that it turned out to be of; that was no attempt."""
        try:
            await self._free(job.file_id, attempts=job.attempts - 1)
        except GatewayError as error:
            await self._settle(job, error)

    async def _settle(self, job: IngestJob, error: GatewayError) -> None:
        """Write down how an attempt ended, with the next round when the database is away."""
        try:
            await self._end(job, error)
        except GatewayError as failure:
            if failure.kind is not ErrorKind.UNAVAILABLE:
                raise
            self._unsettled[job.file_id] = (job, error)

    async def _end(self, job: IngestJob, error: GatewayError) -> None:
        """Give a file up, or have it tried again."""
        if error.kind in PERMANENT_ERROR_KINDS:
            await self._processor.fail(job.file_id, error.message)
        elif self._is_last(job, error):
            sentence = f"gave up after {job.attempts} attempts: {error.message}"
            await self._processor.fail(job.file_id, sentence)
        else:
            await self._postpone(job, error)

    def _is_last(self, job: IngestJob, error: GatewayError) -> bool:
        """Tell whether a failure of this attempt is final; attempts that a kill ended do not make a first one
        so."""
        has_failed = job.error is not None or self._options.attempts == 1
        return has_failed and (error.code in COSTLY_ERROR_CODES or job.attempts >= self._options.attempts)

    async def _postpone(self, job: IngestJob, error: GatewayError) -> None:
        pause = max(self._pause_after(job.attempts), error.retry_after or 0)
        if await self._free(job.file_id, not_before=self._clock() + pause, error=error.message):
            log.info("document %s is tried again in %s s: %s", job.file_id, pause, error.full_message)

    async def _free(self, file_id: str, **changes: Any) -> bool:
        """Give a lease back; False when it is no longer ours."""
        async with self._stores.transactor.transaction():
            current = await self._stores.jobs.find(file_id)
            if current is None or current.lease_owner != self._owner:
                return False
            await self._stores.jobs.put(replace(current, lease_owner="", lease_until=0, **changes))
        return True

    def _pause_after(self, attempts: int) -> int:
        """Return the seconds to wait after that many attempts, half of them by chance."""
        return round(
            self._longest_pause(attempts) * (MIN_JITTER + self._chance() * (MAX_JITTER - MIN_JITTER))
        )

    def _longest_pause(self, attempts: int) -> int:
        return min(self._options.pause << 2 * (attempts - 1), MAX_PAUSE_SECONDS)
