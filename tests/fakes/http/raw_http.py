"""HTTP as bytes: what a careful client would never send, and replies with everything that came."""

import contextlib
import http.client
import json
import select
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httptools

MAX_KEPT_BYTES = 16384
MAX_READ_BYTES = 262_144
SENDING = {"PATCH", "POST", "PUT"}
"""Methods whose requests say that they have no body when they have none."""


@dataclass(frozen=True)
class Reply:
    """One reply; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def send(
    base_url: str,
    method: str,
    path: str,
    body: bytes | Iterable[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float = 30,
) -> Reply:
    """Send one request and return the reply; an iterable of bytes goes out in chunks.

    Each read takes at most `seconds`. It raises what `http.client` does: RemoteDisconnected when nothing came
    back, IncompleteRead when the reply ends too early.
    """
    with contextlib.closing(_Connection(urlsplit(base_url).netloc)) as connection:
        return connection.ask(method, path, body, headers or {}, seconds)


class _Connection:
    """A connection to a server, opened when a request is sent and kept while the server keeps it.

    Half of the time of a usual request is that of `http.client`, which reads a head as if it were a letter.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._channel: socket.socket | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str],
        seconds: float,
    ) -> Reply:
        """Send a request, once, and return the reply."""
        if self._channel is not None and is_over(self._channel):
            self.close()
        if self._channel is None:
            address = urlsplit(f"//{self._place}")
            self._channel = socket.create_connection((address.hostname, address.port or 80), seconds)
            self._channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._channel.settimeout(seconds)
        stays = False
        try:
            # A server may refuse a body before it was sent whole.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for part in written(self._place, method, path, body, headers):
                    self._channel.sendall(part)
            reply, stays = _received(self._channel, method)
            return reply
        finally:
            if not stays:
                self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def is_over(channel: socket.socket) -> bool:
    """Tell whether the server has closed a connection on which nothing is asked."""
    ready = select.poll()
    ready.register(channel, select.POLLIN)
    if not ready.poll(0):
        return False
    try:
        unasked = channel.recv(4096, socket.MSG_PEEK)
    except ConnectionResetError:
        return True
    assert not unasked, f"the server sent what nobody asked for: {unasked!r}"
    return True


def written(
    place: str,
    method: str,
    path: str,
    body: bytes | Iterable[bytes] | None,
    headers: Mapping[str, str],
) -> Iterator[bytes]:
    """Yield the bytes of a request as they are sent; an iterable of bytes goes out in chunks."""
    fields = {"Host": place, "Accept-Encoding": "identity"}
    if isinstance(body, bytes):
        fields["Content-Length"] = str(len(body))
    elif body is None and method in SENDING:
        fields["Content-Length"] = "0"
    elif body is not None:
        fields["Transfer-Encoding"] = "chunked"
    if body is not None:
        fields["Content-Type"] = "application/json"
    own = {name.lower() for name in headers}
    fields = {name: value for name, value in fields.items() if name.lower() not in own} | dict(headers)
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    head = f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")
    assert head.count(b"\n") == len(fields) + 2, f"a line too many in {head!r}"
    if body is None:
        yield head
        return
    if isinstance(body, bytes):
        if len(body) <= MAX_KEPT_BYTES:
            yield head + body
        else:
            yield from (head, body)
        return
    yield head
    for part in body:
        yield b"%x\r\n%b\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


class _Answer:
    """What came of a reply so far, told by the parser."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        self.status = 0
        self.is_begun = self.is_whole = self.is_kept = False

    @property
    def has_end(self) -> bool:
        """Whether the reply says where it ends, and does not end with its connection."""
        return bool(self.headers.keys() & {"content-length", "transfer-encoding"})

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()
        # The parser forgets it with the end of the answer.
        self.is_kept = self.parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        self.parts.append(body)

    def on_message_complete(self) -> None:
        # An answer such as 100 comes before the one that counts.
        self.is_whole = self.status >= 200
        if not self.is_whole:
            self.headers, self.status = {}, 0


def _received(channel: socket.socket, method: str) -> tuple[Reply, bool]:
    """Return the reply to a request that was sent, and whether the connection stays."""
    answer = _Answer()
    while not answer.is_whole and not (answer.status and method == "HEAD"):
        data = channel.recv(MAX_READ_BYTES)
        if not data and not answer.is_begun:
            raise http.client.RemoteDisconnected("the server closed the connection without an answer")
        if not data:
            if not answer.status or answer.has_end:
                raise http.client.IncompleteRead(b"".join(answer.parts))
            break
        answer.is_begun = True
        try:
            answer.parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise http.client.BadStatusLine(f"{error}: {data[:2000]!r}") from error
    stays = answer.is_kept and (answer.is_whole or method == "HEAD")
    return Reply(answer.status, answer.headers, b"".join(answer.parts)), stays


@dataclass
class Kept:
    """Sends requests as `send` does, one after the other on one connection for each thread.

    To connect takes a third of the time of a usual request. What a server may refuse before it was read whole
    gets a connection of its own. Each request is sent once: a connection on which the server ends without an
    answer is a failure, but for one that it had ended before.
    """

    base_url: str
    _own: threading.local = field(default_factory=threading.local)
    _opened: list[_Connection] = field(default_factory=list)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        seconds: float = 30,
    ) -> Reply:
        """Send one request and return the reply; each read takes at most `seconds`."""
        is_small = body is None or (isinstance(body, bytes) and len(body) <= MAX_KEPT_BYTES)
        if not is_small:
            return send(self.base_url, method, path, body, headers, seconds=seconds)
        return self._connection().ask(method, path, body, headers or {}, seconds)

    def _connection(self) -> _Connection:
        connection: _Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = _Connection(urlsplit(self.base_url).netloc)
            self._opened.append(connection)
        return connection

    def close(self) -> None:
        """Close all connections."""
        for connection in self._opened:
            connection.close()


@contextlib.contextmanager
def connected(base_url: str, seconds: float = 15.0) -> Iterator[socket.socket]:
    """Open a connection; reads take at most `seconds`."""
    address = urlsplit(base_url)
    with socket.create_connection((address.hostname, address.port), timeout=seconds) as channel:
        yield channel


def read_to_end(channel: socket.socket) -> bytes:
    """Return everything until the server closes; TimeoutError when it does not."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := channel.recv(65536):
            parts.append(part)
    return b"".join(parts)


def exchange(base_url: str, data: bytes, seconds: float = 15.0) -> list[Reply]:
    """Send bytes and return the replies until the server closes; TimeoutError when it does not."""
    with connected(base_url, seconds) as channel:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            channel.sendall(data)
        return list(parse_replies(read_to_end(channel)))


def parse_replies(data: bytes) -> Iterator[Reply]:
    """Split bytes into replies; each must have a Content-Length, but for those that have no body."""
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        status = int(first.split(" ")[1])
        size = int(headers.get("content-length", "0"))
        yield Reply(status, headers, data[:size])
        data = data[size:]
