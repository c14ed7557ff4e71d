"""Limits as administrators and users see them: rules, and what is left of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from gatewayd import ids
from gatewayd.errors import invalid, not_found
from gatewayd.limits.admission import LimitAdmission
from gatewayd.limits.amounts import parse_budgets
from gatewayd.limits.book import LimitBook, budget_plans, pot_of
from gatewayd.limits.interfaces import BudgetStore, RateStore, RuleStore
from gatewayd.limits.periods import period_start
from gatewayd.limits.records import (
    HELD_BY_USER,
    UNNAMED,
    BudgetRule,
    CounterKey,
    CounterUse,
    LimitRule,
    LimitSubject,
    RateUse,
)
from gatewayd.limits.storage_quotas import StorageQuotas
from gatewayd.transactions import after_commit

MAX_RULES: Final = 20_000
"""Maximum number of limits."""

MAX_RATE: Final = 10**12
"""Maximum number of requests, tokens or calls of a limit."""

MAX_MODEL_CHARACTERS: Final = 255

KEPT_SECONDS: Final = 400 * 86_400
"""Time for which the counters of past periods are kept."""

MAX_STORAGE_BYTES: Final = 2**60

RATE_FIELDS: Final = ("requests_per_minute", "tokens_per_minute", "parallel")
FIELDS: Final = (*RATE_FIELDS, "budgets", "warn_percent", "storage_bytes")
"""Fields of a limit that can be set; null removes one."""

BOUNDS: Final = {"warn_percent": (1, 99), "storage_bytes": (0, MAX_STORAGE_BYTES)}
"""Smallest and largest value of fields; of the others 0 and MAX_RATE."""


@dataclass(frozen=True, slots=True)
class LimitTarget:
    """Whose limit it is: a subject with its id and name, and a model or "" for all models."""

    subject: LimitSubject
    subject_id: str = ""
    subject_name: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget and its use in the present period, which began and ends at epoch seconds."""

    budget: BudgetRule
    use: CounterUse
    starts_at: int
    ends_at: int


@dataclass(frozen=True, slots=True)
class LimitState:
    """A limit and its present use, None for a limit that counts each user on their own.

    `stored` is the number of bytes that a quota of storage counts.
    """

    rule: LimitRule
    rates: RateUse | None = None
    budgets: tuple[BudgetState, ...] = ()
    stored: int | None = None


