"""Tests for gatewayd.http.connections.fast_path: which requests are begun at once, and what follows them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from gatewayd.http.connections import fast_path
from gatewayd.http.connections.fast_path import FAST_PATH, FastConnection, is_supported
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.responses.fast_response import write_bytes
from gatewayd.http.server import HttpServer
from gatewayd.metering.begun_call import BegunCall
from gatewayd.metering.records import MeteredCall
from tests.fakes.http.byte_server import on_both_loops

SOON = 5.0


def request(body: bytes, path: str = "/fast", more: bytes = b"") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n".encode()
    return head + more + b"\r\n" + body


@dataclass
class Exchange:
    """A request whose answer the test gives."""

    connection: FastConnection
    request: web.Request
    body: bytes
    has_left: bool = False

    def answer(self, text: bytes = b"fast") -> None:
        close = b"" if self.request.keep_alive else b"Connection: close\r\n"
        write_bytes(
            self.request, b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (close, len(text), text)
        )
        self.connection.answered()

    def leave(self) -> None:
        self.has_left = True


@dataclass
class Path:
    """A fast path that takes requests whose body begins with `fast`, and answers `now` itself."""

    begun: list[Exchange] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    takes_all: bool = False

    def serves(self, connection: FastConnection, message: Any) -> bool:
        return bool(message.path == "/fast")

    def begin(self, connection: FastConnection, request: web.Request, body: bytes) -> Exchange | None:
        if not (body.startswith(b"fast") or self.takes_all):
            return None
        exchange = Exchange(connection, request, body)
        self.begun.append(exchange)
        self.came.set()
        if b"now" in body:
            asyncio.get_running_loop().call_soon(exchange.answer)
        return exchange

    async def next(self) -> Exchange:
        async with asyncio.timeout(SOON):
            await self.came.wait()
        self.came.clear()
        return self.begun[-1]


@dataclass
class Site:
    """A server with a fast path, whose handler repeats the body."""

    server: HttpServer
    path: Path
    place: tuple[str, int] = ("", 0)

    async def echo(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"handler:" + await request.read())

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.place)
        # The task of the connection waits for the first request after a turn of the loop.
        await asyncio.sleep(0.02)
        return reader, writer


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    app, path = web.Application(), Path()
    app[FAST_PATH] = path
    site = Site(HttpServer(app), path)
    app.router.add_route("*", "/{tail:.*}", site.echo)
    await site.server.open()
    host, _, port = (await site.server.listen_tcp("127.0.0.1", 0)).rpartition(":")
    site.place = (host, int(port))
    try:
        yield site
    finally:
        await site.server.close()


async def read_reply(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the head and the body of a reply with a length."""
    async with asyncio.timeout(SOON):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return head, await reader.readexactly(length)


def test_this_release_of_aiohttp_has_the_names_that_are_used() -> None:
    assert is_supported(), f"aiohttp lacks one of {fast_path.USED_NAMES}, or StreamReader lacks _buffer"


@on_both_loops
async def test_requests_of_the_fast_path_and_others_take_turns_on_one_connection() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        for number in range(5):
            writer.write(request(b"fast now %d" % number))
            assert (await read_reply(reader))[1] == b"fast"
            writer.write(request(b"slow %d" % number))
            assert (await read_reply(reader))[1] == b"handler:slow %d" % number
            writer.write(request(b"other %d" % number, "/other"))
            assert (await read_reply(reader))[1] == b"handler:other %d" % number
        assert len(site.path.begun) == 5
        writer.close()


@on_both_loops
async def test_a_body_in_pieces_is_begun_once_it_is_complete() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        sent = request(b"fast now in pieces")
        for place in (20, len(sent) - 5, len(sent)):
            writer.write(sent[:place])
            sent = sent[place:]
            await asyncio.sleep(0.002)
        assert (await read_reply(reader))[1] == b"fast"
        assert site.path.begun[0].body == b"fast now in pieces"
        writer.close()


@on_both_loops
async def test_a_body_that_is_late_goes_to_the_handler() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        sent = request(b"fast but late")
        writer.write(sent[:-4])
        await asyncio.sleep(0.1)
        writer.write(sent[-4:])
        assert (await read_reply(reader))[1] == b"handler:fast but late"
        assert not site.path.begun
        writer.close()


@on_both_loops
async def test_a_pipelined_request_waits_for_the_answer_before_it() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        writer.write(request(b"fast"))
        exchange = await site.path.next()
        writer.write(request(b"behind"))
        await asyncio.sleep(0.02)
        exchange.answer()
        assert (await read_reply(reader))[1] == b"fast"
        assert (await read_reply(reader))[1] == b"handler:behind"
        writer.close()


@on_both_loops
async def test_two_requests_in_one_piece_go_to_the_handler_in_their_order() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        writer.write(request(b"fast now 1") + request(b"fast now 2"))
        assert (await read_reply(reader))[1] == b"handler:fast now 1"
        assert (await read_reply(reader))[1] == b"handler:fast now 2"
        writer.close()


@on_both_loops
async def test_a_request_that_is_handed_over_gets_the_answer_of_the_handler() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        writer.write(request(b"fast, then slow"))
        (await site.path.next()).connection.hand_over(None)
        assert (await read_reply(reader))[1] == b"handler:fast, then slow"
        writer.write(request(b"fast now"))
        assert (await read_reply(reader))[1] == b"fast"
        writer.close()


