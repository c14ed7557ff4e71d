"""When a process that has ended may be started again."""

import time
from collections.abc import Callable
from typing import Final

MAX_PAUSE_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 60.0
"""A process that lived so long has not ended because it was started."""


class StartPause:
    """The first restart is at once; each further one doubles the pause, until a process lives for long."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended = 0
        self._until = clock()
        self._started = clock()

    @property
    def ended(self) -> int:
        """How many processes have ended in a row."""
        return self._ended

    @property
    def left(self) -> float:
        """Seconds until a process may be started, 0.0 for now."""
        return max(self._until - self._clock(), 0.0)

    def start(self) -> None:
        """Take note of a start."""
        self._started = self._clock()

    def end(self) -> None:
        """Take note that a process ended without being told to, or could not be started."""
        now = self._clock()
        self._ended = 1 if now - self._started >= STEADY_SECONDS else self._ended + 1
        pause = 0.0 if self._ended == 1 else min(2.0 ** (self._ended - 2), MAX_PAUSE_SECONDS)
        self._until = now + pause
