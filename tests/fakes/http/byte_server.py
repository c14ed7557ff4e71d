"""A server that says exactly the bytes that a test gives it, and a way to run a test on both event loops.

@on_both_loops
async def test_something():
    async def talk(peer):
        await peer.request()
        await peer.send(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
        await peer.gone()

    async with RawServer(talk) as server:
        ...    # server.url, server.peers
"""

import asyncio
import functools
import inspect
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Self

import pytest
import uvloop


def on_both_loops(scenario: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Make a test of a coroutine function: it runs on asyncio's own loop, then on uvloop's."""

    @functools.wraps(scenario)
    def run(new_loop: Callable[[], asyncio.AbstractEventLoop], **given: Any) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(scenario(**given))

    del run.__wrapped__  # pytest would take it for a coroutine function
    own = inspect.signature(scenario).parameters.values()
    loop = inspect.Parameter("new_loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = inspect.Signature([*own, loop])  # pytest reads the names of the fixtures from it
    return pytest.mark.parametrize(
        "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )(run)


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.requests: list[bytes] = []
        self.left = asyncio.Event()

    async def request(self) -> bytes:
        """Return the head of the next request, with its body; b"" when the client left instead."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
            return b""
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        self.requests.append(head + await self.reader.readexactly(length))
        return self.requests[-1]

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self) -> None:
        """Wait until the client closed its end."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass
        self.left.set()

    def close(self) -> None:
        """End the stream in an orderly way."""
        self.writer.close()

    def abort(self) -> None:
        """Reset the connection."""
        own = self.writer.get_extra_info("socket")
        if own is not None and own.family != socket.AF_UNIX and own.fileno() >= 0:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Talk = Callable[[Peer], Awaitable[None]]


class RawServer:
    """Listens on a free loopback port, or on a unix socket, and lets `talk` speak on every connection."""

    def __init__(
        self, talk: Talk, *, socket_path: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._talk = talk
        self._socket_path = socket_path
        self._tls = tls
        self._tasks: set[asyncio.Task[None] | None] = set()
        self.peers: list[Peer] = []
        self.url = ""

    @property
    def requests(self) -> list[bytes]:
        """All requests, by connection."""
        return [request for peer in self.peers for request in peer.requests]

    async def __aenter__(self) -> Self:
        if self._socket_path is not None:
            self._server = await asyncio.start_unix_server(self._serve, self._socket_path)
            self.url = "http://localhost"
            return self
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        scheme = "http" if self._tls is None else "https"
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in self._tasks if task), return_exceptions=True)
        for peer in self.peers:
            peer.writer.transport.abort()
        await self._server.wait_closed()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        peer = Peer(reader, writer)
        self.peers.append(peer)
        try:
            await self._talk(peer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            peer.close()
