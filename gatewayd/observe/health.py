"""Health of the daemon for health checks: whether it is ready and its database answers."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.observe.loop import StallMonitor
from gatewayd.tasks import TaskRegistry

FRESH_SECONDS: Final = 1.0
DEADLINE_SECONDS: Final = 2.0
"""Maximum wait of a caller if there is no recent result."""

WAIT_SECONDS: Final = 0.05
MAX_AGE_SECONDS: Final = 10.0
"""Maximum age of a result that is returned while the next probe runs."""


class HealthMonitor:
    """Reports whether the daemon is ready and whether its database answers.

    At most one probe runs at a time, and one a second, for any number of callers. A caller waits a moment for
    it and then receives the previous result if that is recent, because a probe may be waiting for a
    connection or a processor. Otherwise the caller waits until the deadline. A database that stops answering
    is so reported within 12 seconds, one that refuses at once. `server` is the address of the database, None
    for a file. `is_draining` says whether an operator wants the node to get no more requests,
    `find_degraded` names the parts that do not work without something that the daemon does not need.
    """

    def __init__(
        self,
        ping: Callable[[], Awaitable[None]],
        tasks: TaskRegistry,
        server: str | None = None,
        is_draining: Callable[[], bool] = lambda: False,
        find_degraded: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        self._is_draining = is_draining
        self._find_degraded = find_degraded
        self._is_started = False
        self.loop = StallMonitor()
        self.probe_seconds: float | None = None
        """Duration of the last probe that the database answered."""

        self._ping = ping
        self._tasks = tasks
        self._server = server
        self._problem: GatewayError | None = None
        self._probed_at = float("-inf")
        self._done: asyncio.Event | None = None

    @property
    def ready(self) -> bool:
        """Whether the start has ended, no stop has begun, and the node does not drain."""
        return self._is_started and not self._is_draining()

    @ready.setter
    def ready(self, value: bool) -> None:
        self._is_started = value

    @property
    def degraded(self) -> Sequence[str]:
        """Names of the parts that do not work just now, while requests are served all the same."""
        return self._find_degraded()

    @property
    def stalls(self) -> tuple[int, float]:
        """Number of stalls of the event loop since the start, and the longest one in seconds."""
        return self.loop.count, self.loop.longest

    @property
    def is_well(self) -> bool:
        """Whether `database_problem` returns None without a wait."""
        age = asyncio.get_running_loop().time() - self._probed_at
        return age <= FRESH_SECONDS and self._problem is None

    async def database_problem(self) -> GatewayError | None:
        """Return the error of the database, None if it answers in time."""
        age = asyncio.get_running_loop().time() - self._probed_at
        if age <= FRESH_SECONDS:
            return self._problem
        done = self._done
        if done is None:
            done = self._done = asyncio.Event()
            self._tasks.spawn("database probe", self._probe(done))
        is_recent = age <= MAX_AGE_SECONDS
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), WAIT_SECONDS if is_recent else DEADLINE_SECONDS)
        return self._problem if is_recent or done.is_set() else self._silent(DEADLINE_SECONDS)

    async def _probe(self, done: asyncio.Event) -> None:
        problem: GatewayError | None = self._failure("the database probe failed, see the log")
        began = time.perf_counter()
        try:
            async with TimeLimit(MAX_AGE_SECONDS):
                await self._ping()
            self.probe_seconds = time.perf_counter() - began
            problem = None
        except TimeoutError:
            problem = self._silent(MAX_AGE_SECONDS)
        except GatewayError as error:
            problem = self._failure(error.message)
        finally:
            self._problem = problem
            self._probed_at = asyncio.get_running_loop().time()
            self._done = None
            done.set()

    def _silent(self, seconds: float) -> GatewayError:
        return self._failure(f"the database did not answer within {seconds:g} s")

    def _failure(self, message: str) -> GatewayError:
        # A new error has no traceback, which would stay in memory until the next probe.
        return GatewayError(ErrorKind.UNAVAILABLE, message, place=self._server)
