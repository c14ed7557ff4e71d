"""Periods of budgets: days, weeks and months of the calendar, in UTC; pure."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

DAY_SECONDS: Final = 86_400


class BudgetPeriod(StrEnum):
    """A period of the calendar in UTC; a week begins on Monday (ISO 8601)."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


def period_start(period: BudgetPeriod, now: int) -> int:
    """Return the epoch second at which the period of a time began."""
    midnight = now - now % DAY_SECONDS
    match period:
        case BudgetPeriod.DAY:
            return midnight
        case BudgetPeriod.WEEK:
            return midnight - datetime.fromtimestamp(midnight, UTC).weekday() * DAY_SECONDS
        case BudgetPeriod.MONTH:
            return midnight - (datetime.fromtimestamp(midnight, UTC).day - 1) * DAY_SECONDS


def period_end(period: BudgetPeriod, starts_at: int) -> int:
    """Return the epoch second at which the period that began at a time ends."""
    match period:
        case BudgetPeriod.DAY:
            return starts_at + DAY_SECONDS
        case BudgetPeriod.WEEK:
            return starts_at + 7 * DAY_SECONDS
        case BudgetPeriod.MONTH:
            later = datetime.fromtimestamp(starts_at, UTC).replace(day=28) + timedelta(days=4)
            return int(later.replace(day=1).timestamp())
