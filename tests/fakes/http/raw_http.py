"""HTTP as bytes: what a careful client would never send, and replies with everything that came."""

import contextlib
import http.client
import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


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
    given = dict(headers or {})
    if body is not None:
        given.setdefault("Content-Type", "application/json")
    chunked = body is not None and not isinstance(body, bytes)
    if chunked:
        given["Transfer-Encoding"] = "chunked"
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=seconds)
    with contextlib.closing(connection):
        # A server may refuse a body before it was sent whole.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body, given, encode_chunked=chunked)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, found, answer.read())


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
