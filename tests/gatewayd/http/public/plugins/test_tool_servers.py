"""Tests for gatewayd.http.public.plugins.tool_servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.public.plugins.tool_servers import ToolServerRoutes
from gatewayd.plugins.servers.config import MASK, ConfiguredServers
from gatewayd.plugins.servers.records import ServerOrigin, ToolServer
from gatewayd.plugins.servers.service import KnownServers, ToolServers
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.tools.servers import ToolServerOptions, make_tool_servers
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.http.tool_servers import KEY, MemoryServers, api
from tests.fakes.providers.models import make_actor

PATH = "/api/v1/configs/tool_servers"
ACTORS = {"admin": make_actor(), "user": make_actor("u2", Role.USER)}
FIXED = ToolServer("fixed", "Fixed", "http://fixed.test", key="fixed-key", origin=ServerOrigin.SETTINGS)


@asynccontextmanager
async def site(*servers: ToolServer) -> AsyncIterator[tuple[Client, MemoryServers]]:
    store, tasks = MemoryServers(*servers), TaskRegistry()
    known = KnownServers(store, ConfiguredServers((FIXED,), ("one is bad",)))
    tools = make_tool_servers(known, tasks, ToolServerOptions())
    service = ToolServers(known, store, tools, lambda: 9)
    async with serving(ToolServerRoutes(service).routes(), ACTORS) as client:
        yield client, store
    await tasks.close()


async def ok(client: Client, method: str, path: str = PATH, body: Any = None) -> Any:
    reply = await client.request(method, path, headers=bearer("admin"), json=body)
    assert reply.status == 200, await reply.text()
    return await reply.json()


async def refused(client: Client, path: str, body: Any) -> tuple[int, str]:
    reply = await client.post(path, headers=bearer("admin"), json=body)
    return reply.status, (await reply.json())["detail"]


@pytest.mark.parametrize(("method", "path"), [("GET", PATH), ("POST", PATH), ("POST", f"{PATH}/verify")])
async def test_rows_are_for_administrators(method: str, path: str) -> None:
    async with site() as (client, _):
        assert (await client.request(method, path)).status == 401
        assert (await client.request(method, path, headers=bearer("user"))).status == 403


async def test_servers_are_listed_without_secrets() -> None:
    async with site(ToolServer("a", "A", "http://a.test", key="a-key")) as (client, _):
        shown = await ok(client, "GET")
    assert [entry["info"]["id"] for entry in shown["TOOL_SERVER_CONNECTIONS"]] == ["a", "fixed"]
    assert {entry["key"] for entry in shown["TOOL_SERVER_CONNECTIONS"]} == {MASK}
    assert shown["problems"] == ["one is bad"]


async def test_what_was_listed_can_be_sent_back_with_a_change() -> None:
    held = ToolServer("a", "A", "http://a.test", key="a-key", headers={"X": "secret"})
    async with site(held) as (client, store):
        entries = (await ok(client, "GET"))["TOOL_SERVER_CONNECTIONS"]
        entries[0]["info"]["name"] = "New"
        entries.append({"url": "http://b.test", "info": {"id": "b"}})
        shown = await ok(client, "POST", body={"TOOL_SERVER_CONNECTIONS": entries})
        assert [entry["info"]["name"] for entry in shown["TOOL_SERVER_CONNECTIONS"]] == ["New", "b", "Fixed"]
        assert (store.rows["a"].key, store.rows["a"].headers) == ("a-key", {"X": "secret"})
        assert sorted(store.rows) == ["a", "b"]
        await ok(client, "POST", body={"TOOL_SERVER_CONNECTIONS": []})
        assert store.rows == {}


async def test_bad_lists_are_refused_whole() -> None:
    async with site() as (client, store):
        for body, status, named in (
            ({}, 400, "TOOL_SERVER_CONNECTIONS"),
            ({"TOOL_SERVER_CONNECTIONS": {}}, 400, "TOOL_SERVER_CONNECTIONS"),
            ({"TOOL_SERVER_CONNECTIONS": [{"url": "http://b"}, {"url": "x"}]}, 400, "url"),
            ({"TOOL_SERVER_CONNECTIONS": [{"url": "http://b", "info": {"id": "fixed"}}]}, 409, "fixed"),
        ):
            code, sentence = await refused(client, PATH, body)
            assert (code, named in sentence) == (status, True)
        assert store.rows == {}


async def test_a_server_is_asked_what_it_offers() -> None:
    async with api(key=KEY) as fake, site(fake.server()) as (client, _):
        entry = {"url": fake.url, "key": MASK, "auth_type": "bearer", "info": {"id": "tickets"}}
        told = await ok(client, "POST", f"{PATH}/verify", entry)
        assert (told["status"], told["info"]) == (True, {"title": "Tickets", "version": "7"})
        assert told["specs"][0]["name"] == "get_ticket"
        code, sentence = await refused(client, f"{PATH}/verify", {**entry, "key": "wrong"})
        assert (code, "status 401" in sentence) == (502, True)
        code, sentence = await refused(client, f"{PATH}/verify", {"url": "http://127.0.0.1:1"})
        assert (code, "'new'" in sentence) == (503, True)
