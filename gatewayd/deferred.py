"""Writes to messages that the database could not take: kept in memory, and repeated until it takes them."""

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from gatewayd.errors import GatewayError, Kind
from gatewayd.tasks import Tasks

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0
"""How long a caller waits for the first attempt: a locked file takes 5 seconds to refuse it, a server that
hangs 10, and others may wait before it."""

FIRST_PAUSE_SECONDS: Final = 0.25
MAX_PAUSE_SECONDS: Final = 5.0
"""Between two attempts; each failure doubles the pause, and chance takes up to half of it away."""

RETRY_SECONDS: Final = 5
"""What callers are told who can come again themselves."""

MAX_DEFERRED_SECONDS: Final = 3600
"""How long a write is repeated: after an hour its reader has asked again."""

MAX_DEFERRED_WRITES: Final = 10_000
MAX_DEFERRED_CHARACTERS: Final = 32 * 2**20
"""Writes that are kept at a time, and characters of their values: an outage must not take the memory.

Half of both is for the ends of answers: plugins that go on emitting take it from nobody's answer.
"""

Key = tuple[str, str]
"""The ids of a chat and of one of its messages."""

Work = Callable[[bool], Awaitable[object]]
"""Writes once. The argument tells whether somebody else has changed the content since this was deferred."""


@dataclass(slots=True, eq=False)
class DeferredWrite:
    """One write that is repeated until it is stored or given up."""

    key: Key
    size: int
    work: Work
    since: float
    is_superseded: bool = False
    is_stored: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, *, is_stored: bool) -> None:
        """Note how it ended."""
        self.is_stored = is_stored
        self.over.set()

    async def wait(self) -> bool:
        """Wait until it is stored, True, or given up, False."""
        await self.over.wait()
        return self.is_stored


class _FirstAttempt:
    """A write that goes on when its caller no longer waits for it."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._failure: GatewayError | None = None
        self._is_stored = False
        self._is_taken = False
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Write; a fault of the gateway itself is logged with the task."""
        try:
            await self._work(False)
            self._is_stored = True
        except GatewayError as error:
            self._failure = error
        finally:
            self._over.set()

    async def result(self) -> None:
        """Wait for the end, and raise what it raised."""
        await self._over.wait()
        if not self._is_stored:
            raise self._failure or GatewayError(Kind.INTERNAL, "cannot write the message: the log says more")

    async def again(self, is_superseded: bool) -> None:
        """Wait for the end the first time; after that, write again."""
        if self._is_taken:
            await self._work(is_superseded)
        else:
            self._is_taken = True
            await self.result()


