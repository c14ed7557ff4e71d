"""What the models do now: the calls in flight, and those that ended within the last minute."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall

WINDOW_SECONDS: Final = 60.0
MAX_ENDED_CALLS: Final = 20_000
"""Maximum number of ended calls that are remembered."""

QUALITIES: Final[dict[str, Callable[[MeteredCall], str]]] = {
    "user": attrgetter("user_id"),
    "key": attrgetter("key_id"),
    "model": attrgetter("model"),
    "provider": attrgetter("source"),
}
"""By what calls are put together."""


@dataclass(slots=True)
class LoadSums:
    """Calls of one quality: in flight, and ended within the window; `first_seconds` is their sum."""

    requests: int = 0
    streams: int = 0
    waiting: int = 0
    finished: int = 0
    failures: int = 0
    tokens: int = 0
    timed: int = 0
    first_seconds: float = 0.0

    def begin(self, call: MeteredCall) -> None:
        """Add a call in flight."""
        self.requests += 1
        self.streams += call.is_stream
        self.waiting += not call.first_at

    def end(self, call: MeteredCall) -> None:
        """Add a call that has ended."""
        self.finished += 1
        self.failures += call.outcome not in (CallOutcome.ANSWERED, CallOutcome.CANCELLED)
        self.tokens += 0 if call.usage is None else call.usage.completion
        if call.first_at:
            self.timed += 1
            self.first_seconds += call.first_seconds


class LoadWatch:
    """A `CallObserver` that remembers the calls of the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended: deque[MeteredCall] = deque(maxlen=MAX_ENDED_CALLS)

    def begun(self, call: MeteredCall) -> None:
        """Do nothing."""

    def first(self, call: MeteredCall) -> None:
        """Do nothing."""

    def finished(self, call: MeteredCall) -> None:
        """Remember a call."""
        self._ended.append(call)

    def snapshot(self, meter: CallMeter, quality: str) -> tuple[LoadSums, dict[str, LoadSums]]:
        """Return the sums of all calls and those by a word of QUALITIES."""
        since = self._clock() - WINDOW_SECONDS
        while self._ended and self._ended[0].ended_at < since:
            self._ended.popleft()
        total, lines = LoadSums(), dict[str, LoadSums]()
        word = QUALITIES[quality]
        for calls, add in ((meter.calls, LoadSums.begin), (self._ended, LoadSums.end)):
            _add_all(calls, add, word, total, lines)
        return total, lines


def _add_all(
    calls: Iterable[MeteredCall],
    add: Callable[[LoadSums, MeteredCall], None],
    word: Callable[[MeteredCall], str],
    total: LoadSums,
    lines: dict[str, LoadSums],
) -> None:
    for call in calls:
        add(total, call)
        add(lines.setdefault(word(call), LoadSums()), call)
