"""Tests for gatewayd.http.connections.arrivals: PROXY headers, handshakes, and peers that send neither."""

import asyncio
import logging
import resource
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

import pytest
from aiohttp import web

from gatewayd.http.connections import arrivals
from gatewayd.http.connections.arrivals import ArrivalRules
from gatewayd.http.connections.capacity import DESCRIPTOR_BUDGET, DescriptorBudget, DescriptorLimits
from gatewayd.http.connections.proxy_header import SIGNATURE
from gatewayd.http.middleware import forwarded_for
from gatewayd.http.server import HttpServer
from gatewayd.http.tls import TlsCertificate
from tests.fakes.http.byte_server import on_both_loops
from tests.fakes.http.certificates import write_certificate

GET = b"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.99\r\nConnection: close\r\n\r\n"
LINE = b"PROXY TCP4 192.0.2.7 10.0.0.2 50000 443\r\n"
LOCAL = SIGNATURE + b"\x20\x00\x00\x00"
LOOPBACK = (ip_network("127.0.0.0/8"),)
SOON = 10.0


@dataclass
class Site:
    server: HttpServer
    room: DescriptorBudget
    port: int = 0

    async def connect(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(sent)
        return reader, writer

    async def taken(self, count: int) -> None:
        """Wait until so many places are taken."""
        async with asyncio.timeout(SOON):
            while self.room.taken != count:
                await asyncio.sleep(0.002)


async def tell(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    client = forwarded_for(request, LOOPBACK)
    return web.Response(text=f"{request.remote} {client} {request.scheme}")


@asynccontextmanager
async def serving(rules: ArrivalRules, strangers: int = 100) -> AsyncIterator[Site]:
    room = DescriptorBudget(DescriptorLimits(100, 0, strangers, 1_000_000))
    app = web.Application()
    app[DESCRIPTOR_BUDGET] = room
    app.router.add_get("/", tell)
    site = Site(HttpServer(app), room)
    await site.server.open()
    site.port = int((await site.server.listen_tcp("127.0.0.1", 0, rules)).rpartition(":")[2])
    try:
        yield site
    finally:
        await site.server.close()
    assert room.taken == 0


async def rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Return all that still comes, b"" for a reset."""
    try:
        return await asyncio.wait_for(reader.read(), SOON)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def body(answer: bytes) -> str:
    return answer.rpartition(b"\r\n\r\n")[2].decode()


@on_both_loops
async def test_the_client_is_the_one_of_the_header() -> None:
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        answer = await rest(*await site.connect(LINE + GET))
        assert body(answer) == "192.0.2.7 192.0.2.7 http"
        # The proxy for itself: what it forwards is believed.
        assert body(await rest(*await site.connect(LOCAL + GET))) == "127.0.0.1 192.0.2.99 http"
        # A client without an address forwards nothing.
        assert body(await rest(*await site.connect(b"PROXY UNKNOWN\r\n" + GET))) == "None  http"


@on_both_loops
async def test_a_header_may_come_in_pieces() -> None:
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        reader, writer = await site.connect()
        for place in range(len(LINE)):
            writer.write(LINE[place : place + 1])
            await asyncio.sleep(0.001)
        writer.write(GET)
        assert body(await rest(reader, writer)).startswith("192.0.2.7 ")


def handshake(port: int, context: ssl.SSLContext, header: bytes) -> str:
    """Send a header in plain text, then a request over TLS; return the body of the answer."""
    with socket.create_connection(("127.0.0.1", port), SOON) as plain:
        plain.sendall(header)
        with context.wrap_socket(plain) as channel:
            channel.sendall(GET)
            answer = b""
            while part := channel.recv(65536):
                answer += part
    return body(answer)


@on_both_loops
async def test_tls_begins_behind_the_header(tmp_path: Path) -> None:
    files = write_certificate(tmp_path, "server")
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with serving(ArrivalRules(TlsCertificate(*files).context, LOOPBACK)) as site:
        answers = await asyncio.gather(
            *(asyncio.to_thread(handshake, site.port, trusting, LINE) for _ in range(8))
        )
        assert set(answers) == {"192.0.2.7 192.0.2.7 https"}
        # Text in place of a handshake.
        assert b"HTTP/1.1" not in await rest(*await site.connect(LINE + GET))
        await site.taken(0)


@on_both_loops
async def test_without_a_header_a_connection_is_refused_and_one_line_tells_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        for sent in (GET, b"PROXY TCP4 1.1.1.1\r\n" + GET, SIGNATURE + b"\x21\x11\xff\xff" + GET):
            assert await rest(*await site.connect(sent)) == b""
        # A look whether the port is open, and half a header: nothing to tell.
        for sent in (b"", LINE[:20], SIGNATURE):
            _, writer = await site.connect(sent)
            writer.close()
        await site.taken(0)
    (line,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert line.getMessage() == "connection refused: it does not begin with a PROXY header"
    assert line.__dict__["address"] == "127.0.0.1"


@on_both_loops
async def test_a_header_of_somebody_else_is_refused_and_one_line_tells_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(ArrivalRules(proxies=(ip_network("10.0.0.0/8"),))) as site:
        for _ in range(3):
            assert await rest(*await site.connect(LINE + GET)) == b""
        monkeypatch.setattr(arrivals, "LOG_SECONDS", 0.0)
        assert await rest(*await site.connect(LINE + GET)) == b""
    lines = [record for record in caplog.records if "trusted_proxies" in record.getMessage()]
    assert [line.__dict__["count"] for line in lines] == [1, 3]


@on_both_loops
async def test_a_header_that_does_not_come_ends_the_connection(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "HEADER_SECONDS", 0.1)
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        reader, writer = await site.connect(LINE[:10])
        assert await rest(reader, writer) == b""
        await site.taken(0)
    assert "it sent no PROXY header within 0.1 s" in caplog.text


@on_both_loops
@pytest.mark.parametrize("kind", ["header", "handshake"])
async def test_the_oldest_that_wait_give_way(tmp_path: Path, kind: str) -> None:
    """Any number of peers that send nothing keep out nobody who sends something."""
    tls = TlsCertificate(*write_certificate(tmp_path, "server")).context if kind == "handshake" else None
    proxies = LOOPBACK if kind == "header" else None
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with serving(ArrivalRules(tls, proxies), strangers=5) as site:
        idle = []
        for _ in range(5):
            idle.append(await site.connect(b"P" if kind == "header" else b"\x16"))
            await site.taken(len(idle))
            # The clock of uvloop counts milliseconds.
            await asyncio.sleep(0.005)
        if kind == "header":
            assert body(await rest(*await site.connect(LINE + GET))).startswith("192.0.2.7 ")
        else:
            assert "https" in await asyncio.to_thread(handshake, site.port, trusting, b"")
        # The first had to go, the last is still there.
        assert await rest(*idle[0]) == b""
        assert not idle[-1][0].at_eof()
        for _, writer in idle[1:]:
            writer.close()
        await site.taken(0)


@on_both_loops
async def test_connections_for_which_there_is_no_place_are_closed() -> None:
    async with serving(ArrivalRules(proxies=LOOPBACK), strangers=0) as site:
        assert await rest(*await site.connect(LINE + GET)) == b""
        await site.taken(0)


@on_both_loops
async def test_a_stop_answers_who_arrives_and_waits_for_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "LATE_HEAD_SECONDS", 0.2)
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        quiet = await site.connect()
        arriving = await site.connect(LINE[:20])
        await site.taken(2)
        await site.server.stop_listening()
        assert site.server.look(listeners=False) == 2
        assert site.server.look(listeners=True) == 0
        with pytest.raises(OSError):
            await site.connect()
        arriving[1].write(LINE[20:] + GET)
        assert body(await rest(*arriving)).startswith("192.0.2.7 ")
        async with asyncio.timeout(SOON):
            while site.server.look(listeners=False):
                await asyncio.sleep(0.01)
        assert await rest(*quiet) == b""


@on_both_loops
async def test_the_end_of_the_server_ends_who_waits() -> None:
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        reader, writer = await site.connect(LINE[:20])
        await site.taken(1)
    assert await rest(reader, writer) == b""


@on_both_loops
async def test_a_listener_waits_while_there_is_no_descriptor(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "ACCEPT_PAUSE_SECONDS", 0.05)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        channel = socket.socket()
        channel.setblocking(False)
        resource.setrlimit(resource.RLIMIT_NOFILE, (channel.fileno() + 1, before[1]))
        try:
            await asyncio.get_running_loop().sock_connect(channel, ("127.0.0.1", site.port))
            async with asyncio.timeout(SOON):
                while "connections cannot be accepted" not in caplog.text:
                    await asyncio.sleep(0.01)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        await asyncio.get_running_loop().sock_sendall(channel, LINE + GET)
        answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(channel, 65536), SOON)
        assert answer.startswith(b"HTTP/1.1 200 ")
        channel.close()


@on_both_loops
async def test_a_peer_that_resets_its_connection_leaves_nothing() -> None:
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        for sent in (b"", LINE[:5], LINE):
            with socket.create_connection(("127.0.0.1", site.port)) as channel:
                channel.sendall(sent)
                channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await asyncio.sleep(0.05)
        await site.taken(0)
        assert body(await rest(*await site.connect(LINE + GET))).startswith("192.0.2.7 ")


@on_both_loops
async def test_sockets_of_the_service_manager_bring_headers_and_unix_sockets_do_not(tmp_path: Path) -> None:
    app = web.Application()
    app.router.add_get("/", tell)
    server = HttpServer(app)
    await server.open()
    with socket.create_server(("127.0.0.1", 0)) as given, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "socket"))
        port = given.getsockname()[1]
        await server.listen_sockets([given, local], ArrivalRules(proxies=LOOPBACK))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(LINE + GET)
        assert body(await rest(reader, writer)).startswith("192.0.2.7 ")
        reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
        writer.write(GET)
        assert body(await rest(reader, writer)) == " 192.0.2.99 http"
        await server.close()


@on_both_loops
async def test_a_name_with_two_addresses_has_a_listener_on_each_and_a_busy_port_is_named() -> None:
    async with serving(ArrivalRules(proxies=LOOPBACK)) as site:
        with pytest.raises(Exception, match=f"cannot listen on 127.0.0.1:{site.port}: it is in use"):
            await site.server.listen_tcp("127.0.0.1", site.port, ArrivalRules(proxies=LOOPBACK))
        address = await site.server.listen_tcp("localhost", 0, ArrivalRules(proxies=LOOPBACK))
        port = int(address.rpartition(":")[2])
        host = "::1" if address.startswith("[") else "127.0.0.1"
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(LINE + GET)
        expected = b"" if host == "::1" else b"192.0.2.7"
        assert expected in await rest(reader, writer)
