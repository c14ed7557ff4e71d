"""Tests for the benchmark of growing answers: it measures what it says."""

from pathlib import Path

import pytest

from tests.bench.render import LIMITS, PARTS, measure, results_table
from tests.conftest import missing
from tests.page.browser import ChromiumMissingError, running_browser
from tests.page.site import opened_site


@pytest.mark.long
def test_everything_is_measured(tmp_path: Path) -> None:
    try:
        with opened_site(tmp_path) as site, running_browser() as browser:
            results = measure(site, browser, 4_000, 40, pause_ms=0)
    except ChromiumMissingError as error:
        missing("Chromium", str(error))
        raise
    assert set(results) == set(PARTS)
    for found in results.values():
        assert set(found) >= set(LIMITS)
        assert found["flushes"] > 1
        assert found["script ms"] > 0


@pytest.mark.parametrize(("value", "verdict"), [(20.0, "reached"), (20.1, "MISSED")])
def test_the_table_says_what_was_missed(value: float, verdict: str) -> None:
    assert verdict in results_table({"mixed": {"growth": value}})
