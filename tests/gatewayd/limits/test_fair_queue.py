"""Tests for gatewayd.limits.fair_queue."""

import asyncio
from collections import Counter

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.fair_queue import FairQueue, QueueRules, QueueTurn


async def turns() -> None:
    """Let the tasks of the loop go on."""
    for _ in range(5):
        await asyncio.sleep(0)


def wait(queue: FairQueue, flow: str, weight: float = 1.0) -> "asyncio.Task[QueueTurn]":
    return asyncio.ensure_future(queue.enter(flow, weight))


async def served(queue: FairQueue, holder: QueueTurn, tasks: "list[asyncio.Task[QueueTurn]]") -> list[str]:
    """Serve all calls one after the other, and return their flows."""
    order, left = [], list(tasks)
    while left:
        queue.leave(holder)
        await turns()
        [ready] = [task for task in left if task.done()]
        left.remove(ready)
        holder = ready.result()
        order.append(holder.flow)
    queue.leave(holder)
    return order


async def test_free_places_are_given_at_once() -> None:
    queue = FairQueue("m", QueueRules(2))
    held = [await queue.enter("a"), await queue.enter("a")]
    assert (queue.taken, [turn.position for turn in held]) == (2, [0, 0])
    third = wait(queue, "a")
    await turns()
    assert not third.done()
    queue.leave(held[0])
    queue.leave(held[0])
    assert ((await third).position, queue.taken, queue.waiting) == (1, 2, 0)


async def test_many_calls_of_one_flow_do_not_delay_another() -> None:
    queue = FairQueue("m", QueueRules(1))
    first = await queue.enter("busy")
    tasks = [wait(queue, "busy") for _ in range(6)]
    await turns()
    tasks.append(wait(queue, "rare"))
    await turns()
    order = await served(queue, first, tasks)
    assert order.index("rare") <= 1
    assert (queue.taken, queue.waiting) == (0, 0)


async def test_places_are_shared_by_weight() -> None:
    queue = FairQueue("m", QueueRules(1))
    first = await queue.enter("x")
    tasks = [wait(queue, flow, weight) for _ in range(30) for flow, weight in (("one", 1.0), ("three", 3.0))]
    await turns()
    order = await served(queue, first, tasks)
    assert 27 <= Counter(order[:40])["three"] <= 31


async def test_a_full_queue_refuses_with_a_wait() -> None:
    now = [0.0]
    queue = FairQueue("m", QueueRules(1, length=1), lambda: now[0])
    first = await queue.enter("a")
    waiting = wait(queue, "b")
    await turns()
    with pytest.raises(GatewayError) as refused:
        await queue.enter("c")
    error = refused.value
    assert (error.kind, error.code, error.retry_after) == (ErrorKind.RATE_LIMITED, "queue_full", 10)
    now[0] = 30.0
    queue.leave(first)
    queue.leave(await waiting)
    assert queue._average > 5


@pytest.mark.parametrize("moment", ["waiting", "granted"])
async def test_a_caller_that_leaves_holds_nothing(moment: str) -> None:
    queue = FairQueue("m", QueueRules(1))
    first = await queue.enter("a")
    gone, stays = wait(queue, "b"), wait(queue, "c")
    await turns()
    if moment == "granted":
        queue.leave(first)
        gone.cancel()
    else:
        gone.cancel()
        await turns()
        assert queue.waiting == 1
        queue.leave(first)
    queue.leave(await stays)
    assert (gone.cancelled(), queue.taken, queue.waiting) == (True, 0, 0)


async def test_a_wait_ends_and_a_stuck_call_loses_its_place() -> None:
    queue = FairQueue("m", QueueRules(1, wait_seconds=0.01, hold_seconds=60))
    stuck = await queue.enter("a")
    with pytest.raises(GatewayError) as refused:
        await queue.enter("b")
    assert (refused.value.kind, refused.value.code) == (ErrorKind.UNAVAILABLE, "queue_timeout")
    assert queue.waiting == 0
    queue.leave(stuck)
    queue.change(QueueRules(1, hold_seconds=0.01))
    stuck = await queue.enter("a")
    await (task := wait(queue, "b"))
    queue.leave(stuck)
    assert queue.taken == 1
    queue.leave(task.result())


async def test_positions_are_told_when_they_change() -> None:
    queue = FairQueue("m", QueueRules(1))
    first = await queue.enter("a")
    told: list[tuple[str, int]] = []
    tasks = [
        asyncio.ensure_future(queue.enter(name, 1.0, lambda at, name=name: told.append((name, at))))  # type: ignore[misc]
        for name in ("b", "c")
    ]
    await turns()
    assert told == [("b", 1), ("c", 2)]
    queue.leave(first)
    queue.leave(await tasks[0])
    assert ((await tasks[1]).position, told) == (2, [("b", 1), ("c", 2), ("c", 1)])


async def test_more_places_are_given_at_once() -> None:
    queue = FairQueue("m", QueueRules(1))
    held = [await queue.enter("a")]
    tasks = [wait(queue, "b"), wait(queue, "c")]
    await turns()
    queue.change(QueueRules(3))
    held += [await task for task in tasks]
    assert queue.taken == 3


async def test_flows_are_forgotten() -> None:
    queue = FairQueue("m", QueueRules(1))
    for number in range(3000):
        queue.leave(await queue.enter(f"f{number}"))
    assert len(queue._finish) <= 1001


async def test_a_call_that_comes_after_a_cancelled_one_gets_the_free_place() -> None:
    queue = FairQueue("m", QueueRules(1))
    held = await queue.enter("a")
    gone = wait(queue, "b")
    await turns()
    # The late call enters after the place became free, and before the cancelled call has left the queue.
    late = wait(queue, "c")
    gone.cancel()
    queue.leave(held)
    await turns()
    newcomer = wait(queue, "d")
    queue.leave(await asyncio.wait_for(late, 0.1))
    queue.leave(await asyncio.wait_for(newcomer, 0.1))
    assert (queue.taken, queue.waiting) == (0, 0)
