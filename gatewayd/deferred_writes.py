"""Deferred writes: writes that the database refuses for now, kept in memory and repeated."""

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.keyed_locks import KeyedLocks
from gatewayd.tasks import TaskRegistry
from gatewayd.write_attempt import CHAT_ITSELF_ID, NO_CHAT_ID, DeferredWrite, Key, Work, WriteAttempts

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0
"""Maximum wait of a caller for the first attempt. A locked file refuses after 5 seconds, a hanging server
after 10, and other writes may be waiting first."""

STOP_SECONDS: Final = 0.1
"""Maximum wait for the end of a first attempt that is given up; a running statement takes longer."""

FIRST_PAUSE_SECONDS: Final = 0.25
MAX_PAUSE_SECONDS: Final = 5.0
"""Pause between two attempts; each failure doubles it, and up to half of it is removed at random."""

RETRY_SECONDS: Final = 5
"""`retry_after` of the errors for callers."""

MAX_DEFERRED_SECONDS: Final = 3600
"""Maximum time for which a write is repeated."""

MAX_DEFERRED_WRITES: Final = 10_000
MAX_DEFERRED_CHARACTERS: Final = 32 * 2**20
"""Maximum number of deferred writes and of characters of their values, so that an outage cannot exhaust
memory.

Half of both is reserved for answers, so that events of plugins cannot displace them. One account can use at
most ACCOUNT_SHARE of either half.
"""

ACCOUNT_SHARE: Final = 0.25


@dataclass(slots=True)
class _Usage:
    """Number and size of deferred writes, of all accounts or of one."""

    count: int = 0
    characters: int = 0

    def add(self, write: DeferredWrite) -> None:
        self.count += 1
        self.characters += write.size

    def remove(self, write: DeferredWrite) -> None:
        self.count -= 1
        self.characters -= write.size

    def fits(self, size: int, share: float) -> bool:
        """Return whether a write fits into a share of the limits."""
        characters = self.characters + size
        return self.count < MAX_DEFERRED_WRITES * share and characters <= MAX_DEFERRED_CHARACTERS * share


