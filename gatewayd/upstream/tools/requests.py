"""Requests to tool servers: limited in time and size, never repeated, never redirected to another host."""

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
    """A request; `timeout` is its total time in seconds (None: no limit), `limit` the bytes of its answer."""

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


async def send_request(request: ServerRequest, failures: ServerFailures) -> ServerResponse:
    """Send a request and return its answer with any status; raises GatewayError that names the server.

    Each request has a connection of its own, because one on a reused connection might be repeated. Redirects
    are followed only on the same host, because the request contains the key.
    """
    client = open_client(_timeouts(request.timeout), connections=1)
    try:
        return await _send_following(client, request)
    except TransportError as error:
        raise failures.from_transport(error) from error
    finally:
        await client.close()


def server_origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL, to compare servers."""
    parts = split_url(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


async def _send_following(client: UpstreamClient, request: ServerRequest) -> ServerResponse:
    url = request.url
    for _ in range(MAX_REDIRECTS):
        reply = await _send_once(client, request, url)
        following = _next(request.method, url, reply)
        if following is None:
            return reply
        url = following
    return await _send_once(client, request, url)


async def _send_once(client: UpstreamClient, request: ServerRequest, url: str) -> ServerResponse:
    response = await client.request(request.method, url, request.headers, request.body)
    try:
        body = await response.read(request.limit)
    finally:
        response.close()
    return ServerResponse(response.status, {name: response.headers[name] for name in response.headers}, body)


def _next(method: str, url: str, reply: ServerResponse) -> str | None:
    """Return the target of a redirect, None for an answer and for a redirect that is not followed."""
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
