"""Worker of batches: checks their input, runs their lines, and writes their results.

A batch belongs to the daemon that has its input file, or to the node that does this duty. After a restart or
a takeover it goes on with the lines that have no answer yet, or with the batch of the provider that it was
passed to.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.batches.files import BatchFiles
from gatewayd.batches.interfaces import AnswerStore, BatchStore
from gatewayd.batches.lines import check_input, parse_line, read_lines, render_unfinished
from gatewayd.batches.passed import PassedBatches
from gatewayd.batches.passed_choice import MixedProvidersError
from gatewayd.batches.passed_run import PassedRun, fault_of
from gatewayd.batches.progress import BatchProgress
from gatewayd.batches.progress_file import ProgressFile, remove_others
from gatewayd.batches.records import UNFINISHED, Batch, BatchDialect, BatchStatus
from gatewayd.batches.run import BatchRun, LineServices
from gatewayd.errors import GatewayError, full_message
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

MAX_RUNNING_BATCHES: Final = 32
"""Maximum number of batches that run side by side; the others wait."""

MAX_BATCHES: Final = 1000
"""The same with the batches that providers run, which only wait."""

MAX_CRASHES: Final = 3
"""Number of unexpected failures after which a batch is given up."""

POLL_SECONDS: Final = 30.0
NODE_POLL_SECONDS: Final = 2.0
"""Interval at which a node looks for the batches that other nodes accepted or cancelled."""

PROGRESS_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 10.0
LOST_SECONDS: Final = 3600
"""How long after its end a batch whose input file is on no daemon is still waited for."""

WRITE_BYTES: Final = 1 << 20


class BatchWorker:
    """Runs the batches of this daemon. `folder` holds the answers of unfinished batches, `answers` too.

    It looks for new and cancelled ones when it is woken, and every `poll` seconds.
    """

    def __init__(
        self,
        batches: BatchStore,
        files: BatchFiles,
        services: LineServices,
        tasks: TaskRegistry,
        folder: Path,
        clock: ids.Clock = ids.now,
        passed: PassedBatches | None = None,
        poll: float = POLL_SECONDS,
        answers: AnswerStore | None = None,
    ) -> None:
        self._poll = poll
        self._answers = answers
        self._batches = batches
        self._files = files
        self._services = services
        self._tasks = tasks
        self._folder = folder
        self._passed = passed
        self._clock = clock
        self._runs: dict[str, BatchRun | PassedRun | None] = {}
        self._owners: dict[str, str] = {}
        self._task_ids: set[str] = set()
        self._crashes: Counter[str] = Counter()
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look for new batches now."""
        self._wake.set()

    def stop_batch(self, batch_id: str) -> None:
        """Begin no further line of a cancelled batch."""
        run = self._runs.get(batch_id)
        if run is not None:
            run.stop()
        self.wake()

    def counts(self, batch: Batch) -> Batch:
        """Return a batch with the counts of its run, which the database has a moment later.

        One that has ended has its own, also while its run is still put away.
        """
        run = self._runs.get(batch.id)
        if run is None or batch.status not in UNFINISHED:
            return batch
        completed, failed = run.counts
        return replace(batch, completed=completed, failed=failed)

    async def work(self) -> None:
        """Start batches as they come, for ever; a cancellation stops those that run."""
        await self.sweep()
        try:
            await self._work()
        finally:
            for task_id in list(self._task_ids):
                await self._tasks.stop(task_id)

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.start_waiting()
            except GatewayError as error:
                log.warning("cannot look for batches: %s", error.full_message)
            try:
                async with asyncio.timeout(self._poll):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def sweep(self) -> None:
        """Delete the answers of batches that were deleted while the daemon was away; call before the first
        start."""
        try:
            kept = {batch.id for batch in await self._batches.unfinished()}
            await asyncio.to_thread(remove_others, self._folder, kept)
            if self._answers is not None:
                await self._answers.remove_ended()
            if self._passed is not None:
                await asyncio.to_thread(self._passed.remove_others, kept)
        except (GatewayError, OSError) as error:
            log.warning("cannot delete the answers of former batches: %s", full_message(error))

    async def queue(self) -> tuple[int, int]:
        """Return the number of batches that wait, and of those that run."""
        return max(0, len(await self._batches.unfinished()) - len(self._runs)), len(self._runs)

    async def start_waiting(self) -> None:
        """Start the batches that wait: first those of users with the fewest running ones.

        Runs of batches that were cancelled, also by another node, are stopped.
        """
        unfinished = await self._batches.unfinished()
        for each in unfinished:
            run = self._runs.get(each.id)
            if run is not None and each.cancelled_at is not None:
                run.stop()
        waiting = [each for each in unfinished if each.id not in self._runs]
        while waiting and self._own_runs() < MAX_RUNNING_BATCHES and len(self._runs) < MAX_BATCHES:
            running = Counter(self._owners.values())
            batch = min(waiting, key=lambda each: (running[each.user_id], each.created_at, each.id))
            waiting.remove(batch)
            if await self._files.has_bytes(batch.input_file_id):
                self._start(batch)
            elif self._clock() > batch.expires_at + LOST_SECONDS:
                await self._end(batch, BatchStatus.EXPIRED)

    def _own_runs(self) -> int:
        """Return how many batches take part in the requests of the gateway."""
        return sum(not isinstance(run, PassedRun) for run in self._runs.values())

    def _start(self, batch: Batch) -> None:
        self._runs[batch.id] = None
        self._owners[batch.id] = batch.user_id
        self._crashes[batch.id] += 1

        def end() -> None:
            self._task_ids.discard(task_id)
            self._runs.pop(batch.id, None)
            self._owners.pop(batch.id, None)
            if not self._tasks.is_closing:
                self.wake()

        task_id = self._tasks.spawn(f"batch {batch.id}", self._process(batch), at_end=end)
        self._task_ids.add(task_id)

    async def _process(self, batch: Batch) -> None:
        """Bring a batch to its end; without database or disk it begins anew after a pause."""
        try:
            async with self._files.local(batch.input_file_id) as source:
                await self._bring_to_end(batch, source)
        except (GatewayError, OSError) as error:
            log.warning("batch waits: %s", full_message(error), extra={"batch": batch.id})
            await asyncio.sleep(PAUSE_SECONDS)
        except asyncio.CancelledError:
            # The end of the duty is no failure of the batch.
            self._crashes[batch.id] -= 1
            raise
        self._crashes.pop(batch.id, None)

    async def _bring_to_end(self, batch: Batch, source: Path) -> None:
        if self._crashes[batch.id] > MAX_CRASHES:
            await self._give_up(batch, source)
            return
        if batch.status is BatchStatus.VALIDATING:
            checked = await self._checked(batch, source)
            if checked is None:
                return
            batch = checked
        progress = self._progress_of(batch)
        if not await self._is_passed(batch, source, progress):
            run = BatchRun(batch, source, progress, self._services)
            self._enter(run)
            try:
                await self._run_lines(run)
                await self._finish(run)
            finally:
                await progress.close()
        await progress.remove()

    def _progress_of(self, batch: Batch) -> BatchProgress:
        return BatchProgress(batch.id, ProgressFile(self._folder / batch.id), self._answers)

    def _enter(self, run: BatchRun | PassedRun) -> None:
        self._runs[run.batch.id] = run
        if run.batch.status is BatchStatus.CANCELLING or run.batch.cancelled_at is not None:
            run.stop()

    async def _is_passed(self, batch: Batch, source: Path, progress: BatchProgress) -> bool:
        """Bring a batch to its end at its provider; return False for one that the gateway runs."""
        if self._passed is None:
            return False
        try:
            run = await self._passed.open(batch, source, progress)
        except MixedProvidersError as error:
            await self._end(batch, BatchStatus.FAILED, errors=[fault_of(error)])
            return True
        if run is None:
            return False
        self._enter(run)
        try:
            ended = await run.run()
            if not ended.is_given_back:
                faults = {"errors": ended.faults} if ended.faults else {}
                await self._finish(run, ended.status, **faults)
        finally:
            await progress.close()
        await self._passed.remove(batch.id)
        return not ended.is_given_back

    async def _give_up(self, batch: Batch, source: Path) -> None:
        """End a batch that failed repeatedly with its answers, or without them if that fails, too."""
        log.error("giving up a batch that failed repeatedly", extra={"batch": batch.id})
        await self._abandon(batch, source)
        progress = self._progress_of(batch)
        faults = [_fault("internal", "the batch cannot be run to its end")]
        if self._crashes[batch.id] > MAX_CRASHES + 1 or batch.status is BatchStatus.VALIDATING:
            await self._end(batch, BatchStatus.FAILED, errors=faults)
        else:
            run = BatchRun(batch, source, progress, self._services)
            try:
                await progress.open(batch.total)
                await self._finish(run, BatchStatus.FAILED, errors=faults)
            finally:
                await progress.close()
        await progress.remove()

    async def _abandon(self, batch: Batch, source: Path) -> None:
        """End a batch at its provider."""
        if self._passed is None:
            return
        progress = self._progress_of(batch)
        run = await self._passed.find(batch, source, progress)
        if run is not None:
            await run.abandon()
        await self._passed.remove(batch.id)

    async def _checked(self, batch: Batch, source: Path) -> Batch | None:
        """Return a batch whose input is valid; fail the batch and return None otherwise."""
        check = await asyncio.to_thread(check_input, source, batch)
        if check.errors:
            await self._end(batch, BatchStatus.FAILED, errors=check.errors)
            return None
        begun = {"total": check.total, "started_at": self._clock()}
        await self._batches.change(batch.id, {BatchStatus.CANCELLING}, **begun)
        running = BatchStatus.IN_PROGRESS
        await self._batches.change(batch.id, {BatchStatus.VALIDATING}, status=running, **begun)
        return await self._found(batch.id)

    async def _found(self, batch_id: str) -> Batch | None:
        found = await self._batches.find(batch_id)
        return found if found is not None and found.is_unfinished else None

    async def _run_lines(self, run: BatchRun) -> None:
        """Run the lines, and write their counts to the database from time to time."""
        try:
            async with asyncio.TaskGroup() as group:
                telling = group.create_task(self._tell(run))
                await run.run()
                telling.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures

    async def _tell(self, run: BatchRun) -> None:
        told = (run.batch.completed, run.batch.failed)
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            counts = (run.progress.completed, run.progress.failed)
            if counts == told:
                continue
            try:
                exists = await self._batches.change(
                    run.batch.id, UNFINISHED, completed=counts[0], failed=counts[1]
                )
            except GatewayError as error:
                log.warning("cannot store the progress of a batch: %s", error.full_message)
                continue
            told = counts
            if not exists:
                # The user was deleted with all batches.
                run.stop()

    async def _finish(
        self, run: BatchRun | PassedRun, given: BatchStatus | None = None, **columns: object
    ) -> None:
        """Write the results of a batch and end it, with a given status, or as its lines ended."""
        batch = await self._found(run.batch.id)
        if batch is None:
            return
        progress, status = run.progress, given or _status_of(run, batch)
        has_rest = status in {BatchStatus.EXPIRED, BatchStatus.FAILED}
        await self._batches.change(batch.id, {BatchStatus.IN_PROGRESS}, status=BatchStatus.FINALIZING)
        is_message = batch.dialect is BatchDialect.ANTHROPIC
        output, errors = None, None
        if is_message:
            lines = self._results(run, batch, status, {True, False}, has_unfinished=True)
            output = await self._write(batch, "results", lines)
        elif progress.completed:
            output = await self._write(batch, "output", self._results(run, batch, status, {True}))
        if not is_message and (progress.failed or has_rest):
            lines = self._results(run, batch, status, {False}, has_unfinished=has_rest)
            errors = await self._write(batch, "error", lines)
        await self._end(
            batch,
            status,
            completed=progress.completed,
            failed=progress.failed,
            output_file_id=output,
            error_file_id=errors,
            **columns,
        )

    async def _write(self, batch: Batch, what: str, lines: Iterator[bytes]) -> str:
        file = await self._files.write(batch.user_id, f"{batch.id}_{what}.jsonl", _pieces(lines))
        return file.id

    def _results(
        self,
        run: BatchRun | PassedRun,
        batch: Batch,
        status: BatchStatus,
        wanted: set[bool],
        *,
        has_unfinished: bool = False,
    ) -> Iterator[bytes]:
        """Yield the lines of the wanted outcomes, and then those of requests that did not run."""
        for record in run.progress.records():
            if record.is_success in wanted:
                yield record.result + b"\n"
        if not has_unfinished:
            return
        for number, raw in enumerate(read_lines(run.source), 1):
            if not run.progress.is_done(number):
                custom_id = parse_line(raw, batch).custom_id
                yield render_unfinished(batch, custom_id, status, number) + b"\n"

    async def _end(self, batch: Batch, status: BatchStatus, **columns: object) -> None:
        await self._batches.change(batch.id, UNFINISHED, status=status, ended_at=self._clock(), **columns)


def _status_of(run: BatchRun | PassedRun, batch: Batch) -> BatchStatus:
    if run.progress.completed + run.progress.failed == batch.total:
        return BatchStatus.COMPLETED
    is_cancelled = batch.status is BatchStatus.CANCELLING or batch.cancelled_at is not None
    return BatchStatus.CANCELLED if is_cancelled else BatchStatus.EXPIRED


async def _pieces(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines in pieces, read in threads."""
    while piece := await asyncio.to_thread(_piece, lines):
        yield piece


def _piece(lines: Iterator[bytes]) -> bytes:
    joined = bytearray()
    for line in lines:
        joined += line
        if len(joined) >= WRITE_BYTES:
            break
    return bytes(joined)


def _fault(code: str, message: str) -> dict[str, object]:
    return {"code": code, "message": message, "param": None, "line": None}
