"""The HTTP client towards providers: a small interface, and its implementation with aiohttp.

Nothing above this module knows aiohttp, so that a leaner client can take its place.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from typing import Protocol

import aiohttp

from gatewayd import __version__
from gatewayd.errors import Kind
from gatewayd.upstream.config import Timeouts

DRAIN_SECONDS = 0.2
"""How long an answer that said its last word may take to end, so that its connection can be used again."""

READ_BUFFER = 32 * 1024
"""Bytes; aiohttp stops reading from the socket at twice this, the most that waits for a slow caller."""


class TransportError(Exception):
    """A provider was not reached, or broke off; `sentence` completes "cannot get an answer from ...: "."""

    def __init__(self, kind: Kind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence


class UpstreamResponse(Protocol):
    """An answer whose status and headers are there and whose body is still to be read."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names compare without case."""
        ...

    async def read(self, limit: int) -> bytes:
        """Return the whole body; raises TransportError when it is over `limit` bytes or breaks off."""
        ...

    async def read_some(self) -> bytes:
        """Return what the next read brings, b"" at the end; raises TransportError when it breaks off."""
        ...

    async def finish(self) -> None:
        """Keep the connection for the next request if the body ends at once, else close it."""
        ...

    def close(self) -> None:
        """Close the connection at once unless the body was read to its end; may be called again."""
        ...


class UpstreamClient(Protocol):
    """Sends requests to one provider; never follows a redirect, never uses a proxy of the environment."""

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> UpstreamResponse:
        """Send a request with exactly these headers; raises TransportError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class Watch:
    """Closes a response whose upstream stays silent: one timer for the whole answer instead of one per read.

    Only the time spent waiting counts; a caller that is slow to take what was read does not.
    """

    __slots__ = ("_allowed", "_end", "_handle", "_loop", "_response", "_since", "expired")

    def __init__(self, response: aiohttp.ClientResponse, timeouts: Timeouts, started: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._response = response
        self._allowed = timeouts.first_byte
        self._since: float | None = None
        self._end = None if timeouts.total is None else started + timeouts.total
        self._handle: asyncio.TimerHandle | None = None
        self.expired = ""

    def wait(self) -> None:
        """Note that a read begins."""
        self._since = self._loop.time()
        if self._handle is None:
            self._handle = self._loop.call_at(self._due(self._since), self._check)

    def arrived(self, allowed: float) -> None:
        """Note that a read ended; the next one may take `allowed` seconds."""
        self._since = None
        if allowed < self._allowed:
            self.stop()
        self._allowed = allowed

    def stop(self) -> None:
        """Forget the timer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _due(self, now: float) -> float:
        due = (now if self._since is None else self._since) + self._allowed
        return due if self._end is None else min(due, self._end)

    def _check(self) -> None:
        now = self._loop.time()
        due = self._due(now)
        if now < due:
            self._handle = self._loop.call_at(due, self._check)
            return
        self._handle = None
        over = self._end is not None and now >= self._end
        self.expired = "the answer took too long" if over else f"it was silent for {self._allowed:g} s"
        self._response.close()


