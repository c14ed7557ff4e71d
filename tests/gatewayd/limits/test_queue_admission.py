"""Tests for gatewayd.limits.queue_admission, through the meter that calls it."""

import asyncio
from dataclasses import dataclass

import pytest

from gatewayd.catalog.failover import Candidate, Failover, foresee
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.fair_queue import QueueRules
from gatewayd.limits.queue_admission import QueueAdmission, QueueSetup
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall
from tests.fakes.providers.models import FakeSource, make_model


@dataclass
class Caller:
    """Who calls."""

    user_id: str = "u1"
    group_ids: tuple[str, ...] = ()
    key_id: str | None = None


class QueueBench:
    """The admission with a meter, and the positions that it told."""

    def __init__(self, **weights: int) -> None:
        self.told: list[tuple[str, int]] = []
        rules = {"m": QueueRules(1), "local": QueueRules(1)}
        self.admission = QueueAdmission(
            QueueSetup(rules, weights), lambda call, at: self.told.append((call.user_id, at))
        )
        self.meter = CallMeter(admissions=[self.admission])

    def begin(self, user_id: str = "u1", model: str = "m", source: str = "") -> "asyncio.Task[MeteredCall]":
        async def ask() -> None:
            call.attempts += 1

        async def run() -> MeteredCall:
            await self.meter.run(call, ask)
            return call

        call = self.meter.begin(Caller(user_id), model, "chat", {})
        call.source = source
        return asyncio.ensure_future(run())


async def test_calls_wait_and_know_their_position() -> None:
    bench = QueueBench()
    first = await bench.begin()
    assert bench.admission.headers(first) == {}
    waiting = [bench.begin("u2"), bench.begin("u3")]
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    bench.meter.finish(first, CallOutcome.ANSWERED)
    second = await waiting[0]
    bench.meter.finish(second, CallOutcome.ANSWERED)
    third = await waiting[1]
    assert bench.told == [("u2", 1), ("u3", 2), ("u3", 1), ("u2", 0), ("u3", 0)]
    # The headers outlive the call.
    bench.meter.finish(third, CallOutcome.ANSWERED)
    assert bench.admission.headers(third)["X-Gateway-Queue-Position"] == "2"
    assert float(bench.admission.headers(third)["X-Gateway-Queue-Time"]) >= 0
    assert bench.admission.queues["m"].taken == 0


async def test_a_provider_has_a_queue_and_other_models_have_none() -> None:
    bench = QueueBench()
    held = [await bench.begin(model="a", source="local"), await bench.begin(model="m", source="local")]
    assert [queue.taken for queue in bench.admission.queues.values()] == [1, 1]
    assert (await bench.begin(model="b", source="hosted")).admissions == ()
    for call in held:
        bench.meter.finish(call, CallOutcome.CUT)
    assert [queue.taken for queue in bench.admission.queues.values()] == [0, 0]


async def test_a_cancelled_call_leaves_the_queue() -> None:
    bench = QueueBench()
    first = await bench.begin()
    gone, stays = bench.begin("u2"), bench.begin("u3")
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    bench.meter.finish(first, CallOutcome.ANSWERED)
    bench.meter.finish(await stays, CallOutcome.ANSWERED)
    assert (bench.admission.queues["m"].taken, len(bench.meter.calls)) == (0, 0)


async def test_other_options_open_the_queues_that_are_gone() -> None:
    bench = QueueBench()
    first, waiting = await bench.begin(), bench.begin("u2")
    await asyncio.sleep(0)
    bench.admission.configure(QueueSetup({"other": QueueRules(1)}))
    for call in (first, await waiting):
        bench.meter.finish(call, CallOutcome.ANSWERED)
    assert list(bench.admission.queues) == ["other"]


@pytest.mark.parametrize(
    ("caller", "flow"),
    [
        (("", "u1", ()), ("u1", 1.0)),
        (("k1", "u1", ()), ("k1", 4.0)),
        (("k2", "u1", ("g1", "g2")), ("u1", 3.0)),
        (("", "u2", ("g1",)), ("u2", 5.0)),
    ],
)
def test_flows_and_weights(caller: tuple[str, str, tuple[str, ...]], flow: tuple[str, float]) -> None:
    bench = QueueBench(k1=4, g1=2, g2=3, u2=5)
    key_id, user_id, group_ids = caller
    call = MeteredCall(user_id, group_ids, key_id, "m", "chat")
    assert bench.admission._flow(call) == flow


class TwoProviders:
    """A model of two providers with queues of their own, of which the first one fails."""

    def __init__(self, length: int = 10) -> None:
        rules = {"first": QueueRules(1), "second": QueueRules(1, length)}
        self.admission = QueueAdmission(QueueSetup(rules))
        self.meter = CallMeter(admissions=[self.admission])
        self.failover = Failover(move=self.meter.move)
        self.asked: list[tuple[str, int, int]] = []

    def taken(self) -> list[int]:
        return [queue.taken for queue in self.admission.queues.values()]

    def begin(self, *names: str) -> "asyncio.Task[MeteredCall]":
        async def ask(model: Model, source: ModelSource) -> MeteredCall:
            self.asked.append((source.name, *self.taken()))
            if source.name in ("first", "free"):
                raise GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "no")
            return call

        candidates = [Candidate(make_model("m"), FakeSource(name=name)) for name in names]
        call = self.meter.begin(Caller(), "m", "chat", {})
        foresee(call, candidates[0].model, names[0])
        return asyncio.ensure_future(self.meter.run(call, self.failover.ask, candidates, ask, call))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_failover_waits_in_the_queue_of_the_next_provider() -> None:
    bench = TwoProviders()
    held = await bench.begin("second")
    waiting = bench.begin("first", "second")
    await settle()
    # It waits without its place at the first one, which another call takes.
    assert (waiting.done(), bench.taken()) == (False, [0, 1])
    bench.meter.finish(held, CallOutcome.ANSWERED)
    second = await waiting
    assert bench.asked == [("second", 0, 1), ("first", 1, 1), ("second", 0, 1)]
    assert bench.admission.headers(second)["X-Gateway-Queue-Position"] == "1"
    bench.meter.finish(second, CallOutcome.ANSWERED)
    # The first provider rests, so the call that was admitted for it goes to the second at once.
    third = await bench.begin("first", "second")
    assert (bench.taken(), bench.asked[-1]) == ([0, 1], ("second", 0, 1))
    bench.meter.finish(third, CallOutcome.ANSWERED)
    # A provider without a queue goes before.
    fourth = await bench.begin("free", "second")
    assert (bench.taken(), fourth.admissions) == ([0, 1], (bench.admission,))
    bench.meter.finish(fourth, CallOutcome.ANSWERED)
    assert bench.taken() == [0, 0]


async def test_a_call_that_finds_the_next_queue_full_or_leaves_it_holds_nothing() -> None:
    bench = TwoProviders(length=1)
    held = await bench.begin("second")
    waiting = bench.begin("first", "second")
    await settle()
    # One that does not know that the first one rests.
    bench.failover = Failover(move=bench.meter.move)
    with pytest.raises(GatewayError) as full:
        await bench.begin("first", "second")
    assert full.value.code == "queue_full"
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert bench.taken() == [0, 1]
    bench.meter.finish(held, CallOutcome.ANSWERED)
    assert (bench.taken(), bench.meter.calls) == ([0, 0], set())
