"""Tests for gatewayd.storage.limits.rules."""

from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.amounts import parse_budgets
from gatewayd.limits.records import LimitRule, LimitSubject
from gatewayd.storage.limits.rules import TortoiseLimitRules
from tests.gatewayd.storage.conftest import Chatting

FULL = LimitRule(
    "r1",
    LimitSubject.USER,
    "u1",
    "ada@example.org",
    "m",
    requests_per_minute=1,
    tokens_per_minute=2,
    parallel=3,
    budgets=parse_budgets(["2.5usd/month", "7tokens/day"]),
    warn_percent=80,
    created_at=1,
    updated_at=2,
)


async def test_rules(stored: Chatting) -> None:
    rules = TortoiseLimitRules()
    await rules.put(FULL)
    total = LimitRule("r0", LimitSubject.TOTAL, created_at=2)
    await rules.put(total)
    assert list(await rules.list()) == [FULL, total]
    assert await rules.find("r1") == await rules.find_of(LimitSubject.USER, "u1", "m") == FULL
    assert await rules.find_of(LimitSubject.USER, "u1", "") is None
    assert await rules.find("\0") is await rules.find_of(LimitSubject.USER, "\0", "m") is None
    changed = replace(FULL, parallel=None, budgets=())
    await rules.put(changed)
    assert await rules.find("r1") == changed
    with pytest.raises(GatewayError) as refused:
        await rules.put(replace(FULL, id="r2"))
    assert refused.value.kind is ErrorKind.CONFLICT
    assert [await rules.remove(name) for name in ("r0", "r0", "\0")] == [True, False, False]


async def test_rules_of_deleted_subjects_go(stored: Chatting) -> None:
    rules = TortoiseLimitRules()
    await rules.put(FULL)
    await rules.put(LimitRule("r2", LimitSubject.DEFAULT))
    for number, subject in enumerate((LimitSubject.KEY, LimitSubject.GROUP, LimitSubject.MEMBER)):
        await rules.put(LimitRule(f"g{number}", subject, "gone"))
    assert await rules.remove_orphans() == 3
    assert {rule.id for rule in await rules.list()} == {"r1", "r2"}
