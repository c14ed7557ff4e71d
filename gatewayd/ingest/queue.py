"""Ingest queue: leases jobs, runs them as tasks, and retries or fails them."""

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
from gatewayd.ingest.job_leases import JOB_TAKEN, JobLease
from gatewayd.ingest.processor import FileProcessor
from gatewayd.ingest.records import FileStatus, IngestJob
from gatewayd.ingest.size_classes import QueueKey
from gatewayd.ingest.updates import IngestStores
from gatewayd.nodes.interfaces import NodeMembership
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

PERMANENT_ERROR_KINDS: Final = frozenset(
    {ErrorKind.INVALID_REQUEST, ErrorKind.TOO_LARGE, ErrorKind.EMPTY_CONTENT}
)
"""Errors that every retry would meet again."""

COSTLY_ERROR_CODES: Final = frozenset({OUT_OF_TIME, WORKER_DIED})
"""Extraction failures that cost much CPU time or memory: one retry, when the machine may be less busy."""

MAX_LEASES: Final = 20
"""Fail a file after this many leases that ended without a result (the gateway died each time)."""

MAX_PAUSE_SECONDS: Final = 3600
MAX_JITTER: Final = 1.25
"""A pause is multiplied by a random factor between MIN_JITTER and MAX_JITTER."""
MIN_JITTER: Final = 0.75
MIN_WAIT_SECONDS: Final = 1.0

MIN_POLL_SECONDS: Final = 2.0
MAX_POLL_SECONDS: Final = 5.0
"""Between these a node looks for jobs that were accepted or left by others."""

RELEASE_SECONDS: Final = 5.0
"""Time limit for releasing the leases when the queue closes."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Limits of the queue.

    In each size class `workers` files of one owner are processed at a time, and `others` more of other
    owners. A file is tried `attempts` times. `lease` and `pause` are seconds; the pause follows the first
    failure and is four times longer after each further one.
    """

    workers: int = 3
    others: int = 8
    attempts: int = 5
    lease: int = 60
    pause: int = 5


@dataclass(frozen=True, slots=True)
class QueueState:
    """Number of files that wait, are being processed, and have failed."""

    waiting: int
    working: int
    failed: int


