"""Tests for gatewayd.limits.book."""

from dataclasses import replace

import pytest

from gatewayd.limits import book as book_module
from gatewayd.limits.amounts import parse_budgets
from gatewayd.limits.book import LimitBook, LimitPlan
from gatewayd.limits.records import LimitRule, LimitSubject

RULES = {
    name: LimitRule(name, subject, subject_id, requests_per_minute=1, model=model)
    for name, subject, subject_id, model in (
        ("key", LimitSubject.KEY, "k1", ""),
        ("user", LimitSubject.USER, "u1", ""),
        ("user-m", LimitSubject.USER, "u1", "m"),
        ("group", LimitSubject.GROUP, "g1", ""),
        ("member", LimitSubject.MEMBER, "g1", ""),
        ("default", LimitSubject.DEFAULT, "", ""),
        ("default-n", LimitSubject.DEFAULT, "", "n"),
        ("total", LimitSubject.TOTAL, "", ""),
        ("total-m", LimitSubject.TOTAL, "", "m"),
    )
}


def pots(plan: LimitPlan) -> list[str]:
    return [pot.id for pot in plan.pots]


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        # Another user has the default; each user on their own.
        (("", "u2", (), "x", ""), ["default/u2", "total"]),
        (("", "u2", (), "n", ""), ["default/u2", "default-n/u2", "total"]),
        # A limit of one's own replaces the default for the same models only.
        (("", "u1", (), "x", ""), ["user", "total"]),
        (("", "u1", (), "n", ""), ["user", "default-n/u1", "total"]),
        (("", "u1", (), "m", ""), ["user", "user-m", "total", "total-m"]),
        # A model that is based on another one.
        (("", "u2", (), "mine", "m"), ["default/u2", "total", "total-m"]),
        # A key counts whoever has it; a group is one pot, its members have one each.
        (("k1", "u2", ("g1", "g2"), "x", ""), ["key", "default/u2", "group", "member/u2", "total"]),
        # The id of a key is no id of a user.
        (("u1", "k1", (), "x", ""), ["default/k1", "total"]),
    ],
)
def test_what_a_call_draws_from(
    caller: tuple[str, str, tuple[str, ...], str, str], expected: list[str]
) -> None:
    book = LimitBook(RULES.values())
    assert pots(book.plan(*caller)) == expected
    assert book.plan(*caller) is book.plan(*caller)


def test_budgets_are_held_by_users_or_by_all() -> None:
    rules = [replace(rule, budgets=parse_budgets(["1usd/day"])) for rule in RULES.values()]
    plan = LimitBook(rules).plan("", "u2", ("g1",), "x", "")
    assert [(each.rule.id, each.holder) for each in plan.budgets] == [
        ("default", "u2"),
        ("group", ""),
        ("member", "u2"),
        ("total", ""),
    ]


def test_limits_are_named() -> None:
    rule = replace(RULES["group"], subject_name="staff", model="m")
    [pot] = LimitBook([rule]).plan("", "u", ("g1",), "m", "").pots
    assert pot.owner == "the group staff with the model m"


def test_an_empty_book_and_the_memory_of_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LimitBook().is_empty
    monkeypatch.setattr(book_module, "MAX_PLANS", 10)
    book = LimitBook(RULES.values())
    for number in range(50):
        book.plan("", f"u{number}", (), "x", "")
    assert len(book._plans) <= 10
