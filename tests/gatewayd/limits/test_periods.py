"""Tests for gatewayd.limits.periods."""

from datetime import datetime

import pytest

from gatewayd.limits.periods import BudgetPeriod, period_end, period_start


def epoch(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp())


@pytest.mark.parametrize(
    ("period", "now", "start", "end"),
    [
        ("day", "2026-11-24T23:59:59", "2026-11-24", "2026-11-25"),
        ("day", "2026-11-25T00:00:00", "2026-11-25", "2026-11-26"),
        ("week", "2026-11-24T12:00:00", "2026-11-23", "2026-11-30"),
        ("week", "2026-11-22T23:59:59", "2026-11-16", "2026-11-23"),
        ("week", "2027-01-01T00:00:00", "2026-12-28", "2027-01-04"),
        ("month", "2026-12-31T23:59:59", "2026-12-01", "2027-01-01"),
        ("month", "2028-02-29T01:00:00", "2028-02-01", "2028-03-01"),
        ("month", "2026-10-25T02:30:00", "2026-10-01", "2026-11-01"),
    ],
)
def test_periods_of_the_calendar(period: str, now: str, start: str, end: str) -> None:
    began = period_start(BudgetPeriod(period), epoch(now))
    assert (began, period_end(BudgetPeriod(period), began)) == (epoch(start), epoch(end))
