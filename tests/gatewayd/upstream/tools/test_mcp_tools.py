"""Tests for gatewayd.upstream.tools.mcp_tools."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.records import ServerType, ToolServer
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.tools import mcp_tools
from gatewayd.upstream.tools.identity import IdentityHeaders
from gatewayd.upstream.tools.mcp_tools import SESSIONS, McpTools, SessionOptions
from tests.fakes.http.tool_servers import KEY, FakeMcp, make_scope, mcp_server

SERVER = ToolServer("n.1", "Notes", "http://mcp.test/mcp", ServerType.MCP, key=KEY)


@pytest.fixture(scope="module")
def notes() -> Iterator[FakeMcp]:
    with mcp_server() as server:
        yield server


@asynccontextmanager
async def finder(identity: IdentityHeaders | None = None, **more: Any) -> AsyncIterator[McpTools]:
    tasks = TaskRegistry()
    found = McpTools(tasks, more.get("begin", 5.0), more.get("call", 5.0), identity)
    try:
        yield found
    finally:
        found.close()
        await tasks.close()


async def test_tools_have_the_name_of_their_server_before_their_own(notes: FakeMcp) -> None:
    async with finder() as found:
        tools = {tool.name: tool for tool in await found.tools(notes.server(), make_scope())}
        assert list(tools) == ["notes_add", "notes_draw", "notes_whoami", "notes_fail", "notes_wait"]
        add = tools["notes_add"]
        assert add.source_id == "server:mcp:notes"
        assert add.spec["description"] == "Add two numbers."
        assert add.spec["parameters"]["properties"]["a"]["type"] == "integer"
        assert await add.run({"a": 1, "b": 2}, make_scope()) == [{"type": "text", "text": "3"}]


async def test_servers_are_told_key_headers_and_who_asks(notes: FakeMcp) -> None:
    server = notes.server(headers={"X-Chat": "{{CHAT_ID}}"}, functions=("whoami",))
    for identity in (None, IdentityHeaders()):
        async with finder(identity) as found:
            (tool,) = await found.tools(server, make_scope())
            await tool.run({}, make_scope())
    silent, told = notes.headers[-2:]
    assert silent["authorization"] == f"Bearer {KEY}"
    assert silent["x-chat"] == "c1"
    assert "x-openwebui-user-id" not in silent
    assert (told["x-service-chat-id"], told["x-openwebui-message-id"]) == ("c1", "m1")


async def test_being_cancelled_reaches_the_server(notes: FakeMcp) -> None:
    notes.entered.clear()
    notes.cancelled.clear()
    async with finder() as found:
        (tool,) = await found.tools(notes.server(functions=("wait",)), make_scope())
        running = asyncio.ensure_future(tool.run({}, make_scope()))
        assert await asyncio.to_thread(notes.entered.wait, 5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(notes.cancelled.wait, 5)


@dataclass
class FakeSession:
    """A session that offers what it is told."""

    options: SessionOptions
    offers: Sequence[Mapping[str, Any]] = ()
    is_open: bool = True
    is_idle: bool = True
    called: list[tuple[str, float | None]] = field(default_factory=list)

    async def begin(self, tasks: TaskRegistry) -> None:
        """Begin."""

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        return self.offers

    async def call(self, name: str, arguments: dict[str, Any], seconds: float | None) -> Any:
        self.called.append((name, seconds))
        return []

    def close(self) -> None:
        self.is_open = False


@dataclass
class Opener:
    """Stands for the module that opens sessions."""

    offers: Sequence[Mapping[str, Any]] = ()
    opened: list[FakeSession] = field(default_factory=list)

    def open_session(self, options: SessionOptions) -> FakeSession:
        self.opened.append(FakeSession(options, self.offers))
        return self.opened[-1]


@pytest.fixture
def opener(monkeypatch: pytest.MonkeyPatch) -> Opener:
    made = Opener([{"name": "a b", "inputSchema": {"properties": {"x": {"type": "string"}}}}])
    monkeypatch.setitem(sys.modules, SESSIONS, SimpleNamespace(open_session=made.open_session))
    return made


async def test_one_session_serves_a_request_and_another_follows_when_it_ended(opener: Opener) -> None:
    async with finder(call=7.0) as found:
        (tool,) = await found.tools(SERVER, make_scope())
        assert tool.name == "n_1_a_b"
        await asyncio.gather(*(tool.run({}, make_scope()) for _ in range(3)))
        assert opener.opened[0].called == [("a b", 7.0)] * 3
        opener.opened[0].close()
        await asyncio.gather(*(tool.run({}, make_scope()) for _ in range(3)))
        assert [len(session.called) for session in opener.opened] == [3, 3]


async def test_sessions_are_a_bounded_number(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_tools, "MAX_SESSIONS", 2)
    async with finder() as found:
        for _ in range(3):
            await found.tools(SERVER, make_scope())
        assert [session.is_open for session in opener.opened] == [False, True, True]
        for session in opener.opened:
            session.is_idle = False
        with pytest.raises(GatewayError) as caught:
            await found.tools(SERVER, make_scope())
        assert caught.value.kind is ErrorKind.RATE_LIMITED
    assert not any(session.is_open for session in opener.opened)


@pytest.mark.parametrize(
    ("offers", "sentence"),
    [
        ([{"name": f"f{n}"} for n in range(10_000)], "10000 tools"),
        ([{"name": "f", "inputSchema": {"properties": {"a": {"$ref": "#/$defs/b"}}}}], "refers to"),
    ],
)
async def test_offers_that_cannot_be_made(opener: Opener, offers: Any, sentence: str) -> None:
    opener.offers = offers
    async with finder() as found:
        with pytest.raises(GatewayError, match=f"'n.1'.*{sentence}"):
            await found.tools(SERVER, make_scope())


async def test_schemas_have_no_definitions(opener: Opener) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"properties": {"node": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    opener.offers = [{"name": "f", "inputSchema": schema}, {"name": "g", "inputSchema": None}]
    async with finder() as found:
        whole, empty = await found.tools(SERVER, make_scope())
    properties = {"node": {"type": "object", "properties": {"next": {"type": "object"}}}}
    assert whole.spec["parameters"] == {"type": "object", "properties": properties}
    assert empty.spec == {
        "name": "n_1_g",
        "description": "",
        "parameters": {"type": "object", "properties": {}},
    }


async def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, SESSIONS, raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    async with finder() as found:
        with pytest.raises(GatewayError, match=r"gatewayd\[mcp\]") as caught:
            await found.tools(SERVER, make_scope())
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
