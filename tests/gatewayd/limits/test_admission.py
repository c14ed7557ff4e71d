"""Tests for gatewayd.limits.admission, through the meter that calls it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.admission import LimitAdmission, LimitOptions
from gatewayd.limits.amounts import parse_budgets
from gatewayd.limits.book import LimitBook
from gatewayd.limits.ledger import BudgetLedger
from gatewayd.limits.memory_rates import MemoryRates
from gatewayd.limits.records import BudgetDemand, LimitRule, LimitSubject
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall, TokenUsage
from gatewayd.tasks import TaskRegistry
from tests.fakes.limits.memory_budgets import MemoryBudgets

NOON = 1_800_014_400
BODY = {"messages": [{"role": "user", "content": "x" * 40}], "max_tokens": 90}
"""A request of about 10 + 1 + 90 tokens."""


@dataclass
class Caller:
    """Who calls."""

    user_id: str = "u1"
    group_ids: tuple[str, ...] = ()
    key_id: str | None = None


@dataclass
class AdmissionBench:
    """The admission with a meter, a clock of rates, and what it warned of."""

    meter: CallMeter = field(default_factory=CallMeter)
    budgets: MemoryBudgets = field(default_factory=MemoryBudgets)
    now: list[float] = field(default_factory=lambda: [0.0])
    warned: list[BudgetDemand] = field(default_factory=list)
    price: int | None = 1000
    epoch: int = NOON
    bases: dict[str, str] = field(default_factory=dict)
    options: LimitOptions = field(default_factory=LimitOptions)

    def __post_init__(self) -> None:
        self.ledger = BudgetLedger(self.budgets, self.warned.append)
        self.rates = MemoryRates(lambda: self.now[0])
        self.meter.pricing = self.cost
        self.admission = LimitAdmission(
            self.rates,
            self.ledger,
            lambda: self.meter.pricing,
            lambda model: self.bases.get(model, ""),
            self.options,
            lambda: self.epoch,
        )
        self.meter.admissions.append(self.admission)

    def cost(self, call: MeteredCall, usage: TokenUsage) -> int | None:
        return None if self.price is None else usage.total * self.price

    def limit(self, *rules: LimitRule) -> None:
        self.admission.book = LimitBook(rules)

    async def begin(self, caller: Caller | None = None, model: str = "m", **body: object) -> MeteredCall:
        """Return an admitted call."""

        async def ask() -> None:
            call.attempts += 1

        call = self.meter.begin(caller or Caller(), model, "chat", {**BODY, **body})
        await self.meter.run(call, ask)
        return call

    async def refused(self, caller: Caller | None = None, model: str = "m", **body: object) -> GatewayError:
        with pytest.raises(GatewayError) as refusal:
            await self.begin(caller, model, **body)
        return refusal.value

    def used(self) -> list[int]:
        return list(self.budgets.used.values())


@pytest.fixture
async def bench() -> AsyncIterator[AdmissionBench]:
    bench, tasks = AdmissionBench(), TaskRegistry()
    tasks.spawn("ledger", bench.ledger.run())
    yield bench
    await tasks.close()


def rule(
    subject: LimitSubject = LimitSubject.DEFAULT,
    subject_id: str = "",
    *,
    name: str = "r1",
    budgets: tuple[str, ...] = (),
    model: str = "",
    warn_percent: int | None = None,
    **rates: int,
) -> LimitRule:
    return LimitRule(
        name,
        subject,
        subject_id,
        model=model,
        budgets=parse_budgets(budgets),
        warn_percent=warn_percent,
        **rates,
    )


async def test_without_limits_nothing_is_asked(bench: AdmissionBench) -> None:
    call = await bench.begin()
    assert (call.admissions, call.reservation) == ((), None)
    # Limits of others are none either.
    bench.limit(
        rule(LimitSubject.KEY, "k1", parallel=0), rule(LimitSubject.GROUP, "g1", name="r2", parallel=0)
    )
    assert (await bench.begin()).reservation is None
    assert (await bench.refused(Caller(key_id="k1"))).code == "rate_limit_exceeded"
    assert (await bench.refused(Caller(group_ids=("g1",)))).code == "rate_limit_exceeded"


async def test_a_request_too_many_is_refused_with_its_wait(bench: AdmissionBench) -> None:
    bench.limit(rule(requests_per_minute=1))
    bench.meter.finish(await bench.begin(), CallOutcome.ANSWERED)
    bench.now[0] = 20.5
    error = await bench.refused()
    assert (error.kind, error.code, error.retry_after) == (ErrorKind.RATE_LIMITED, "rate_limit_exceeded", 40)
    assert error.message == (
        "cannot call the model: the limit of 1 requests a minute of this account is reached"
    )
    assert error.headers == {
        "x-ratelimit-limit-requests": "1",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "40s",
    }
    # Each user has the default on their own.
    await bench.begin(Caller("u2"))


@pytest.mark.parametrize(
    ("outcome", "usage", "left"),
    [
        (CallOutcome.ANSWERED, TokenUsage(prompt=8, completion=2), 990),
        (CallOutcome.ANSWERED, TokenUsage(prompt=800, completion=700), -500),
        (CallOutcome.CUT, TokenUsage(prompt=8, completion=2), 990),
        (CallOutcome.CANCELLED, TokenUsage(prompt=8, completion=2), 990),
        (CallOutcome.FAILED, TokenUsage(), 1000),
        # No usage was told: the request counts as it was estimated.
        (CallOutcome.CUT, None, 989),
        (CallOutcome.CANCELLED, None, 989),
        (CallOutcome.FAILED, None, 1000),
    ],
)
async def test_a_call_is_settled_by_what_it_used(
    bench: AdmissionBench, outcome: CallOutcome, usage: TokenUsage | None, left: int
) -> None:
    bench.limit(rule(tokens_per_minute=1000, budgets=("1000tokens/day",)))
    call = await bench.begin()
    assert bench.used() == [101]
    bench.meter.finish(call, outcome, usage)
    bench.meter.finish(call, CallOutcome.ANSWERED, TokenUsage(prompt=5000))
    assert await bench.ledger.flush(1)
    assert 1000 - bench.used()[0] == left
    assert 1000 - bench.rates.use(bench.admission.book.plan("", "u1", (), "m", "").pots[0]).tokens == left


async def test_refused_calls_hold_nothing(bench: AdmissionBench) -> None:
    bench.limit(
        rule(requests_per_minute=5, tokens_per_minute=5000, parallel=1),
        rule(LimitSubject.TOTAL, name="r2", budgets=("50tokens/day",)),
        rule(LimitSubject.USER, "u2", name="r3", budgets=("1usd/day",)),
    )
    held = await bench.begin(max_tokens=20)
    await bench.refused()
    bench.meter.finish(held, CallOutcome.ANSWERED, TokenUsage(prompt=45))
    error = await bench.refused()
    assert error.code == "insufficient_quota"
    bench.price = None
    assert (await bench.refused(Caller("u2"))).code == "price_unknown"
    pot = bench.admission.book.plan("", "u1", (), "m", "").pots[0]
    use = bench.rates.use(pot)
    assert (use.parallel, use.requests, use.tokens) == (0, 1, 45)


async def test_an_exhausted_budget_tells_when_it_is_full_again(bench: AdmissionBench) -> None:
    bench.limit(rule(budgets=("200tokens/day", "300tokens/month")))
    calls = [await bench.begin(), None]
    error = await bench.refused()
    # The call in flight holds it; it will be free soon.
    assert (error.code, error.retry_after, dict(error.headers)) == ("rate_limit_exceeded", 2, {})
    assert calls[0] is not None
    bench.meter.finish(calls[0], CallOutcome.ANSWERED, TokenUsage(prompt=150))
    error = await bench.refused()
    assert (error.code, error.retry_after) == ("insufficient_quota", 86_400 - NOON % 86_400)
    assert error.headers == {"x-should-retry": "false"}
    assert error.message == (
        "cannot call the model: the budget of 200tokens a day of this account is exhausted:"
        " 150tokens are used"
    )


async def test_money_is_counted_by_price(bench: AdmissionBench) -> None:
    bench.limit(rule(budgets=("0.001usd/month",)))
    call = await bench.begin()
    assert bench.used() == [101_000]
    bench.meter.finish(call, CallOutcome.ANSWERED, TokenUsage(prompt=100, completion=100))
    assert await bench.ledger.flush(1)
    assert bench.used() == [200_000]


async def test_an_unknown_price_is_refused_or_configured_and_never_zero(bench: AdmissionBench) -> None:
    bench.limit(rule(budgets=("1usd/month",)))
    known = await bench.begin()
    bench.price = None
    error = await bench.refused()
    assert (error.kind, error.code, error.param) == (ErrorKind.FORBIDDEN, "price_unknown", "model")
    # The price went away while the call ran: its reservation stays charged.
    bench.meter.finish(known, CallOutcome.ANSWERED, TokenUsage(prompt=1))
    await bench.ledger.flush(1)
    assert bench.used() == [101_000]
    bench.options.unknown_price = 2000
    call = await bench.begin()
    assert bench.used() == [101_000 + 202_000]
    bench.meter.finish(call, CallOutcome.ANSWERED, TokenUsage(prompt=10))
    await bench.ledger.flush(1)
    assert bench.used() == [121_000]
    # A budget in tokens needs no price.
    bench.options.unknown_price = None
    bench.limit(rule(budgets=("1000tokens/month",)))
    await bench.begin()


async def test_a_prompt_above_the_limit_can_never_run(bench: AdmissionBench) -> None:
    bench.limit(rule(tokens_per_minute=100))
    error = await bench.refused(messages=[{"role": "user", "content": "x" * 4000}])
    assert (error.code, error.retry_after, error.headers) == (
        "request_too_large",
        None,
        {"x-should-retry": "false"},
    )
    # A high maximum of the answer runs alone.
    call = await bench.begin(max_tokens=50_000)
    assert (await bench.refused(max_tokens=1)).retry_after == 60
    bench.meter.finish(call, CallOutcome.ANSWERED, TokenUsage(prompt=10, completion=20))
    await bench.begin(max_tokens=1)


async def test_200_streams_and_50_keys_never_exceed_their_reservations(
    bench: AdmissionBench,
) -> None:
    most = 5000
    bench.limit(
        rule(LimitSubject.TOTAL, budgets=(f"{most}tokens/day",)),
        *(rule(LimitSubject.KEY, f"k{n}", name=f"k{n}", requests_per_minute=3) for n in range(50)),
    )
    answered = refused = 0

    async def stream(number: int) -> None:
        nonlocal answered, refused
        try:
            call = await bench.begin(Caller(f"u{number % 50}", key_id=f"k{number % 50}"))
        except GatewayError:
            refused += 1
            return
        assert max(bench.used()) <= most
        await asyncio.sleep(0)
        bench.meter.finish(call, CallOutcome.ANSWERED, TokenUsage(prompt=11, completion=number % 90))
        answered += 1

    for _ in range(4):
        await asyncio.gather(*(stream(number) for number in range(200)))
        assert await bench.ledger.flush(1)
        assert max(bench.used()) <= most
    # Three requests of each of the 50 keys at most, and never more than the budget holds at once.
    assert answered <= 150
    assert answered + refused == 800
    assert answered > 49
    assert not bench.budgets.open


async def test_a_caller_that_opens_and_cancels_holds_nothing(bench: AdmissionBench) -> None:
    bench.limit(rule(parallel=1, budgets=("1000tokens/day",)))
    for _ in range(50):
        opened = asyncio.ensure_future(bench.begin())
        await asyncio.sleep(0)
        opened.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opened
    assert await bench.ledger.flush(1)
    assert (sum(bench.used()), bench.budgets.open) == (0, {})
    await bench.begin()


async def test_a_change_while_a_stream_runs(bench: AdmissionBench) -> None:
    bench.limit(rule(parallel=1, tokens_per_minute=1000, budgets=("1000tokens/day",)))
    call = await bench.begin()
    bench.limit(rule(parallel=2, tokens_per_minute=200, budgets=("2000tokens/day",)))
    second = await bench.begin(max_tokens=50)
    assert "200 tokens a minute" in (await bench.refused(max_tokens=50)).message
    for each in (call, second):
        bench.meter.finish(each, CallOutcome.ANSWERED, TokenUsage(prompt=10))
    assert await bench.ledger.flush(1)
    assert (bench.used(), bench.budgets.open) == ([20], {})
    bench.limit()
    await bench.begin()


async def test_a_limit_of_a_model_counts_the_models_based_on_it(bench: AdmissionBench) -> None:
    bench.limit(rule(LimitSubject.TOTAL, model="big", requests_per_minute=1))
    bench.bases["mine"] = "big"
    await bench.begin(model="mine")
    await bench.refused(model="big")
    await bench.begin(model="small")


async def test_the_calls_of_a_function_model_count_in_its_place(bench: AdmissionBench) -> None:
    bench.limit(rule(parallel=1, requests_per_minute=1, budgets=("150tokens/day",)))
    outer = await bench.begin(model="pipe")
    outer.hold_calls()
    inner = await bench.begin()
    bench.meter.finish(inner, CallOutcome.ANSWERED, TokenUsage(prompt=7))
    bench.meter.finish(outer, CallOutcome.ANSWERED)
    assert await bench.ledger.flush(1)
    use = bench.rates.use(bench.admission.book.plan("", "u1", (), "m", "").pots[0])
    assert (use.parallel, use.requests, bench.used()) == (0, 1, [7])


async def test_a_call_is_settled_in_the_period_of_its_reservation(bench: AdmissionBench) -> None:
    """The clock passes midnight, or is set back, while calls run."""
    bench.limit(rule(budgets=("150tokens/day",)))
    first = await bench.begin()
    bench.epoch += 86_400
    second = await bench.begin()
    bench.epoch = NOON - 10
    assert (await bench.refused()).code == "rate_limit_exceeded"
    bench.meter.finish(first, CallOutcome.ANSWERED, TokenUsage(prompt=100))
    bench.meter.finish(second, CallOutcome.ANSWERED, TokenUsage(prompt=7))
    assert await bench.ledger.flush(1)
    days = {key.starts_at - (NOON - NOON % 86_400): used for key, used in bench.budgets.used.items()}
    assert days == {0: 100, 86_400: 7}
    assert (await bench.refused()).code == "insufficient_quota"


async def test_the_user_is_warned_once(bench: AdmissionBench) -> None:
    bench.limit(rule(budgets=("1000tokens/day",), warn_percent=50))
    for _ in range(3):
        call = await bench.begin()
        bench.meter.finish(call, CallOutcome.ANSWERED, TokenUsage(prompt=290))
    assert await bench.ledger.flush(1)
    assert [(each.user_id, each.warn_at) for each in bench.warned] == [("u1", 500)]


async def test_headers_tell_the_pot_with_least_left(bench: AdmissionBench) -> None:
    bench.limit(
        rule(requests_per_minute=10, tokens_per_minute=1000),
        rule(LimitSubject.TOTAL, name="r2", requests_per_minute=100, tokens_per_minute=500),
    )
    call = await bench.begin()
    expected: Mapping[str, str] = {
        "x-ratelimit-limit-requests": "10",
        "x-ratelimit-remaining-requests": "9",
        "x-ratelimit-reset-requests": "1m0s",
        "x-ratelimit-limit-tokens": "500",
        "x-ratelimit-remaining-tokens": "399",
        "x-ratelimit-reset-tokens": "1m0s",
    }
    assert bench.admission.headers(call) == expected
    bench.meter.finish(call, CallOutcome.ANSWERED, TokenUsage(prompt=10))
    assert bench.admission.headers(call)["x-ratelimit-remaining-tokens"] == "490"


def ended(bench: AdmissionBench, tokens: int) -> MeteredCall:
    """Return a call that was answered outside of the gateway."""
    call = MeteredCall("u1", (), "", "m", "chat")
    call.usage = TokenUsage(prompt=tokens)
    call.cost = bench.cost(call, call.usage)
    return call


async def settled(bench: AdmissionBench) -> list[int]:
    await bench.ledger.flush(5)
    return bench.used()


async def test_what_was_answered_outside_is_charged_beyond_the_budget(bench: AdmissionBench) -> None:
    await bench.admission.charge(ended(bench, 5))
    assert await settled(bench) == []
    bench.limit(rule(budgets=("100tokens/day",), warn_percent=50))
    await bench.admission.charge(ended(bench, 40))
    assert (await settled(bench), bench.warned) == ([40], [])
    await bench.admission.charge(ended(bench, 70))
    await bench.admission.charge(ended(bench, 30))
    assert await settled(bench) == [140]
    assert len(bench.warned) == 1


async def test_room_for_what_is_answered_outside(bench: AdmissionBench) -> None:
    estimate = TokenUsage(prompt=60)
    call = MeteredCall("u1", (), "", "m", "chat")
    assert await bench.admission.can_hold(call, estimate)
    bench.limit(rule(budgets=("100tokens/day",)))
    assert await bench.admission.can_hold(call, estimate)
    # Nothing stays reserved.
    assert await settled(bench) in ([], [0])
    await bench.admission.charge(ended(bench, 50))
    assert not await bench.admission.can_hold(call, estimate)
    bench.limit(rule(name="r2", budgets=("1usd/day",)))
    bench.price = None
    assert not await bench.admission.can_hold(call, estimate)
