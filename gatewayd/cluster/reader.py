"""Reader of the change log: applies the changes of all nodes in the order of their commits.

See gatewayd-cluster(7), INVALIDATION.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from gatewayd.cluster.freshness import TRUST_SECONDS, boottime
from gatewayd.cluster.interfaces import ChangeLog
from gatewayd.cluster.invalidation import InvalidationMap
from gatewayd.cluster.records import Change, LogReading
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 0.3
"""Maximum pause between two questions to the database."""

ANSWER_SECONDS: Final = 2.0
"""Time after which a question has failed."""

RECONNECT_SECONDS: Final = (0.05, 0.3)
MAX_RECONNECT_SECONDS: Final = (0.1, 2.0)
"""Range of the pause before the first, and before each further attempt to connect: all nodes return at once
when the database does."""

RETRY_SECONDS: Final = 2

Read = Callable[[int], Awaitable[LogReading]]


class ChangeReader:
    """Keeps the memory of this node in step with the database; implements `interfaces.Freshness`.

    A question to the database is answered with the version of the log and the rows that this node has not
    applied. They are applied within one step of the event loop. Rows that are missing, a version that went
    back, and another database empty every cache first. `run` and `answer` are two tasks.
    """

    def __init__(
        self,
        changes: ChangeLog,
        caches: InvalidationMap,
        last_migration: str,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._log = changes
        self._caches = caches
        self._last_migration = last_migration
        self._clock = clock
        self._identity = ""
        self._version = 0
        self._fresh_until = float("-inf")
        self._notified = asyncio.Event()
        self._refreshing = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._waiters: list[asyncio.Future[GatewayError | None]] = []
        self._is_over = False
        self._is_failing = False
        self._is_drained = False
        self.clears = 0
        """Number of times that every cache was emptied since the start."""

        self.on_contraction: Callable[[], None] = lambda: None
        """Called once when a migration that this version does not know took away what it needs."""

    @property
    def version(self) -> int:
        """The version of the last applied change."""
        return self._version

    async def open(self) -> None:
        """Note the present version, before anything is read that is remembered; raises unavailable."""
        reading = await self._log.read(0)
        self._identity, self._version = reading.identity, reading.version

    def is_fresh(self) -> bool:
        """Whether every change that was committed a second ago is applied."""
        return self._clock() < self._fresh_until

    async def renew(self) -> None:
        """Apply every change that was committed before this call; raises unavailable if that fails.

        The question is asked by `answer`, so that no transaction of the caller holds the changes back.
        """
        if self._is_over:
            raise _not_followed()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._wanted.set()
        failure = await waiter
        if failure is not None:
            raise failure.with_traceback(None)

    async def answer(self) -> None:
        """Serve the callers of `renew` for ever; those that wait together share a question."""
        waiting: list[asyncio.Future[GatewayError | None]] = []
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                waiting, self._waiters = self._waiters, []
                failure = None
                try:
                    await self._ask(self._log.read)
                except GatewayError as error:
                    failure = error
                _settle(waiting, failure)
        finally:
            self._is_over = True
            _settle([*waiting, *self._waiters], _not_followed())

    async def run(self) -> None:
        """Follow the log for ever, over new connections when one is lost."""
        pause = RECONNECT_SECONDS
        while True:
            try:
                async with self._log.listen(self._notified.set) as link:
                    await self._ask(link.read)
                    pause = RECONNECT_SECONDS
                    if self._is_failing:
                        log.info("the change log is followed again", extra={"version": self._version})
                    self._is_failing = False
                    await self._follow(link.read)
            except GatewayError as error:
                if not self._is_failing:
                    log.warning("cannot follow the change log, this is repeated: %s", error.full_message)
                self._is_failing = True
            await asyncio.sleep(random.uniform(*pause))  # noqa: S311 - no secret
            pause = MAX_RECONNECT_SECONDS

    async def _follow(self, read: Read) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._notified.wait()
            # Cleared before the question: a change that is notified after it is asked for again.
            self._notified.clear()
            await self._ask(read)

    async def _ask(self, read: Read) -> None:
        """Ask the database, apply what it answers, and trust the memory from the moment of the question."""
        sent_at, version = self._clock(), self._version
        try:
            async with TimeLimit(ANSWER_SECONDS):
                reading = await read(version)
        except TimeoutError as error:
            raise GatewayError(
                ErrorKind.UNAVAILABLE,
                f"cannot read the change log: the database did not answer within {ANSWER_SECONDS:g} s",
                retry_after=RETRY_SECONDS,
            ) from error
        self._apply(reading, version)
        # What another answer has made stale meanwhile is read again as well, which does no harm.
        async with self._refreshing:
            await self._caches.refresh()
        self._fresh_until = max(self._fresh_until, sent_at + TRUST_SECONDS)

    def _apply(self, reading: LogReading, asked_version: int) -> None:
        """Apply an answer to a question that was sent when `asked_version` was applied.

        Two questions may be on their way, so an answer may be older than what is applied.
        """
        new = [change for change in reading.changes if change.version > self._version]
        if reading.identity != self._identity:
            self._clear(reading, "another database answers")
        elif reading.version < asked_version:
            self._clear(reading, "its version went back")
        elif reading.version > self._version:
            if _follows(self._version, new, reading.version):
                self._version = reading.version
                self._caches.apply(new)
            else:
                self._clear(reading, "rows are missing")
        self._check_contraction(reading.contraction)

    def _clear(self, reading: LogReading, reason: str) -> None:
        log.warning(
            "every cache is emptied, as the change log has a gap: %s",
            reason,
            extra={"applied": self._version, "version": reading.version},
        )
        self.clears += 1
        # Nothing that was remembered is used until everything is read again.
        self._fresh_until = float("-inf")
        self._identity, self._version = reading.identity, reading.version
        self._caches.clear()

    def _check_contraction(self, contraction: str) -> None:
        if contraction > self._last_migration and not self._is_drained:
            self._is_drained = True
            log.error("a newer version took away what this one needs, this node stops: %s", contraction)
            self.on_contraction()


def _settle(waiting: list[asyncio.Future[GatewayError | None]], failure: GatewayError | None) -> None:
    for waiter in waiting:
        if not waiter.done():
            waiter.set_result(failure)


def _not_followed() -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, "cannot read the change log: this process ends")


def _follows(version: int, changes: list[Change], last: int) -> bool:
    """Return whether changes are exactly those after a version, up to the last one."""
    return [change.version for change in changes] == list(range(version + 1, last + 1))
