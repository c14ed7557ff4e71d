"""Tests for gatewayd.http.responses.fast_response."""

import asyncio
from collections.abc import Mapping

import pytest
from aiohttp import web

from gatewayd.http.body import raw_reply
from gatewayd.http.responses.fast_response import render_head
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.routes import Route, RouteAccess
from tests.fakes.http.public_app import serving


async def whole(request: web.Request) -> web.StreamResponse:
    return raw_reply(request, b'{"a":1}', {"X-Own": "1"})


async def stream(request: web.Request) -> web.StreamResponse:
    reply = await open_stream(request, {"X-Own": "1"})
    await send_frames(request, reply, b"")
    await send_frames(request, reply, b"one")
    await reply.write(b"two")
    await reply.write_eof()
    return reply


ROWS = [
    Route("GET", "/whole", whole, RouteAccess.PUBLIC, "Whole"),
    Route("GET", "/stream", stream, RouteAccess.PUBLIC, "Stream"),
]


async def ask(*requests: str) -> bytes:
    """Send requests on one connection, the last of which closes it, and return everything."""
    async with serving(ROWS) as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        writer.write("".join(requests).encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return answer


def get(path: str, *, method: str = "GET", version: str = "1.1", **headers: str) -> str:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/{version}\r\nHost: x\r\n{lines}\r\n"


def parse(answer: bytes) -> tuple[str, Mapping[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines), body


CHUNKED = b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
ALWAYS = {
    "Date",
    "X-Request-Id",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Server",
    "Content-Type",
    "X-Own",
}


@pytest.mark.parametrize("path", ["/whole", "/stream"])
async def test_plain_requests_and_others_are_answered_alike(path: str) -> None:
    last = get(path, Connection="close")
    answers = await ask(get(path), get(path), last)
    first, second, third = (b"HTTP/1.1 200 OK" + part for part in answers.split(b"HTTP/1.1 200 OK")[1:])
    for answer in (first, second, third):
        start, headers, body = parse(answer)
        assert start == "HTTP/1.1 200 OK"
        assert headers.keys() >= ALWAYS
        assert body == (b'{"a":1}' if path == "/whole" else CHUNKED)
        assert headers.get("Content-Length" if path == "/whole" else "Transfer-Encoding") in {"7", "chunked"}
    kept, closed = parse(first)[1], parse(third)[1]
    assert closed.keys() - kept.keys() == {"Connection"}
    assert kept.keys() <= closed.keys()
    assert kept["Content-Type"] == closed["Content-Type"]


async def test_head_has_no_body() -> None:
    _, headers, body = parse(await ask(get("/whole", method="HEAD", Connection="close")))
    assert (headers["X-Own"], headers["Content-Length"]) == ("1", "7")
    assert body == b""


async def test_an_old_client_gets_no_chunks() -> None:
    start, headers, body = parse(await ask(get("/stream", version="1.0")))
    assert start == "HTTP/1.0 200 OK"
    assert "Transfer-Encoding" not in headers
    assert body == b"onetwo"


def test_a_line_end_never_makes_a_header() -> None:
    for value in ("a\r\nX: 1", "a\nX: 1", "a\rb"):
        with pytest.raises(ValueError, match="line end"):
            render_head(200, {"X-A": value})
