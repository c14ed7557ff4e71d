"""A provider on loopback that streams the marker of each request back, and a client for such streams."""

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.fakes.http.loop_thread import background_loop
from tests.fakes.http.raw_http import Reply
from tests.fakes.providers.questions import Question
from tests.fakes.providers.upstream import openai_chunk, sse

MARKER = re.compile(rb"\[\[(\w+)\]\]")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LIST = json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode()


@dataclass(frozen=True)
class Marked:
    """The provider: `chunks` chunks a stream, one each `pause` seconds, each with its number."""

    chunks: int = 20
    pause: float = 0.05

    def text(self, marker: str) -> str:
        """Return what the stream of a request with this marker says."""
        return "".join(f"<{marker}:{number}>" for number in range(self.chunks))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: (\d+)", head.lower())
                body = await reader.readexactly(int(length[1]) if length else 0)
                if head.startswith(b"GET "):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(LIST), LIST))
                else:
                    await self._stream(writer, body, is_text=b"/chat/" not in head.partition(b"\r\n")[0])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _stream(self, writer: asyncio.StreamWriter, body: bytes, *, is_text: bool) -> None:
        found = MARKER.search(body)
        assert found is not None
        writer.write(HEAD)
        for number in range(self.chunks):
            words = f"<{found[1].decode()}:{number}>"
            if is_text:
                event = sse({"choices": [{"index": 0, "text": words, "finish_reason": None}]})
            else:
                event = sse(openai_chunk(content=words))
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
            await asyncio.sleep(self.pause)
        end = sse(openai_chunk(finish_reason="stop")) * (not is_text) + sse(b"[DONE]")
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))


@contextlib.contextmanager
def running_marked(marked: Marked) -> Iterator[str]:
    """Run the provider on a thread of its own and yield its address."""

    async def start() -> asyncio.Server:
        return await asyncio.start_server(marked.serve, "127.0.0.1", 0, backlog=2048)

    async def stop(server: asyncio.Server) -> None:
        server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    with background_loop() as loop:
        server = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            asyncio.run_coroutine_threadsafe(stop(server), loop).result(30)


def marked_body(question: Question, model: str, marker: str) -> bytes:
    """Return a request whose prompt holds the marker."""
    fields = json.loads(question.asked(model, stream=True))
    if "prompt" in fields:
        fields["prompt"] = f"[[{marker}]]"
    else:
        fields["messages"] = [{"role": "user", "content": f"[[{marker}]]"}]
    return json.dumps(fields).encode()


async def ask_marked(port: int, key: str, path: str, body: bytes) -> Reply:
    """Ask on a connection of its own and return the whole reply."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        got, _, rest = (await reader.read(-1)).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    return Reply(int(got.split(b" ")[1]), {}, unchunked(rest))


def unchunked(data: bytes) -> bytes:
    """Return the body in chunks of HTTP; it must come to its end."""
    parts = []
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            assert data == b"\r\n", data
            return b"".join(parts)
        parts.append(data[:length])
        assert data[length : length + 2] == b"\r\n"
        data = data[length + 2 :]
