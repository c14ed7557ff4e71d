"""Recorder of usage: sums calls in memory, and writes the sums once a second."""

import asyncio
import logging
import time
from typing import Final

from gatewayd import ids
from gatewayd.errors import GatewayError
from gatewayd.metering.interfaces import ignore_call
from gatewayd.metering.records import NO_USAGE, CallOutcome, MeteredCall
from gatewayd.metering.usage_records import UsageKey, UsageStore, UsageSums

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 1.0
"""Pause between two writes: what a kill -9 loses at most."""

RETRY_SECONDS: Final = 5.0
"""Pause after a write that failed."""

DAY_SECONDS: Final = 86_400

MAX_PENDING_ROWS: Final = 50_000
"""Maximum number of rows that wait for the database; further ones are summed up by day and user."""

WELL_ENDED: Final = (CallOutcome.ANSWERED, CallOutcome.CANCELLED)

OTHER_MODEL: Final = "(other)"
"""Model of the sums of those rows."""


class UsageRecorder:
    """A `CallObserver` that sums finished calls, and keeps the sums while the database is out of reach."""

    def __init__(self, store: UsageStore, clock: ids.Clock = ids.now) -> None:
        self._store = store
        self._clock = clock
        self._pending: dict[UsageKey, UsageSums] = {}
        self._day, self._day_ends = "", 0
        self._writing = asyncio.Lock()
        self._is_failing = False

    @property
    def pending(self) -> int:
        """The number of rows that wait."""
        return len(self._pending)

    begun = ignore_call
    first = ignore_call

    def finished(self, call: MeteredCall) -> None:
        """Add a call to the sums of its row, by the day of its end."""
        now = self._clock()
        if not self._day_ends - DAY_SECONDS <= now < self._day_ends:
            self._begin_day(now)
        key = (self._day, call.user_id, call.key_id, call.model, call.source, call.endpoint)
        # A key is equal to the tuple of its values.
        sums = self._pending.get(key) or self._sums(UsageKey._make(key))  # type: ignore[call-overload]
        count_call(sums, call)

    async def run(self) -> None:
        """Write what has come, again and again, until cancelled."""
        while True:
            await asyncio.sleep(RETRY_SECONDS if self._is_failing else FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write what waits; a failed write is logged, and its sums wait for the next one."""
        async with self._writing:
            rows, self._pending = self._pending, {}
            if not rows:
                return
            is_written = False
            try:
                await self._store.add(rows)
                is_written = True
            except GatewayError as error:
                if not self._is_failing:
                    log.warning("usage waits for the database: %s", error.full_message)
            finally:
                self._is_failing = not is_written
                if not is_written:
                    for key, sums in rows.items():
                        self._sums(key).add(sums)

    def _sums(self, key: UsageKey) -> UsageSums:
        sums = self._pending.get(key)
        if sums is None:
            if len(self._pending) >= MAX_PENDING_ROWS:
                return self._folded(key)
            sums = self._pending[key] = UsageSums()
        return sums

    def _folded(self, key: UsageKey) -> UsageSums:
        """Return the sums of a day and user, or of the day; there are few of them."""
        user = UsageKey(key.day, key.user_id, "", OTHER_MODEL, "", "")
        if user not in self._pending and len(self._pending) >= 2 * MAX_PENDING_ROWS:
            user = UsageKey(key.day, "", "", OTHER_MODEL, "", "")
        return self._pending.setdefault(user, UsageSums())

    def _begin_day(self, now: int) -> None:
        self._day = day_of(now)
        self._day_ends = (now // DAY_SECONDS + 1) * DAY_SECONDS


def count_call(sums: UsageSums, call: MeteredCall) -> None:
    """Add a finished call to sums."""
    sums.requests += 1
    if call.outcome not in WELL_ENDED:
        sums.failures += 1
    began = call.began
    sums.milliseconds += int((call.ended_at - began) * 1000 + 0.5)
    if call.first_at:
        sums.first_milliseconds += int((call.first_at - began) * 1000 + 0.5)
        sums.timed += 1
    usage = call.usage
    if not usage or usage == NO_USAGE:
        return
    prompt, cached, written, completion, reasoning = usage
    sums.prompt += prompt
    sums.completion += completion
    if cached or written or reasoning:
        sums.cached += cached
        sums.cache_written += written
        sums.reasoning += reasoning
    if call.cost is None:
        sums.unpriced += 1
    else:
        sums.cost += call.cost
    if call.is_estimated:
        sums.estimated += 1


def day_of(now: int) -> str:
    """Return the day (UTC) of an epoch second, as rows of usage name it."""
    return time.strftime("%Y-%m-%d", time.gmtime(now))
