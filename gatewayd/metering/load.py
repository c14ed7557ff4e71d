"""What the models do now: the calls in flight, and those that ended within the last minute."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from gatewayd.metering.interfaces import ignore_call
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall

WINDOW_SECONDS: Final = 60.0
MAX_ENDED_CALLS: Final = 20_000
"""Maximum number of ended calls that are remembered."""

EndedCall = tuple[str, str, str, str, float, CallOutcome | None, int, float]
"""User, key, model, provider, time of the end, outcome, tokens of the answer, and seconds to its first part.

A plain tuple, because the collector of garbage passes it over.
"""

ENDED_AT: Final = 4
ENDED_OUTCOME: Final = 5
ENDED_TOKENS: Final = 6
ENDED_FIRST: Final = 7
WELL_ENDED: Final = (CallOutcome.ANSWERED, CallOutcome.CANCELLED)

QUALITIES: Final = {"user": "user_id", "key": "key_id", "model": "model", "provider": "source"}
"""By what calls are put together, in the order of `EndedCall`, with the member of a call."""


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

    def end(self, call: "EndedCall") -> None:
        """Add a call that has ended."""
        self.finished += 1
        self.failures += call[ENDED_OUTCOME] not in WELL_ENDED
        self.tokens += call[ENDED_TOKENS]
        if call[ENDED_FIRST]:
            self.timed += 1
            self.first_seconds += call[ENDED_FIRST]


class LoadWatch:
    """A `CallObserver` that remembers the calls of the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended: deque[EndedCall] = deque(maxlen=MAX_ENDED_CALLS)

    begun = ignore_call
    first = ignore_call

    def finished(self, call: MeteredCall) -> None:
        """Remember a call."""
        tokens = 0 if call.usage is None else call.usage.completion
        first = call.first_at - call.began if call.first_at else 0.0
        self._ended.append(
            (call.user_id, call.key_id, call.model, call.source, call.ended_at, call.outcome, tokens, first)
        )

    def snapshot(self, meter: CallMeter, quality: str) -> tuple[LoadSums, dict[str, LoadSums]]:
        """Return the sums of all calls and those by a word of QUALITIES."""
        since = self._clock() - WINDOW_SECONDS
        while self._ended and self._ended[0][ENDED_AT] < since:
            self._ended.popleft()
        total, lines = LoadSums(), dict[str, LoadSums]()
        place, member = list(QUALITIES).index(quality), attrgetter(QUALITIES[quality])
        for call in meter.calls:
            for sums in (total, lines.setdefault(member(call), LoadSums())):
                sums.begin(call)
        for ended in self._ended:
            for sums in (total, lines.setdefault(str(ended[place]), LoadSums())):
                sums.end(ended)
        return total, lines
