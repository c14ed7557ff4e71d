"""Bounds of the log lines of refused sign-ins: the first of an address in a minute, then their count."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.audit.refusals import OTHERS, WINDOW_SECONDS

MAX_ORIGINS: Final = 1000
"""Origins that are told apart in a minute; the others are counted together."""


@dataclass(slots=True)
class _Minute:
    """The minute after a line, and the refusals in it that had none."""

    ends_at: float
    count: int = 0


RefusalOrigin = tuple[str, str]
"""The action that was refused, and the address."""


class RefusalLines:
    """Admits the first refusal of an origin to the log, and counts those of the minute after it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._minutes: dict[RefusalOrigin, _Minute] = {}
        self._ended: list[tuple[RefusalOrigin, int]] = []

    def admits(self, action: str, address: str) -> bool:
        """Return whether a refusal gets its own line."""
        origin = (action, address)
        now = self._clock()
        if origin not in self._minutes and len(self._minutes) >= MAX_ORIGINS:
            self._end(now)
            if len(self._minutes) >= MAX_ORIGINS:
                origin = (action, OTHERS)
        minute = self._minutes.get(origin)
        if minute is not None and now < minute.ends_at:
            minute.count += 1
            return False
        if minute is not None and minute.count:
            self._ended.append((origin, minute.count))
        self._minutes[origin] = _Minute(now + WINDOW_SECONDS)
        return True

    def summaries(self, *, at_end: bool = False) -> Sequence[tuple[RefusalOrigin, int]]:
        """Return origin and count of the refusals without a line whose minute is over, each once."""
        self._end(float("inf") if at_end else self._clock())
        ended, self._ended = self._ended, []
        return ended

    def _end(self, now: float) -> None:
        over = [origin for origin, minute in self._minutes.items() if minute.ends_at <= now]
        for origin in over:
            minute = self._minutes.pop(origin)
            if minute.count:
                self._ended.append((origin, minute.count))
