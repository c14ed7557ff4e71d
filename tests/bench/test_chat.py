"""Tests for the benchmark of long chats: it measures what it says."""

from pathlib import Path

import pytest

from tests.bench.chat import GOALS, LIMITS, STREAM, measure, results_table
from tests.conftest import missing
from tests.page.browser import ChromiumMissingError, running_browser
from tests.page.site import opened_site


@pytest.mark.long
def test_everything_is_measured(tmp_path: Path) -> None:
    try:
        with opened_site(tmp_path, plugins={"stream": STREAM}) as site, running_browser() as browser:
            results = measure(site, browser, 300, 0.5)
    except ChromiumMissingError as error:
        missing("Chromium", str(error))
        raise
    assert {(name, label) for name, found in results.items() for label in found} >= {*LIMITS, *GOALS}
    assert 20 < results["open"]["messages in the page"] <= LIMITS["open", "messages in the page"]
    assert all(results[name]["frames a second"] > 1 for name in ("typing", "scrolling"))


@pytest.mark.parametrize(
    ("label", "value", "verdict"), [("typing", 55.0, "reached"), ("typing", 54.9, "MISSED")]
)
def test_the_table_says_what_was_missed(label: str, value: float, verdict: str) -> None:
    assert verdict in results_table({label: {"frames a second": value}})
