"""Writes that the database could not take: kept in memory, and repeated until it takes them."""

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
from gatewayd.keyed_turns import KeyedLocks
from gatewayd.tasks import TaskRegistry
from gatewayd.write_attempts import CHAT_ITSELF_ID, NO_CHAT_ID, DeferredWrite, Key, Work, WriteAttempts

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0
"""How long a caller waits for the first attempt: a locked file takes 5 seconds to refuse it, a server that
hangs 10, and others may wait before it."""

STOP_SECONDS: Final = 0.1
"""How long a first attempt that is given up may take to end; a statement that is under way takes longer."""

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
    """Writes in the order in which they come, those of each message by themselves.

    A write that fails with `unavailable`, or has not ended within PATIENCE_SECONDS, is kept, and all that
    follow to the same message queue behind it. One whose outcome nobody knows, as the connection broke, is
    repeated too, so that it may be done twice.
    """

    def __init__(self, tasks: TaskRegistry, chance: Callable[[], float] = random.random) -> None:
        self._tasks = tasks
        self._chance = chance
        self._queues: dict[Key, deque[DeferredWrite]] = {}
        self._turns: KeyedLocks[Key] = KeyedLocks()
        # The writes of which an attempt has not ended, and None for who writes by itself.
        self._under_way: dict[Key, DeferredWrite | None] = {}
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
        """Tell whether a write to a message is kept or under way: another one would overtake it."""
        return key in self._queues or key in self._under_way

    @contextlib.asynccontextmanager
    async def turn(self, key: Key) -> AsyncIterator[None]:
        """Let the caller write to a message by itself; what comes meanwhile queues behind it.

        Raises unavailable while earlier writes to the message wait for the database.
        """
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._turns.begin(key)
        except TimeoutError as error:
            raise _waiting() from error
        try:
            if self.is_pending(key):
                raise _waiting()
            self._under_way[key] = None
            try:
                yield
            finally:
                del self._under_way[key]
        finally:
            self._turns.end(key)

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
        """Write at once and return None, or keep the write and return it.

        `values` are what it writes, plain JSON values, of which the size is taken; `owner` is the account
        that it counts for, and `is_answer` says that it is of an answer itself. Raises what `work` raises,
        and its `unavailable` when too much is kept already; then it is not tried again.
        """
        write = DeferredWrite(key, owner, WriteAttempts(work), _now(), request_id)
        until = write.since + PATIENCE_SECONDS
        try:
            async with asyncio.timeout_at(until):
                await self._turns.begin(key)
        except TimeoutError:
            # Who came before has waited longer, and is kept before it.
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
            self._turns.end(key)

    def supersede(self, key: Key) -> None:
        """Let the writes to a message that wait know that somebody else has changed its content."""
        for write in self._queues.get(key, ()):
            write.attempts.is_superseded = True
            # It may wait behind the change, and would take its place.
            write.attempts.interrupt()
        under_way = self._under_way.get(key)
        if under_way is not None:
            under_way.attempts.is_superseded = True

    def drop(self, key: Key) -> None:
        """Forget the writes to a message that wait: it is gone, or begins anew."""
        for write in list(self._queues.get(key, ())):
            self._remove(write, is_stored=False)
            write.attempts.give_up()
        under_way = self._under_way.get(key)
        if under_way is not None:
            under_way.attempts.is_dropped = True

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
            write.attempts.give_up()

    async def _first(self, write: DeferredWrite, until: float) -> GatewayError | None:
        """Make the first attempt; return why the write is to be kept, None when it is stored."""
        if self.is_pending(write.key):
            return _waiting()
        self._under_way[write.key] = write
        # A task that is cancelled before its first step does not come to its end.
        at_end = partial(self._end, write)
        task_id = self._tasks.spawn("write to a message", self._run_first(write), at_end=at_end)
        try:
            async with asyncio.timeout_at(until):
                await write.attempts.result()
        except asyncio.CancelledError:
            # A caller who is cancelled takes the write back.
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
            # Before the caller goes on, whose next write would find this one under way.
            self._end(write)

    def _end(self, write: DeferredWrite) -> None:
        if self._under_way.get(write.key) is write:
            del self._under_way[write.key]

    def _keep(
        self, write: DeferredWrite, values: object, error: GatewayError, *, is_answer: bool
    ) -> DeferredWrite:
        """Keep a write, and return it; raise the error when no more can be kept."""
        if write.attempts.is_dropped:
            write.attempts.give_up()
            write.end(is_stored=False)
            return write
        write.size = len(repr(values))
        self._check_room(write, error, is_answer=is_answer)
        if not self._kept.count:
            log.warning(
                "writes are repeated until they are stored: %s", error.full_message, extra=write.fields
            )
        self._queues.setdefault(write.key, deque()).append(write)
        self._kept.add(write)
        self._kept_of.setdefault(write.owner, _Kept()).add(write)
        self._empty.clear()
        if not self._task_id:
            self._begin()
        return write

    def _check_room(self, write: DeferredWrite, error: GatewayError, *, is_answer: bool) -> None:
        share = 1.0 if is_answer else 0.5
        # The first write of an account may be larger than its share.
        has_share = self._kept_of.get(write.owner, _Kept()).has_room(1, share * ACCOUNT_SHARE)
        if self._is_closed or not has_share or not self._kept.has_room(write.size, share):
            raise error

    def _begin(self) -> None:
        self._task_id = self._tasks.spawn("deferred writes", self._repeat())

    async def _repeat(self) -> None:
        """Write what is kept, the messages in turn, with a pause after each failure."""
        failures = 1
        try:
            while self._queues:
                await asyncio.sleep(self._pause(failures))
                if not self._queues:
                    break
                key, queue = next(iter(self._queues.items()))
                failures = 0 if await self._attempt(queue[0]) else failures + 1
                if failures and key in self._queues:
                    # A message that cannot be written does not hold up the others.
                    self._queues[key] = self._queues.pop(key)
            log.info("all writes are stored or given up")
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
        is_first = write.key in self._under_way
        if self._under_way.setdefault(write.key, write) is not write:
            # An attempt that was given up has not ended, and would overtake it.
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
            # A fault of the gateway itself is logged with the task.
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
        self._kept.remove(write)
        of_owner = self._kept_of[write.owner]
        of_owner.remove(write)
        if not of_owner.count:
            del self._kept_of[write.owner]
        write.end(is_stored=is_stored)
        if not self._kept.count:
            self._empty.set()


async def _give_up(attempts: WriteAttempts) -> bool:
    """Stop a first attempt; True when it has stored the write all the same.

    What is under way for longer than that stays pending until it has ended.
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
