"""Tests for gatewayd.upstream.tools.requests."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.upstream.tools.failures import failures_of
from gatewayd.upstream.tools.requests import ServerRequest, send_request, server_origin
from tests.fakes.http.tool_servers import api, raw_server
from tests.fakes.providers.upstream import FakeUpstream, Reply

FAILURES = failures_of(ToolServer("s", "S", "http://x"))


async def failing(asked: ServerRequest) -> GatewayError:
    with pytest.raises(GatewayError, match="tool server 's'") as caught:
        await send_request(asked, FAILURES)
    return caught.value


async def test_an_answer_has_status_headers_and_body() -> None:
    async with api() as fake:
        reply = await send_request(ServerRequest("POST", f"{fake.url}/x", {"X-A": "b"}, b"{}"), FAILURES)
        assert (reply.status, reply.body) == (200, b'{"path": "/x", "method": "POST"}')
        assert reply.headers["content-type"] == "application/json; charset=utf-8"
        assert (fake.seen[0].headers["X-A"], fake.seen[0].body) == ("b", b"{}")


async def test_redirects_are_followed_on_the_same_host_alone() -> None:
    async with api() as fake:
        reply = await send_request(ServerRequest("POST", f"{fake.url}/moved", {}, b"{}"), FAILURES)
        assert (reply.status, reply.body) == (200, b"plain words")
        assert [(seen.method, seen.body) for seen in fake.seen] == [("POST", b"{}")] * 2
        reply = await send_request(ServerRequest("GET", f"{fake.url}/away", {"Authorization": "k"}), FAILURES)
        assert reply.status == 307


@pytest.mark.parametrize(
    ("method", "status", "location", "requests"),
    [
        ("GET", 302, "/next", 2),
        ("POST", 302, "/next", 1),
        ("POST", 308, "/next", 2),
        ("GET", 302, "//other.test/next", 1),
        ("GET", 302, "http://[", 1),
        ("GET", 302, "", 1),
        ("GET", 200, "/next", 1),
    ],
)
async def test_which_redirects_are_followed(method: str, status: int, location: str, requests: int) -> None:
    async with FakeUpstream() as fake:
        fake.script(Reply(status=status, headers={"Location": location}, steps=[b""]), Reply(steps=[b"end"]))
        reply = await send_request(ServerRequest(method, f"{fake.base_url}/a", {}), FAILURES)
        assert len(fake.requests) == requests
        assert reply.body == (b"end" if requests == 2 else b"")


async def test_redirects_without_end() -> None:
    async with FakeUpstream() as fake:
        fake.script(*[Reply(status=302, headers={"Location": "/a"}, steps=[b""])] * 10)
        assert (await send_request(ServerRequest("GET", f"{fake.base_url}/a", {}), FAILURES)).status == 302
        assert len(fake.requests) == 4


async def test_servers_that_fail_are_named() -> None:
    assert (
        await failing(ServerRequest("GET", "http://127.0.0.1:1/", {}))
    ).kind is ErrorKind.UPSTREAM_UNREACHABLE
    async with raw_server(b"nonsense\r\n\r\n") as url:
        assert (await failing(ServerRequest("GET", url, {}))).kind is ErrorKind.UPSTREAM_FAILED
    async with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf") as url:
        assert (await failing(ServerRequest("GET", url, {}))).kind is ErrorKind.UPSTREAM_FAILED
    async with raw_server(None) as url:
        assert (await failing(ServerRequest("GET", url, {}, timeout=0.05))).kind is ErrorKind.TIMEOUT
    async with api() as fake:
        error = await failing(ServerRequest("GET", f"{fake.url}/huge", {}, limit=1000))
        assert "over 1000 bytes" in error.message


async def test_being_cancelled_closes_the_connection() -> None:
    async with api() as fake:
        task = asyncio.ensure_future(send_request(ServerRequest("GET", f"{fake.url}/slow", {}), FAILURES))
        await fake.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await fake.left.wait()


def test_origins() -> None:
    assert server_origin("http://x/a") == server_origin("http://X:80/b?c")
    assert len({server_origin(url) for url in ("http://x", "https://x", "http://x:81", "http://y")}) == 4
