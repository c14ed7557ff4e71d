"""Readings of counted cells."""

from gatewayd.measurement.cells import counters, histograms
from gatewayd.observe.metrics.families import HTTP_DURATION, TASKS
from gatewayd.observe.metrics.readings import cells, distributions, value


def test_what_was_never_counted_is_left_out() -> None:
    numbers, spread = counters(), histograms((1.0,))
    numbers.at("user").add()
    numbers.at("gateway")
    spread.at("/", "GET").observe(0.5)
    spread.at("/", "PUT")
    assert [reading.labels for reading in cells(TASKS, numbers)()] == [("user",)]
    assert [reading.labels for reading in distributions(HTTP_DURATION, spread)()] == [("/", "GET")]
    assert value(TASKS, True, "user").value == 1.0
