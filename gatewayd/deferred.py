"""Writes to messages that the database could not take: kept in memory, and repeated until it takes them."""

import asyncio
import contextlib
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

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

Half of both is for answers: plugins that go on emitting take it from nobody's answer. An account that has
ACCOUNT_SHARE of the room it asks for gets no more of it.
"""

ACCOUNT_SHARE: Final = 0.25

Key = tuple[str, str]
"""The ids of a chat and of one of its messages."""

Work = Callable[[bool], Awaitable[object]]
"""Writes once. The argument tells whether somebody else has changed the content since this was deferred."""


class _Attempts:
    """The attempts at one write, one at a time; the first goes on when its caller no longer waits for it."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._failure: GatewayError | None = None
        self._is_stored = False
        self._is_awaited = False
        self._over = asyncio.Event()
        self._limit: asyncio.Timeout | None = None

    def first(self) -> Coroutine[Any, Any, None]:
        """Return the first attempt, for a task; a fault of the gateway itself is logged with the task."""
        self._is_awaited = True
        return self._first()

    async def result(self) -> None:
        """Wait for the end of the first attempt, and raise what it raised."""
        await self._over.wait()
        self._is_awaited = False
        if not self._is_stored:
            raise self._failure or GatewayError(Kind.INTERNAL, "cannot write the message: the log says more")

    async def again(self, is_superseded: bool) -> None:
        """Wait for the end of the first attempt when nobody has; after that, write again."""
        if self._is_awaited:
            await self.result()
        else:
            await self._once(is_superseded)

    def interrupt(self) -> None:
        """Let an attempt that has not ended fail with unavailable: the message is not what it was."""
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(_now())

    async def _first(self) -> None:
        try:
            await self._once(False)
            self._is_stored = True
        except GatewayError as error:
            self._failure = error
        finally:
            self._over.set()

    async def _once(self, is_superseded: bool) -> None:
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limit = limit
                await self._work(is_superseded)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise GatewayError(Kind.UNAVAILABLE, "cannot write the message: it has changed") from error
        finally:
            self._limit = None


@dataclass(slots=True, eq=False)
class DeferredWrite:
    """One write that is repeated until it is stored or given up."""

    key: Key
    owner: str
    size: int
    attempts: _Attempts
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


@dataclass(slots=True)
class _Kept:
    """What is kept, altogether or of one account."""

    count: int = 0
    characters: int = 0

    def add(self, write: DeferredWrite) -> None:
        self.count += 1
        self.characters += write.size

    def remove(self, write: DeferredWrite) -> None:
        self.count -= 1
        self.characters -= write.size

    def has_room(self, size: int, share: float) -> bool:
        """Tell whether a write fits into a share of the room."""
        characters = self.characters + size
        return self.count < MAX_DEFERRED_WRITES * share and characters <= MAX_DEFERRED_CHARACTERS * share


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
        self._kept = _Kept()
        self._kept_of: dict[str, _Kept] = {}
        self._task_id = ""
        self._is_closed = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def count(self) -> int:
        """How many writes are kept."""
        return self._kept.count

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
        self, key: Key, work: Work, values: object, *, owner: str, is_answer: bool = False
    ) -> DeferredWrite | None:
        """Write at once and return None, or keep the write and return it.

        `values` are what it writes, plain JSON values, of which the size is taken; `owner` is the account
        that it counts for, and `is_answer` says that it is of an answer itself. Raises what `work` raises,
        and its `unavailable` when too much is kept already.
        """
        attempts = _Attempts(work)
        try:
            self.check(key)
            task_id = self._tasks.spawn("write to a message", attempts.first())
            await self._wait(attempts, task_id)
        except TimeoutError:
            failure = _slow()
        except GatewayError as error:
            if error.kind is not Kind.UNAVAILABLE:
                raise
            failure = error
        else:
            return None
        write = DeferredWrite(key, owner, len(repr(values)), attempts, _now())
        self._check_room(write, failure, is_answer=is_answer)
        self._keep(write, failure)
        return write

    def supersede(self, key: Key) -> None:
        """Let the kept writes to a message know that somebody else has changed its content."""
        for write in self._queues.get(key, ()):
            write.is_superseded = True
            # It may wait behind the change, and would take its place.
            write.attempts.interrupt()

    def drop(self, key: Key) -> None:
        """Forget the kept writes to a message: it is gone, or begins anew."""
        for write in list(self._queues.get(key, ())):
            self._remove(write, is_stored=False)
            write.attempts.interrupt()

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
            write.attempts.interrupt()

    async def _wait(self, attempts: _Attempts, task_id: str) -> None:
        """Wait a while for a first attempt; a caller who is cancelled takes it back."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await attempts.result()
        except asyncio.CancelledError:
            await self._tasks.stop(task_id)
            raise

    def _check_room(self, write: DeferredWrite, error: GatewayError, *, is_answer: bool) -> None:
        """Raise the error when no more can be kept."""
        share = 1.0 if is_answer else 0.5
        # The first write of an account may be larger than its share.
        has_share = self._kept_of.get(write.owner, _Kept()).has_room(1, share * ACCOUNT_SHARE)
        if self._is_closed or not has_share or not self._kept.has_room(write.size, share):
            raise error

    def _keep(self, write: DeferredWrite, error: GatewayError) -> None:
        if not self._kept.count:
            log.warning("writes to messages are repeated until they are stored: %s", error.message)
        self._queues.setdefault(write.key, deque()).append(write)
        self._kept.add(write)
        self._kept_of.setdefault(write.owner, _Kept()).add(write)
        self._empty.clear()
        if not self._task_id:
            self._begin()

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
            await write.attempts.again(write.is_superseded)
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
        self._kept.remove(write)
        of_owner = self._kept_of[write.owner]
        of_owner.remove(write)
        if not of_owner.count:
            del self._kept_of[write.owner]
        write.end(is_stored=is_stored)
        if not self._kept.count:
            self._empty.set()


def _slow() -> GatewayError:
    return GatewayError(
        Kind.UNAVAILABLE, "cannot write the message: the database takes its time", retry_after=RETRY_SECONDS
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
