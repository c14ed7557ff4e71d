"""Tests for gatewayd.audit.forwarder: order, repetition, a bounded queue."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

import pytest

from gatewayd.audit import forwarder as module
from gatewayd.audit.chain import link
from gatewayd.audit.forwarder import AuditForwarder
from gatewayd.audit.records import GATEWAY_ACTOR, AuditEntry, AuditRow, ChainHead
from gatewayd.errors import ErrorKind, GatewayError

ROWS = link([(at, AuditEntry(f"a{at}", GATEWAY_ACTOR)) for at in range(1, 251)], ChainHead())


class ListReceiver:
    """Takes rows, at most so many at once, or fails a number of times first."""

    def __init__(self, failures: int = 0, most: int = 1000) -> None:
        self.failures, self.most, self.taken = failures, most, []  # type: ignore[var-annotated]

    async def send(self, rows: Sequence[AuditRow]) -> None:
        if self.failures or len(rows) > self.most:
            self.failures = max(0, self.failures - 1)
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot send")
        self.taken.append([row.sequence for row in rows])

    async def close(self) -> None:
        """Nothing is open."""


async def forwarded(receiver: ListReceiver, rows: Sequence[AuditRow]) -> list[int]:
    forwarder = AuditForwarder(receiver, first_pause=0.001)
    forwarder.take(rows)
    task = asyncio.ensure_future(forwarder.run())
    for _ in range(1000):
        if receiver.taken and receiver.taken[-1][-1] == rows[-1].sequence:
            break
        await asyncio.sleep(0.001)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return [number for batch in receiver.taken for number in batch]


@pytest.mark.parametrize(
    ("failures", "sizes"), [(0, [100, 100, 50]), (1, [50, 51, 52, 53, 44]), (3, [*range(12, 25), 16])]
)
async def test_rows_are_sent_in_order_until_they_are_taken(failures: int, sizes: list[int]) -> None:
    receiver = ListReceiver(failures)
    assert await forwarded(receiver, ROWS) == list(range(1, 251))
    assert [len(batch) for batch in receiver.taken] == sizes


async def test_a_receiver_that_takes_few_bytes_at_once_gets_every_row() -> None:
    receiver = ListReceiver(most=3)
    assert await forwarded(receiver, ROWS[:20]) == list(range(1, 21))


async def test_the_oldest_of_too_many_are_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED_ROWS", 50)
    with caplog.at_level(logging.ERROR):
        assert await forwarded(ListReceiver(), ROWS) == list(range(201, 251))
    assert [record.getMessage() for record in caplog.records] == [
        "rows 1 to 200 of the audit log were not forwarded: too many waited"
    ]
