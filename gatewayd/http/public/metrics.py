"""Route of the metrics on TCP, which has an access of its own."""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from aiohttp import hdrs, web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.connections.admission import is_within
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import client_address
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers

_row = RouteGroup("", "health").row

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of the text format of Prometheus."""

RenderMetrics = Callable[[], Awaitable[bytes]]
"""Returns the text of all metrics."""


@dataclass(frozen=True, slots=True)
class MetricsAccess:
    """Who may read the metrics: those with the token, those in the networks, or those with both.

    Without a token and networks nobody may.
    """

    token: str = ""
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def check(self, request: web.Request) -> None:
        """Raise not_found if the metrics are off, and forbidden or unauthenticated for others."""
        if not self.token and not self.networks:
            raise GatewayError(
                ErrorKind.NOT_FOUND,
                "cannot serve metrics: neither metrics_token nor metrics_networks is set",
                code="metrics_off",
            )
        address = client_address(request)
        if self.networks and not is_within(address, self.networks):
            raise GatewayError(
                ErrorKind.FORBIDDEN, f"cannot serve metrics to {address}: metrics_networks does not have it"
            )
        if self.token:
            self._check_token(request.headers.get(hdrs.AUTHORIZATION, ""))

    def _check_token(self, given: str) -> None:
        scheme, _, value = given.partition(" ")
        if scheme.lower() != "bearer" or not value.strip():
            raise GatewayError(
                ErrorKind.UNAUTHENTICATED,
                "cannot serve metrics: the request has no Authorization: Bearer with metrics_token",
            )
        # Surrogates stand for the bytes of a header that are not UTF-8.
        sent = value.strip().encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(sent, self.token.encode()):
            raise GatewayError(
                ErrorKind.UNAUTHENTICATED, "cannot serve metrics: the token is not that of metrics_token"
            )


class MetricsRoutes:
    """Route of the metrics; `access` returns the access in force."""

    def __init__(self, render: RenderMetrics, access: Callable[[], MetricsAccess]) -> None:
        self._render = render
        self._access = access

    def routes(self) -> Sequence[Route]:
        """Return the row, whose handler checks the access itself."""
        return [
            _row(
                "GET",
                "/metrics",
                self.show,
                RouteAccess.PUBLIC,
                "Show the metrics of the gateway",
                use=RequestUse.PROBE,
            )
        ]

    @answers(None, "text/plain")
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the metrics in the text format of Prometheus.

        The settings `metrics_token` and `metrics_networks` decide who may read them; without both the path
        is not served.
        """
        self._access().check(request)
        return metrics_reply(await self._render())


def metrics_reply(text: bytes) -> web.Response:
    """Return the reply with the metrics."""
    return web.Response(body=text, headers={hdrs.CONTENT_TYPE: METRICS_TYPE, hdrs.CACHE_CONTROL: "no-store"})
