"""Monitoring of the event loop: counts and logs stalls, and logs loop errors at a limited rate."""

import asyncio
import logging
import math
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from gatewayd.measurement.cells import HistogramCell
from gatewayd.observe.metrics.families import LAG_BOUNDS

log = logging.getLogger(__name__)

MAX_STACK_FUNCTIONS: Final = 24
"""Maximum number of functions in the log line of a stall."""


class _Budget:
    """Rate limit: allows `limit` lines in each `window` seconds and counts the others."""

    def __init__(self, limit: int, window: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._window = window
        self._clock = clock
        self._began = clock()
        self._used = 0
        self._left_out = 0

    def take(self) -> int | None:
        """Return the number of lines dropped before this one, None if this one is dropped too."""
        now = self._clock()
        if now - self._began >= self._window:
            self._began, self._used = now, 0
        if self._used >= self._limit:
            self._left_out += 1
            return None
        self._used += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class LoopErrors:
    """Exception handler of the event loop (`loop.set_exception_handler`).

    Without free descriptors the loop reports each refused connection, thousands a second; at most `limit`
    reports in `window` seconds are logged, and the next one has the number of the dropped ones.
    """

    def __init__(
        self, limit: int = 5, window: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.count = 0
        self._budget = _Budget(limit, window, clock)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a report of the loop; an operating system error has no traceback."""
        del loop
        self.count += 1
        left_out = self._budget.take()
        if left_out is None:
            return
        error = context.get("exception")
        extra: dict[str, object] = {"left_out": left_out or None}
        source = next((context[name] for name in ("task", "future", "handle") if name in context), None)
        if source is not None:
            extra["source"] = repr(source)
        if isinstance(error, OSError):
            extra["error"] = str(error)
            error = None
        log.error(context.get("message", "unhandled error in the event loop"), exc_info=error, extra=extra)


class StallMonitor:
    """Counts and logs stalls: the event loop was blocked for more than `threshold` seconds.

    `count` and `longest` (seconds) are figures since the start. While the loop is late, a second thread reads
    the stack of its thread: the log line names files, lines and functions, never a value. `cpu_ms` is the
    processor time of that thread, `interval` before the stall included: much less than `ms` if other programs
    used the processor or the thread waited.
    """

    def __init__(
        self,
        threshold: float = 0.1,
        interval: float = 0.05,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.count = 0
        self.longest = 0.0
        self.lag = HistogramCell(LAG_BOUNDS)
        """All measured delays, in seconds."""

        self._threshold = threshold
        self._interval = interval
        self._clock = clock
        self._budget = _Budget(1, 10.0, clock)
        self._due = math.inf
        self._stack = ""

    async def run(self) -> None:
        """Measure, for ever, how late the loop wakes this coroutine."""
        ended = threading.Event()
        arguments = (threading.get_ident(), ended)
        watcher = threading.Thread(target=self._watch, args=arguments, name="stall watcher", daemon=True)
        watcher.start()
        try:
            while True:
                self._due = self._clock() + self._interval
                began = time.thread_time()
                await asyncio.sleep(self._interval)
                stall = self._clock() - self._due
                self._due = math.inf
                self.observe(stall, time.thread_time() - began)
        finally:
            # The thread ends by itself within one interval.
            ended.set()

    def observe(self, stall: float, cpu: float = 0.0) -> None:
        """Record one measured delay and the processor time of the thread, both in seconds.

        At most one line in ten seconds is logged.
        """
        self.lag.observe(max(0.0, stall))
        stack, self._stack = self._stack, ""
        if stall <= self._threshold:
            return
        self.count += 1
        self.longest = max(self.longest, stall)
        left_out = self._budget.take()
        if left_out is None:
            return
        extra: dict[str, object] = {"ms": round(stall * 1000), "cpu_ms": round(cpu * 1000)}
        extra |= {"stalls": self.count, "left_out": left_out or None, "stack": stack or None}
        log.warning("the event loop stalled", extra=extra)

    def _watch(self, thread: int, ended: threading.Event) -> None:
        while not ended.wait(self._interval):
            if self._clock() - self._due > self._threshold and not self._stack:
                frame = sys._current_frames().get(thread)
                self._stack = "" if frame is None else stack_of(frame)


def stack_of(frame: FrameType, longest: int = MAX_STACK_FUNCTIONS) -> str:
    """Return the stack of a thread, innermost function first: `package/module.py:line function < ...`."""
    found: list[str] = []
    current: FrameType | None = frame
    while current is not None and len(found) < longest:
        code = current.f_code
        found.append(f"{'/'.join(Path(code.co_filename).parts[-3:])}:{current.f_lineno} {code.co_name}")
        current = current.f_back
    return " < ".join(found)
