"""Tests for gatewayd.http.sse."""

from aiohttp import web

from gatewayd.http.routes import Access, Route
from gatewayd.http.sse import open_stream
from tests.fakes.edge import serving


async def test_stream_is_never_held_back_and_names_its_request() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        reply = await open_stream(request, {"X-Extra": "1"})
        await reply.write(b"data: 1\n\n")
        await reply.write_eof()
        return reply

    async with serving([Route("GET", "/x", stream, Access.PUBLIC, "Stream")]) as client:
        reply = await client.get("/x", headers={"X-Request-Id": "r1"})
        assert await reply.read() == b"data: 1\n\n"
        assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["X-Accel-Buffering"] == "no"
        assert reply.headers["X-Request-Id"] == "r1"
        assert reply.headers["X-Extra"] == "1"
