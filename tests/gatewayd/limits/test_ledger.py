"""Tests for gatewayd.limits.ledger."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits import ledger as ledger_module
from gatewayd.limits.ledger import BudgetLedger
from gatewayd.limits.periods import BudgetPeriod
from gatewayd.limits.records import (
    BudgetDemand,
    BudgetReservation,
    BudgetSettlement,
    BudgetUnit,
    CounterKey,
    LedgerReport,
)
from gatewayd.tasks import TaskRegistry
from tests.fakes.limits.memory_budgets import MemoryBudgets

DAY = CounterKey("r1", "", BudgetUnit.TOKENS, BudgetPeriod.DAY, 0)


class FlakyBudgets(MemoryBudgets):
    """A store that fails on demand, or waits."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def apply(
        self, reservations: Sequence[BudgetReservation], settlements: Sequence[BudgetSettlement]
    ) -> LedgerReport:
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot count the budgets: the database is locked")
        return await super().apply(reservations, settlements)


@pytest.fixture
async def store() -> FlakyBudgets:
    return FlakyBudgets()


@pytest.fixture
async def ledger(store: FlakyBudgets, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BudgetLedger]:
    monkeypatch.setattr(ledger_module, "FIRST_PAUSE_SECONDS", 0.001)
    tasks, found = TaskRegistry(), BudgetLedger(store)
    tasks.spawn("ledger", found.run())
    yield found
    await tasks.close()


def reservation(name: str, amount: int, most: int = 1000) -> BudgetReservation:
    return BudgetReservation(name, (BudgetDemand(DAY, amount, most, None, "this account"),))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_many_calls_share_a_transaction_and_never_exceed(
    ledger: BudgetLedger, store: FlakyBudgets
) -> None:
    """200 parallel streams against 1,000 tokens, each with 30 reserved and 10 to 29 used."""

    async def stream(number: int) -> bool:
        held = reservation(f"c{number}", 30)
        if await ledger.reserve(held) is not None:
            return False
        assert store.used[DAY] <= 1000
        ledger.settle(BudgetSettlement(held, (10 + number % 20,)))
        return True

    answered = await asyncio.gather(*(stream(number) for number in range(200)))
    assert await ledger.flush(1)
    assert sum(answered) == 33
    assert (store.used[DAY], store.open) == (sum(10 + n % 20 for n, ok in enumerate(answered) if ok), {})
    assert store.batches[0] == (200, 0)
    assert len(store.batches) <= 3


async def test_a_cancelled_caller_reserves_nothing(ledger: BudgetLedger, store: FlakyBudgets) -> None:
    store.gate.clear()
    callers = [asyncio.ensure_future(ledger.reserve(reservation(f"c{n}", 10))) for n in range(2)]
    await asyncio.sleep(0)
    # Both are on their way to the database.
    await until(lambda: not ledger._waiting)
    callers[0].cancel()
    await asyncio.sleep(0)
    late = asyncio.ensure_future(ledger.reserve(reservation("late", 10)))
    await asyncio.sleep(0)
    late.cancel()
    store.gate.set()
    assert await callers[1] is None
    assert await ledger.flush(1)
    assert (store.used[DAY], set(store.open)) == (10, {"c1"})


async def test_a_caller_cancelled_after_its_reservation_was_stored_reserves_nothing(
    ledger: BudgetLedger, store: FlakyBudgets
) -> None:
    caller = asyncio.ensure_future(ledger.reserve(reservation("c1", 10)))
    while not store.open:
        await asyncio.sleep(0)
        if store.open:
            caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert await ledger.flush(1)
    assert (store.used[DAY], store.open) == (0, {})


async def test_a_reservation_that_is_not_stored_fails_its_call_and_is_void(
    ledger: BudgetLedger, store: FlakyBudgets
) -> None:
    store.failures = 2
    with pytest.raises(GatewayError) as refused:
        await ledger.reserve(reservation("c1", 10))
    assert (refused.value.kind, refused.value.retry_after) == (ErrorKind.UNAVAILABLE, 2)
    assert await ledger.flush(5)
    # The void settlement came through in the end.
    assert (store.used, store.batches) == ({}, [(0, 1)])


async def test_a_settlement_is_repeated(ledger: BudgetLedger, store: FlakyBudgets) -> None:
    held = reservation("c1", 10)
    await ledger.reserve(held)
    store.failures = 3
    ledger.settle(BudgetSettlement(held, (7,)))
    assert await ledger.flush(5)
    assert (store.used[DAY], store.open) == (7, {})


async def test_too_many_waiting_calls_are_refused(
    ledger: BudgetLedger, store: FlakyBudgets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "MAX_WAITING_CALLS", 1)
    store.gate.clear()
    first = asyncio.ensure_future(ledger.reserve(reservation("c1", 10)))
    await asyncio.sleep(0)
    await until(lambda: not ledger._waiting)
    second = asyncio.ensure_future(ledger.reserve(reservation("c2", 10)))
    await asyncio.sleep(0)
    with pytest.raises(GatewayError, match="too many calls"):
        await ledger.reserve(reservation("c3", 10))
    store.gate.set()
    assert [await first, await second] == [None, None]


async def test_what_cannot_be_stored_at_the_end_stays_charged(
    ledger: BudgetLedger, store: FlakyBudgets
) -> None:
    held = reservation("c1", 10)
    await ledger.reserve(held)
    store.gate.clear()
    ledger.settle(BudgetSettlement(held, (7,)))
    assert not await ledger.flush(0.01)
    assert (store.used[DAY], set(store.open)) == (10, {"c1"})


async def test_nobody_waits_for_a_writer_that_has_failed() -> None:
    class BrokenBudgets(MemoryBudgets):
        async def apply(
            self, reservations: Sequence[BudgetReservation], settlements: Sequence[BudgetSettlement]
        ) -> LedgerReport:
            raise RuntimeError("a fault of ours")

    tasks, ledger = TaskRegistry(), BudgetLedger(BrokenBudgets())
    tasks.spawn("ledger", ledger.run())
    for name in ("asked before its end", "asked afterwards"):
        with pytest.raises(GatewayError, match="the writer of budgets has ended") as refused:
            await asyncio.wait_for(ledger.reserve(reservation(name, 10)), 1)
        assert (refused.value.kind, refused.value.retry_after) == (ErrorKind.UNAVAILABLE, 2)
    await tasks.close()
