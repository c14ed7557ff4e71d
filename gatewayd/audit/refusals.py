"""Bounds of refused requests in the audit log, so that a flood of them does not fill the disk."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from gatewayd.audit.records import GATEWAY_ACTOR, AuditEntry, AuditResult

WINDOW_SECONDS: Final = 60.0
MAX_REFUSALS_OF_ONE: Final = 10
"""Rows of refusals of one address, account or unix user in a minute."""

MAX_REFUSALS_OF_ALL: Final = 120
"""Rows of refusals in a minute: at 600 bytes a row, 100 MB a day at most."""

MAX_SHOWN: Final = 10
MAX_COUNTED: Final = 1000
"""Addresses whose refusals are counted one by one in a minute."""

SUMMARY_ACTION: Final = "refusals summarised"
OTHERS: Final = "others"


class RefusalBound:
    """Admits the first refusals of a minute and counts the rest, for one summary row."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends_at = 0.0
        self._admitted: Counter[str] = Counter()
        self._total = 0
        self._left_out: Counter[str] = Counter()

    def admits(self, origin: str) -> bool:
        """Return whether a refusal of an origin (an address or a name) gets its own row."""
        self._turn()
        if self._total < MAX_REFUSALS_OF_ALL and self._admitted[origin] < MAX_REFUSALS_OF_ONE:
            self._admitted[origin] += 1
            self._total += 1
            return True
        is_counted = origin in self._left_out or len(self._left_out) < MAX_COUNTED
        self._left_out[origin if is_counted else OTHERS] += 1
        return False

    def summary(self, *, at_end: bool = False) -> AuditEntry | None:
        """Return the row of the refusals that got none, once their minute is over; None without any."""
        if not self._left_out or not (at_end or self._clock() >= self._ends_at):
            return None
        counts, self._left_out = self._left_out, Counter()
        shown = dict(counts.most_common(MAX_SHOWN))
        after = {"refusals": counts.total(), "origins": len(counts), "most": shown}
        return AuditEntry(
            SUMMARY_ACTION,
            GATEWAY_ACTOR,
            after=after,
            result=AuditResult.REFUSED,
            detail=f"{counts.total()} further refusals in a minute have no row of their own",
        )

    def _turn(self) -> None:
        now = self._clock()
        if now >= self._ends_at:
            self._ends_at = now + WINDOW_SECONDS
            self._admitted.clear()
            self._total = 0
