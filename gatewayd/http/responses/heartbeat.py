"""Heartbeat of a stream with a silent source, so that clients and proxies keep the connection."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

from gatewayd.tasks import TaskRegistry

HEARTBEAT_SECONDS: Final = 15.0


class SilenceTimer:
    """Calls a function after each `seconds` without a `touch`, from `start` to `stop`.

    A stream has one timer, which reads the clock when it is due and is not reset for each write.
    """

    def __init__(self, *, seconds: float = HEARTBEAT_SECONDS) -> None:
        # Not kept after the end: it refers to the stream, which refers to its timer.
        self._silent: Callable[[], None] | None = None
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._touched = 0.0

    def touch(self) -> None:
        """Record a write."""
        self._touched = self._loop.time()

    def start(self, silent: Callable[[], None]) -> None:
        """Start the timer, which calls `silent`."""
        self._silent = silent
        self.touch()
        self._wait(self._seconds)

    def stop(self) -> None:
        """Stop the timer."""
        self._silent = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._due)

    def _due(self) -> None:
        rest = self._touched + self._seconds - self._loop.time()
        if rest > 0:
            self._wait(rest)
            return
        self.touch()
        self._wait(self._seconds)
        if self._silent is not None:
            self._silent()


class Heartbeat(SilenceTimer):
    """Context manager that calls `beat` after each `seconds` without a `touch`.

    Only a beat has a task. Errors of a client that has left are ignored.
    """

    def __init__(
        self, tasks: TaskRegistry, beat: Callable[[], Awaitable[None]], *, seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        super().__init__(seconds=seconds)
        self._tasks = tasks
        self._beat = beat
        self._task: str | None = None

    async def __aenter__(self) -> Self:
        """Start the timer."""
        self.start(self._begin)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the timer and a running beat."""
        self.stop()
        if self._task is not None:
            await self._tasks.stop(self._task)

    def _begin(self) -> None:
        if self._task is None:
            self._task = self._tasks.spawn("heartbeat", self._once())

    async def _once(self) -> None:
        try:
            await self._beat()
        except ConnectionError:
            return
        finally:
            self._task = None
