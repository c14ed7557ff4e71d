"""Tests for gatewayd.http.connections.drain: what clients of a stopping server get, on both event loops."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from gatewayd.http.connections import drain as connections_drain
from gatewayd.http.connections.drain import is_readable, mark_as_listener
from gatewayd.http.context import REPLY_HEADERS
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.server import HttpServer
from tests.fakes.http.byte_server import on_both_loops

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
CLOSE = b"Connection: close\r\n"
SOON = 10


@dataclass
class Site:
    """A server whose streams go on until they are let go."""

    server: HttpServer
    place: tuple[str, int] = ("", 0)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    is_opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def echo(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=await request.read() or b"hello")

    async def stream(self, request: web.Request) -> web.StreamResponse:
        if "listens" in request.query:
            mark_as_listener(request)
        reply = web.StreamResponse()
        await reply.prepare(request)
        await reply.write(b"begun")
        await self.go_on.wait()
        return reply

    async def slow(self, request: web.Request) -> web.StreamResponse:
        request[REPLY_HEADERS] = {}
        reply = await open_stream(request, {})
        self.is_opened.set()
        await self.go_on.wait()
        await send_frames(request, reply, b"late")
        await reply.write_eof()
        return reply

    async def large(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x" * 20_000_000)

    async def connect(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.place)
        writer.write(sent)
        return reader, writer

    async def drained(self) -> None:
        """Look until nothing is left, as the daemon does."""
        async with asyncio.timeout(SOON):
            while self.server.look(listeners=False) + self.server.look(listeners=True):
                await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(channel: socket.socket | None = None) -> AsyncIterator[Site]:
    app = web.Application()
    site = Site(HttpServer(app))
    app.router.add_route("*", "/", site.echo)
    app.router.add_get("/stream", site.stream)
    app.router.add_get("/slow", site.slow)
    app.router.add_get("/large", site.large)
    await site.server.open()
    if channel is None:
        host, _, port = (await site.server.listen_tcp("127.0.0.1", 0)).rpartition(":")
        site.place = host, int(port)
    else:
        await site.server.listen_sockets([channel])
        site.place = channel.getsockname()
    try:
        yield site
    finally:
        await site.server.close()


def hurry(patch: pytest.MonkeyPatch, seconds: float) -> None:
    for name in ("LATE_HEAD_SECONDS", "QUIET_SECONDS", "TRANSIT_SECONDS"):
        patch.setattr(connections_drain, name, seconds)


async def rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Return all that still comes."""
    try:
        return await asyncio.wait_for(reader.read(), SOON)
    finally:
        writer.close()


@on_both_loops
async def test_a_body_that_is_being_sent_is_read_and_answered() -> None:
    async with serving() as site:
        reader, writer = await site.connect(POST + b"ab")
        await asyncio.sleep(0.02)
        await site.server.stop_listening()
        assert site.server.look(listeners=False) == site.server.unanswered == 1
        writer.write(b"cd")
        answer = await rest(reader, writer)
        assert CLOSE in answer
        assert answer.endswith(b"abcd")
        await site.drained()


@on_both_loops
async def test_what_waits_on_the_listener_is_accepted_and_answered() -> None:
    async with serving() as site:
        # The loop gets no turn in between.
        clients = [socket.create_connection(site.place) for _ in range(20)]
        for client in clients:
            client.sendall(GET)
        await site.server.stop_listening()
        with pytest.raises(OSError):
            await site.connect()
        for client in clients:
            client.setblocking(False)
            answer = await rest(*await asyncio.open_connection(sock=client))
            assert CLOSE in answer
            assert answer.endswith(b"hello")
        await site.drained()


@on_both_loops
async def test_what_waits_on_a_unix_socket_is_accepted_and_answered(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    async with serving() as site:
        await site.server.listen_unix(path, "")
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        client.sendall(GET)
        await site.server.stop_listening()
        with pytest.raises(OSError):
            await asyncio.open_unix_connection(path)
        client.setblocking(False)
        assert CLOSE in await rest(*await asyncio.open_connection(sock=client))


@on_both_loops
async def test_a_connection_that_was_accepted_just_before_is_drained_too() -> None:
    async with serving() as site:
        # The loop makes the protocol in one turn and connects it in the next.
        factory = site.server._runner.server
        assert factory is not None
        protocol = factory()
        await site.server.stop_listening()
        ours, theirs = socket.socketpair()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, ours)
        theirs.sendall(GET)
        theirs.setblocking(False)
        answer, _ = await asyncio.gather(rest(*await asyncio.open_connection(sock=theirs)), site.drained())
        assert CLOSE in answer


@on_both_loops
async def test_a_queue_that_is_given_stays_for_the_next_daemon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as channel:
        client = socket.create_connection(channel.getsockname())
        client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        client.setblocking(False)
        async with serving(channel.dup()) as site:
            await site.server.stop_listening()
            await site.drained()
        async with serving(channel.dup()):
            assert (await rest(*await asyncio.open_connection(sock=client))).endswith(b"hello")


@on_both_loops
async def test_a_first_head_may_be_late() -> None:
    async with serving() as site:
        silent, half = await site.connect(), await site.connect(GET[:9])
        await asyncio.sleep(0.02)
        await site.server.stop_listening()
        site.server.look(listeners=False)
        silent[1].write(GET)
        half[1].write(GET[9:])
        for each in (silent, half):
            assert CLOSE in await rest(*each)
        await site.drained()


