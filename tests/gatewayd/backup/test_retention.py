from datetime import UTC, datetime, timedelta

import pytest

from gatewayd.backup.retention import RetentionRule, kept

START = datetime(2026, 11, 24, 2, 30, tzinfo=UTC)
NIGHTS = [START - timedelta(days=number) for number in range(400)]


@pytest.mark.parametrize(
    ("rule", "positions"),
    [
        (RetentionRule(last=3), {0, 1, 2}),
        (RetentionRule(daily=2), {0, 1}),
        # The 24th is a Tuesday: the newest of this week, and the Sundays before.
        (RetentionRule(weekly=3), {0, 2, 9}),
        (RetentionRule(monthly=3), {0, 24, 55}),
        (RetentionRule(yearly=2), {0, 328}),
        (RetentionRule(last=1, daily=1, weekly=1, monthly=1, yearly=1), {0}),
        (RetentionRule(daily=10_000), set(range(400))),
    ],
)
def test_the_newest_of_each_period_is_kept(rule: RetentionRule, positions: set[int]) -> None:
    assert kept(NIGHTS, rule) == positions
    # The order in which they are found changes nothing.
    assert {399 - at for at in kept(NIGHTS[::-1], rule)} == positions


def test_a_period_without_a_backup_does_not_count() -> None:
    sparse = [START, START - timedelta(days=90), START - timedelta(days=200)]
    assert kept(sparse, RetentionRule(daily=3)) == {0, 1, 2}
    assert kept([START, START - timedelta(hours=1)], RetentionRule(daily=2)) == {0}


def test_a_rule_without_numbers_is_empty() -> None:
    assert RetentionRule().is_empty
    assert not RetentionRule(yearly=1).is_empty
