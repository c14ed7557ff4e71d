"""Tests for gatewayd.limits.queue_admission, through the meter that calls it."""

import asyncio
from dataclasses import dataclass

import pytest

from gatewayd.limits.fair_queue import QueueRules
from gatewayd.limits.queue_admission import QueueAdmission, QueueSetup
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import CallOutcome, MeteredCall


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
