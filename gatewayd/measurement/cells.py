"""Counters and histograms of the running daemon: plain numbers that `observe.metrics` reads at each scrape.

They are used on the event loop only and have no lock. A family has a bounded number of cells: further label
values are counted in one cell whose labels are `OTHER`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

OTHER: Final = "other"
"""Label value of all cells over the limit of a family."""

MAX_CELLS: Final = 2000
"""Maximum number of cells of a family, the one for `OTHER` excluded."""


class CounterCell:
    """One number with its labels; `value` only grows, unless the family is a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        """Add to the number."""
        self.value += amount


class HistogramCell:
    """A distribution of values: the number in each bucket, and the total of all values.

    `counts[n]` is the number of values up to `bounds[n]` and over the bound before; the last element counts
    those over all bounds.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


Cell = TypeVar("Cell")


class LabeledCells(Generic[Cell]):
    """The cells of one family by their label values.

    `at` makes a cell at its first use; a caller on the hot path keeps it.
    """

    def __init__(self, make: Callable[[], Cell], limit: int = MAX_CELLS) -> None:
        self._make = make
        self._limit = limit
        self._cells: dict[tuple[str, ...], Cell] = {}

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self._cells)

    def at(self, *labels: str) -> Cell:
        """Return the cell of these label values, that of `OTHER` if there are too many."""
        cell = self._cells.get(labels)
        if cell is not None:
            return cell
        if len(self._cells) >= self._limit:
            labels = (OTHER,) * len(labels)
        return self._cells.setdefault(labels, self._make())

    def items(self) -> Iterator[tuple[tuple[str, ...], Cell]]:
        """Yield label values and cells as they are now."""
        yield from list(self._cells.items())


def counters(limit: int = MAX_CELLS) -> LabeledCells[CounterCell]:
    """Return the cells of a family of counters or gauges."""
    return LabeledCells(CounterCell, limit)


def histograms(bounds: Sequence[float], limit: int = MAX_CELLS) -> LabeledCells[HistogramCell]:
    """Return the cells of a family of histograms; `bounds` are ascending."""
    return LabeledCells(lambda: HistogramCell(bounds), limit)
