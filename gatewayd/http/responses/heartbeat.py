"""Keeps a stream alive whose source is silent, so that neither the client nor a proxy gives it up."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

from gatewayd.tasks import TaskRegistry

HEARTBEAT_SECONDS: Final = 15.0


class Heartbeat:
    """Calls `beat` whenever `seconds` went by without a `touch`.

    A stream has one timer, which is not set anew for each write: it looks at the clock when it is due. A task
    is made only for a beat. A client that has gone is none of its business.
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
        """Note that something was written."""
        self._touched = self._loop.time()

    async def __aenter__(self) -> Self:
        """Begin to count."""
        self.touch()
        self._wait(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, with the beat that may be under way."""
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