class AiohttpResponse:
    """An `UpstreamResponse` of aiohttp."""

    __slots__ = ("_idle", "_response", "_watch")

    def __init__(self, response: aiohttp.ClientResponse, timeouts: Timeouts, started: float) -> None:
        self._response = response
        self._idle = timeouts.idle
        self._watch = Watch(response, timeouts, started)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names compare without case."""
        return self._response.headers

    async def read(self, limit: int) -> bytes:
        """Return the whole body; raises TransportError when it is over `limit` bytes or breaks off."""
        parts: list[bytes] = []
        size = 0
        try:
            while part := await self.read_some():
                size += len(part)
                if size > limit:
                    raise TransportError(Kind.UPSTREAM_FAILED, f"its answer is over {limit} bytes")
                parts.append(part)
        finally:
            self.close()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read_some(self) -> bytes:
        """Return what the next read brings, b"" at the end; raises TransportError when it breaks off."""
        content = self._response.content
        self._watch.wait()
        try:
            part = await content.readany()
            while not part and not content.at_eof():
                part = await content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(error) from error
        if part:
            self._watch.arrived(self._idle)
        else:
            self._watch.stop()
        return part

    async def finish(self) -> None:
        """Keep the connection for the next request if the body ends at once, else close it."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while await self.read_some():
                    pass
        except (TimeoutError, TransportError):
            return  # the answer is complete; only the connection is lost
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection at once unless the body was read to its end; may be called again."""
        self._watch.stop()
        self._response.close()

    def _broken(self, error: Exception) -> TransportError:
        if self._watch.expired:
            return TransportError(Kind.TIMEOUT, self._watch.expired)
        return TransportError(Kind.UPSTREAM_FAILED, f"its answer broke off ({_reason(error)})")


class AiohttpClient:
    """An `UpstreamClient` of aiohttp with its own connections; made inside a running loop."""

    def __init__(
        self, timeouts: Timeouts, *, connections: int = 1000, socket_path: str | None = None
    ) -> None:
        self._timeouts = timeouts
        connector = (
            aiohttp.TCPConnector(limit=connections)
            if socket_path is None
            else aiohttp.UnixConnector(socket_path, limit=connections)
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"gatewayd/{__version__}", "Accept-Encoding": "identity"},
            timeout=aiohttp.ClientTimeout(
                total=None, connect=timeouts.connect, sock_connect=timeouts.connect
            ),
            read_bufsize=READ_BUFFER,
            trust_env=False,
        )

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> UpstreamResponse:
        """Send a request with exactly these headers; raises TransportError."""
        started = asyncio.get_running_loop().time()
        wait = self._timeouts.connect + self._timeouts.first_byte
        if self._timeouts.total is not None:
            wait = min(wait, self._timeouts.total)
        try:
            async with asyncio.timeout(wait):
                response = await self._session.request(
                    method, url, headers=headers, data=body, allow_redirects=False
                )
        except (aiohttp.ClientError, OSError) as error:
            raise _unanswered(error, self._timeouts, wait) from error
        return AiohttpResponse(response, self._timeouts, started)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


def open_client(
    timeouts: Timeouts, *, connections: int = 1000, socket_path: str | None = None
) -> UpstreamClient:
    """Return a client with its own connections, to be closed by the caller; needs a running loop."""
    return AiohttpClient(timeouts, connections=connections, socket_path=socket_path)


def _unanswered(error: Exception, timeouts: Timeouts, wait: float) -> TransportError:
    """Say why there is no status line: the order is from the special to the general exception."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return TransportError(Kind.UPSTREAM_UNREACHABLE, f"no connection within {timeouts.connect:g} s")
        case aiohttp.ClientConnectorDNSError():
            return TransportError(Kind.UPSTREAM_UNREACHABLE, "its host name is not known")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return TransportError(
                Kind.UPSTREAM_UNREACHABLE, f"its certificate or TLS failed ({_reason(error)})"
            )
        case aiohttp.ClientConnectorError():
            return TransportError(Kind.UPSTREAM_UNREACHABLE, f"no connection ({_reason(error)})")
        case TimeoutError():
            return TransportError(Kind.TIMEOUT, f"no first byte within {wait:g} s")
        case aiohttp.ClientResponseError() | aiohttp.InvalidURL():
            return TransportError(Kind.UPSTREAM_FAILED, "its answer is not HTTP")
        case _:
            return TransportError(
                Kind.UPSTREAM_FAILED, f"it closed the connection without an answer ({_reason(error)})"
            )


def _reason(error: Exception) -> str:
    """Return a few words without addresses or URLs in them."""
    cause = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    if isinstance(cause, ssl.SSLError) and cause.reason:
        return cause.reason
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno).lower()
    return type(cause).__name__
