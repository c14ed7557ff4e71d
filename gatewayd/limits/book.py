"""The limits in force, compiled: which pots and budgets a call draws from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.limits.records import (
    HELD_BY_USER,
    BudgetRule,
    LimitRule,
    LimitSubject,
    RatePot,
)

MAX_PLANS: Final = 10_000
"""Maximum number of remembered plans; beyond it all are forgotten."""

_SUBJECT_WORDS: Final = {
    LimitSubject.KEY: "the key {name}",
    LimitSubject.USER: "this account",
    LimitSubject.DEFAULT: "this account",
    LimitSubject.GROUP: "the group {name}",
    LimitSubject.MEMBER: "each member of the group {name}",
    LimitSubject.TOTAL: "all users together",
}

PlanKey = tuple[str, str, tuple[str, ...], str, str]
"""Ids of the key, the user, the groups, the model and its base model of a call."""


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """A budget that a call draws from; `holder` is the user whom the limit counts on their own, or ""."""

    rule: LimitRule
    budget: BudgetRule
    holder: str
    owner: str


@dataclass(frozen=True, slots=True)
class LimitPlan:
    """All that a call draws from."""

    pots: tuple[RatePot, ...]
    budgets: tuple[BudgetPlan, ...]


NO_PLAN: Final = LimitPlan((), ())


class LimitBook:
    """The rules by subject; it never changes, and a change of a rule makes another one."""

    def __init__(self, rules: Iterable[LimitRule] = ()) -> None:
        self._by_subject: dict[tuple[LimitSubject, str], list[LimitRule]] = {}
        for each in rules:
            self._by_subject.setdefault((each.subject, each.subject_id), []).append(each)
        self._plans: dict[PlanKey, LimitPlan] = {}
        self.is_empty = not self._by_subject
        """Whether nothing is limited."""
        every = (rule for found in self._by_subject.values() for rule in found)
        self.has_storage = any(rule.storage_bytes is not None for rule in every)
        """Whether there is a quota of storage."""

    def plan(self, key_id: str, user_id: str, group_ids: tuple[str, ...], model: str, base: str) -> LimitPlan:
        """Return what a call draws from; `key_id` is "" without a key, `base` without a base model."""
        key = (key_id, user_id, group_ids, model, base)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            found = self._plans[key] = self._make(key)
        return found

    def rules_of(self, key_id: str, user_id: str, group_ids: Iterable[str]) -> Sequence[LimitRule]:
        """Return the rules that count the calls of somebody, those of single models included."""
        subjects = _subjects(key_id, user_id, group_ids)
        found = [each for subject in subjects for each in self._by_subject.get(subject, ())]
        own = {each.model for each in found if each.subject is LimitSubject.USER}
        return [each for each in found if each.subject is not LimitSubject.DEFAULT or each.model not in own]

    def storage_rules(self, user_id: str, group_ids: Iterable[str]) -> Sequence[LimitRule]:
        """Return the quotas of storage that count the files of a user."""
        found = self.rules_of("", user_id, group_ids)
        return [rule for rule in found if rule.storage_bytes is not None]

    def _make(self, key: PlanKey) -> LimitPlan:
        key_id, user_id, group_ids, model, base = key
        models = {"", model, base}
        rules = [each for each in self.rules_of(key_id, user_id, group_ids) if each.model in models]
        if not rules:
            return NO_PLAN
        return LimitPlan(
            tuple(pot_of(rule, user_id) for rule in rules if rule.has_rates),
            tuple(plan for rule in rules for plan in budget_plans(rule, user_id)),
        )


def _subjects(key_id: str, user_id: str, group_ids: Iterable[str]) -> Sequence[tuple[LimitSubject, str]]:
    wanted = [(LimitSubject.KEY, key_id)] if key_id else []
    wanted += [(LimitSubject.USER, user_id), (LimitSubject.DEFAULT, "")]
    for group_id in group_ids:
        wanted += [(LimitSubject.GROUP, group_id), (LimitSubject.MEMBER, group_id)]
    return [*wanted, (LimitSubject.TOTAL, "")]


def pot_of(rule: LimitRule, user_id: str) -> RatePot:
    """Return the pot of a rule for the calls of a user."""
    pot_id = f"{rule.id}/{user_id}" if rule.subject in HELD_BY_USER else rule.id
    return RatePot(pot_id, owner_of(rule), rule.requests_per_minute, rule.tokens_per_minute, rule.parallel)


def budget_plans(rule: LimitRule, user_id: str) -> Sequence[BudgetPlan]:
    """Return the budgets of a rule for the calls of a user."""
    holder = user_id if rule.subject in HELD_BY_USER else ""
    return [BudgetPlan(rule, budget, holder, owner_of(rule)) for budget in rule.budgets]


def owner_of(rule: LimitRule) -> str:
    """Return the words for whose limit it is, for example `the key laptop with the model m`."""
    owner = _SUBJECT_WORDS[rule.subject].format(name=rule.subject_name or rule.subject_id)
    return f"{owner} with the model {rule.model}" if rule.model else owner
