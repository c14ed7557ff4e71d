"""Tests for gatewayd.limits.service."""

from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.periods import BudgetPeriod
from gatewayd.limits.records import (
    BudgetDemand,
    BudgetReservation,
    BudgetUnit,
    CounterKey,
    CounterUse,
    LimitSubject,
    RateUse,
)
from gatewayd.limits.service import LimitTarget
from tests.fakes.limits.bench import NOON, LimitBench

MIDNIGHT = NOON - NOON % 86_400
DEFAULT = LimitTarget(LimitSubject.DEFAULT)
ADA = LimitTarget(LimitSubject.USER, "u1", "ada@example.org")


@pytest.fixture
def bench() -> LimitBench:
    return LimitBench()


async def test_a_limit_is_created_changed_and_in_force_at_once(bench: LimitBench) -> None:
    limits = bench.limits
    rule, former = await limits.set(DEFAULT, {"parallel": 2, "budgets": ["1usd/day"], "warn_percent": 80})
    assert (former, rule.parallel, rule.created_at, bench.pots()) == (None, 2, NOON, ["this account"])
    same, former = await limits.set(DEFAULT, {"parallel": 2})
    assert same is former
    changed, former = await limits.set(DEFAULT, {"parallel": None, "requests_per_minute": 5})
    assert former == rule
    assert (changed.id, changed.parallel, changed.requests_per_minute) == (rule.id, None, 5)
    assert (changed.budgets, changed.warn_percent) == (rule.budgets, 80)
    assert await limits.list() == [changed]
    assert await limits.remove(rule.id) == changed
    assert bench.admission.book.is_empty
    for gone in (limits.get, limits.remove):
        with pytest.raises(GatewayError) as refused:
            await gone(rule.id)
        assert refused.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({"parallel": -1}, "parallel"),
        ({"parallel": True}, "parallel"),
        ({"requests_per_minute": 10**12 + 1}, "requests_per_minute"),
        ({"tokens_per_minute": 1.5}, "tokens_per_minute"),
        ({"tokens_per_minute": "5"}, "tokens_per_minute"),
        ({"warn_percent": 0, "parallel": 1}, "warn_percent"),
        ({"warn_percent": 100, "parallel": 1}, "warn_percent"),
        ({"budgets": ["1usd"]}, "budgets"),
        ({"subject": 5}, "subject"),
        ({"budgets": []}, None),
        ({}, None),
    ],
)
async def test_bad_values_name_their_field(
    bench: LimitBench, values: dict[str, Any], param: str | None
) -> None:
    with pytest.raises(GatewayError) as refused:
        await bench.limits.set(DEFAULT, values)
    assert (refused.value.kind, refused.value.param) == (ErrorKind.INVALID_REQUEST, param)
    assert bench.rules.rules == {}


async def test_a_target_needs_its_id(bench: LimitBench) -> None:
    for target in (LimitTarget(LimitSubject.KEY), LimitTarget(LimitSubject.TOTAL, "x")):
        with pytest.raises(GatewayError):
            await bench.limits.set(target, {"parallel": 1})
    with pytest.raises(GatewayError, match="model"):
        await bench.limits.set(LimitTarget(LimitSubject.TOTAL, model="m" * 256), {"parallel": 1})


async def test_a_user_may_have_no_limit_in_place_of_the_default(bench: LimitBench) -> None:
    await bench.limits.set(DEFAULT, {"parallel": 1})
    await bench.limits.set(ADA, {"parallel": None})
    assert (bench.pots("u1"), bench.pots("u2")) == ([], ["this account"])


async def test_the_state_tells_use_and_period(bench: LimitBench) -> None:
    limits = bench.limits
    default, _ = await limits.set(DEFAULT, {"requests_per_minute": 9, "budgets": ["100tokens/day"]})
    total, _ = await limits.set(LimitTarget(LimitSubject.TOTAL), {"parallel": 7})
    await bench.rates.take(bench.admission.book.plan("", "u1", (), "m", "").pots, 0)
    key = CounterKey(default.id, "u1", BudgetUnit.TOKENS, BudgetPeriod.DAY, MIDNIGHT)
    demand = BudgetDemand(key, 30, 100, None, "this account")
    await bench.budgets.apply([BudgetReservation("c", (demand,))], [])
    [alone, shared] = await limits.states([default, total])
    # Whose use of a default is meant is not known.
    assert (alone.rates, alone.budgets, shared.rates) == (None, (), RateUse(parallel=1))
    for states in (await limits.own(None, "u1", ()), await limits.states([default, total], "u1")):
        mine, shared = states
        assert mine.rates is not None
        assert (mine.rates.requests, shared.rates) == (1, RateUse(parallel=1))
        [budget] = mine.budgets
        assert (budget.use, budget.starts_at, budget.ends_at) == (
            CounterUse(30, 30),
            MIDNIGHT,
            MIDNIGHT + 86_400,
        )
    [other, _] = await limits.own(None, "u2", ())
    assert (other.rates, other.budgets[0].use) == (RateUse(), CounterUse())


async def test_own_limits_are_those_of_key_user_and_groups(bench: LimitBench) -> None:
    for target in (
        LimitTarget(LimitSubject.KEY, "k1"),
        LimitTarget(LimitSubject.KEY, "k2"),
        LimitTarget(LimitSubject.GROUP, "g1"),
        LimitTarget(LimitSubject.USER, "u2"),
        LimitTarget(LimitSubject.DEFAULT, model="m"),
    ):
        await bench.limits.set(target, {"parallel": 1})
    found = await bench.limits.own("k1", "u1", ("g1",))
    assert [(each.rule.subject, each.rule.subject_id) for each in found] == [
        (LimitSubject.KEY, "k1"),
        (LimitSubject.DEFAULT, ""),
        (LimitSubject.GROUP, "g1"),
    ]


async def test_the_start_closes_what_a_former_process_left(bench: LimitBench) -> None:
    rule, _ = await bench.limits.set(DEFAULT, {"parallel": 1, "budgets": ["100tokens/day"]})
    key = CounterKey(rule.id, "u1", BudgetUnit.TOKENS, BudgetPeriod.DAY, MIDNIGHT)
    old = key._replace(starts_at=MIDNIGHT - 500 * 86_400)
    for number, each in enumerate((key, old)):
        demand = BudgetDemand(each, 30, 100, None, "this account")
        await bench.budgets.apply([BudgetReservation(f"c{number}", (demand,))], [])
    fresh = bench.restarted()
    assert await fresh.load() == 2
    assert await bench.budgets.uses([key, old]) == {key: CounterUse(30, 0)}
    assert bench.pots() == ["this account"]