class DeferredWrites:
    """Writes to messages; the writes of each message are done in order.

    A write that fails with `unavailable`, or does not end within PATIENCE_SECONDS, is deferred, and later
    writes to the same message queue behind it. A write with an unknown result, because the connection broke,
    is repeated too, so it may be done twice.
    """

    def __init__(self, tasks: TaskRegistry, random_share: Callable[[], float] = random.random) -> None:
        self._tasks = tasks
        self._chance = random_share
        self._queues: dict[Key, deque[DeferredWrite]] = {}
        self._locks: KeyedLocks[Key] = KeyedLocks()
        # The writes with a running attempt, and None for a caller of `turn`.
        self._running: dict[Key, DeferredWrite | None] = {}
        self._usage = _Usage()
        self._usage_by_owner: dict[str, _Usage] = {}
        self._task_id = ""
        self._is_closed = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def count(self) -> int:
        """The number of deferred writes."""
        return self._usage.count

    def is_pending(self, key: Key) -> bool:
        """Return whether a write to a message is deferred or running; another one would overtake it."""
        return key in self._queues or key in self._running

    @contextlib.asynccontextmanager
    async def turn(self, key: Key) -> AsyncIterator[None]:
        """Let the caller write to a message directly; other writes to it queue behind the block.

        Raises unavailable while earlier writes to the message wait for the database.
        """
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._locks.begin(key)
        except TimeoutError as error:
            raise _waiting() from error
        try:
            if self.is_pending(key):
                raise _waiting()
            self._running[key] = None
            try:
                yield
            finally:
                del self._running[key]
        finally:
            self._locks.end(key)

    async def write(
        self,
        key: Key,
        work: Work,
        values: object,
        *,
        owner: str,
        is_answer: bool = False,
        request_id: str = "",
    ) -> DeferredWrite | None:
        """Write at once and return None, or defer the write and return it.

        `values` are the JSON values that are written, for their size; `owner` is the account that it counts
        for, and `is_answer` marks a write of an answer. Raises the errors of `work`, and its `unavailable` if
        too much is deferred already; then the write is not repeated.
        """
        write = DeferredWrite(key, owner, WriteAttempts(work), _now(), request_id)
        until = write.since + PATIENCE_SECONDS
        try:
            async with asyncio.timeout_at(until):
                await self._locks.begin(key)
        except TimeoutError:
            # Earlier writes have waited longer and are deferred before this one.
            return self._keep(write, values, _slow(), is_answer=is_answer)
        try:
            failure = await self._first(write, until)
            if failure is None:
                return None
            try:
                return self._keep(write, values, failure, is_answer=is_answer)
            except GatewayError:
                if await _give_up(write.attempts):
                    return None
                raise
        finally:
            self._locks.end(key)

    def supersede(self, key: Key) -> None:
        """Mark the pending writes to a message: another write has changed its content."""
        for write in self._queues.get(key, ()):
            write.attempts.is_superseded = True
            # It may be waiting for a lock of the change and would overwrite it.
            write.attempts.interrupt()
        under_way = self._running.get(key)
        if under_way is not None:
            under_way.attempts.is_superseded = True

    def drop(self, key: Key) -> None:
        """Drop the pending writes to a message that is removed or generated again."""
        for write in list(self._queues.get(key, ())):
            self._remove(write, is_stored=False)
            write.attempts.give_up()
        under_way = self._running.get(key)
        if under_way is not None:
            under_way.attempts.is_dropped = True

    async def close(self, seconds: float) -> None:
        """Wait up to `seconds` for all writes, then log the lost ones and defer no more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        self._is_closed = True
        if self._task_id:
            await self._tasks.stop(self._task_id)
        for write in [each for queue in self._queues.values() for each in queue]:
            self._lose(write, "the gateway stops")
            write.attempts.give_up()

    async def _first(self, write: DeferredWrite, until: float) -> GatewayError | None:
        """Make the first attempt; return the reason to defer the write, None if it is stored."""
        if self.is_pending(write.key):
            return _waiting()
        self._running[write.key] = write
        # A task that is cancelled before its first step does not run its `finally` block.
        at_end = partial(self._end, write)
        task_id = self._tasks.spawn("write to a message", self._run_first(write), at_end=at_end)
        try:
            async with asyncio.timeout_at(until):
                await write.attempts.result()
        except asyncio.CancelledError:
            # A cancelled caller withdraws the write.
            await self._tasks.stop(task_id)
            raise
        except TimeoutError:
            return _slow()
        except GatewayError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
            return error
        return None

    async def _run_first(self, write: DeferredWrite) -> None:
        try:
            await write.attempts.first()
        finally:
            # This happens before the caller goes on, because its next write must not find this one running.
            self._end(write)

    def _end(self, write: DeferredWrite) -> None:
        if self._running.get(write.key) is write:
            del self._running[write.key]

    def _keep(
        self, write: DeferredWrite, values: object, error: GatewayError, *, is_answer: bool
    ) -> DeferredWrite:
        """Defer a write and return it; raise `error` if no more can be deferred."""
        if write.attempts.is_dropped:
            write.attempts.give_up()
            write.end(is_stored=False)
            return write
        write.size = len(repr(values))
        self._check_limits(write, error, is_answer=is_answer)
        if not self._usage.count:
            log.warning(
                "writes are deferred until the database accepts them: %s",
                error.full_message,
                extra=write.fields,
            )
        self._queues.setdefault(write.key, deque()).append(write)
        self._usage.add(write)
        self._usage_by_owner.setdefault(write.owner, _Usage()).add(write)
        self._empty.clear()
        if not self._task_id:
            self._start_repeating()
        return write

    def _check_limits(self, write: DeferredWrite, error: GatewayError, *, is_answer: bool) -> None:
        share = 1.0 if is_answer else 0.5
        # A write may be larger than the share of its account if the share is not used up.
        has_share = self._usage_by_owner.get(write.owner, _Usage()).fits(1, share * ACCOUNT_SHARE)
        if self._is_closed or not has_share or not self._usage.fits(write.size, share):
            raise error

    def _start_repeating(self) -> None:
        self._task_id = self._tasks.spawn("deferred writes", self._repeat())

    async def _repeat(self) -> None:
        """Repeat the deferred writes, message by message, with a pause after each failure."""
        failures = 1
        try:
            while self._queues:
                await asyncio.sleep(self._pause(failures))
                if not self._queues:
                    break
                key, queue = next(iter(self._queues.items()))
                failures = 0 if await self._attempt(queue[0]) else failures + 1
                if failures and key in self._queues:
                    # A message that cannot be written does not delay the others.
                    self._queues[key] = self._queues.pop(key)
            log.info("all deferred writes are stored or given up")
        except asyncio.CancelledError:
            self._is_closed = True
            raise
        finally:
            self._task_id = ""
            if self._queues and not self._is_closed:
                self._start_repeating()

    def _pause(self, failures: int) -> float:
        if not failures:
            return 0.0
        longest: float = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 16))
        return longest * (1 - self._chance() / 2)

    async def _attempt(self, write: DeferredWrite) -> bool:
        """Write once; return False if it must be repeated."""
        if _now() - write.since > MAX_DEFERRED_SECONDS:
            self._lose(write, f"it could not be stored within {MAX_DEFERRED_SECONDS} s")
            return True
        is_first = write.key in self._running
        if self._running.setdefault(write.key, write) is not write:
            # An attempt that was given up is still running and would overtake it.
            return False
        is_over, is_stored = True, False
        try:
            await write.attempts.again()
            is_stored = True
        except asyncio.CancelledError:
            is_over = False
            raise
        except GatewayError as error:
            is_over = error.kind is not ErrorKind.UNAVAILABLE
            if is_over:
                self._lose(write, error.full_message)
        finally:
            if not is_first:
                self._end(write)
            # The task logs internal errors.
            if is_over:
                self._remove(write, is_stored=is_stored)
        return is_over

    def _lose(self, write: DeferredWrite, reason: str) -> None:
        log.error("a write to %s is lost: %s", _noun(write.key), reason, extra=write.fields)
        self._remove(write, is_stored=False)

    def _remove(self, write: DeferredWrite, *, is_stored: bool) -> None:
        queue = self._queues.get(write.key)
        if queue is None or write not in queue:
            return
        queue.remove(write)
        if not queue:
            del self._queues[write.key]
        self._usage.remove(write)
        usage = self._usage_by_owner[write.owner]
        usage.remove(write)
        if not usage.count:
            del self._usage_by_owner[write.owner]
        write.end(is_stored=is_stored)
        if not self._usage.count:
            self._empty.set()


async def _give_up(attempts: WriteAttempts) -> bool:
    """Stop a first attempt; return True if it has stored the write nevertheless.

    An attempt that runs longer stays pending until it ends.
    """
    attempts.give_up()
    if not attempts.is_awaited:
        return False
    with contextlib.suppress(TimeoutError, GatewayError):
        async with asyncio.timeout(STOP_SECONDS):
            await attempts.result()
            return True
    return False


def _noun(key: Key) -> str:
    if key[0] == NO_CHAT_ID:
        return "the ids of a response"
    return "a chat" if key[1] == CHAT_ITSELF_ID else "a message"


def _slow() -> GatewayError:
    return GatewayError(
        ErrorKind.UNAVAILABLE,
        "cannot write the message: the database did not answer in time",
        retry_after=RETRY_SECONDS,
    )


def _waiting() -> GatewayError:
    return GatewayError(
        ErrorKind.UNAVAILABLE,
        "cannot write the message: earlier writes to it wait for the database",
        retry_after=RETRY_SECONDS,
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
