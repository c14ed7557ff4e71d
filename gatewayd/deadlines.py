"""Time limits for what others do, which a pause of this process does not use up.

A process that was stopped, or whose event loop did not turn, finds its timers due before it has read what
came meanwhile. Whoever was waited for has kept its time then, so it gets a moment more.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

PAUSE_THRESHOLD_SECONDS: Final = 0.5
"""A timer that is later than this tells of a pause."""

GRACE_SECONDS: Final = 5.0
"""What is left, at most, after a pause: what has come is read in it."""


def pause_extension(due: float, now: float, seconds: float) -> float:
    """Return by how much a limit of `seconds` that ended at `due` is extended `now`, 0.0 for not at all."""
    return min(seconds, GRACE_SECONDS) if now - due > PAUSE_THRESHOLD_SECONDS else 0.0


class CallbackTimer:
    """Calls back after `seconds`, unless it is cancelled."""

    def __init__(self, seconds: float, callback: Callable[[], object]) -> None:
        self._callback = callback
        self._set(asyncio.get_running_loop().time() + seconds, seconds)

    def cancel(self) -> None:
        """Forget it."""
        self._timer.cancel()

    def _set(self, due: float, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(due, self._look, due, seconds)

    def _look(self, due: float, seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        more = pause_extension(due, now, seconds)
        if more:
            self._set(now + more, more)
        else:
            self._callback()


class TimeLimit:
    """Raises TimeoutError out of an `async with` block that takes more than `seconds`; None is no limit."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._limit = asyncio.timeout(None)
        self._alarm: CallbackTimer | None = None

    async def __aenter__(self) -> Self:
        """Begin to count."""
        await self._limit.__aenter__()
        if self._seconds is not None:
            self._alarm = CallbackTimer(self._seconds, self._expire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End, with TimeoutError when the limit was reached."""
        if self._alarm is not None:
            self._alarm.cancel()
        await self._limit.__aexit__(kind, error, trace)

    @property
    def is_expired(self) -> bool:
        """Whether the limit was reached."""
        return self._limit.expired()

    def _expire(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time())
