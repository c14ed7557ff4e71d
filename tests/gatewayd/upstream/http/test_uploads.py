"""Tests for gatewayd.upstream.http.uploads: a body in pieces, and what the provider does meanwhile."""

import asyncio
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from gatewayd.errors import ErrorKind, invalid
from gatewayd.upstream.http.client import HttpClient, TransportError
from gatewayd.upstream.sources.config import UpstreamTimeouts

LONG = UpstreamTimeouts(connect=5.0, first_byte=30.0, idle=30.0)
MIB = 1024 * 1024


@asynccontextmanager
async def served(handle: Any, timeouts: UpstreamTimeouts = LONG) -> AsyncIterator[tuple[HttpClient, str]]:
    app = web.Application(client_max_size=512 * MIB)
    app.router.add_post("/", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = HttpClient(timeouts)
    try:
        yield client, "http://{}:{}/".format(*runner.addresses[0][:2])
    finally:
        await client.close()
        await runner.cleanup()


async def echo(request: web.Request) -> web.Response:
    body = await request.read()
    return web.Response(body=body, headers={"X-Sent": request.headers.get("Content-Length", "chunked")})


async def pieces_of(*pieces: bytes) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)


@pytest.mark.parametrize(("length", "sent"), [(None, "chunked"), (6, "6")])
async def test_pieces_arrive_in_order(length: int | None, sent: str) -> None:
    async with served(echo) as (client, url):
        for _ in range(2):
            response = await client.upload(url, {}, pieces_of(b"ab", b"", b"cdef"), length)
            assert (response.status, response.headers["x-sent"]) == (200, sent)
            assert await response.read(100) == b"abcdef"
        # The connection is used again.
        assert await (await client.request("POST", url, {}, b"after")).read(100) == b"after"


async def test_a_large_body_is_not_held() -> None:
    sizes: list[int] = []

    async def count(request: web.Request) -> web.Response:
        size = 0
        async for data in request.content.iter_any():
            size += len(data)
        sizes.append(size)
        return web.Response()

    piece = bytes(128 * 1024)

    async def many() -> AsyncGenerator[bytes, None]:
        for _ in range(256):
            yield piece

    async with served(count) as (client, url):
        tracemalloc.start()
        try:
            await client.upload(url, {}, many())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sizes == [32 * MIB]
    assert peak < 8 * MIB


async def test_a_refusal_ends_an_endless_body() -> None:
    closed = asyncio.Event()

    async def refuse(request: web.Request) -> web.Response:
        await request.content.read(10)
        return web.Response(status=413, text="too large")

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield bytes(1024)
                await asyncio.sleep(0)
        finally:
            closed.set()

    async with served(refuse) as (client, url):
        response = await asyncio.wait_for(client.upload(url, {}, endless()), 5)
        assert (response.status, await response.read(100)) == (413, b"too large")
        assert closed.is_set()
        # What was sent half carries no other request.
        assert (await client.request("POST", url, {}, b"a" * 20)).status == 413


async def test_an_error_of_the_body_is_raised_and_no_request_arrives() -> None:
    arrived: list[bytes] = []

    async def note(request: web.Request) -> web.Response:
        arrived.append(await request.read())
        return web.Response()

    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"half"
        raise invalid("cannot read the form: it ends too early")

    async with served(note) as (client, url):
        with pytest.raises(Exception, match="ends too early"):
            await client.upload(url, {}, broken())
        assert await (await client.request("POST", url, {}, b"whole")).read(10) == b""
    assert arrived == [b"whole"]


async def test_a_provider_that_reads_nothing_is_given_up() -> None:
    async def sleep(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async def endless() -> AsyncGenerator[bytes, None]:
        while True:
            yield bytes(MIB)

    timeouts = UpstreamTimeouts(connect=5.0, first_byte=0.1, idle=0.1)
    async with served(sleep, timeouts) as (client, url):
        with pytest.raises(TransportError, match="no first byte within") as failed:
            await asyncio.wait_for(client.upload(url, {}, endless()), 10)
        assert failed.value.kind is ErrorKind.TIMEOUT


async def test_a_cancelled_upload_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def wait(request: web.Request) -> web.Response:
        try:
            await request.read()
        except (ConnectionError, web.RequestPayloadError, asyncio.CancelledError):
            gone.set()
            raise
        return web.Response()

    async def slow() -> AsyncGenerator[bytes, None]:
        yield b"a"
        await asyncio.sleep(60)

    async with served(wait) as (client, url):
        task = asyncio.ensure_future(client.upload(url, {}, slow()))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 5)
