"""Tests for gatewayd.nodes.duties: one node at a time, and never past its lease."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.duties import LEASE_TAKEN, LeasedDuties, LocalDuties
from gatewayd.nodes.member import NodeMember
from gatewayd.nodes.records import Node
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.nodes import MemoryLeases, MemoryNodes


async def duties_of(leases: MemoryLeases, name: str, seconds: float = 0.4) -> LeasedDuties:
    store = MemoryNodes()
    member = NodeMember(Node(name, name), store, store, seconds, (), store.elapsed)
    await member.join()
    return LeasedDuties(leases, member, TaskRegistry())


async def test_a_daemon_alone_does_all_duties() -> None:
    done = []

    async def work() -> None:
        done.append("work")

    duties = LocalDuties()
    await duties.run("gc", work)
    async with duties.alone("gc"), duties.fenced("gc"):
        done.append("alone")
    assert done == ["work", "alone"]


async def test_one_node_does_a_duty_and_another_after_it() -> None:
    leases = MemoryLeases()
    first, second = await duties_of(leases, "n1"), await duties_of(leases, "n2")
    async with first.alone("gc"):
        async with first.fenced("gc"):
            assert leases.held == {"gc": ("n1", 1)}
        with pytest.raises(GatewayError, match="another node does it") as caught:
            async with second.alone("gc"):
                raise AssertionError("two at a time")
        assert caught.value.kind is ErrorKind.CONFLICT
        with pytest.raises(GatewayError, match="another node"):
            async with second.fenced("gc"):
                raise AssertionError("not its duty")
    async with second.alone("gc"):
        assert leases.held == {"gc": ("n2", 2)}


async def test_a_duty_ends_when_its_lease_cannot_be_renewed_in_time() -> None:
    leases = MemoryLeases()
    duties = await duties_of(leases, "n1")
    with pytest.raises(GatewayError, match="another node"):
        async with duties.alone("gc"):
            leases.is_away = True
            await asyncio.sleep(30)
    leases.is_away = False


async def test_a_duty_ends_when_another_node_has_taken_it() -> None:
    leases = MemoryLeases()
    duties = await duties_of(leases, "n1")
    with pytest.raises(GatewayError, match="another node"):
        async with duties.alone("gc"):
            leases.held["gc"] = ("n2", 2)
            with pytest.raises(GatewayError, match="cannot write"):
                async with duties.fenced("gc"):
                    raise AssertionError("a write of a former holder")
            await asyncio.sleep(30)
    assert leases.held["gc"] == ("n2", 2)


async def test_a_duty_goes_on_while_its_lease_is_renewed() -> None:
    duties = await duties_of(MemoryLeases(), "n1", seconds=0.2)
    async with duties.alone("gc"):
        await asyncio.sleep(0.5)


async def test_a_time_limit_of_the_work_itself_is_no_lost_lease() -> None:
    duties = await duties_of(MemoryLeases(), "n1")
    with pytest.raises(TimeoutError):
        async with duties.alone("gc"):
            raise TimeoutError


async def test_a_node_takes_a_duty_once_it_is_free(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gatewayd.nodes.duties.LOOK_SECONDS", 0.01)
    leases, tasks = MemoryLeases(), TaskRegistry()
    first, second = await duties_of(leases, "n1"), await duties_of(leases, "n2")
    begun = asyncio.Event()

    async def fail() -> None:
        begun.set()
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot work")

    async with first.alone("gc"):
        tasks.spawn("duty", second.run("gc", fail))
        await asyncio.sleep(0.05)
        assert not begun.is_set()
    async with asyncio.timeout(5):
        await begun.wait()
        while "cannot do the duty gc now: cannot work" not in caplog.text:
            await asyncio.sleep(0.01)
    await tasks.close()


async def test_a_node_that_drains_says_so_and_begins_no_duty() -> None:
    leases, store = MemoryLeases(), MemoryNodes()
    member = NodeMember(Node("n1", "n1"), store, store, 0.4, (), store.elapsed)
    await member.join()
    await store.change_draining("n1", is_draining=True)
    await member.renew()
    with pytest.raises(GatewayError, match="this node drains") as caught:
        async with LeasedDuties(leases, member, TaskRegistry()).alone("gc"):
            raise AssertionError("it began")
    assert caught.value.code == LEASE_TAKEN
