"""The state of the daemon as health checks see it: probed rarely, answered from memory."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.observe.loop import StallMonitor
from gatewayd.tasks import TaskRegistry

FRESH_SECONDS: Final = 1.0
DEADLINE_SECONDS: Final = 2.0
"""Seconds that a caller waits who cannot be told anything recent."""

WAIT_SECONDS: Final = 0.05
MAX_AGE_SECONDS: Final = 10.0
"""Seconds for which the result of a probe is told while the next one waits."""


class HealthMonitor:
    """Knows whether the daemon is ready and whether its database answers.

    However many ask, one probe at most runs, one a second. A caller waits for it a moment only and is then
    told what the last one found, if that is recent: a probe that waits for a connection or a processor is no
    problem. Otherwise a caller waits until the deadline. So a database that no longer answers is a problem
    within 12 seconds, and one that refuses at once. `server` is where the database is, None for a file.
    """

    def __init__(
        self, ping: Callable[[], Awaitable[None]], tasks: TaskRegistry, server: str | None = None
    ) -> None:
        self.ready = False
        self.loop = StallMonitor()
        self._ping = ping
        self._tasks = tasks
        self._server = server
        self._problem: GatewayError | None = None
        self._probed_at = float("-inf")
        self._done: asyncio.Event | None = None

    @property
    def stalls(self) -> tuple[int, float]:
        """How often the event loop stalled since the start, and the seconds of the longest time."""
        return self.loop.count, self.loop.longest

    async def database_problem(self) -> GatewayError | None:
        """Return what is wrong when the database does not answer in time, None when it does."""
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
        problem: GatewayError | None = self._failure("the database probe failed, the log says why")
        try:
            async with TimeLimit(MAX_AGE_SECONDS):
                await self._ping()
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
        # Without the traceback of what was raised, which is kept until the next probe.
        return GatewayError(ErrorKind.UNAVAILABLE, message, place=self._server)
