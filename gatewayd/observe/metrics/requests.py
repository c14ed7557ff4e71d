"""Counts of HTTP requests; implements `http.observation.RequestTallies`."""

from typing import Final

from gatewayd.measurement.cells import CounterCell, HistogramCell, counters, histograms
from gatewayd.observe.metrics.families import HTTP_BOUNDS

STATUS_CLASSES: Final = ("other", "1xx", "2xx", "3xx", "4xx", "5xx")
"""Label values by the first digit of a status."""

MAX_ROWS: Final = 3000
"""Maximum number of pairs of a path template and a method; the program has them all, no client adds one."""


class RouteTally:
    """The cells of one path template and method."""

    __slots__ = ("_by_class", "_duration")

    def __init__(self, by_class: list[CounterCell], duration: HistogramCell) -> None:
        self._by_class = by_class
        self._duration = duration

    def finished(self, status: int, seconds: float) -> None:
        """Count one request."""
        place = status // 100
        self._by_class[place if place < len(STATUS_CLASSES) else 0].value += 1
        self._duration.observe(seconds)


class RequestMetrics:
    """The requests of all applications.

    `in_flight` is their number without a complete answer, `fast` the number of those of the fast path.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.fast = 0
        self.requests = counters(MAX_ROWS * len(STATUS_CLASSES))
        self.durations = histograms(HTTP_BOUNDS, MAX_ROWS)

    def tally(self, route: str, method: str) -> RouteTally:
        """Return the tally of a path template and method; made once for each row at the start."""
        cells = [self.requests.at(route, method, name) for name in STATUS_CLASSES]
        return RouteTally(cells, self.durations.at(route, method))
