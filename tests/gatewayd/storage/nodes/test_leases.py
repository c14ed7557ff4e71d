"""Tests for gatewayd.storage.nodes.leases, on PostgreSQL."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import HeldLease, Node
from gatewayd.storage.engine.database import Database
from gatewayd.storage.nodes.leases import TortoiseLeases
from gatewayd.storage.nodes.nodes import TortoiseNodes
from gatewayd.tasks import TaskRegistry

pytestmark = pytest.mark.parametrize("location", ["postgres"], indirect=True)


@pytest.fixture
async def leases(database: Database) -> TortoiseLeases:
    for name in ("n1", "n2"):
        await TortoiseNodes().add(Node(name, name), 30)
    return TortoiseLeases()


async def test_a_lease_has_one_holder(leases: TortoiseLeases) -> None:
    found = await asyncio.gather(*(leases.take("gc", node, 30) for node in ("n1", "n2", "n1", "n2")))
    assert [each for each in found if each is not None] == [HeldLease("gc", 1)]
    assert await leases.take("reaper", "n2", 30) == HeldLease("reaper", 1)


async def test_the_next_holder_has_a_higher_fence_and_the_former_cannot_write(leases: TortoiseLeases) -> None:
    first = await leases.take("gc", "n1", -1)
    second = await leases.take("gc", "n2", 30)
    assert (first, second) == (HeldLease("gc", 1), HeldLease("gc", 2))
    assert first is not None
    assert second is not None
    assert not await leases.renew(first, 30)
    assert await leases.renew(second, 30)
    with pytest.raises(GatewayError, match="another node has taken it over") as caught:
        async with leases.fenced(first):
            raise AssertionError("a write of the former holder")
    assert caught.value.kind is ErrorKind.CONFLICT
    await leases.release(first)
    assert await leases.take("gc", "n1", 30) is None
    await leases.release(second)
    assert await leases.take("gc", "n1", 30) == HeldLease("gc", 3)


async def test_the_lease_of_a_dead_node_is_free(leases: TortoiseLeases) -> None:
    await leases.take("gc", "n1", 30)
    await TortoiseNodes().remove("n1")
    assert await leases.take("gc", "n2", 30) == HeldLease("gc", 2)


async def test_a_takeover_waits_for_the_write_of_the_holder(leases: TortoiseLeases) -> None:
    lease = await leases.take("gc", "n1", -1)
    assert lease is not None
    tasks, order = TaskRegistry(), []

    async def take_over() -> None:
        await leases.take("gc", "n2", 30)
        order.append("taken")

    begun = asyncio.Event()

    async def wait_and_take() -> None:
        await begun.wait()
        await take_over()

    # The task is started outside of the transaction, so that it uses another connection.
    tasks.spawn("takeover", wait_and_take())
    async with leases.fenced(lease):
        begun.set()
        await asyncio.sleep(0.3)
        order.append("written")
    async with asyncio.timeout(5):
        while len(order) < 2:
            await asyncio.sleep(0.01)
    assert order == ["written", "taken"]
    await tasks.close()
