"""Tests for gatewayd.upstream.tools.mcp_session, against real servers of the official library."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.records import ServerType, ToolServer
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.tools import mcp_session
from gatewayd.upstream.tools.failures import failures_of
from gatewayd.upstream.tools.mcp_session import McpSession, open_session
from gatewayd.upstream.tools.mcp_tools import SessionOptions
from tests.fakes.http.tool_servers import PIXEL, api, mcp_server, raw_server


def options(url: str, seconds: float = 5.0) -> SessionOptions:
    server = ToolServer("notes", "notes", url, ServerType.MCP)
    return SessionOptions(url, {"X-A": "b"}, seconds, failures_of(server))


@asynccontextmanager
async def session(url: str, seconds: float = 5.0) -> AsyncIterator[tuple[McpSession, TaskRegistry]]:
    tasks = TaskRegistry()
    opened = open_session(options(url, seconds))
    try:
        await opened.begin(tasks)
        yield opened, tasks
    finally:
        opened.close()
        await tasks.close()


async def refusal(work: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    return caught.value


async def test_tools_are_listed_and_called() -> None:
    with mcp_server() as server:
        async with session(server.url) as (opened, _):
            listed = {str(tool["name"]): tool for tool in await opened.list_tools()}
            assert list(listed) == ["add", "draw", "whoami", "fail", "wait"]
            assert listed["add"]["description"] == "Add two numbers."
            assert listed["add"]["inputSchema"]["required"] == ["a", "b"]
            assert await opened.call("add", {"a": 1, "b": 2}, 5) == [{"type": "text", "text": "3"}]
            drawn = await opened.call("draw", {}, None)
            assert drawn[1] == {"type": "image", "data": PIXEL, "mimeType": "image/png"}
            assert opened.is_open
            assert opened.is_idle


async def test_headers_are_sent_with_calls() -> None:
    with mcp_server() as server:
        async with session(server.url) as (opened, _):
            await opened.call("whoami", {}, 5)
    assert server.headers[0]["x-a"] == "b"
    assert server.headers[0]["user-agent"].startswith("gatewayd/")


async def test_servers_of_the_older_protocol_have_sessions() -> None:
    with mcp_server(is_old=True) as server:
        async with session(server.url) as (opened, tasks):
            assert len(await opened.list_tools()) == 5
            for _ in range(2):
                await opened.call("whoami", {}, 5)
            one, other = (headers["mcp-session-id"] for headers in server.headers)
            assert one == other
            opened.close()
            while tasks.list():
                await asyncio.sleep(0.01)


async def test_what_a_tool_raises_is_its_answer() -> None:
    with mcp_server() as server:
        async with session(server.url) as (opened, _):
            error = await refusal(opened.call("fail", {}, 5))
            assert error.message == "Error executing tool fail: nothing to see"
            assert (await refusal(opened.call("none", {}, 5))).message == "Unknown tool: none"
            assert opened.is_open


async def test_objects_without_content_are_returned_as_they_are() -> None:
    server = MCPServer("empty")

    @server.tool()
    def nothing() -> list[str]:
        """Return an empty list."""
        return []

    with mcp_server(server) as running:
        async with session(running.url) as (opened, _):
            assert await opened.call("nothing", {}, 5) == {"result": []}


async def test_slow_tools_are_waited_for_so_long() -> None:
    with mcp_server() as server:
        async with session(server.url) as (opened, _):
            error = await refusal(opened.call("wait", {}, 0.05))
            assert (error.kind, "'notes'" in error.message) == (ErrorKind.TIMEOUT, True)
            assert await asyncio.to_thread(server.cancelled.wait, 5)
            assert not opened.is_open


async def test_a_server_that_dies_is_told_and_ends_the_session() -> None:
    with mcp_server() as server:
        async with session(server.url) as (opened, _):
            waiting = asyncio.ensure_future(opened.call("wait", {}, None))
            await asyncio.to_thread(server.entered.wait, 5)
            await asyncio.to_thread(server.stop)
            assert "'notes'" in (await refusal(waiting)).message
            assert not opened.is_open
            assert "'notes'" in (await refusal(opened.call("add", {}, 5))).message


async def test_a_server_that_died_between_calls() -> None:
    with mcp_server() as server:
        async with session(server.url) as (opened, _):
            await asyncio.to_thread(server.stop)
            error = await refusal(opened.call("add", {"a": 1, "b": 2}, 5))
            assert error.message == "cannot use tool server 'notes': no connection"


async def test_sessions_that_are_not_used_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_session, "IDLE_SECONDS", 0.01)
    with mcp_server() as server:
        async with session(server.url) as (opened, tasks):
            while tasks.list():
                await asyncio.sleep(0.01)
            assert not opened.is_open


async def test_closing_ends_the_task() -> None:
    with mcp_server() as server:
        async with session(server.url) as (opened, tasks):
            opened.close()
            while tasks.list():
                await asyncio.sleep(0.01)
            assert not opened.is_open


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n",
        b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 307 Moved\r\nLocation: http://localhost:1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_servers_that_speak_something_else(answer: bytes) -> None:
    async with raw_server(answer) as url:
        tasks = TaskRegistry()
        error = await refusal(open_session(options(url, 2.0)).begin(tasks))
        assert error.message.startswith("cannot use tool server 'notes': ")
        assert tasks.list() == {}


async def test_servers_that_are_down_or_silent() -> None:
    tasks = TaskRegistry()
    error = await refusal(open_session(options("http://127.0.0.1:1/mcp")).begin(tasks))
    assert error.message == "cannot use tool server 'notes': no connection"
    assert error.kind is ErrorKind.UPSTREAM_UNREACHABLE
    async with raw_server(None) as url:
        error = await refusal(open_session(options(url, 0.05)).begin(tasks))
        assert error.kind is ErrorKind.TIMEOUT
    assert tasks.list() == {}


async def test_being_cancelled_at_the_beginning_leaves_nothing() -> None:
    tasks = TaskRegistry()
    async with raw_server(None) as url:
        beginning = asyncio.ensure_future(open_session(options(url)).begin(tasks))
        while not tasks.list():
            await asyncio.sleep(0)
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beginning
        assert tasks.list() == {}


async def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_session, "MAX_ANSWER_BYTES", 1000)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    async with raw_server(head + b" " * 100_000) as url:
        error = await refusal(open_session(options(url)).begin(TaskRegistry()))
        assert "over 1000 bytes" in error.message


async def test_an_api_that_is_no_mcp_server() -> None:
    async with api() as fake:
        error = await refusal(open_session(options(fake.url)).begin(TaskRegistry()))
        assert error.message.startswith("cannot use tool server 'notes': ")
