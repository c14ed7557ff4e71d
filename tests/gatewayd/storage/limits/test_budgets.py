"""Tests for gatewayd.storage.limits.budgets: what every store of budgets does.

A store of another kind joins as a parameter of the fixture `books`.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gatewayd import ids
from gatewayd.limits.interfaces import BudgetStore
from gatewayd.limits.periods import BudgetPeriod
from gatewayd.limits.records import (
    BudgetDemand,
    BudgetReservation,
    BudgetSettlement,
    BudgetUnit,
    CounterKey,
    CounterUse,
    LimitRule,
    LimitSubject,
)
from gatewayd.nodes.records import Node
from gatewayd.storage.engine.database import Database
from gatewayd.storage.limits.budgets import CLOSED_SECONDS, TortoiseBudgets
from gatewayd.storage.limits.rules import TortoiseLimitRules
from gatewayd.storage.nodes.nodes import TortoiseNodes
from gatewayd.storage.tables.limits import LimitReservationRow
from tests.fakes.limits.memory_budgets import MemoryBudgets
from tests.gatewayd.storage.conftest import ENGINES, make_location

DAY = CounterKey("r1", "", BudgetUnit.TOKENS, BudgetPeriod.DAY, 86_400)
MONTH = CounterKey("r1", "", BudgetUnit.USD, BudgetPeriod.MONTH, 0)
HELD = CounterKey("r2", "u1", BudgetUnit.TOKENS, BudgetPeriod.WEEK, 0)


@dataclass(frozen=True)
class Books:
    """One store as two processes see it."""

    store: BudgetStore
    other: BudgetStore


@pytest.fixture(params=["memory", *ENGINES])
async def books(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Books]:
    if request.param == "memory":
        memory = MemoryBudgets()
        yield Books(memory, memory)
        return
    async with Database.open(make_location(request, tmp_path, request.param)):
        for rule_id, subject in (("r1", LimitSubject.TOTAL), ("r2", LimitSubject.DEFAULT)):
            await TortoiseLimitRules().put(LimitRule(rule_id, subject))
        # Nodes need PostgreSQL.
        nodes = ("a", "b") if request.param == "postgres" else ("", "")
        yield Books(*map(TortoiseBudgets, nodes))


def demand(key: CounterKey, amount: int, most: int = 100, warn_at: int | None = None) -> BudgetDemand:
    return BudgetDemand(key, amount, most, warn_at, "this account")


def reservation(name: str, *demands: BudgetDemand) -> BudgetReservation:
    return BudgetReservation(name, demands)


def settled(reserved: BudgetReservation, *amounts: int) -> BudgetSettlement:
    return BudgetSettlement(reserved, amounts)


async def use(store: BudgetStore, key: CounterKey) -> tuple[int, int]:
    found = (await store.uses([key])).get(key, CounterUse())
    return found.used, found.reserved


async def test_all_of_a_call_or_nothing(books: Books) -> None:
    first = reservation("c1", demand(DAY, 60), demand(MONTH, 5))
    second = reservation("c2", demand(DAY, 60), demand(MONTH, 5))
    third = reservation("c3", demand(HELD, 10), demand(DAY, 40))
    report = await books.store.apply([first, second, third], [])
    assert {name: fault.demand for name, fault in report.refused.items()} == {"c2": second.demands[0]}
    assert report.refused["c2"].use == CounterUse(60, 60)
    assert [await use(books.other, key) for key in (DAY, MONTH, HELD)] == [(100, 100), (5, 5), (10, 10)]


async def test_the_longest_refusal_is_named(books: Books) -> None:
    report = await books.store.apply([reservation("c", demand(DAY, 101), demand(MONTH, 101))], [])
    assert report.refused["c"].demand.key == MONTH


async def test_settlement_replaces_the_reservation_once(books: Books) -> None:
    less, more = reservation("less", demand(DAY, 40)), reservation("more", demand(DAY, 40))
    await books.store.apply([less, more], [])
    for _ in range(2):
        await books.store.apply([], [settled(less, 10), settled(more, 150)])
    assert await use(books.store, DAY) == (160, 0)
    assert "c" in (await books.store.apply([reservation("c", demand(DAY, 1))], [])).refused
    await books.store.apply([], [settled(reservation("unknown", demand(DAY, 1)), 50)])
    assert await use(books.store, DAY) == (160, 0)


async def test_warning_comes_once_a_period_by_settled_amounts(books: Books) -> None:
    held = [reservation(f"c{n}", demand(DAY, 50, 200, warn_at=80)) for n in range(3)]
    assert (await books.store.apply(held, [])).warned == ()
    assert (await books.store.apply([], [settled(held[0], 50)])).warned == ()
    assert (await books.store.apply([], [settled(held[1], 50)])).warned == (held[1].demands[0],)
    assert (await books.store.apply([], [settled(held[2], 50)])).warned == ()
    later = DAY._replace(starts_at=2 * 86_400)
    again = reservation("d", demand(later, 90, 200, warn_at=80))
    assert (await books.store.apply([again], [])).warned == ()
    assert (await books.store.apply([], [settled(again, 90)])).warned == (again.demands[0],)


async def test_open_reservations_stay_charged_after_a_crash(books: Books) -> None:
    await books.store.apply([reservation("c1", demand(DAY, 30), demand(HELD, 7))], [])
    assert await books.other.close_open() == 1
    assert [await use(books.store, key) for key in (DAY, HELD)] == [(30, 0), (7, 0)]
    assert await books.other.close_open() == 0


@pytest.mark.parametrize("engine", ["postgres"])
async def test_only_the_reservations_of_dead_nodes_are_closed_and_silent_ones_settle_later(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    async with Database.open(make_location(request, tmp_path, engine)):
        await TortoiseLimitRules().put(LimitRule("r1", LimitSubject.TOTAL))
        nodes, silent, other = TortoiseNodes(), TortoiseBudgets("a"), TortoiseBudgets("b")
        await nodes.add(Node("a", "one"), 60)
        held = [reservation(name, demand(DAY, 20)) for name in ("kept", "c1", "c2")]
        await silent.apply(held, [])
        assert await other.close_open() == 0
        assert await use(other, DAY) == (60, 60)
        await silent.apply([], [settled(held[0], 5)])
        await nodes.remove("a")
        assert await silent.close_open() == 0, "its own calls go on"
        assert await other.close_open() == 2
        assert await use(other, DAY) == (45, 0)
        # The node comes back: its calls used 3 and 70.
        for _ in range(2):
            await silent.apply([], [settled(held[1], 3), settled(held[2], 70)])
        assert await use(other, DAY) == (78, 0)
        # What nobody settles is charged for good, and its row is deleted a day later.
        await silent.apply([reservation("lost", demand(DAY, 10))], [])
        assert await other.close_open() == 1
        assert await TortoiseBudgets("b", lambda: ids.now() + CLOSED_SECONDS + 10).close_open() == 0
        assert not await LimitReservationRow.all().count()
        assert await use(other, DAY) == (88, 0)


@pytest.mark.parametrize("engine", ["postgres"])
async def test_a_daemon_alone_closes_what_nodes_left(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    async with Database.open(make_location(request, tmp_path, engine)):
        await TortoiseLimitRules().put(LimitRule("r1", LimitSubject.TOTAL))
        node, alone = TortoiseBudgets("a"), TortoiseBudgets()
        await node.apply([reservation("c1", demand(DAY, 4))], [])
        assert await TortoiseBudgets("b").close_open() == 1
        await node.apply([reservation("c2", demand(DAY, 4))], [])
        assert await alone.close_open() == 1
        assert await use(alone, DAY) == (8, 0)
        assert not await LimitReservationRow.all().count()


async def test_processes_together_never_exceed_a_budget(books: Books) -> None:
    async def ask(store: BudgetStore, name: str) -> bool:
        return not (await store.apply([reservation(name, demand(DAY, 7), demand(MONTH, 1))], [])).refused

    stores = [books.store, books.other]
    granted = await asyncio.gather(*(ask(stores[n % 2], f"c{n}") for n in range(40)))
    assert sum(granted) == 14
    assert [await use(books.store, key) for key in (DAY, MONTH)] == [(98, 98), (14, 14)]


async def test_old_counters_are_deleted(books: Books) -> None:
    old, held = HELD, DAY._replace(starts_at=0)
    done = reservation("c1", demand(old, 1))
    await books.store.apply([done, reservation("c2", demand(held, 1)), reservation("c3", demand(DAY, 1))], [])
    await books.store.apply([], [settled(done, 1)])
    assert await books.store.prune(86_400) == 1
    assert set(await books.store.uses([old, held, DAY])) == {held, DAY}


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_deleted_rule_counts_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    async with Database.open(make_location(request, tmp_path, engine)):
        rules, store = TortoiseLimitRules(), TortoiseBudgets()
        await rules.put(LimitRule("r1", LimitSubject.TOTAL))
        held = reservation("c1", demand(DAY, 30))
        await store.apply([held], [])
        assert await rules.remove("r1")
        report = await store.apply([reservation("c2", demand(DAY, 999))], [settled(held, 30)])
        assert (report.refused, await store.uses([DAY])) == ({}, {})
