"""Tests for gatewayd.http.connections.slow_readers."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvloop
from aiohttp import web

from gatewayd.http.connections import slow_readers
from gatewayd.http.connections.capacity import DescriptorBudget, DescriptorLimits
from gatewayd.http.connections.minimum_rate import MinimumRate, MinimumRates
from gatewayd.http.connections.slow_readers import UnsentWatch, acknowledged_bytes
from gatewayd.http.responses.file_content import file_reply
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.ingest.records import BlobContent
from tests.fakes.http.byte_server import on_both_loops
from tests.fakes.http.public_app import listening

RATE = MinimumRate(1000, 60.0)


@dataclass(eq=False)
class Line:
    """A connection: what waits, what its peer has taken."""

    unsent: int = 0
    sent: int = 0
    peer: str = "192.0.2.1"
    cuts: list[str] = field(default_factory=list)

    def evict(self) -> None:
        self.cuts.append("cut")


def looked(line: Line, looks: list[tuple[float, int, int]]) -> bool:
    """Tell whether a connection was cut after looks at times, with bytes that wait and bytes taken."""
    watch = UnsentWatch(lambda: [line], RATE)
    for now, line.unsent, line.sent in looks:
        watch.look(now)
    return bool(line.cuts)


@pytest.mark.parametrize(
    ("looks", "is_cut"),
    [
        # A stream whose source is silent.
        ([(now, 0, 100) for now in range(0, 10_000, 10)], False),
        # Nothing is taken.
        ([(now, 50_000, 100) for now in range(0, 60, 10)], False),
        ([(now, 50_000, 100) for now in range(0, 70, 10)], True),
        # Bytes are taken, too few of them, while others come to wait.
        ([(now, 50_000, 100 + now * 500) for now in range(0, 140, 10)], True),
        ([(now, 50_000, 100 + now * 1000) for now in range(0, 10_000, 10)], False),
        # Less for a while, then all.
        ([*((now, 50_000, 0) for now in range(0, 60, 10)), (60, 0, 0), (70, 50_000, 0), (80, 9, 0)], False),
        # The daemon itself was stopped for a day.
        ([(0, 50_000, 100), (86_400, 50_000, 100), (86_410, 0, 50_100)], False),
    ],
)
def test_who_is_cut(looks: list[tuple[float, int, int]], is_cut: bool) -> None:
    assert looked(Line(), looks) is is_cut


def test_a_cut_is_one_line_that_names_the_rate(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, slow_readers.__name__)
    looked(Line(), [(now, 50_000, 100) for now in range(0, 70, 10)])
    (record,) = caplog.records
    assert record.getMessage() == "connection cut: the client read less than 1000 bytes a second for 60 s"
    assert (vars(record)["address"], vars(record)["unsent"]) == ("192.0.2.1", 50_000)


def test_what_the_other_end_acknowledged_is_known_of_tcp_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        with ours, theirs:
            ours.sendall(b"x" * 1000)
            theirs.recv(1000, socket.MSG_WAITALL)
            assert acknowledged_bytes(ours) in {1000, 1001}  # the handshake may count
    first, second = socket.socketpair()
    with first, second:
        assert acknowledged_bytes(first) is None


async def flood(request: web.Request) -> web.StreamResponse:
    reply = await open_stream(request, {})
    while True:
        await send_frames(request, reply, b"data: " + b"x" * 65536 + b"\n\n")


async def whole(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"x" * 8_000_000)


async def short(request: web.Request) -> web.StreamResponse:
    """Fill what the kernel holds, and leave a little to the connection, which is done with the request."""
    assert request.transport is not None
    channel = request.transport.get_extra_info("socket")
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return web.Response(body=b"x" * 60_000)


async def nothing(start: int, end: int) -> AsyncGenerator[bytes, None]:
    yield b""


def a_file(path: Path) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def download(request: web.Request) -> web.StreamResponse:
        found = path.stat()
        content = BlobContent(found.st_size, found.st_mtime, path.name, nothing, path)
        return file_reply(content, "a.txt", "text/plain")

    return download


@pytest.mark.parametrize("kind", ["flood", "whole", "short"])
@on_both_loops
async def test_an_answer_that_nobody_reads_is_cut(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    handlers = {"flood": flood, "whole": whole, "short": short}
    await assert_cut(handlers[kind], caplog)


def test_a_download_that_nobody_reads_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 8_000_000)
    # The loop of the daemon. Another one sends files past the connection.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(assert_cut(a_file(path), caplog))


async def assert_cut(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], caplog: pytest.LogCaptureFixture
) -> None:
    """Check that a client that reads nothing is cut with one line in the log."""
    caplog.set_level(logging.INFO)
    room = DescriptorBudget(DescriptorLimits(100, 1, 100, 100_000))
    row = Route("GET", "/x", handler, RouteAccess.PUBLIC, "Answer")
    async with listening([row], rates=MinimumRates(send=MinimumRate(1000, 0.1)), room=room) as address:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(client, address)
            await loop.sock_sendall(client, b"GET /x HTTP/1.1\r\nHost: gateway\r\n\r\n")
            async with asyncio.timeout(10):
                while not room.taken:
                    await asyncio.sleep(0.01)
                while room.taken:
                    await asyncio.sleep(0.01)
    assert [record.levelname for record in caplog.records] == ["INFO"], caplog.text
    assert "connection cut: the client read less than 1000 bytes a second for 0.1 s" in caplog.text
