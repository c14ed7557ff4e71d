"""Single requests to tool servers: bounded in time and size, never sent twice, never to another host."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin  # noqa: TID251

from gatewayd.upstream.http.client import TransportError, UpstreamClient, open_client
from gatewayd.upstream.sources.config import UpstreamTimeouts
from gatewayd.upstream.tools.failures import ServerFailures
from gatewayd.urls import split_url

CONNECT_SECONDS: Final = 5.0
UNLIMITED_SECONDS: Final = 1e9
MAX_REDIRECTS: Final = 3

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SAME_METHOD: Final = frozenset({307, 308})


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request; `timeout` is for all of it in seconds (None: no limit), `limit` the bytes of its answer."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    timeout: float | None = None
    limit: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """An answer; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def send_request(asked: ServerRequest, failures: ServerFailures) -> ServerResponse:
    """Send a request and return its answer, whatever its status; raises GatewayError that names the server.

    Each has a connection of its own: a request on a kept one might be sent twice. A redirect is followed only
    on the same host, as what is sent holds the key.
    """
    client = open_client(_timeouts(asked.timeout), connections=1)
    try:
        return await _followed(client, asked)
    except TransportError as error:
        raise failures.from_transport(error) from error
    finally:
        await client.close()


def server_origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port, which tell whether two addresses are of one server."""
    parts = split_url(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


async def _followed(client: UpstreamClient, asked: ServerRequest) -> ServerResponse:
    url = asked.url
    for _ in range(MAX_REDIRECTS):
        reply = await _asked(client, asked, url)
        following = _next(asked.method, url, reply)
        if following is None:
            return reply
        url = following
    return await _asked(client, asked, url)


async def _asked(client: UpstreamClient, asked: ServerRequest, url: str) -> ServerResponse:
    response = await client.request(asked.method, url, asked.headers, asked.body)
    try:
        body = await response.read(asked.limit)
    finally:
        response.close()
    return ServerResponse(response.status, {name: response.headers[name] for name in response.headers}, body)


def _next(method: str, url: str, reply: ServerResponse) -> str | None:
    """Return where a redirect leads, None for an answer and for a redirect that is not followed."""
    location = reply.headers.get("location")
    if reply.status not in _REDIRECTS or not location:
        return None
    if reply.status not in _SAME_METHOD and method not in {"GET", "HEAD"}:
        return None
    try:
        split_url(location)
        found = urljoin(url, location)
        is_same = server_origin(found) == server_origin(url) and "@" not in split_url(found).netloc
    except ValueError:
        return None
    return found if is_same else None


def _timeouts(seconds: float | None) -> UpstreamTimeouts:
    if seconds is None:
        return UpstreamTimeouts(connect=CONNECT_SECONDS, first_byte=UNLIMITED_SECONDS, idle=UNLIMITED_SECONDS)
    connect = min(CONNECT_SECONDS, seconds)
    return UpstreamTimeouts(connect=connect, first_byte=seconds, idle=seconds, total=seconds)
