"""Counts of requests."""

import pytest

from gatewayd.observe.metrics.requests import RequestMetrics


@pytest.mark.parametrize(
    ("status", "name"), [(200, "2xx"), (499, "4xx"), (599, "5xx"), (101, "1xx"), (999, "other"), (0, "other")]
)
def test_a_request_counts_by_the_class_of_its_status(status: int, name: str) -> None:
    metrics = RequestMetrics()
    metrics.tally("/v1/models", "GET").finished(status, 0.25)
    found = {labels: cell.value for labels, cell in metrics.requests.items() if cell.value}
    assert found == {("/v1/models", "GET", name): 1}
    assert next(cell.total for _, cell in metrics.durations.items()) == 0.25
