"""Tests for gatewayd.http.connections.slots."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from gatewayd.errors import GatewayError
from gatewayd.http.connections.admission import RequestAdmission
from gatewayd.http.connections.capacity import DESCRIPTOR_BUDGET, DescriptorBudget, DescriptorLimits
from gatewayd.http.connections.minimum_rate import RATES, MinimumRate, MinimumRates
from gatewayd.http.connections.request_uses import ConcurrencyBounds, ConcurrencyRules, RequestUse
from gatewayd.http.connections.slots import SeatedConnection
from gatewayd.http.server import HttpServer

ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def large(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"x" * 2_000_000)


async def test_a_reader_on_a_unix_socket_that_takes_nothing_is_cut_and_one_that_reads_is_not(
    tmp_path: Path,
) -> None:
    room = DescriptorBudget(DescriptorLimits(10, 0, 10, 1_000_000))
    app = web.Application()
    app[DESCRIPTOR_BUDGET] = room
    app[RATES] = MinimumRates(send=MinimumRate(1000, 0.1))
    app.router.add_get("/", large)
    server = HttpServer(app)
    await server.open()
    path = await server.listen_unix(tmp_path / "socket", "")
    asked = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    reader, writer = await asyncio.open_unix_connection(path, limit=1024)
    stuck, quiet = await asyncio.open_unix_connection(path, limit=1024)
    writer.write(asked)
    quiet.write(asked)
    total = 0
    async with asyncio.timeout(20):
        while part := await reader.read(50_000):
            total += len(part)
            await asyncio.sleep(0.005)
        while room.taken:
            await asyncio.sleep(0.01)
    assert total > 2_000_000
    for each in (writer, quiet):
        each.transport.abort()
    del stuck
    await server.close()


async def hold_again(request: web.Request) -> web.StreamResponse:
    # As a websocket whose user changes.
    for account in ("ann", "bob", "ann"):
        RequestAdmission(()).count(request, account, RequestUse.LISTENER)
    return web.Response(text=str(request.app[DESCRIPTOR_BUDGET].taken))


async def test_work_whose_client_has_gone_before_it_begins_is_counted_too() -> None:
    room = DescriptorBudget(
        DescriptorLimits(10, 0, 10, 1_000_000), ConcurrencyRules(account=ConcurrencyBounds(uploads=1))
    )
    counted: list[int] = []

    async def work(request: web.Request) -> None:
        while room.taken:
            await asyncio.sleep(0.001)
        done = RequestAdmission(()).count_work(request, "ann", RequestUse.UPLOAD)
        counted.append(room.taken)
        with pytest.raises(GatewayError, match="1 uploads at once"):
            RequestAdmission(()).count_work(request, "ann", RequestUse.UPLOAD)
        done()
        counted.append(room.taken)

    async def leave(request: web.Request) -> web.StreamResponse:
        works.append(asyncio.ensure_future(work(request)))
        assert request.transport is not None
        request.transport.close()
        return await asyncio.Future()

    works: list[asyncio.Future[None]] = []
    app = web.Application()
    app[DESCRIPTOR_BUDGET] = room
    app.router.add_get("/", leave)
    server = HttpServer(app)
    await server.open()
    host, _, port = (await server.listen_tcp("127.0.0.1", 0)).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await asyncio.wait_for(reader.read(), 10) == b""
    await asyncio.wait_for(works[0], 10)
    assert counted == [1, 0]
    writer.close()
    await writer.wait_closed()
    await server.close()


async def test_a_connection_holds_for_one_account_at_a_time() -> None:
    room = DescriptorBudget(
        DescriptorLimits(10, 0, 10, 1_000_000), ConcurrencyRules(account=ConcurrencyBounds(streams=1))
    )
    app = web.Application()
    app[DESCRIPTOR_BUDGET] = room
    app.router.add_get("/", hold_again)
    server = HttpServer(app)
    await server.open()
    host, _, port = (await server.listen_tcp("127.0.0.1", 0)).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for _ in range(3):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n1")).startswith(b"HTTP/1.1 200 ")
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(5):
        while room.taken:
            await asyncio.sleep(0.001)
    await server.close()


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, SeatedConnection]]:
    """Have a connection that has been answered once, seen from both ends."""
    seats: list[web.RequestHandler] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seats.append(request.protocol)
        return web.Response(text="done")

    app = web.Application()
    app[DESCRIPTOR_BUDGET] = DescriptorBudget(DescriptorLimits(10, 0, 10, 1_000_000))
    app.router.add_route("*", "/", answer)
    server = HttpServer(app)
    await server.open()
    host, _, port = (await server.listen_tcp("127.0.0.1", 0)).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(ASKED)
        await reader.readuntil(b"done")
        seat = seats[0]
        assert isinstance(seat, SeatedConnection)
        yield reader, writer, seat
    finally:
        writer.close()
        await writer.wait_closed()
        await server.close()


async def test_a_request_that_was_read_but_has_not_begun_does_not_give_way() -> None:
    async with connected() as (reader, _, seat):
        assert seat.is_waiting
        assert seat.is_blocked
        # Two at once: one is about to begin, one is behind it.
        seat.data_received(2 * ASKED)
        assert not seat.is_waiting
        assert not seat.is_blocked
        async with asyncio.timeout(5):
            await reader.readuntil(b"done")
            await reader.readuntil(b"done")
        assert seat.is_waiting


async def test_a_connection_whose_answer_is_sent_while_its_body_is_not_there_waits_for_its_peer() -> None:
    async with connected() as (reader, writer, seat):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1")
        async with asyncio.timeout(5):
            await reader.readuntil(b"done")
            assert (seat.is_waiting, seat.is_blocked, seat.is_anonymous) == (False, True, True)
            writer.write(b"2" + ASKED)
            await reader.readuntil(b"done")
