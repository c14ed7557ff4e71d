"""Calls of services count for whoever the work is done for, however they end."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.admission import LimitAdmission
from gatewayd.limits.records import LimitSubject
from gatewayd.metering.records import NO_USAGE, CallOutcome, MeteredCall, TokenUsage
from gatewayd.metering.service_calls import EnclosingCall, MeteredService, WorkOwner, paid_by
from gatewayd.tasks import TaskRegistry
from tests.fakes.metering.service_calls import PRICE, ServiceMeter
from tests.fakes.providers.models import make_actor
from tests.gatewayd.limits.test_admission import AdmissionBench, rule

SERVICE = MeteredService("embedding", "small", "embeddings", "openai")
BODY = {"input": ["a" * 40]}
ANSWER = {"usage": {"prompt_tokens": 5, "total_tokens": 5}}


async def told(answer: dict[str, Any] = ANSWER) -> dict[str, Any]:
    return answer


async def test_a_call_counts_for_the_one_it_is_made_for() -> None:
    calls = ServiceMeter()
    actor = replace(make_actor(), key_id="k")
    with paid_by(actor):
        assert await calls.run(SERVICE, BODY, told) is ANSWER
        with paid_by(WorkOwner("owner")):
            await calls.run(SERVICE, BODY, told)
    await calls.run(SERVICE, BODY, told)
    same = ("embedding", "small", "embeddings", TokenUsage(5))
    assert calls.usages() == [(actor.user_id, "k", *same), ("owner", "", *same), ("", "", *same)]
    first = calls.ended.calls[0]
    assert (first.cost, first.outcome, first.maker, first.attempts) == (
        5 * PRICE,
        CallOutcome.ANSWERED,
        "openai",
        1,
    )
    assert not calls.meter.calls


async def test_parallel_work_of_several_people_is_told_apart() -> None:
    calls = ServiceMeter()

    async def slow() -> dict[str, Any]:
        await asyncio.sleep(0)
        return ANSWER

    async def work(user_id: str) -> None:
        with paid_by(WorkOwner(user_id)):
            await asyncio.gather(*(calls.run(SERVICE, BODY, slow) for _ in range(3)))

    await asyncio.gather(*map(work, "abc"))
    assert sorted(call.user_id for call in calls.ended.calls) == list("aaabbbccc")


async def test_an_answer_without_usage_is_estimated_and_a_failure_has_none() -> None:
    calls = ServiceMeter()
    await calls.run(SERVICE, BODY, lambda: told({"usage": {"total_tokens": -1}}))

    async def fail(kind: ErrorKind) -> dict[str, Any]:
        raise GatewayError(kind, "no")

    for kind in (ErrorKind.UPSTREAM_FAILED, ErrorKind.RATE_LIMITED):
        with pytest.raises(GatewayError):
            await calls.run(SERVICE, BODY, lambda kind=kind: fail(kind))

    async def wait() -> dict[str, Any]:
        await asyncio.Event().wait()
        return ANSWER

    task = asyncio.create_task(calls.run(SERVICE, BODY, wait))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ended = [(call.outcome, call.usage, call.is_estimated) for call in calls.ended.calls]
    assert ended == [
        (CallOutcome.ANSWERED, TokenUsage(10), True),
        (CallOutcome.FAILED, NO_USAGE, False),
        (CallOutcome.REFUSED, NO_USAGE, False),
        (CallOutcome.CANCELLED, TokenUsage(10), True),
    ]
    assert not calls.meter.calls


async def test_a_call_within_a_metered_one_leaves_its_answer_there() -> None:
    calls, outer = ServiceMeter(), EnclosingCall()
    with paid_by(outer):
        await calls.run(SERVICE, BODY, told)
    assert outer.answers == [ANSWER]
    assert not calls.ended.calls


async def test_budgets_are_charged_and_refuse_nothing() -> None:
    calls, bench, tasks = ServiceMeter(), AdmissionBench(), TaskRegistry()
    tasks.spawn("ledger", bench.ledger.run())
    calls.meter.admissions.append(bench.admission)
    bench.limit(rule(LimitSubject.GROUP, "of-owner", budgets=("8tokens/day",)))
    for _ in range(3):
        with paid_by(WorkOwner("owner")):
            await calls.run(SERVICE, BODY, told)
        await calls.run(SERVICE, BODY, told)
    assert calls.ended.calls[0].group_ids == ("of-owner",)
    await bench.ledger.flush(5)
    assert bench.used() == [15]
    await tasks.close()


async def test_a_budget_is_charged_for_work_that_nobody_waits_for_any_more() -> None:
    calls, bench, tasks = ServiceMeter(), AdmissionBench(), TaskRegistry()
    tasks.spawn("ledger", bench.ledger.run())
    calls.meter.admissions.append(bench.admission)
    bench.limit(rule(LimitSubject.USER, "owner", budgets=("8tokens/day",)))
    asked = asyncio.Event()

    async def wait() -> dict[str, Any]:
        asked.set()
        await asyncio.Event().wait()
        return ANSWER

    async def answered() -> dict[str, Any]:
        # The cancellation comes while the budget is charged.
        asyncio.get_running_loop().call_soon(lambda: running.cancel())
        return ANSWER

    for ask in (wait, answered):
        asked.clear()
        with paid_by(WorkOwner("owner")):
            running = asyncio.create_task(calls.run(SERVICE, BODY, ask))
        if ask is wait:
            await asked.wait()
            running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    while calls.tasks.list():
        await asyncio.sleep(0)
    await bench.ledger.flush(5)
    # An estimate, and what the answer told.
    assert bench.used() == [10 + 5]
    assert len(calls.ended.calls) == 2
    await tasks.close()


async def test_a_call_that_is_left_ends_once_and_is_charged_after_that() -> None:
    calls, order = ServiceMeter(), []
    finish = calls.meter.finish

    def finished(call: MeteredCall, outcome: CallOutcome, usage: TokenUsage | None = None) -> None:
        order.append(outcome.value)
        finish(call, outcome, usage)

    class Charging(LimitAdmission):
        async def charge(self, call: MeteredCall) -> None:
            order.append(f"charged {call.usage and call.usage.total}")

    async def wait() -> dict[str, Any]:
        await asyncio.Event().wait()
        return ANSWER

    calls.meter.finish = finished  # type: ignore[method-assign]
    calls.meter.admissions.append(Charging.__new__(Charging))
    task = asyncio.create_task(calls.run(SERVICE, BODY, wait))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while calls.tasks.list():
        await asyncio.sleep(0)
    assert order == ["cancelled", "charged 10"]