@on_both_loops
async def test_data_right_behind_a_hand_over_does_not_begin_the_request_again() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        writer.write(request(b"fast, then slow"))
        connection = (await site.path.next()).connection
        sent = request(b"behind")
        connection.hand_over(None)
        connection.data_received(sent[:9])
        writer.write(sent[9:])
        assert (await read_reply(reader))[1] == b"handler:fast, then slow"
        assert (await read_reply(reader))[1] == b"handler:behind"
        assert len(site.path.begun) == 1
        writer.close()


@on_both_loops
async def test_a_call_is_abandoned_if_the_client_leaves_during_the_hand_over() -> None:
    abandoned: list[tuple[object, object]] = []
    call = MeteredCall("u1", (), "", "m", "chat", "r1", is_stream=False)
    begun = BegunCall(call, ("", {}, b""), "response", lambda *left: abandoned.append(left))
    async with serving() as site:
        _, writer = await site.connect()
        writer.write(request(b"fast"))
        connection = (await site.path.next()).connection
        assert connection.transport is not None
        connection.transport.abort()
        connection.hand_over(begun)
        async with asyncio.timeout(SOON):
            while not abandoned:
                await asyncio.sleep(0.005)
        assert abandoned == [(call, "response")]
        writer.close()


@on_both_loops
async def test_a_client_that_leaves_ends_its_request() -> None:
    async with serving() as site:
        _, writer = await site.connect()
        writer.write(request(b"fast"))
        exchange = await site.path.next()
        writer.close()
        async with asyncio.timeout(SOON):
            while not exchange.has_left:
                await asyncio.sleep(0.005)
        assert site.server.look(listeners=False) == 0


@on_both_loops
async def test_a_drain_waits_for_the_answer_which_is_the_last() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        writer.write(request(b"fast"))
        exchange = await site.path.next()
        await site.server.stop_listening()
        assert site.server.unanswered == 1
        exchange.answer()
        head, body = await read_reply(reader)
        assert body == b"fast"
        assert b"Connection: close" in head
        assert await reader.read() == b""
        assert site.server.unanswered == 0
        writer.close()


@on_both_loops
async def test_the_close_of_the_server_ends_a_request() -> None:
    async with serving() as site:
        _, writer = await site.connect()
        writer.write(request(b"fast"))
        exchange = await site.path.next()
        async with asyncio.timeout(SOON):
            await site.server.close()
        assert exchange.has_left
        writer.close()


@on_both_loops
async def test_the_shutdown_of_a_connection_does_not_wait_for_a_request_that_it_ends() -> None:
    async with serving() as site:
        _, writer = await site.connect()
        writer.write(request(b"fast"))
        exchange = await site.path.next()
        async with asyncio.timeout(SOON):
            await exchange.connection.shutdown(10 * SOON)
        assert exchange.has_left
        writer.close()


@on_both_loops
async def test_a_request_counts_until_its_client_has_read_the_answer() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        writer.write(request(b"fast"))
        exchange = await site.path.next()
        connection = exchange.connection
        connection.hold("u1", "", RequestUse.ANSWER)
        exchange.answer(b"x" * 20_000_000)
        assert not connection.is_anonymous
        assert connection.is_blocked
        await read_reply(reader)
        async with asyncio.timeout(SOON):
            while not connection.is_anonymous:
                await asyncio.sleep(0.005)
        writer.close()


@on_both_loops
async def test_an_answer_that_its_client_does_not_read_holds_the_next_request_back() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        writer.write(request(b"fast"))
        exchange = await site.path.next()
        large = b"x" * 20_000_000
        exchange.answer(large)
        writer.write(request(b"fast now"))
        await asyncio.sleep(0.05)
        assert len(site.path.begun) == 1
        assert (await read_reply(reader))[1] == large
        assert (await read_reply(reader))[1] in {b"fast", b"handler:fast now"}
        writer.close()


@on_both_loops
async def test_requests_that_other_code_must_see_go_to_the_handler() -> None:
    bodies = [
        b"POST /fast HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfast\r\n0\r\n\r\n",
        b"POST /fast HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n" + b"fast" * 17500,
    ]
    async with serving() as site:
        reader, writer = await site.connect()
        for sent in bodies:
            writer.write(sent)
            assert (await read_reply(reader))[1].startswith(b"handler:fast")
        assert not site.path.begun
        writer.close()


@on_both_loops
async def test_a_request_of_the_fast_path_has_the_facts_of_any_request() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        writer.write(request(b"fast"))
        exchange = await site.path.next()
        found = exchange.request
        assert (found.remote, found.secure, found.scheme) == ("127.0.0.1", False, "http")
        assert str(found.url) == "http://a/fast"
        assert found._transport_sockname == site.place
        assert found._loop is asyncio.get_running_loop()
        assert found.app[FAST_PATH] is site.path
        assert not found.task.done()
        found["name"] = 1
        assert found["name"] == 1
        assert "other" not in found
        exchange.answer()
        assert (await read_reply(reader))[1] == b"fast"
        writer.close()


@on_both_loops
async def test_a_request_without_a_body_is_begun_if_it_is_a_get() -> None:
    async with serving() as site:
        reader, writer = await site.connect()
        site.path.takes_all = True
        for method, reply in ((b"GET", b"fast"), (b"POST", b"handler:"), (b"GET", b"fast")):
            writer.write(method + b" /fast HTTP/1.1\r\nHost: a\r\n\r\n")
            if method == b"GET":
                (await site.path.next()).answer()
            assert (await read_reply(reader))[1] == reply
            await asyncio.sleep(0.02)
        writer.close()
