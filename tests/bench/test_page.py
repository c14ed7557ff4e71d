"""Tests for the benchmark of the page: it measures what it says."""

from pathlib import Path

import pytest

from tests.bench.page import LIMITS, measure, results_table
from tests.conftest import missing
from tests.page.browser import ChromiumMissingError, running_browser
from tests.page.site import opened_site

QUICK_KILOBYTES = 150.0
"""Maximum first load, the answers of the API included, before the files have their best coding."""


def test_everything_is_measured(tmp_path: Path) -> None:
    try:
        with opened_site(tmp_path) as site, running_browser() as browser:
            results = measure(site, browser, 1, pause=0)
    except ChromiumMissingError as error:
        missing("Chromium", str(error))
        raise
    assert {(name, label) for name, found in results.items() for label in found} >= set(LIMITS)
    # The measurement does not wait for the best coding of the files.
    assert 50 < results["empty cache"]["kB"] <= QUICK_KILOBYTES
    assert results["empty cache"]["requests"] > results["again"]["requests"] > 2
    assert all(value > 0 for found in results.values() for value in found.values())


@pytest.mark.parametrize(("value", "verdict"), [(150.0, "reached"), (150.1, "MISSED")])
def test_the_table_says_what_was_missed(value: float, verdict: str) -> None:
    assert verdict in results_table({"empty cache": {"kB": value}})
