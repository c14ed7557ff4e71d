"""Readings: what other services know, taken at each scrape and counted nowhere else."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from gatewayd.measurement.cells import CounterCell, HistogramCell, LabeledCells
from gatewayd.observe.metrics.families import MetricFamily


class MetricReading(NamedTuple):
    """One value of a family: a number, or a histogram."""

    family: MetricFamily
    labels: tuple[str, ...]
    value: float | HistogramCell


Reader = Callable[[], Iterable[MetricReading]]
"""Returns readings at once; it takes microseconds and never raises."""

SlowReader = Callable[[], Awaitable[Sequence[MetricReading]]]
"""Returns readings of the database; raises GatewayError when it does not answer."""


def value(family: MetricFamily, number: float, *labels: str) -> MetricReading:
    """Return the reading of one number."""
    return MetricReading(family, labels, float(number))


def cells(family: MetricFamily, found: LabeledCells[CounterCell]) -> Reader:
    """Return the reader of counted numbers; those that are 0 are left out."""
    return lambda: (MetricReading(family, labels, cell.value) for labels, cell in found.items() if cell.value)


def distributions(family: MetricFamily, found: LabeledCells[HistogramCell]) -> Reader:
    """Return the reader of histograms; empty ones are left out."""
    return lambda: (MetricReading(family, labels, cell) for labels, cell in found.items() if any(cell.counts))
