"""Tests for the benchmark of provisioning: it asks what it says, of a directory that is filled as it says."""

from pathlib import Path

import pytest

from tests.bench.population import Population
from tests.bench.provisioning import CASES, ENGINES, GOALS, measure, results_table, running
from tests.bench.report import quantile


def test_goals_are_those_of_cases() -> None:
    assert set(GOALS) <= set(CASES)


def test_quantiles_are_values_that_were_measured() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([3.0, 1.0, 2.0], 0.99) == 3.0
    assert quantile([1.0], 0.01) == 1.0


def test_the_table_says_what_was_missed() -> None:
    quick = {name: {"p50": 1.0, "p99": 2.0} for name in CASES}
    alone = results_table({"postgresql": {**quick, "list of 100 at 95 %": {"p50": 49.0, "p99": 60.0}}})
    assert "MISSED" not in alone
    slow = {**quick, "POST user": {"p50": 11.0, "p99": 20.0}}
    rows = results_table({"sqlite": quick, "postgresql": slow}).splitlines()
    assert [row.split("|")[1].strip() for row in rows if "MISSED" in row] == ["POST user"]


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_every_request_is_answered(engine: str, tmp_path: Path) -> None:
    with running(engine, tmp_path, Population(users=2500, groups=3, largest=50)) as site:
        found = measure(site, share=0.002)
        assert set(found) == set(CASES)
        assert site.send("GET", "/Groups?count=0")["totalResults"] == 3
        assert site.find(count=0)["totalResults"] == 2500 + site.made
