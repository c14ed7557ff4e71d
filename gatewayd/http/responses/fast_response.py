"""Fast responses, which send their head together with the first bytes of the body.

They serve the endpoints with the most requests. aiohttp renders a head in a dozen calls and sends the head of
a stream separately, which is a third of the cost of an answer. They support plain requests only (HTTP/1.1,
keep-alive, not HEAD); see `supports_direct_reply`.
"""

from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import HttpVersion11, web
from aiohttp.typedefs import LooseHeaders

from gatewayd import ids
from gatewayd.http.context import REPLY_HEADERS

LAST_CHUNK: Final = b"0\r\n\r\n"


def supports_direct_reply(request: web.Request) -> bool:
    """Return whether a `DirectReply` can answer the request."""
    return request.version == HttpVersion11 and request.keep_alive and request.method != "HEAD"


class DirectReply(web.StreamResponse):
    """Base of the replies that write their head and their end themselves."""

    def __init__(self, status: int = 200, headers: LooseHeaders | None = None) -> None:
        super().__init__(status=status, headers=headers)
        self._is_sent = False
        self._is_last = False

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open for the next request."""
        return not self._is_last

    @property
    def prepared(self) -> bool:
        """Whether the head has been sent."""
        return self._is_sent

    def _begin(self, request: web.BaseRequest, headers: Mapping[str, str]) -> bytes:
        """Return the head, to be sent at once, as a stop may make this answer the last."""
        self._is_last = not request.keep_alive
        head = render_head(self.status, {**headers, "Connection": "close"} if self._is_last else headers)
        self._is_sent = True
        return head


class JsonReply(DirectReply):
    """A complete JSON reply with status 200."""

    def __init__(self, request: web.Request, content: bytes, headers: Mapping[str, str]) -> None:
        super().__init__()
        self._content = content
        self._own = headers
        self._common: dict[str, str] = request[REPLY_HEADERS]

    @property
    def size(self) -> int:
        """Number of bytes of the body."""
        return len(self._content)

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send the reply with the headers that the middleware adds to every reply."""
        if self._is_sent:
            return
        self.send(request)
        await request.writer.drain()

    def send(self, request: web.BaseRequest) -> None:
        """Send the reply and do not wait; raises ConnectionResetError when the client has left."""
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(self._content)),
            **self._common,
            **self._own,
        }
        write_bytes(request, self._begin(request, headers) + self._content)

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: `prepare` has sent the whole reply."""


class FastReply:
    """A complete JSON reply with status 200 to a request on the fast path; `headers` are its own."""

    __slots__ = ("content", "headers")

    def __init__(self, content: bytes, headers: Mapping[str, str]) -> None:
        self.content = content
        self.headers = headers

    @property
    def size(self) -> int:
        """Number of bytes of the body."""
        return len(self.content)

    def send(self, request: web.BaseRequest, common: str) -> None:
        """Send the reply, with lines of headers that are known to be valid, and do not wait.

        Raises ConnectionResetError when the client has left.
        """
        own = self.headers
        if not request.keep_alive:
            own = {**own, "Connection": "close"}
        lines = _lines(own) if own else ""
        size = len(self.content)
        head = (
            f"{_start(200, ids.now())}Content-Type: application/json\r\nContent-Length: {size}\r\n"
            f"{common}{lines}\r\n"
        )
        write_bytes(request, head.encode() + self.content)


class ChunkedReply(DirectReply):
    """A stream whose head is sent with its first bytes."""

    def __init__(self, request: web.Request, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self._request = request
        self._all_headers = {**headers, "Transfer-Encoding": "chunked"}
        self._is_over = False

    @property
    def prepared(self) -> bool:
        """Whether the head is final."""
        return True

    @property
    def is_sent(self) -> bool:
        """Whether any bytes were sent; until then another reply can replace this one."""
        return self._is_sent

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do nothing: the head is sent with the first bytes."""

    def put(self, data: bytes) -> None:
        """Write bytes without waiting; raises ConnectionResetError when the client has left."""
        if self._is_sent and data:
            write_bytes(self._request, b"%x\r\n%b\r\n" % (len(data), data))
        elif data:
            self._write(b"%x\r\n%b\r\n" % (len(data), data))

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes, and wait while too many bytes are unsent."""
        self.put(bytes(data))
        await self._request.writer.drain()

    async def write_eof(self, data: bytes = b"") -> None:
        """End the stream; may be called again."""
        if self._is_over:
            return
        self._is_over = True
        self._write(LAST_CHUNK)
        await self._request.writer.drain()

    def end(self, data: bytes) -> None:
        """Write the last bytes and the end of the stream, as `put` does."""
        self._is_over = True
        self._write(b"%x\r\n%b\r\n%b" % (len(data), data, LAST_CHUNK) if data else LAST_CHUNK)

    def _write(self, framed: bytes) -> None:
        if not self._is_sent:
            framed = self._begin(self._request, self._all_headers) + framed
        write_bytes(self._request, framed)


def write_bytes(request: web.BaseRequest, data: bytes) -> None:
    """Write to the client's connection; raises ConnectionResetError when the client has left."""
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has left")
    # aiohttp reads this as the begin of an answer.
    request.writer.output_size += len(data)
    transport.write(data)


def render_head(status: int, headers: Mapping[str, str]) -> bytes:
    """Return a head (RFC 9112, 4 and 5); raises ValueError for a header with a line end."""
    return f"{_start(status, ids.now())}{_lines(headers)}\r\n".encode()


def _lines(headers: Mapping[str, str]) -> str:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        raise ValueError("cannot send a header with a line end")
    return lines


@lru_cache(maxsize=8)
def _start(status: int, now: int) -> str:
    date = formatdate(now, usegmt=True)
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nDate: {date}\r\n"