class Limits:
    """Changes the limits, and tells their state. A change is in force for the next call after its commit."""

    def __init__(
        self,
        rules: RuleStore,
        rates: RateStore,
        budgets: BudgetStore,
        admission: LimitAdmission,
        quotas: StorageQuotas,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._quotas = quotas
        self._store = rules
        self._rates = rates
        self._budgets = budgets
        self._admission = admission
        self._clock = clock
        self._rules: dict[str, LimitRule] = {}

    async def load(self) -> int:
        """Read the rules at the start; return the number of reservations of processes that have ended.

        They are counted as used: nobody knows what became of their calls.
        """
        await self._store.remove_orphans()
        closed = await self.close_open()
        await self._budgets.prune(self._clock() - KEPT_SECONDS)
        await self.load_rules()
        return closed

    async def close_open(self) -> int:
        """Charge the reservations of processes that have ended, and return their number."""
        return await self._budgets.close_open()

    async def load_rules(self) -> None:
        """Read the rules: at the start, and after a change by another process."""
        self._rules = {rule.id: rule for rule in await self._store.list()}
        self._use_rules()

    async def list(self) -> Sequence[LimitRule]:
        """Return all limits, oldest first."""
        return await self._store.list()

    async def get(self, rule_id: str) -> LimitRule:
        """Return a limit; not_found without it."""
        rule = await self._store.find(rule_id)
        if rule is None:
            raise not_found("limit", rule_id)
        return rule

    async def find(self, target: LimitTarget) -> LimitRule | None:
        """Return the limit of a target."""
        return await self._store.find_of(target.subject, target.subject_id, target.model)

    async def set(self, target: LimitTarget, values: Mapping[str, Any]) -> tuple[LimitRule, LimitRule | None]:
        """Create or change the limit of a target; return it with the former one.

        `values` are some of FIELDS: numbers, texts of budgets, or None to remove one. What is absent stays.
        Raises invalid_request naming the field.
        """
        former = await self.find(target)
        now = self._clock()
        begun = former or LimitRule(
            ids.new_id(), target.subject, target.subject_id, model=target.model, created_at=now
        )
        if former is None and len(await self._store.list()) >= MAX_RULES:
            raise invalid(f"cannot set the limit: there are {MAX_RULES} limits, the maximum")
        checked = _checked(target, values)
        rule = replace(begun, **checked, subject_name=target.subject_name[:255])
        is_empty = not (rule.has_rates or rule.budgets) and rule.storage_bytes is None
        if is_empty and rule.subject is not LimitSubject.USER:
            raise invalid("cannot set the limit: it limits nothing; remove it instead")
        if former is not None and rule == former:
            return former, former
        rule = replace(rule, updated_at=now)
        await self._store.put(rule)
        after_commit(partial(self._put, rule))
        return rule, former

    async def remove(self, rule_id: str) -> LimitRule:
        """Delete a limit and what is counted for it; not_found without it."""
        rule = await self.get(rule_id)
        await self._store.remove(rule.id)
        after_commit(partial(self._drop, rule.id))
        return rule

    async def states(self, rules: Iterable[LimitRule], user_id: str = "") -> Sequence[LimitState]:
        """Return limits with their use; that of limits that count each user on their own only for a user."""
        now = self._clock()
        wanted = list(rules)
        shown = [rule for rule in wanted if user_id or rule.subject not in HELD_BY_USER]
        keys = {
            (rule.id, plan.budget): _key(rule.id, plan.holder, plan.budget, now)
            for rule in shown
            for plan in budget_plans(rule, user_id)
        }
        uses = await self._budgets.uses(list(keys.values()))
        await self._rates.look([pot_of(rule, user_id) for rule in shown if rule.has_rates])
        found = []
        for rule in wanted:
            if rule not in shown:
                found.append(LimitState(rule))
                continue
            states = []
            for budget in rule.budgets:
                key = keys[rule.id, budget]
                states.append(BudgetState(budget, uses.get(key, CounterUse()), key.starts_at, key.ends_at))
            rates = self._rates.use(pot_of(rule, user_id)) if rule.has_rates else None
            stored = None if rule.storage_bytes is None else await self._quotas.used(rule, user_id)
            found.append(LimitState(rule, rates, tuple(states), stored))
        return found

    async def own(self, key_id: str | None, user_id: str, group_ids: Sequence[str]) -> Sequence[LimitState]:
        """Return the limits that count the calls of somebody, with what they used of them."""
        rules = self._admission.book.rules_of(key_id or "", user_id, group_ids)
        return await self.states(rules, user_id)

    def _put(self, rule: LimitRule) -> None:
        self._rules[rule.id] = rule
        self._use_rules()

    def _drop(self, rule_id: str) -> None:
        self._rules.pop(rule_id, None)
        self._use_rules()

    def _use_rules(self) -> None:
        self._admission.book = self._quotas.book = LimitBook(self._rules.values())


def _key(rule_id: str, holder: str, budget: BudgetRule, now: int) -> CounterKey:
    return CounterKey(rule_id, holder, budget.unit, budget.period, period_start(budget.period, now))


def _checked(target: LimitTarget, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as fields of a rule."""
    if len(target.model) > MAX_MODEL_CHARACTERS:
        raise invalid(f"cannot accept model: more than {MAX_MODEL_CHARACTERS} characters", param="model")
    if (target.subject in UNNAMED) is bool(target.subject_id):
        raise invalid("cannot set the limit: expected one key, user or group, or none", param="subject")
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in FIELDS:
            raise invalid(f"cannot accept {name}: unknown field", param=name)
        if name == "budgets":
            found[name] = parse_budgets(value or ())
        else:
            lowest, highest = BOUNDS.get(name, (0, MAX_RATE))
            found[name] = _number(name, value, lowest, highest)
    if found.get("storage_bytes") is not None and (target.subject is LimitSubject.KEY or target.model):
        raise invalid(
            "cannot accept storage_bytes: files are counted by user and group, not by key or model",
            param="storage_bytes",
        )
    return found


def _number(name: str, value: object, lowest: int, highest: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise invalid(f"cannot accept {name}: expected a number from {lowest} to {highest}", param=name)
    return value
