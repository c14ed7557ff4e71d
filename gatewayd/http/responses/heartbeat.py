"""Heartbeat of a stream with a silent source, so that clients and proxies keep the connection."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

from gatewayd.tasks import TaskRegistry

HEARTBEAT_SECONDS: Final = 15.0


class Heartbeat:
    """Context manager that calls `beat` after each `seconds` without a `touch`.

    A stream has one timer, which reads the clock when it is due and is not reset for each write. Only a beat
    has a task. Errors of a client that has left are ignored.
    """

    def __init__(
        self, tasks: TaskRegistry, beat: Callable[[], Awaitable[None]], *, seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        self._tasks = tasks
        self._beat = beat
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: str | None = None
        self._touched = 0.0

    def touch(self) -> None:
        """Record a write."""
        self._touched = self._loop.time()

    async def __aenter__(self) -> Self:
        """Start the timer."""
        self.touch()
        self._wait(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the timer and a running beat."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            await self._tasks.stop(self._task)

    def _wait(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._due)

    def _due(self) -> None:
        rest = self._touched + self._seconds - self._loop.time()
        if rest > 0:
            self._wait(rest)
            return
        if self._task is None:
            self._task = self._tasks.spawn("heartbeat", self._once())
        self.touch()
        self._wait(self._seconds)

    async def _once(self) -> None:
        try:
            await self._beat()
        except ConnectionError:
            return
        finally:
            self._task = None
