"""Forwarding of stored rows to another place: a bounded queue, in order, repeated until they are taken."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from gatewayd.audit.interfaces import AuditReceiver
from gatewayd.audit.records import AuditRow
from gatewayd.errors import GatewayError

log = logging.getLogger(__name__)

MAX_QUEUED_ROWS: Final = 10_000
"""Rows that wait for a receiver; the oldest ones are left out when more come."""

BATCH_ROWS: Final = 100
"""Maximum number of rows that are sent at once."""

FIRST_PAUSE_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 60.0


class AuditForwarder:
    """Sends rows to a receiver. A receiver that takes none delays nothing but its own rows."""

    def __init__(self, receiver: AuditReceiver, *, first_pause: float = FIRST_PAUSE_SECONDS) -> None:
        self._receiver = receiver
        self._first_pause = first_pause
        self._queue: deque[AuditRow] = deque()
        self._left_out: tuple[int, int] | None = None
        self._wake = asyncio.Event()

    def take(self, rows: Sequence[AuditRow]) -> None:
        """Queue stored rows; waits for nothing."""
        self._queue.extend(rows)
        while len(self._queue) > MAX_QUEUED_ROWS:
            dropped = self._queue.popleft().sequence
            first = dropped if self._left_out is None else self._left_out[0]
            self._left_out = (first, dropped)
        self._wake.set()

    async def run(self) -> None:
        """Send for ever; a failed batch is repeated, in halves: its receiver may take fewer bytes at once."""
        failures, size = 0, BATCH_ROWS
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
            batch = [self._queue[place] for place in range(min(size, len(self._queue)))]
            try:
                await self._receiver.send(batch)
            except GatewayError as error:
                if not failures:
                    log.warning("rows of the audit log wait for their receiver: %s", error.full_message)
                failures, size = failures + 1, max(1, size // 2)
                await asyncio.sleep(min(MAX_PAUSE_SECONDS, self._first_pause * 2 ** min(failures - 1, 10)))
                continue
            if failures:
                log.info("the receiver of the audit log takes rows again")
            failures, size = 0, min(BATCH_ROWS, size + 1)
            self._remove(batch)

    def _remove(self, batch: Sequence[AuditRow]) -> None:
        # Meanwhile the oldest ones may have been left out.
        last = batch[-1].sequence
        while self._queue and self._queue[0].sequence <= last:
            self._queue.popleft()
        if self._left_out is not None:
            first, end = self._left_out
            self._left_out = None
            log.error("rows %d to %d of the audit log were not forwarded: too many waited", first, end)
