"""Fields of limits in requests and replies of both applications."""

from collections.abc import Set
from typing import Any, Protocol

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.keys import Keys
from gatewayd.accounts.users import Users
from gatewayd.errors import invalid
from gatewayd.limits.amounts import format_amount, format_budget
from gatewayd.limits.records import LimitRule, LimitSubject
from gatewayd.limits.service import FIELDS, BudgetState, LimitState, LimitTarget


class LimitForm(Protocol):
    """The body of a request that sets a limit; names of users and groups or their ids."""

    key: str | None
    user: str | None
    group: str | None
    each_member: bool
    default: bool
    model: str

    @property
    def model_fields_set(self) -> Set[str]:
        """The names of the fields that the body has."""
        ...


class LimitTargets:
    """Finds whose limit a request means."""

    def __init__(self, users: Users, groups: Groups, keys: Keys) -> None:
        self._users = users
        self._groups = groups
        self._keys = keys

    async def find(self, form: LimitForm) -> LimitTarget:
        """Return the target of a request; not_found for an unknown key, user or group."""
        named = [name for name in ("key", "user", "group") if getattr(form, name) is not None]
        if len(named) + form.default > 1:
            raise invalid(
                "cannot set the limit: expected one of key, user, group and default, or none",
                param=(*named, "default")[1],
            )
        if form.each_member and form.group is None:
            raise invalid("cannot accept each_member: expected a group too", param="each_member")
        if form.key is not None:
            key = await self._keys.get(form.key)
            return LimitTarget(LimitSubject.KEY, key.id, key.name, form.model)
        if form.user is not None:
            user = await self._users.resolve(form.user)
            return LimitTarget(LimitSubject.USER, user.id, user.email, form.model)
        if form.group is not None:
            group = await self._groups.resolve(form.group)
            subject = LimitSubject.MEMBER if form.each_member else LimitSubject.GROUP
            return LimitTarget(subject, group.id, group.name, form.model)
        subject = LimitSubject.DEFAULT if form.default else LimitSubject.TOTAL
        return LimitTarget(subject, model=form.model)

    async def user_id(self, ref: str | None) -> str:
        """Return the id of a user, "" for None."""
        return "" if ref is None else (await self._users.resolve(ref)).id


def given_values(form: LimitForm) -> dict[str, Any]:
    """Return what a request sets: some of `limits.service.FIELDS`."""
    return {name: getattr(form, name) for name in FIELDS if name in form.model_fields_set}


def shown_rule(rule: LimitRule) -> dict[str, Any]:
    """Return a limit without its use; times are epoch seconds."""
    return {
        "id": rule.id,
        "subject": rule.subject.value,
        "subject_id": rule.subject_id,
        "name": rule.subject_name,
        "model": rule.model,
        "requests_per_minute": rule.requests_per_minute,
        "tokens_per_minute": rule.tokens_per_minute,
        "parallel": rule.parallel,
        "budgets": [format_budget(each) for each in rule.budgets],
        "warn_percent": rule.warn_percent,
        "storage_bytes": rule.storage_bytes,
        "created_at": rule.created_at,
        "updated_at": rule.updated_at,
    }


def shown_state(state: LimitState) -> dict[str, Any]:
    """Return a limit with its use."""
    rule, rates = state.rule, state.rates
    uses = []
    if rates is not None:
        for name, limit, used in (
            ("requests_per_minute", rule.requests_per_minute, rates.requests),
            ("tokens_per_minute", rule.tokens_per_minute, rates.tokens),
            ("parallel", rule.parallel, rates.parallel),
        ):
            if limit is not None:
                uses.append(_use(name, str(used), str(max(0, limit - used))))
    uses += map(_budget_use, state.budgets)
    if rule.storage_bytes is not None and state.stored is not None:
        uses.append(_use("storage_bytes", str(state.stored), str(max(0, rule.storage_bytes - state.stored))))
    return {**shown_rule(rule), "uses": uses}


def _budget_use(state: BudgetState) -> dict[str, Any]:
    budget, use = state.budget, state.use
    left = format_amount(max(0, budget.amount - use.used), budget.unit)
    reserved = format_amount(use.reserved, budget.unit) if use.reserved else ""
    return {
        **_use(format_budget(budget), format_amount(use.used, budget.unit), left),
        "reserved": reserved,
        "resets_at": state.ends_at,
    }


def _use(what: str, used: str, left: str) -> dict[str, Any]:
    return {"what": what, "used": used, "reserved": "", "left": left, "resets_at": None}
