"""Which backups are kept: the last ones, and the newest of each day, week, month and year."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How many backups, days, weeks, months and years (of UTC) are kept; a period without one counts not."""

    last: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it would keep nothing."""
        return not any((self.last, self.daily, self.weekly, self.monthly, self.yearly))


def _week(moment: datetime) -> str:
    year, week, _ = moment.isocalendar()
    return f"{year}-{week}"


PERIODS: Final[Sequence[tuple[str, Callable[[datetime], str]]]] = (
    ("daily", lambda moment: moment.strftime("%Y-%m-%d")),
    ("weekly", _week),
    ("monthly", lambda moment: moment.strftime("%Y-%m")),
    ("yearly", lambda moment: moment.strftime("%Y")),
)


def kept(moments: Sequence[datetime], rule: RetentionRule) -> frozenset[int]:
    """Return the positions of the backups that a rule keeps."""
    newest_first = sorted(range(len(moments)), key=lambda at: moments[at], reverse=True)
    found = set(newest_first[: rule.last])
    for name, period in PERIODS:
        seen: set[str] = set()
        for at in newest_first:
            key = period(moments[at])
            if key not in seen and len(seen) < getattr(rule, name):
                seen.add(key)
                found.add(at)
    return frozenset(found)
