"""Time limits for peers and workers that exclude pauses of this process.

After the process was stopped, or its event loop was blocked, timers are due before the data that arrived in
the meantime is read. The peer may have been in time, so its limit is extended a little.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

PAUSE_THRESHOLD_SECONDS: Final = 0.5
"""A timer that fires later than this indicates a pause."""

GRACE_SECONDS: Final = 5.0
"""Maximum extension after a pause, in which the data that arrived is read."""


def pause_extension(due: float, now: float, seconds: float) -> float:
    """Return the extension, at `now`, of a limit of `seconds` that was due at `due`; 0.0 for none."""
    return min(seconds, GRACE_SECONDS) if now - due > PAUSE_THRESHOLD_SECONDS else 0.0


class CallbackTimer:
    """Calls `callback` after `seconds` unless it is cancelled."""

    def __init__(self, seconds: float, callback: Callable[[], object]) -> None:
        self._callback = callback
        self._set(asyncio.get_running_loop().time() + seconds, seconds)

    def cancel(self) -> None:
        """Cancel the call."""
        self._timer.cancel()

    def _set(self, due: float, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(due, self._fire, due, seconds)

    def _fire(self, due: float, seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        extension = pause_extension(due, now, seconds)
        if extension:
            self._set(now + extension, extension)
        else:
            self._callback()


class TimeLimit:
    """Raises TimeoutError from an `async with` block that takes more than `seconds`; None is no limit."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._limit = asyncio.timeout(None)
        self._timer: CallbackTimer | None = None

    async def __aenter__(self) -> Self:
        """Start the timer."""
        await self._limit.__aenter__()
        if self._seconds is not None:
            self._timer = CallbackTimer(self._seconds, self._expire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the timer; raises TimeoutError if the limit was reached."""
        if self._timer is not None:
            self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)

    @property
    def is_expired(self) -> bool:
        """Whether the limit was reached."""
        return self._limit.expired()

    def _expire(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time())
