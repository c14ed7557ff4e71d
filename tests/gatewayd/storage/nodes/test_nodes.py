"""Tests for gatewayd.storage.nodes.nodes, on PostgreSQL."""

import asyncio
from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import Node, NodeUse
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.migrate import known_migrations
from gatewayd.storage.nodes.leases import TortoiseLeases
from gatewayd.storage.nodes.nodes import PostgresNodeSession, TortoiseNodes, milliseconds
from tests.fakes.storage.postgres import Postgres

pytestmark = pytest.mark.parametrize("location", ["postgres"], indirect=True)

NODE = Node("n1", "one", "1.0", "0022_nodes", "http://127.0.0.1:8080", "c", "s", "p", started_at=7)


async def test_a_node_is_listed_with_the_rest_of_its_lease(database: Database) -> None:
    nodes = TortoiseNodes()
    await nodes.add(NODE, 10)
    await nodes.add(Node("n0", "zero"), -1)
    [one, zero] = await nodes.list()
    assert replace(one, seconds=0) == NODE
    assert 5 < one.seconds <= 10
    assert one.is_alive
    assert not zero.is_alive
    assert milliseconds(0.25) == 250


async def test_what_a_node_works_on(database: Database) -> None:
    nodes = TortoiseNodes()
    await nodes.add(NODE, 10)
    await TortoiseLeases().take("gc", "n1", 10)
    await TortoiseLeases().take("reaper", "n1", -1)
    assert await nodes.uses() == {"n1": NodeUse(leases=("gc",))}


async def test_draining_is_told_with_the_renewal(database: Database) -> None:
    nodes, session = TortoiseNodes(), PostgresNodeSession(database)
    await nodes.add(NODE, 1)
    first = await session.renew("n1", 10)
    assert first is not None
    assert not first.is_draining
    assert list(first.migrations) == list(known_migrations())
    assert await nodes.change_draining("n1", is_draining=True)
    assert not await nodes.change_draining("n2", is_draining=True)
    assert not await nodes.change_draining("n" * 65, is_draining=True)
    second = await session.renew("n1", 10)
    assert second is not None
    assert second.is_draining
    assert second.now >= first.now
    assert await session.renew("n2", 10) is None
    await session.close()


async def test_only_a_dead_node_is_removed_as_one(database: Database) -> None:
    nodes = TortoiseNodes()
    await nodes.add(NODE, 10)
    assert not await nodes.remove("n1", dead=True)
    assert not await nodes.remove("n" * 65)
    assert await nodes.remove("n1")
    await nodes.add(NODE, -1)
    assert await nodes.remove("n1", dead=True)
    assert await nodes.list() == []


async def test_renewals_have_a_connection_of_their_own(
    database: Database, location: DatabaseLocation, postgres: Postgres
) -> None:
    nodes, session = TortoiseNodes(), PostgresNodeSession(database)
    await nodes.add(NODE, 10)
    size = location.credentials["maxsize"]
    taken = [await database.engine.take_connection() for _ in range(size)]  # type: ignore[attr-defined]
    assert await session.renew("n1", 10) is not None
    for connection in taken:
        await database.engine.return_connection(connection)  # type: ignore[attr-defined]
    name = location.credentials["database"]
    postgres.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    with pytest.raises(GatewayError) as caught:
        await session.renew("n1", 10)
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert await session.renew("n1", 10) is not None
    # A cancelled renewal leaves no reply for the next one.
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await session.renew("n1", 10)
    assert await session.renew("n1", 10) is not None
    await session.close()
