"""Exponential backoff for restarts of a plugin process."""

import time
from collections.abc import Callable
from typing import Final

MAX_PAUSE_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 60.0
"""Lifetime after which the end of a process no longer counts as a failed start."""


class StartPause:
    """Pause before a restart: none at first, doubled each time, reset by a lifetime of STEADY_SECONDS."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended = 0
        self._until = clock()
        self._started = clock()

    @property
    def ended(self) -> int:
        """Number of processes that ended in a row."""
        return self._ended

    @property
    def left(self) -> float:
        """Seconds until a process may be started; 0.0 when it may start now."""
        return max(self._until - self._clock(), 0.0)

    def start(self) -> None:
        """Record a start."""
        self._started = self._clock()

    def end(self) -> None:
        """Record that a process ended by itself or did not start."""
        now = self._clock()
        self._ended = 1 if now - self._started >= STEADY_SECONDS else self._ended + 1
        pause = 0.0 if self._ended == 1 else min(2.0 ** (self._ended - 2), MAX_PAUSE_SECONDS)
        self._until = now + pause