class IngestQueue:
    """Processes the jobs of the database, several of each size class at a time.

    Owners take turns, and the jobs of one owner run oldest first. Without a `node` the database has only one
    queue: jobs that were leased when the daemon was killed start again at the next start. The queues of
    several nodes use the clock of the database, take over the jobs of dead nodes, and write under leases.
    """

    def __init__(
        self,
        stores: IngestStores,
        processor: FileProcessor,
        tasks: TaskRegistry,
        options: QueueOptions,
        clock: ids.Clock | None = None,
        chance: Callable[[], float] = random.random,
        node: NodeMembership | None = None,
    ) -> None:
        self._stores = stores
        self._processor = processor
        self._tasks = tasks
        self._options = options
        self._node = node
        # Pauses and leases are durations: changes of the wall clock must not affect them.
        self._clock = clock or (ids.steady_clock() if node is None else node.clock)
        self._chance = chance
        self._owner = ids.new_id() if node is None else node.id
        capacity = options.workers + options.others
        self._backlog = JobBacklog(stores.jobs, self._owner, options.workers, capacity)
        self._working: dict[str, str] = {}
        self._leases: dict[str, JobLease] = {}
        # Tasks that release a lease: another round may already have leased the job again.
        self._releasing: set[str] = set()
        # Failed attempts that are not recorded yet because the database was unreachable.
        self._unrecorded: dict[str, tuple[IngestJob, GatewayError, JobLease | None]] = {}
        self._renew_at = 0
        self._is_recovered = False
        self._woken = asyncio.Event()
        self._loop: str | None = None

    def start(self) -> None:
        """Start the queue's task."""
        self._loop = self._tasks.spawn("ingest queue", self._run())

    def wake(self) -> None:
        """Look for jobs now, because one was added."""
        self._woken.set()

    async def close(self) -> None:
        """Stop all tasks and release the leases; the next start continues from the stored steps."""
        if self._loop is not None:
            await self._tasks.stop(self._loop)
        for task_id in [*self._working.values(), *self._releasing]:
            await self._tasks.stop(task_id)
        self._working.clear()
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._stores.jobs.release(self._owner)
        except (GatewayError, TimeoutError) as error:
            # The next start releases them.
            reason = full_message(error) or f"the database did not answer in {RELEASE_SECONDS:.0f} s"
            log.warning("cannot release the leases of the ingest queue: %s", reason)

    async def state(self) -> QueueState:
        """Return the counts of waiting, active and failed files."""
        jobs = await self._stores.jobs.count()
        working = len(self._working) if self._node is None else await self._stores.jobs.count(leased=True)
        # The task of a completed file may still be ending.
        working = min(working, jobs)
        _, failed = await self._stores.files.list(status=FileStatus.FAILED, limit=1)
        return QueueState(jobs - working, working, failed)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                seconds = await self._round()
            except GatewayError as error:
                log.warning("cannot run the ingest queue now: %s", error.full_message)
                seconds = MIN_WAIT_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()

    async def _round(self) -> float | None:
        """Renew leases, start due jobs, and return the seconds until the next round (None: until woken)."""
        if self._node is not None:
            if not self._node.is_owner:
                await self._stop_all()
                return MIN_WAIT_SECONDS
            if self._node.is_steady:
                await self._recover_abandoned()
        elif not self._is_recovered:
            await self._recover()
            self._is_recovered = True
        if self._working and self._clock() >= self._renew_at:
            await self._renew()
        for file_id in list(self._unrecorded):
            await self._record_failure(*self._unrecorded.pop(file_id))
        now = self._clock()
        if self._backlog.has_room and not (self._node is not None and self._node.is_draining):
            for key, job in await self._backlog.lease(now=now, until=now + self._options.lease):
                self._begin(key, job)
        seconds = await self._wait_seconds(now)
        if self._node is None:
            return seconds
        # Nobody wakes this queue for the jobs of other nodes.
        longest = MIN_POLL_SECONDS + self._chance() * (MAX_POLL_SECONDS - MIN_POLL_SECONDS)
        return longest if seconds is None else min(seconds, longest)

    async def _wait_seconds(self, now: int) -> float | None:
        if self._unrecorded:
            return MIN_WAIT_SECONDS
        times = [self._renew_at] if self._working else []
        if self._backlog.has_room:
            if self._backlog.is_stale:
                return MIN_WAIT_SECONDS
            due = await self._stores.jobs.next_due(now)
            times += [] if due is None else [due]
        return max(MIN_WAIT_SECONDS, float(min(times) - now)) if times else None

    async def _recover(self) -> None:
        """Release the leases of a killed daemon.

        The interrupted attempt counts only when it staged nothing. From the second such attempt on the file
        also waits for a pause, so that other files run first. `hasten` limits the wait of each file to its
        longest pause, in case the clock was set back.
        """
        for job in await self._stores.jobs.list(leased=True):
            await self._free(job)
        for attempts in range(1, MAX_LEASES + 1):
            latest = self._clock() + round(self._longest_pause(attempts) * MAX_JITTER)
            await self._stores.jobs.hasten(attempts, latest)

    async def _recover_abandoned(self) -> None:
        """Release the leases of dead nodes, and those that were not renewed."""
        async with self._stores.transactor.transaction():
            for job in await self._stores.jobs.list_abandoned():
                log.info("document %s: its node died, another attempt begins", job.file_id)
                await self._free(job)

    async def _free(self, job: IngestJob) -> None:
        """Release a lease that ended without a result, as `_recover` says."""
        free = replace(job, lease_owner="", lease_until=0)
        if await self._stores.passages.is_staged(job.file_id):
            free = replace(free, attempts=max(0, job.attempts - 1))
        elif job.attempts > 1:
            free = replace(free, not_before=self._clock() + self._pause_after(1))
        await self._stores.jobs.put(free)

    async def _stop_all(self) -> None:
        """Stop all work: other nodes may have taken over the files."""
        for task_id in list(self._working.values()):
            await self._tasks.stop(task_id)

    async def _renew(self) -> None:
        until = self._clock() + self._options.lease
        for file_id, task_id in list(self._working.items()):
            is_held = await self._stores.jobs.renew(file_id, self._owner, until)
            if not is_held and (self._node is not None or await self._stores.files.find(file_id) is None):
                await self._tasks.stop(task_id)
        self._renew_at = self._clock() + self._options.lease // 3

    def _begin(self, key: QueueKey, job: IngestJob) -> None:
        if job.file_id in self._working:
            # The lease expired during the processing, and this queue has leased the job again.
            if job.file_id in self._leases:
                self._leases[job.file_id].job = job
            self._backlog.end(key)
            return
        if not self._working:
            self._renew_at = self._clock() + self._options.lease // 3
        if self._node is not None:
            self._leases[job.file_id] = JobLease(self._stores.jobs, job)
        self._working[job.file_id] = self._tasks.spawn(f"document {job.file_id}", self._work(key, job))

    async def _work(self, key: QueueKey, job: IngestJob) -> None:
        task_id = self._working[job.file_id]
        lease = self._leases.get(job.file_id)
        try:
            if not await self._attempt(key, job, lease):
                del self._working[job.file_id]
                self._releasing.add(task_id)
                await self._requeue(job, lease)
        finally:
            # The task registry logs an unexpected error, and the lease expires.
            self._releasing.discard(task_id)
            if self._working.get(job.file_id) == task_id:
                del self._working[job.file_id]
            if self._leases.get(job.file_id) is lease:
                self._leases.pop(job.file_id, None)
            self._backlog.end(key)
            self.wake()

    async def _attempt(self, key: QueueKey, job: IngestJob, lease: JobLease | None) -> bool:
        """Process a file and record a failure; False when the file belongs to a larger size class."""
        try:
            if job.attempts > MAX_LEASES:
                sentence = f"gave up: processing it was begun {MAX_LEASES} times and never ended"
                await self._processor.fail(job.file_id, sentence, lease)
                return True
            return await self._processor.process(job.file_id, key.size, lease)
        except GatewayError as error:
            await self._record_failure(job, error, lease)
            return True

    async def _requeue(self, job: IngestJob, lease: JobLease | None) -> None:
        """Release the job so that it waits in its real size class; this attempt does not count."""
        try:
            await self._release(job.file_id, lease, attempts=job.attempts - 1)
        except GatewayError as error:
            await self._record_failure(job, error, lease)

    async def _record_failure(self, job: IngestJob, error: GatewayError, lease: JobLease | None) -> None:
        """Record a failed attempt, or retry in the next round when the database is unreachable.

        Nothing is recorded of a file that another node has taken over.
        """
        try:
            if error.code == JOB_TAKEN:
                raise error
            await self._end(job, error, lease)
        except GatewayError as failure:
            if failure.code == JOB_TAKEN:
                log.info("%s", failure.message)
            elif failure.kind is ErrorKind.UNAVAILABLE:
                self._unrecorded[job.file_id] = (job, error, lease)
            else:
                raise

    async def _end(self, job: IngestJob, error: GatewayError, lease: JobLease | None) -> None:
        """Mark a file failed, or postpone its job for another attempt."""
        if error.kind in PERMANENT_ERROR_KINDS:
            await self._processor.fail(job.file_id, error.message, lease)
        elif self._is_last(job, error):
            sentence = f"gave up after {job.attempts} attempts: {error.message}"
            await self._processor.fail(job.file_id, sentence, lease)
        else:
            await self._postpone(job, error, lease)

    def _is_last(self, job: IngestJob, error: GatewayError) -> bool:
        """Return whether the failure of this attempt is final.

        A first failure is not final, however many attempts ended in a kill before it, unless only one attempt
        is configured.
        """
        has_failed = job.error is not None or self._options.attempts == 1
        return has_failed and (error.code in COSTLY_ERROR_CODES or job.attempts >= self._options.attempts)

    async def _postpone(self, job: IngestJob, error: GatewayError, lease: JobLease | None) -> None:
        pause = max(self._pause_after(job.attempts), error.retry_after or 0)
        if await self._release(job.file_id, lease, not_before=self._clock() + pause, error=error.message):
            log.info("document %s: next attempt in %s s: %s", job.file_id, pause, error.full_message)

    async def _release(self, file_id: str, lease: JobLease | None, **changes: Any) -> bool:
        """Release a lease; False when this queue no longer holds it."""
        async with self._stores.transactor.transaction():
            if lease is not None:
                await lease.check()
            current = await self._stores.jobs.find(file_id)
            if current is None or current.lease_owner != self._owner:
                return False
            await self._stores.jobs.put(replace(current, lease_owner="", lease_until=0, **changes))
        return True

    def _pause_after(self, attempts: int) -> int:
        """Return the seconds to wait after that many attempts, with jitter."""
        return round(
            self._longest_pause(attempts) * (MIN_JITTER + self._chance() * (MAX_JITTER - MIN_JITTER))
        )

    def _longest_pause(self, attempts: int) -> int:
        return min(self._options.pause << 2 * (attempts - 1), MAX_PAUSE_SECONDS)
