"""HTTP client for providers: the interface `UpstreamClient` and its implementation.

Modules above this one do not handle connections.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind
from gatewayd.metering.begun_call import BEGUN
from gatewayd.upstream.http.connection import ProviderConnection
from gatewayd.upstream.http.connector import (
    ConnectionDialer,
    TlsContext,
    UrlOrigin,
    default_tls_context,
    unreachable_reason,
)
from gatewayd.upstream.http.errors import TransportError
from gatewayd.upstream.http.pool import ConnectionPool
from gatewayd.upstream.http.request_head import RequestHead, build_head
from gatewayd.upstream.http.response import ProviderResponse
from gatewayd.upstream.http.uploads import exchange_upload
from gatewayd.upstream.sources.config import UpstreamTimeouts

__all__ = [
    "FollowedResponse",
    "HttpClient",
    "TransportError",
    "UpstreamClient",
    "UpstreamResponse",
    "open_client",
]

MAX_CALLS = 256
"""Maximum number of cached request heads."""


class UpstreamResponse(Protocol):
    """A response with status and headers, whose body is still to be read."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names compare without case."""
        ...

    @property
    def raw_headers(self) -> Sequence[tuple[bytes, bytes]]:
        """Names and values of the headers as they arrived."""
        ...

    def peek(self) -> bytes | None:
        """Return the whole body, which stays; None if the answer is incomplete or has failed."""
        ...

    async def read(self, limit: int) -> bytes:
        """Return the whole body; raises TransportError if it is over `limit` bytes or breaks off."""
        ...

    async def read_some(self) -> bytes:
        """Return the bytes since the last read, b"" at the end; raises TransportError."""
        ...

    async def finish(self) -> None:
        """Reuse the connection if the body ends at once, else close it."""
        ...

    def close(self) -> None:
        """Close the connection at once unless the body is complete; may be called again."""
        ...


class FollowedResponse(UpstreamResponse, Protocol):
    """A response whose follower is called when bytes arrive."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        ...

    def follow(self, arrived: Callable[[], None], *, keeps: bool = False) -> None:
        """Call `arrived` whenever bytes have come, and once when nothing more comes; `take` returns them.

        With `keeps`, what is taken is kept for `hand_back`, until `follow` is called again.
        """
        ...

    def take(self) -> bytes | None:
        """Return the bytes since the last read, b"" at the end, None before it; raises TransportError."""
        ...

    def hold(self) -> None:
        """Stop the clock of silence: the reader takes nothing for now."""
        ...

    def hand_back(self) -> None:
        """Call nobody any more, and give the bytes that were taken to the next reader."""
        ...

    def drain(self) -> None:
        """Reuse the connection if the body ends at once, else close it, without a reader."""
        ...


class UpstreamClient(Protocol):
    """Sends requests to one provider; follows no redirects and uses no proxy of the environment."""

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> UpstreamResponse:
        """Send a request with exactly these headers; raises TransportError."""
        ...

    def post_at_once(
        self, url: str, headers: Mapping[str, str], body: bytes, arrived: Callable[[], None], limit: int
    ) -> UpstreamResponse | None:
        """POST a body on an idle connection and return the response to come; None if none is idle.

        `arrived` is called once: when the answer is complete, has more than `limit` bytes, or has failed. The
        answer is read from the response then, which `request` returns for the same request in `BEGUN`.
        """
        ...

    def post_followed(
        self, url: str, headers: Mapping[str, str], body: bytes, arrived: Callable[[], None]
    ) -> FollowedResponse | None:
        """POST a body on an idle connection and return the response, which `arrived` follows and which keeps
        what is taken; None if none is idle.

        `request` returns it for the same request in `BEGUN`.
        """
        ...

    async def upload(
        self,
        url: str,
        headers: Mapping[str, str],
        pieces: AsyncGenerator[bytes, None],
        length: int | None = None,
    ) -> UpstreamResponse:
        """POST a body in pieces of `length` bytes together; raises TransportError and errors of `pieces`."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True, slots=True)
class _Call:
    """Pool and head of requests with the same method, URL and headers."""

    pool: ConnectionPool
    head: RequestHead


