"""One running batch: its lines run side by side, and every finished line is stored at once."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Final

import orjson

from gatewayd import ids
from gatewayd.batches.interfaces import BatchActors, ErrorRenderer, RequestRunner
from gatewayd.batches.lines import BatchLine, parse_line, read_lines, render_answer
from gatewayd.batches.progress import BatchProgress
from gatewayd.batches.progress_file import FinishedLine
from gatewayd.batches.records import Batch, LineAnswer
from gatewayd.completions.refusal_reasons import HOPELESS, reason_of
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.interfaces import RunLimiter

log = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 5
"""Maximum number of attempts of a line whose source is busy or cannot be reached."""

MAX_PAUSE_SECONDS: Final = 60.0
MAX_BYTES_AT_ONCE: Final = 8 << 20
"""Number of bytes of answers that are stored in one step; one larger answer is stored alone."""

MAX_RESULT_BYTES: Final = 2 * 1024**3
"""Number of bytes of the answers of a batch, after which its remaining requests fail."""

BUSY_KINDS: Final = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class LineServices:
    """What every line needs. `turns` bounds the lines of all batches that run at once."""

    runner: RequestRunner
    actors: BatchActors
    limiter: RunLimiter
    render_error: ErrorRenderer
    turns: asyncio.Semaphore
    parallel: int
    clock: ids.Clock = ids.now


class BatchRun:
    """The lines of one batch that have no answer yet."""

    def __init__(self, batch: Batch, source: Path, progress: BatchProgress, services: LineServices) -> None:
        self.batch = batch
        self.progress = progress
        self.source = source
        self._services = services
        self._writes = asyncio.Lock()
        self._waiting: list[FinishedLine] = []
        self._reads = asyncio.Lock()
        self._lines: Iterator[tuple[int, bytes]] = iter(())
        self._stopped = asyncio.Event()

    @property
    def counts(self) -> tuple[int, int]:
        """The number of requests that succeeded, and that failed."""
        return self.progress.completed, self.progress.failed

    @property
    def is_stopped(self) -> bool:
        """Whether the batch is cancelled or late, so that no further line begins."""
        return self._stopped.is_set() or self._services.clock() >= self.batch.expires_at

    def stop(self) -> None:
        """Begin no further line."""
        self._stopped.set()

    async def run(self) -> None:
        """Run every line without an answer; returns after the last one, or after `stop`.

        Raises OSError if the answers cannot be stored, and conflict once another node has taken the batch
        over.
        """
        await self.progress.open(self.batch.total)
        self._lines = enumerate(read_lines(self.source), 1)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._services.parallel, self.batch.total)):
                    group.create_task(self._work())
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures

    async def _work(self) -> None:
        while not self.is_stopped:
            found = await self._next()
            if found is None:
                return
            number, raw = found
            result = await self._finish(number, raw)
            if result is None:
                return
            await self._keep(result)

    async def _keep(self, result: FinishedLine) -> None:
        """Store an answer, with those that came while others were stored, the oldest first."""
        self._waiting.append(result)
        async with self._writes:
            records = self._waiting[: _count_at_once(self._waiting)]
            del self._waiting[: len(records)]
            if records:
                await self._store(records)

    async def _store(self, records: Sequence[FinishedLine]) -> None:
        """Store answers; the database is waited for, as their requests were made."""
        attempts = 0
        while True:
            try:
                await self.progress.append(*records)
            except GatewayError as error:
                if error.kind is not ErrorKind.UNAVAILABLE:
                    raise
                attempts += 1
                log.warning(
                    "cannot store answers of a batch, this is repeated: %s",
                    error.full_message,
                    extra={"batch": self.batch.id},
                )
                await asyncio.sleep(min(2.0**attempts, MAX_PAUSE_SECONDS))
            else:
                return

    async def _next(self) -> tuple[int, bytes] | None:
        async with self._reads:
            return await asyncio.to_thread(self._unfinished_line)

    def _unfinished_line(self) -> tuple[int, bytes] | None:
        for number, raw in self._lines:
            if number > self.batch.total:
                return None
            if not self.progress.is_done(number):
                return number, raw
        return None

    async def _finish(self, number: int, raw: bytes) -> FinishedLine | None:
        """Return the record of a line; None if the batch was stopped before it ran."""
        line = await asyncio.to_thread(parse_line, raw, self.batch)
        attempts = 0
        while not self.is_stopped:
            try:
                answer = await self._run(line) if self.progress.size < MAX_RESULT_BYTES else self._full()
            except _BusyError as busy:
                attempts += not busy.is_own
                if attempts < MAX_ATTEMPTS:
                    await self._pause(min(busy.seconds or 2.0**attempts, MAX_PAUSE_SECONDS))
                    continue
                answer = busy.answer
            return await self._rendered(number, line, answer)
        return None

    async def _rendered(self, number: int, line: BatchLine, answer: LineAnswer) -> FinishedLine:
        """Return the record of an answer; that of a plugin may be no JSON, which is a failure of its line."""
        try:
            result = await asyncio.to_thread(render_answer, self.batch, line, answer)
        except orjson.JSONEncodeError as error:
            reason = f"cannot use the answer of the model: {error}"
            answer = self._failure(GatewayError(ErrorKind.UPSTREAM_FAILED, reason), answer.request_id)
            result = await asyncio.to_thread(render_answer, self.batch, line, answer)
        return FinishedLine(number, answer.is_success, result)

    async def _run(self, line: BatchLine) -> LineAnswer:
        """Return the answer to a line, which may be a failure; raise _BusyError for one that may pass."""
        async with self._services.turns:
            request_id = ids.new_id()
            try:
                done = self._services.limiter.begin_run(self.batch.user_id)
            except GatewayError as error:
                raise _BusyError(error, self._failure(error, request_id), is_own=True) from error
            try:
                actor = await self._services.actors.of(self.batch)
                body = await self._services.runner.run(self.batch, line.body, actor, request_id)
            except GatewayError as error:
                answer = self._failure(error, request_id)
                if error.kind in BUSY_KINDS and reason_of(error.provider_code) not in HOPELESS:
                    raise _BusyError(error, answer) from error
                return answer
            finally:
                done()
            return LineAnswer(200, body, request_id)

    def _full(self) -> LineAnswer:
        error = GatewayError(
            ErrorKind.TOO_LARGE,
            f"cannot run the request: the answers of the batch are over {MAX_RESULT_BYTES} bytes",
            code="batch_too_large",
        )
        return self._failure(error, ids.new_id())

    def _failure(self, error: GatewayError, request_id: str) -> LineAnswer:
        status, body = self._services.render_error(error, self.batch.dialect)
        return LineAnswer(status, body, request_id)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than until `stop`."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return


def _count_at_once(waiting: Sequence[FinishedLine]) -> int:
    """Return how many answers are stored in one step, one at least."""
    sizes = accumulate(len(each.result) for each in waiting)
    return max(1, sum(1 for _ in takewhile(lambda size: size <= MAX_BYTES_AT_ONCE, sizes)))


class _BusyError(Exception):
    """A line that may succeed later; `is_own` if the gateway itself is busy, which counts as no attempt."""

    def __init__(self, error: GatewayError, answer: LineAnswer, *, is_own: bool = False) -> None:
        super().__init__(error.message)
        self.seconds = error.retry_after
        self.answer = answer
        self.is_own = is_own
