"""The state of the daemon as health checks see it: probed rarely, answered from memory."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from gatewayd.errors import GatewayError
from gatewayd.observe.loop import StallMonitor
from gatewayd.tasks import Tasks

FRESH_SECONDS: Final = 1.0
DEADLINE_SECONDS: Final = 2.0
WAIT_SECONDS: Final = 0.1


class HealthMonitor:
    """Knows whether the daemon is ready and whether its database answers.

    However many ask, one probe at most runs, one a second. A caller waits for it a moment only and is then
    told what the last one found: on SQLite a long transaction holds up the probe, and is no problem. The
    first callers wait until the deadline.
    """

    def __init__(self, ping: Callable[[], Awaitable[None]], tasks: Tasks) -> None:
        self.ready = False
        self.loop = StallMonitor()
        self._ping = ping
        self._tasks = tasks
        self._problem: str | None = None
        self._probed_at = float("-inf")
        self._done: asyncio.Event | None = None

    @property
    def stalls(self) -> tuple[int, float]:
        """How often the event loop stalled since the start, and the seconds of the longest time."""
        return self.loop.count, self.loop.longest

    async def database_problem(self) -> str | None:
        """Return a sentence when the database does not answer in time, None when it does."""
        if asyncio.get_running_loop().time() - self._probed_at <= FRESH_SECONDS:
            return self._problem
        if self._done is None:
            self._done = asyncio.Event()
            self._tasks.spawn("database probe", self._probe(self._done))
        if self._probed_at == float("-inf"):
            await self._done.wait()
        else:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._done.wait(), WAIT_SECONDS)
        return self._problem

    async def _probe(self, done: asyncio.Event) -> None:
        problem: str | None = "the database probe failed, the log says why"
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await self._ping()
            problem = None
        except TimeoutError:
            problem = f"the database did not answer within {DEADLINE_SECONDS:g} s"
        except GatewayError as error:
            problem = error.message
        finally:
            self._problem = problem
            self._probed_at = asyncio.get_running_loop().time()
            self._done = None
            done.set()
