"""Tests for gatewayd.http.responses.sse."""

import pytest
from aiohttp import web

from gatewayd.http.responses.sse import open_stream, relay, send_frames
from gatewayd.http.routes import Route, RouteAccess
from tests.fakes.http.public_app import raw_get, serving


async def test_stream_is_never_held_back_and_names_its_request() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        reply = await open_stream(request, {"X-Extra": "1"})
        await reply.write(b"data: 1\n\n")
        await reply.write_eof()
        return reply

    async with serving([Route("GET", "/x", stream, RouteAccess.PUBLIC, "Stream")]) as client:
        reply = await client.get("/x", headers={"X-Request-Id": "r1"})
        assert await reply.read() == b"data: 1\n\n"
        assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["X-Accel-Buffering"] == "no"
        assert reply.headers["X-Request-Id"] == "r1"
        assert reply.headers["X-Extra"] == "1"


async def test_frames_are_relayed_until_none_follow() -> None:
    frames = iter([b"data: 2\n\n", b"data: 3\n\n", b""])

    async def following() -> bytes:
        return next(frames)

    async def stream(request: web.Request) -> web.StreamResponse:
        return await relay(request, b"data: 1\n\n", following)

    async with serving([Route("GET", "/x", stream, RouteAccess.PUBLIC, "Stream")]) as client:
        reply = await client.get("/x")
        assert await reply.read() == b"data: 1\n\ndata: 2\n\ndata: 3\n\n"
        assert reply.content_type == "text/event-stream"


async def test_a_failure_after_the_head_cuts_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        reply = await open_stream(request, {})
        await send_frames(request, reply, b"data: 1\n\n")
        raise RuntimeError("boom")

    async with serving([Route("GET", "/x", stream, RouteAccess.PUBLIC, "Stream")]) as client:
        answer = await raw_get(client, "/x")
    assert answer.count(b"HTTP/1.1") == 1
    assert not answer.endswith(b"0\r\n\r\n")
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["request failed"]