class HttpClient:
    """An `UpstreamClient` with its own connections, `connections` to each origin; needs a running loop.

    If the provider closes a reused connection just as a request is sent, the request is repeated on a new
    connection (RFC 9112, 9.3.1). This is safe for every method here: no byte of an answer has arrived, the
    connection closed directly after the request, and the requests (complete, embed, list, pull, delete) have
    the same result when they are repeated.
    """

    def __init__(
        self,
        timeouts: UpstreamTimeouts,
        *,
        connections: int = 1000,
        socket_path: str | None = None,
        tls: TlsContext = default_tls_context,
    ) -> None:
        self._timeouts = timeouts
        self._connections = connections
        self._socket_path = socket_path
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._pools: dict[UrlOrigin, ConnectionPool] = {}
        self._calls: dict[tuple[object, ...], _Call] = {}
        self._last: tuple[str, Mapping[str, str], _Call | None] = ("", {}, None)

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> UpstreamResponse:
        """Send a request with exactly these headers; raises TransportError."""
        call = self._prepared(method, url, headers)
        head, pool = call.head, call.pool
        begun = BEGUN.get()
        response = None if begun is None else begun.take_response(url, headers, body)
        if not isinstance(response, ProviderResponse):
            response = ProviderResponse(self._timeouts, self._loop, has_body=head.has_answer_body)
            connection = pool.take() or await self._open(pool, response)
            connection.send(response, head, body)
        if not await response.arrived():
            connection = await self._open(pool, response, has_place=True)
            connection.send(response, head, body)
            await response.arrived()
        return response

    def post_at_once(
        self, url: str, headers: Mapping[str, str], body: bytes, arrived: Callable[[], None], limit: int
    ) -> ProviderResponse | None:
        """POST a body on an idle connection and return the response to come; None if none is idle.

        The headers may be given again, and do not change.
        """
        response = ProviderResponse(self._timeouts, self._loop)
        response.call_back(arrived, limit)
        return response if self._send_at_once(response, url, headers, body) else None

    def post_followed(
        self, url: str, headers: Mapping[str, str], body: bytes, arrived: Callable[[], None]
    ) -> ProviderResponse | None:
        """POST a body on an idle connection and return the followed response; None if none is idle."""
        response = ProviderResponse(self._timeouts, self._loop)
        response.follow(arrived, keeps=True)
        return response if self._send_at_once(response, url, headers, body) else None

    async def upload(
        self,
        url: str,
        headers: Mapping[str, str],
        pieces: AsyncGenerator[bytes, None],
        length: int | None = None,
    ) -> UpstreamResponse:
        """POST a body in pieces, which is never repeated; raises TransportError and errors of `pieces`."""
        head = build_head("POST", url, headers)
        pool = self._pool(head.origin)
        response = ProviderResponse(self._timeouts, self._loop)
        connection = await self._open(pool, response)
        await exchange_upload(connection, response, head, pieces, length)
        return response

    async def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            await pool.close()

    def _send_at_once(
        self, response: ProviderResponse, url: str, headers: Mapping[str, str], body: bytes
    ) -> bool:
        last_url, last_headers, call = self._last
        if call is None or headers is not last_headers or url != last_url:
            call = self._prepared("POST", url, headers)
            self._last = (url, headers, call)
        connection = call.pool.take()
        if connection is None:
            return False
        connection.send(response, call.head, body)
        return True

    def _prepared(self, method: str, url: str, headers: Mapping[str, str]) -> _Call:
        key = (method, url, *headers.items())
        return self._calls.get(key) or self._prepare(key, build_head(method, url, headers))

    def _prepare(self, key: tuple[object, ...], head: RequestHead) -> _Call:
        if len(self._calls) >= MAX_CALLS:
            self._calls.clear()
        call = self._calls[key] = _Call(self._pool(head.origin), head)
        return call

    def _pool(self, origin: UrlOrigin) -> ConnectionPool:
        pool = self._pools.get(origin)
        if pool is None:
            dialer = ConnectionDialer(origin, self._socket_path, self._tls)
            pool = self._pools[origin] = ConnectionPool(dialer, self._connections)
        return pool

    async def _open(
        self, pool: ConnectionPool, response: ProviderResponse, *, has_place: bool = False
    ) -> ProviderConnection:
        """Return a connection when none was idle, or a new one; raises TransportError."""
        timeouts = self._timeouts
        now = self._loop.time()
        due = now + timeouts.connect
        is_short = response.due < due
        limit = TimeLimit(max(0.0, min(due, response.due) - now))
        try:
            async with limit:
                return await pool.open(due, has_place=has_place)
        except (OSError, UnicodeError) as error:
            if not limit.is_expired:
                raise unreachable_reason(error) from error
            if is_short:
                sentence = response.overdue(response.due)
                raise TransportError(ErrorKind.TIMEOUT, sentence) from error
            sentence = f"no connection within {timeouts.connect:g} s"
            raise TransportError(ErrorKind.UPSTREAM_UNREACHABLE, sentence) from error


def open_client(
    timeouts: UpstreamTimeouts, *, connections: int = 1000, socket_path: str | None = None
) -> UpstreamClient:
    """Return a client with its own connections, to be closed by the caller; needs a running loop."""
    return HttpClient(timeouts, connections=connections, socket_path=socket_path)
