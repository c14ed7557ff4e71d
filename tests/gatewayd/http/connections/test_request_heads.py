"""Tests for gatewayd.http.connections.request_heads."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from gatewayd.http.connections import request_heads
from gatewayd.http.connections.request_heads import send_100_continue
from gatewayd.http.server import HttpServer


async def echo(request: web.Request) -> web.StreamResponse:
    return web.Response(body=await request.read())


async def fail(request: web.Request) -> web.StreamResponse:
    raise LookupError("canary")


@pytest.fixture
async def address() -> AsyncIterator[tuple[str, int]]:
    app = web.Application()
    app.router.add_route("POST", "/echo", echo, expect_handler=send_100_continue)
    app.router.add_get("/fail", fail)
    server = HttpServer(app)
    await server.open()
    host, _, port = (await server.listen_tcp("127.0.0.1", 0)).rpartition(":")
    yield host, int(port)
    await server.close()


async def talk(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send bytes and return everything until the server closes the connection."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: canary\x00\r\n\r\n", "not well-formed"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: canary" + b"a" * 20_000 + b"\r\n\r\n", "too long"),
        (b"canary\r\n\r\n", "first line"),
        (b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "not well-formed"),
    ],
)
async def test_what_is_no_request_is_refused_without_repeating_it(
    address: tuple[str, int], sent: bytes, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        head, _, body = (await talk(address, sent)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 400 ")
    assert b"Server: gatewayd" in head
    assert b"canary" not in head + body
    answer = json.loads(body)
    assert answer["detail"] == answer["error"]["message"]
    assert answer["error"]["code"] == "malformed_request"
    assert words in answer["detail"]
    (record,) = [item for item in caplog.records if item.name == request_heads.__name__]
    assert f"X-Request-Id: {vars(record)['request_id']}".encode() in head
    assert "canary" not in caplog.text


async def test_what_nobody_caught_is_logged_and_hidden(
    address: tuple[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    reply = await talk(address, b"GET /fail HTTP/1.1\r\nHost: a\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 500 ")
    assert b"canary" not in reply
    assert "LookupError: canary" in caplog.text


async def test_a_slow_head_is_cut(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_heads, "HEAD_SECONDS", 0.05)
    assert await talk(address, b"POST /echo HTTP/1.1\r\nHost: a\r\nX-") == b""
    assert await talk(address) == b""


async def test_a_slow_body_is_not_cut_with_the_head(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_heads, "HEAD_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\na")
    await asyncio.sleep(0.2)
    writer.write(b"b")
    assert (await asyncio.wait_for(reader.read(), 10)).endswith(b"ab")
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(("given", "interim"), [(b"100-continue", True), (b"miracles", False)])
async def test_expectations(address: tuple[str, int], given: bytes, interim: bool) -> None:
    head = (
        b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\nExpect: %s\r\n\r\n"
        % given
    )
    reply = await talk(address, head, b"ab")
    assert reply.startswith(b"HTTP/1.1 100 Continue\r\n\r\n") is interim
    assert b"HTTP/1.1 200 OK" in reply
    assert reply.endswith(b"ab")
