import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.records import ServerType
from gatewayd.storage.engine.database import Database
from gatewayd.storage.tables.accounts import GrantRow
from gatewayd.storage.tool_servers import TortoiseToolServers
from tests.fakes.storage.records import tool_server

FULL = tool_server(
    "tickets",
    name="Vorgänge",
    url="https://tickets.example.org/" + "x" * 3000,
    type=ServerType.MCP,
    description="all of them",
    path="api.json",
    key="secret",
    headers={"X-Chat": "{{CHAT_ID}}"},
    spec={"openapi": "3.1.0", "paths": {}},
    functions=("a", "b"),
    timeout=2.5,
    is_active=False,
    grants=(Grant("user", "*", "read"), Grant("group", "g1", "write")),
    updated_at=2,
    created_at=1,
)


@pytest.fixture
def servers(database: Database) -> TortoiseToolServers:
    return TortoiseToolServers()


async def test_a_server_comes_back_as_it_was(servers: TortoiseToolServers) -> None:
    plain = tool_server("a")
    for each in (FULL, plain):
        await servers.put(each)
    assert await servers.find("tickets") == FULL
    assert list(await servers.list()) == [plain, FULL]


async def test_what_is_absent_is_none_or_false(servers: TortoiseToolServers) -> None:
    for server_id in ("x", "\x00", "x" * 256):
        assert await servers.find(server_id) is None
        assert not await servers.remove(server_id)
    assert list(await servers.list()) == []


async def test_a_server_is_replaced_with_its_grants(servers: TortoiseToolServers) -> None:
    await servers.put(FULL)
    fresh = tool_server("tickets", grants=(Grant("user", "u2", "read"),))
    await servers.put(fresh)
    assert list(await servers.list()) == [fresh]
    assert await servers.remove("tickets")
    assert not await servers.remove("tickets")
    assert await GrantRow.all().count() == 0


async def test_racing_replacements_leave_one_whole_server(servers: TortoiseToolServers) -> None:
    versions = [
        replace(FULL, name=str(number), grants=(Grant("user", str(number), "read"),)) for number in range(8)
    ]
    await asyncio.gather(*(servers.put(version) for version in versions))
    [found] = await servers.list()
    assert found in versions


@pytest.mark.parametrize(
    ("field", "value"),
    [("id", "\x00"), ("url", "\ud800"), ("headers", {"a": "\x00"}), ("spec", {"a": float("inf")})],
)
async def test_what_cannot_be_stored_is_refused_by_name(
    servers: TortoiseToolServers, field: str, value: Any
) -> None:
    with pytest.raises(GatewayError) as caught:
        await servers.put(replace(FULL, **{field: value}))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, field)
    assert list(await servers.list()) == []
