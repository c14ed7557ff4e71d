"""A link between a node and a server, which a test holds or cuts: a proxy of TCP before a unix socket."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHUNK = 65_536


class Link:
    """While it is held, bytes wait and nobody is told; while it is cut, connections end and none begin."""

    def __init__(self, target: Path) -> None:
        self.port = 0
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()

    def hold(self) -> None:
        self._loop.call_soon_threadsafe(self._open.clear)

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._cut)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._heal)

    def _cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def _heal(self) -> None:
        self._is_cut = False
        self._open.set()

    async def _serve(self, begun: threading.Event, ended: asyncio.Event) -> None:
        self._open.set()
        server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        begun.set()
        await ended.wait()
        server.close()
        self._cut()
        self._open.set()
        await asyncio.sleep(0.1)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            inner_reader, inner_writer = await asyncio.open_unix_connection(str(self._target))
        except OSError:
            # The server is away.
            writer.transport.abort()
            return
        ends = {writer, inner_writer}
        self._writers |= ends
        try:
            await asyncio.gather(self._pass(reader, inner_writer), self._pass(inner_reader, writer))
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@contextmanager
def linked(target: Path) -> Iterator[Link]:
    """Run a link to a unix socket in a thread of its own."""
    link, begun = Link(target), threading.Event()
    ended = asyncio.Event()
    thread = threading.Thread(target=lambda: link._loop.run_until_complete(link._serve(begun, ended)))
    thread.start()
    begun.wait(10)
    try:
        yield link
    finally:
        link._loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        link._loop.close()
