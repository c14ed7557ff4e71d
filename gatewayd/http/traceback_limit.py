"""Which failures are logged with a traceback: each place in the code now and then, not with each request."""

import time
from collections.abc import Callable
from typing import Final

from aiohttp import web

PAUSE_SECONDS: Final = 60.0
"""Between two tracebacks of one place."""
MAX_ORIGINS: Final = 256

TracebackOrigin = tuple[str, str, int]
"""The name of an exception, and the file and the line that raised it."""


class TracebackLimiter:
    """Remembers what was logged with a traceback."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[TracebackOrigin, float] = {}

    def wants(self, error: BaseException) -> bool:
        """Tell whether a failure is to be logged with its traceback, which counts as logged then."""
        place, now = traceback_origin_of(error), self._clock()
        told = self._told.pop(place, None)
        is_wanted = told is None or now - told >= PAUSE_SECONDS
        self._told[place] = now if told is None or is_wanted else told
        if len(self._told) > MAX_ORIGINS:
            del self._told[next(iter(self._told))]
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
    """Return where the first cause of a failure was raised."""
    root = root_cause_of(error)
    trace = root.__traceback__
    if trace is None:
        return type(root).__qualname__, "", 0
    while trace.tb_next is not None:
        trace = trace.tb_next
    return type(root).__qualname__, trace.tb_frame.f_code.co_filename, trace.tb_lineno