class DeferredWrites:
    """Writes to messages in the order in which they come, each message by itself.

    A write that fails with `unavailable`, or has not ended within PATIENCE_SECONDS, is kept, and all that
    follow to the same message queue behind it. One whose outcome nobody knows, as the connection broke, is
    repeated too, so that it may be done twice.
    """

    def __init__(self, tasks: Tasks, chance: Callable[[], float] = random.random) -> None:
        self._tasks = tasks
        self._chance = chance
        self._queues: dict[Key, deque[DeferredWrite]] = {}
        self._count = 0
        self._characters = 0
        self._task_id = ""
        self._is_closed = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def count(self) -> int:
        """How many writes are kept."""
        return self._count

    def is_pending(self, key: Key) -> bool:
        """Tell whether a write to a message is kept."""
        return key in self._queues

    def check(self, key: Key) -> None:
        """Raise unavailable while writes to a message are kept: another one would overtake them."""
        if key in self._queues:
            raise GatewayError(
                Kind.UNAVAILABLE,
                "cannot write the message: earlier writes to it wait for the database",
                retry_after=RETRY_SECONDS,
            )

    async def write(
        self, key: Key, work: Work, values: object, *, is_end: bool = False
    ) -> DeferredWrite | None:
        """Write at once and return None, or keep the write and return it.

        `values` are what it writes, plain JSON values, of which the size is taken; `is_end` says that it ends
        an answer. Raises what `work` raises, and its `unavailable` when too much is kept already.
        """
        first = _FirstAttempt(work)
        again = work
        try:
            self.check(key)
            task_id = self._tasks.spawn("write to a message", first.run())
            await self._wait(first, task_id)
        except TimeoutError:
            again, failure = first.again, _slow()
        except GatewayError as error:
            if error.kind is not Kind.UNAVAILABLE:
                raise
            failure = error
        else:
            return None
        size = len(repr(values))
        self._check_room(size, failure, is_end=is_end)
        return self._keep(key, again, size, failure)

    def supersede(self, key: Key) -> None:
        """Let the kept writes to a message know that somebody else has changed its content."""
        for write in self._queues.get(key, ()):
            write.is_superseded = True

    def drop(self, key: Key) -> None:
        """Forget the kept writes to a message: it is gone, or begins anew."""
        for write in list(self._queues.get(key, ())):
            self._remove(write, is_stored=False)

    async def close(self, seconds: float) -> None:
        """Wait so long until all is written, then log what is lost and keep nothing any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        self._is_closed = True
        if self._task_id:
            await self._tasks.stop(self._task_id)
        for write in [each for queue in self._queues.values() for each in queue]:
            self._lose(write, "the gateway stops")

    async def _wait(self, first: _FirstAttempt, task_id: str) -> None:
        """Wait a while for a first attempt; a caller who is cancelled takes it back."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await first.result()
        except asyncio.CancelledError:
            await self._tasks.stop(task_id)
            raise

    def _check_room(self, size: int, error: GatewayError, *, is_end: bool) -> None:
        """Raise the error when no more can be kept."""
        share = 1 if is_end else 2
        has_room = (
            self._count < MAX_DEFERRED_WRITES // share
            and self._characters + size <= MAX_DEFERRED_CHARACTERS // share
        )
        if self._is_closed or not has_room:
            raise error

    def _keep(self, key: Key, work: Work, size: int, error: GatewayError) -> DeferredWrite:
        if not self._count:
            log.warning("writes to messages are repeated until they are stored: %s", error.message)
        write = DeferredWrite(key, size, work, _now())
        self._queues.setdefault(key, deque()).append(write)
        self._count += 1
        self._characters += size
        self._empty.clear()
        if not self._task_id:
            self._begin()
        return write

    def _begin(self) -> None:
        self._task_id = self._tasks.spawn("deferred writes", self._repeat())

    async def _repeat(self) -> None:
        """Write what is kept, the messages in turn, with a pause after each failure."""
        failures = 1
        try:
            while self._queues:
                await asyncio.sleep(self._pause(failures))
                key, queue = next(iter(self._queues.items()))
                failures = 0 if await self._attempt(queue[0]) else failures + 1
                if failures and key in self._queues:
                    # A message that cannot be written does not hold up the others.
                    self._queues[key] = self._queues.pop(key)
            log.info("all writes to messages are stored or given up")
        except asyncio.CancelledError:
            self._is_closed = True
            raise
        finally:
            self._task_id = ""
            if self._queues and not self._is_closed:
                self._begin()

    def _pause(self, failures: int) -> float:
        if not failures:
            return 0.0
        longest: float = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 16))
        return longest * (1 - self._chance() / 2)

    async def _attempt(self, write: DeferredWrite) -> bool:
        """Write once; False when it is to be tried again."""
        if _now() - write.since > MAX_DEFERRED_SECONDS:
            self._lose(write, f"it could not be stored within {MAX_DEFERRED_SECONDS} s")
            return True
        is_over, is_stored = True, False
        try:
            await write.work(write.is_superseded)
            is_stored = True
        except asyncio.CancelledError:
            is_over = False
            raise
        except GatewayError as error:
            is_over = error.kind is not Kind.UNAVAILABLE
            if is_over:
                self._lose(write, error.message)
        finally:
            # A fault of the gateway itself is logged with the task.
            if is_over:
                self._remove(write, is_stored=is_stored)
        return is_over

    def _lose(self, write: DeferredWrite, reason: str) -> None:
        chat_id, message_id = write.key
        extra = {"chat_id": chat_id, "message_id": message_id}
        log.error("a write to a message is lost: %s", reason, extra=extra)
        self._remove(write, is_stored=False)

    def _remove(self, write: DeferredWrite, *, is_stored: bool) -> None:
        queue = self._queues.get(write.key)
        if queue is None or write not in queue:
            return
        queue.remove(write)
        if not queue:
            del self._queues[write.key]
        self._count -= 1
        self._characters -= write.size
        write.end(is_stored=is_stored)
        if not self._count:
            self._empty.set()


def _slow() -> GatewayError:
    return GatewayError(
        Kind.UNAVAILABLE, "cannot write the message: the database takes its time", retry_after=RETRY_SECONDS
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