@on_both_loops
async def test_a_request_that_nobody_has_read_yet_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch, 0.0)
    async with serving() as site:
        reader, writer = await site.connect(GET)
        await reader.readuntil(b"hello")
        await site.server.stop_listening()
        # All is due, and the loop has not read what came.
        assert os.write(writer.get_extra_info("socket").fileno(), GET) == len(GET)
        site.server.look(listeners=False)
        answer = await rest(reader, writer)
        assert CLOSE in answer
        assert answer.endswith(b"hello")


@on_both_loops
async def test_requests_one_behind_the_other_are_all_answered() -> None:
    async with serving() as site:
        reader, writer = await site.connect(POST + b"ab")
        await asyncio.sleep(0.02)
        await site.server.stop_listening()
        writer.write(b"cd" + POST + b"efgh" + GET)
        answers = await rest(reader, writer)
        assert answers.count(b"HTTP/1.1 200 OK") == 3
        assert CLOSE not in answers.partition(b"efgh")[0]
        assert answers.count(CLOSE) == 1
        assert answers.endswith(b"hello")


@on_both_loops
async def test_a_stream_whose_head_is_sent_ends_and_lets_one_more_request_in() -> None:
    async with serving() as site:
        reader, writer = await site.connect(GET.replace(b"/ ", b"/stream ", 1))
        await reader.readuntil(b"begun")
        await site.server.stop_listening()
        site.go_on.set()
        await reader.readuntil(b"0\r\n\r\n")
        site.server.look(listeners=False)
        writer.write(GET)
        assert CLOSE in await rest(reader, writer)


SLOW = GET.replace(b"/ ", b"/slow ", 1)
END = b"4\r\nlate\r\n0\r\n\r\n"


class KeptAlive:
    """A client that sends one request after the other and opens a connection only when an answer says so."""

    def __init__(self, place: tuple[str, int]) -> None:
        self._place = place
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.connects = 0

    async def ask(self) -> bytes:
        if self._open is None:
            self._open = await asyncio.open_connection(*self._place)
            self.connects += 1
        reader, writer = self._open
        writer.write(SLOW)
        answer = await asyncio.wait_for(reader.readuntil(END), SOON)
        if CLOSE in answer:
            await self.close()
        return answer

    async def close(self) -> None:
        if self._open is not None:
            _, writer = self._open
            self._open = None
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@on_both_loops
async def test_a_client_in_a_loop_loses_no_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as channel:
        client = KeptAlive(channel.getsockname())
        async with serving(channel.dup()) as site:
            site.go_on.set()
            assert CLOSE not in await client.ask() + await client.ask()
            site.go_on.clear()
            site.is_opened.clear()
            asked = asyncio.ensure_future(client.ask())
            await site.is_opened.wait()
            await site.server.stop_listening()
            site.go_on.set()
            assert CLOSE in await asked
            await site.drained()
        async with serving(channel.dup()) as site:
            site.go_on.set()
            assert CLOSE not in await client.ask() + await client.ask()
            await client.close()
        assert client.connects == 2


@on_both_loops
async def test_a_stream_of_events_is_not_waited_for_until_it_is_ended() -> None:
    async with serving() as site:
        reader, writer = await site.connect(GET.replace(b"/ ", b"/stream?listens ", 1))
        await reader.readuntil(b"begun")
        await site.server.stop_listening()
        assert (site.server.look(listeners=False), site.server.look(listeners=True)) == (0, 1)
        assert site.server.unanswered == 0
        site.go_on.set()
        await site.drained()
        assert (await rest(reader, writer)).endswith(b"0\r\n\r\n")


@on_both_loops
async def test_an_answer_that_is_not_taken_yet_is_waited_for() -> None:
    async with serving() as site:
        reader, writer = await site.connect(GET.replace(b"/ ", b"/large ", 1))
        await reader.readuntil(b"\r\n\r\n")
        await site.server.stop_listening()
        assert site.server.look(listeners=False) == 1
        answer, _ = await asyncio.gather(rest(reader, writer), site.drained())
        assert len(answer) == 20_000_000


@on_both_loops
async def test_who_sends_a_head_byte_by_byte_does_not_hold_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections_drain, "LATE_HEAD_SECONDS", 0.05)
    async with serving() as site:
        reader, writer = await site.connect(GET)
        await reader.readuntil(b"hello")
        await site.server.stop_listening()
        async with asyncio.timeout(SOON):
            while site.server.look(listeners=False):
                writer.write(b"G")
                await asyncio.sleep(0)
        with suppress(ConnectionResetError):
            assert await rest(reader, writer) == b""


@on_both_loops
async def test_what_is_quiet_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch, 0.02)
    async with serving() as site:
        used, silent = await site.connect(GET), await site.connect()
        await used[0].readuntil(b"hello")
        await site.server.stop_listening()
        await site.drained()
        assert [await rest(*used), await rest(*silent)] == [b"", b""]


def test_readable_is_what_has_data() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not is_readable(ours.fileno())
        theirs.send(b"x")
        assert is_readable(ours.fileno())
