"""Tests for the benchmark of events and chats: it measures what it says, at a small size."""

import asyncio
from pathlib import Path

import pytest

from tests.bench.live import LIMITS, Size, measure, results_table, running


@pytest.mark.long
def test_everything_is_measured(tmp_path: Path) -> None:
    size = Size(seconds=0.2, streams=20, listeners=10, messages=30, repeats=3)
    with running(tmp_path) as site:
        results = asyncio.run(measure(site, size))
    assert {(name, label) for name, found in results.items() for label in found} >= set(LIMITS)
    assert results["idle streams"]["errors"] == 0
    assert all(value > 0 for label, value in results["fan-out"].items() if label.endswith("ms"))


def test_the_table_says_what_was_missed() -> None:
    rows = results_table({"fan-out": {"median ms": 51.0}, "append": {"large / small": 1.0}}).splitlines()
    assert [row.split("|")[1].strip() for row in rows if "MISSED" in row] == ["fan-out"]
