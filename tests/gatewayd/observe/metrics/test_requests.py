"""Counts of requests."""

import pytest

from gatewayd.observe.metrics.requests import RequestMetrics
from tests.write_api_manual import rows


@pytest.mark.parametrize(
    ("status", "name"), [(200, "2xx"), (499, "4xx"), (599, "5xx"), (101, "1xx"), (999, "other"), (0, "other")]
)
def test_a_request_counts_by_the_class_of_its_status(status: int, name: str) -> None:
    metrics = RequestMetrics()
    metrics.tally("/v1/models", "GET").finished(status, 0.25)
    found = {labels: cell.value for labels, cell in metrics.requests.items() if cell.value}
    assert found == {("/v1/models", "GET", name): 1}
    assert next(cell.total for _, cell in metrics.durations.items()) == 0.25


def test_every_row_of_the_public_application_has_cells_of_its_own() -> None:
    metrics = RequestMetrics()
    made = {(row.path, method) for row in rows() for method in {row.method, "HEAD"}}
    for path, method in made:
        metrics.tally(path, method)
    assert {labels[:2] for labels, _ in metrics.requests.items()} == made
    assert {labels for labels, _ in metrics.durations.items()} == made
