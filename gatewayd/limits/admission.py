"""Admission of model calls by limits: reserve before a call is sent, settle by what it used."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.book import BudgetPlan, LimitBook, LimitPlan
from gatewayd.limits.interfaces import RateStore, RateTicket
from gatewayd.limits.ledger import BudgetLedger
from gatewayd.limits.periods import period_start
from gatewayd.limits.records import (
    BudgetDemand,
    BudgetReservation,
    BudgetSettlement,
    BudgetUnit,
    CounterKey,
    RateRefusal,
)
from gatewayd.limits.refusals import budget_error, large_error, price_error, quantity_headers, rate_error
from gatewayd.metering.records import CallPricing, MeteredCall, TokenUsage

log = logging.getLogger(__name__)

MAX_RESERVED: Final = 2**60
"""Maximum amount that one call reserves or settles."""


@dataclass(slots=True)
class CallReservation:
    """What a call holds until it is settled."""

    plan: LimitPlan
    ticket: RateTicket | None = None
    reservation: BudgetReservation | None = None
    is_settled: bool = False


@dataclass(slots=True)
class LimitOptions:
    """`unknown_price` is the price of a token in nano-dollars for models without a price; None refuses them
    to callers with a budget in money."""

    unknown_price: int | None = None


class LimitAdmission:
    """Implements `metering.interfaces.CallAdmission` for rates and budgets.

    `base_of` returns the id of the model that a custom model is based on, "" for other models: a limit of a
    model also counts the models that are based on it.
    """

    def __init__(
        self,
        rates: RateStore,
        ledger: BudgetLedger,
        pricing: Callable[[], CallPricing],
        base_of: Callable[[str], str],
        options: LimitOptions,
        clock: ids.Clock = ids.now,
    ) -> None:
        self.book = LimitBook()
        """The limits in force; a change of them replaces it."""
        self._rates = rates
        self._ledger = ledger
        self._pricing = pricing
        self._base_of = base_of
        self._options = options
        self._clock = clock

    def concerns(self, call: MeteredCall) -> bool:
        """Return whether a limit counts the call."""
        if self.book.is_empty:
            return False
        plan = self._plan(call)
        if not (plan.pots or plan.budgets):
            return False
        call.reservation = plan
        return True

    async def admit(self, call: MeteredCall, estimate: TokenUsage) -> None:
        """Take what the call is expected to need, all or nothing.

        Raises rate_limited, naming the limit that refuses for longest; forbidden for an unknown price.
        """
        planned = call.reservation
        plan = planned if isinstance(planned, LimitPlan) else self._plan(call)
        held = CallReservation(plan)
        if plan.pots:
            held.ticket = await self._take(plan, estimate)
        if plan.budgets:
            is_reserved = False
            try:
                held.reservation = await self._reserve(call, plan, estimate)
                is_reserved = True
            finally:
                if held.ticket is not None and not is_reserved:
                    self._rates.undo(held.ticket)
        call.reservation = held

    def settled(self, call: MeteredCall) -> None:
        """Give back what the call did not use."""
        held = call.reservation
        if not isinstance(held, CallReservation) or held.is_settled:
            return
        held.is_settled = True
        tokens = 0 if call.usage is None else min(max(call.usage.total, 0), MAX_RESERVED)
        if held.ticket is not None and call.holds_calls:
            self._rates.undo(held.ticket)
        elif held.ticket is not None:
            self._rates.give_back(held.ticket, tokens)
        if held.reservation is not None:
            amounts = tuple(self._used(call, demand, tokens) for demand in held.reservation.demands)
            self._ledger.settle(BudgetSettlement(held.reservation, amounts))

    async def can_hold(self, call: MeteredCall, estimate: TokenUsage) -> bool:
        """Return whether the budgets of a call have room for it; nothing stays reserved.

        False also for an unknown price.
        """
        plan = self._plan(call)
        if not plan.budgets:
            return True
        try:
            reservation = await self._reserve(call, plan, estimate)
        except GatewayError as error:
            if error.kind not in {ErrorKind.RATE_LIMITED, ErrorKind.FORBIDDEN}:
                raise
            return False
        self._ledger.settle(BudgetSettlement(reservation, (0,) * len(reservation.demands)))
        return True

    async def charge(self, call: MeteredCall) -> None:
        """Count what a call used of its budgets, also beyond them."""
        plan = self._plan(call)
        if not plan.budgets:
            return
        now, tokens = self._clock(), 0 if call.usage is None else call.usage.total
        demands = tuple(self._held(call, each, (0, MAX_RESERVED), now) for each in plan.budgets)
        reservation = BudgetReservation(ids.new_id(), demands)
        if await self._ledger.reserve(reservation) is None:
            amounts = tuple(self._used(call, demand, tokens) for demand in demands)
            self._ledger.settle(BudgetSettlement(reservation, amounts))

    def headers(self, call: MeteredCall) -> Mapping[str, str]:
        """Return the headers for the limits of a call, with the names of OpenAI: those with least left."""
        held = call.reservation
        if not isinstance(held, CallReservation) or held.ticket is None:
            return {}
        headers: dict[str, str] = {}
        fewest: dict[str, int] = {}
        for pot in held.plan.pots:
            use = self._rates.use(pot)
            for name, limit, used, reset in (
                ("requests", pot.requests, use.requests, use.requests_reset),
                ("tokens", pot.tokens, use.tokens, use.tokens_reset),
            ):
                if limit is not None and limit - used < fewest.get(name, limit + 1):
                    fewest[name] = limit - used
                    headers |= quantity_headers(name, limit, used, reset)
        return headers

    def _plan(self, call: MeteredCall) -> LimitPlan:
        return self.book.plan(
            call.key_id, call.user_id, call.group_ids, call.model, self._base_of(call.model)
        )

    async def _take(self, plan: LimitPlan, estimate: TokenUsage) -> RateTicket:
        for pot in plan.pots:
            if pot.tokens is not None and estimate.prompt > pot.tokens:
                raise large_error(pot, estimate.prompt)
        taken = await self._rates.take(plan.pots, estimate.total)
        if isinstance(taken, RateRefusal):
            raise rate_error(taken, self._rates.use(taken.pot))
        return taken

    async def _reserve(self, call: MeteredCall, plan: LimitPlan, estimate: TokenUsage) -> BudgetReservation:
        now = self._clock()
        demands = tuple(self._demand(call, each, estimate, now) for each in plan.budgets)
        reservation = BudgetReservation(ids.new_id(), demands)
        refusal = await self._ledger.reserve(reservation)
        if refusal is not None:
            raise budget_error(refusal, now)
        return reservation

    def _demand(self, call: MeteredCall, plan: BudgetPlan, estimate: TokenUsage, now: int) -> BudgetDemand:
        budget = plan.budget
        amount: int | None = estimate.total
        if budget.unit is BudgetUnit.USD:
            amount = self._pricing()(call, estimate)
            if amount is None:
                amount = self._unknown(estimate.total)
            if amount is None:
                raise price_error(call.model, plan.owner)
        # An estimate above the whole budget runs only if nothing of it is used.
        reserved = min(max(amount or 0, 0), budget.amount)
        return self._held(call, plan, (reserved, budget.amount), now)

    def _held(self, call: MeteredCall, plan: BudgetPlan, amounts: tuple[int, int], now: int) -> BudgetDemand:
        """Return the demand of an amount of a budget, of which there is so much at most."""
        budget, percent = plan.budget, plan.rule.warn_percent
        key = CounterKey(
            plan.rule.id, plan.holder, budget.unit, budget.period, period_start(budget.period, now)
        )
        warn_at = None if percent is None else -(-budget.amount * percent // 100)
        return BudgetDemand(key, *amounts, warn_at, plan.owner, call.user_id)

    def _used(self, call: MeteredCall, demand: BudgetDemand, tokens: int) -> int:
        """Return what a call really used of a budget."""
        amount: int | None = tokens
        if demand.key.unit is BudgetUnit.USD:
            amount = call.cost
            if amount is None:
                amount = self._unknown(tokens) if tokens else 0
            if amount is None:
                # The price was known when the call began: the reservation stays charged.
                amount = demand.amount
        return min(max(amount or 0, 0), MAX_RESERVED)

    def _unknown(self, tokens: int) -> int | None:
        price = self._options.unknown_price
        return None if price is None else tokens * price
