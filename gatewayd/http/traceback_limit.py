"""Limit of tracebacks in the log: one for each origin in the code and interval."""

import time
from collections.abc import Callable
from typing import Final

from aiohttp import web

PAUSE_SECONDS: Final = 60.0
"""Least time between two tracebacks of one origin."""
MAX_ORIGINS: Final = 256

TracebackOrigin = tuple[str, str, int]
"""Name of an exception, and the file and line that raised it."""


class TracebackLimiter:
    """The times of the last tracebacks by origin."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged: dict[TracebackOrigin, float] = {}

    def wants(self, error: BaseException) -> bool:
        """Return whether to log a failure with its traceback; True counts it as logged."""
        origin, now = traceback_origin_of(error), self._clock()
        logged = self._logged.pop(origin, None)
        is_wanted = logged is None or now - logged >= PAUSE_SECONDS
        self._logged[origin] = now if logged is None or is_wanted else logged
        if len(self._logged) > MAX_ORIGINS:
            del self._logged[next(iter(self._logged))]
        return is_wanted


TRACES: Final = web.AppKey("traces", TracebackLimiter)


def root_cause_of(error: BaseException) -> BaseException:
    """Return the first cause of a failure."""
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    return error


def traceback_origin_of(error: BaseException) -> TracebackOrigin:
    """Return the origin of the first cause of a failure."""
    root = root_cause_of(error)
    trace = root.__traceback__
    if trace is None:
        return type(root).__qualname__, "", 0
    while trace.tb_next is not None:
        trace = trace.tb_next
    return type(root).__qualname__, trace.tb_frame.f_code.co_filename, trace.tb_lineno
