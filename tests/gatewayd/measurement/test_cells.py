"""Counters and histograms."""

import pytest

from gatewayd.measurement.cells import OTHER, HistogramCell, counters, histograms


def test_a_counter_has_a_cell_for_each_label_value() -> None:
    cells = counters()
    cells.at("a").add()
    cells.at("a").add(2)
    cells.at("b").add()
    assert {labels: cell.value for labels, cell in cells.items()} == {("a",): 3, ("b",): 1}


def test_cells_over_the_limit_are_counted_together() -> None:
    cells = counters(limit=2)
    for name in ("a", "b", "c", "d", "a"):
        cells.at(name, "x").add()
    assert {labels: cell.value for labels, cell in cells.items()} == {
        ("a", "x"): 2,
        ("b", "x"): 1,
        (OTHER, OTHER): 2,
    }
    assert len(cells) == 3


@pytest.mark.parametrize(("seen", "place"), [(0.0, 0), (1.0, 0), (1.1, 1), (5.0, 1), (5.1, 2)])
def test_a_value_is_counted_in_the_first_bucket_that_holds_it(seen: float, place: int) -> None:
    cell = HistogramCell((1.0, 5.0))
    cell.observe(seen)
    assert cell.counts[place] == sum(cell.counts) == 1
    assert cell.total == seen


def test_histograms_share_bounds() -> None:
    cells = histograms((1.0,))
    cells.at("a").observe(2)
    assert next(iter(cells.items()))[1].counts == [0, 1]
