"""HTTP as bytes: what a careful client would never send, and replies with everything that came."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

MAX_KEPT_BYTES = 16384


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

    Each read takes at most `seconds`.
    """
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=seconds)
    with contextlib.closing(connection):
        return _asked(connection, method, path, body, headers or {})


def _asked(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | Iterable[bytes] | None,
    headers: Mapping[str, str],
) -> Reply:
    given = dict(headers)
    if body is not None:
        given.setdefault("Content-Type", "application/json")
    chunked = body is not None and not isinstance(body, bytes)
    if chunked:
        given["Transfer-Encoding"] = "chunked"
    # A server may refuse a body before it was sent whole.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.request(method, path, body, given, encode_chunked=chunked)
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    return Reply(answer.status, found, answer.read())


@dataclass
class Kept:
    """Sends requests as `send` does, one after the other on one connection for each thread.

    To connect takes a third of the time of a usual request. What a server may refuse before it was read whole
    gets a connection of its own.
    """

    base_url: str
    _own: threading.local = field(default_factory=threading.local)
    _opened: list[http.client.HTTPConnection] = field(default_factory=list)

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
        connection = self._connection(seconds)
        is_used = connection.sock is not None
        try:
            return _asked(connection, method, path, body, headers or {})
        except (ConnectionError, http.client.BadStatusLine):
            connection.close()
            if not is_used:
                raise
        except BaseException:
            connection.close()
            raise
        # The server had closed it after the last answer.
        return send(self.base_url, method, path, body, headers, seconds=seconds)

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(urlsplit(self.base_url).netloc)
            self._own.connection = connection
            self._opened.append(connection)
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
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
