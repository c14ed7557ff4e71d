"""Tests for gatewayd.nodes.member: what a node knows of its own lease."""

import asyncio
import logging

import pytest

from gatewayd.errors import GatewayError
from gatewayd.nodes.member import NodeMember
from gatewayd.nodes.records import Node
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.nodes import MemoryNodes


def member_of(store: MemoryNodes, seconds: float = 10.0, known: tuple[str, ...] = ()) -> NodeMember:
    return NodeMember(Node("n1", "one"), store, store, seconds, known, store.elapsed)


async def test_a_node_owns_until_a_little_before_the_end_of_its_lease() -> None:
    store = MemoryNodes()
    member = member_of(store)
    assert not member.is_owner
    await member.join()
    assert (member.id, member.seconds, member.is_owner) == ("n1", 10.0, True)
    store.now += 8.9
    assert member.is_owner
    store.now += 0.2
    assert not member.is_owner
    await member.renew()
    assert member.is_owner


async def test_a_node_that_cannot_renew_stops_to_own(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryNodes()
    member = member_of(store)
    await member.join()
    store.now += 3
    assert member.is_steady
    store.is_away = True
    with pytest.raises(GatewayError):
        await member.renew()
    store.now += 7
    assert not member.is_owner
    assert not member.is_steady
    store.is_away = False
    await member.renew()
    assert member.is_owner
    assert not member.is_steady, "other nodes may not have renewed their leases yet"
    store.now += 3
    assert member.is_steady
    assert "this node owned nothing for a while: its lease had ended" in caplog.text


async def test_the_clock_is_that_of_the_database() -> None:
    store = MemoryNodes(offset=60.0)
    member = member_of(store)
    await member.join()
    assert member.clock() == 1060
    store.now += 2
    assert member.clock() == 1062


async def test_an_operator_drains_a_node_and_undoes_it(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryNodes()
    member = member_of(store)
    caplog.set_level(logging.INFO)
    await member.join()
    await store.change_draining("n1", is_draining=True)
    await member.renew()
    assert member.is_draining
    await store.change_draining("n1", is_draining=False)
    await member.renew()
    assert not member.is_draining
    assert "this node drains" in caplog.text
    assert "this node works again" in caplog.text


async def test_a_node_tolerates_a_schema_that_was_expanded_and_drains_before_one_that_contracts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryNodes()
    member = member_of(store, known=("0001_initial",))
    store.migrations = ("0001_initial", "0002_more")
    await member.join()
    await member.renew()
    assert not member.is_draining
    assert caplog.text.count("newer than this version: 0002_more") == 1
    store.migrations = ("0001_initial", "0002_more", "0003_less_contract")
    await member.renew()
    assert member.is_draining


async def test_a_node_that_was_removed_joins_again(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryNodes()
    member = member_of(store)
    await member.join()
    await store.remove("n1")
    await member.renew()
    assert "n1" in store.nodes
    assert "this node was removed while it was silent" in caplog.text


async def test_the_lease_is_renewed_again_and_again_also_after_an_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryNodes()
    member = member_of(store, seconds=0.04)
    await member.join()
    tasks = TaskRegistry()
    tasks.spawn("renewal", member.run())
    store.is_away = True
    async with asyncio.timeout(5):
        while "cannot renew the lease of this node" not in caplog.text:
            await asyncio.sleep(0.01)
        store.is_away = False
        store.until.clear()
        while "n1" not in store.until:
            await asyncio.sleep(0.01)
    await tasks.close()


async def test_a_node_leaves_at_once(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryNodes()
    member = member_of(store)
    await member.join()
    await member.leave()
    assert store.nodes == {}
    assert store.is_closed
    assert not member.is_owner


async def test_a_node_without_its_database_leaves_at_the_end_of_its_lease(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryNodes()
    member = member_of(store)
    await member.join()
    store.is_away = True
    await member.leave()
    assert "leaves at the end of its lease" in caplog.text
