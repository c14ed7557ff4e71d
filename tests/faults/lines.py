"""Clients that count as lost what careful clients of HTTP/1.1 need not send again."""

import contextlib
import http.client
import json
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.daemons.daemon import Daemon

SECONDS = 60.0


class LostError(Exception):
    """A request that was sent and not answered, or refused."""


@dataclass
class Line:
    """One client of a host, with one connection at a time, by a credential.

    It sends a request on an open connection unless the server has closed that. Where connections are refused
    while nobody listens, it waits; with a listener that stays open it does not.
    """

    host: str
    credential: str
    is_kept_alive: bool = True
    waits: bool = False
    connects: int = 0
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/json",
        pause: float = 0.0,
    ) -> bytes:
        """Return the answer; raises LostError. A `pause` is made in the middle of the body."""
        connection = self._open()
        headers = {"Authorization": f"Bearer {self.credential}"}
        if body is not None:
            headers |= {"Content-Type": kind, "Content-Length": str(len(body))}
        if not self.is_kept_alive:
            headers["Connection"] = "close"
        try:
            connection.request(method, path, body and halves(body, pause), headers)
            reply = connection.getresponse()
            content = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise LostError(f"{method} {path}: {error!r}") from error
        if reply.will_close:
            self.close()
        if reply.status != 200:
            raise LostError(f"{method} {path}: {reply.status} {content[:200]!r}")
        return content

    def tell(self, method: str, path: str, value: Any = None) -> Any:
        """Send JSON and return the JSON of the answer."""
        return json.loads(self.ask(method, path, None if value is None else json.dumps(value).encode()))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is not None and is_closed(self._connection):
            self.close()
        if self._connection is None:
            self._connection = self._connected()
            self.connects += 1
        return self._connection

    def _connected(self) -> http.client.HTTPConnection:
        deadline = time.monotonic() + SECONDS
        while True:
            made = http.client.HTTPConnection(self.host, timeout=SECONDS)
            try:
                made.connect()
            except ConnectionRefusedError as error:
                if not self.waits or time.monotonic() > deadline:
                    raise LostError("a connection was refused") from error
                time.sleep(0.01)
            except OSError as error:
                raise LostError(f"no connection: {error!r}") from error
            else:
                return made


def line_of(daemon: Daemon, credential: str) -> Line:
    """Return a client of a daemon, whose connection ends with each answer."""
    return Line(daemon.base_url.removeprefix("http://"), credential, is_kept_alive=False)


def halves(body: bytes, pause: float) -> Iterator[bytes]:
    """Yield a body in two pieces."""
    middle = len(body) // 2 if pause else len(body)
    yield body[:middle]
    time.sleep(pause)
    yield body[middle:]


def is_closed(connection: http.client.HTTPConnection) -> bool:
    """Tell whether the server has closed a connection on which nothing is awaited."""
    channel = connection.sock
    with contextlib.suppress(OSError):
        return channel is None or bool(select.select([channel], [], [], 0)[0])
    return True
