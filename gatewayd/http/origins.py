"""Origin check of requests from web pages, and the CORS headers of their replies."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import hdrs, web

from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.http.context import base_url

FETCH_SITE: Final = "Sec-Fetch-Site"
"""Header of the browser about the origin of a request (Fetch Metadata). Pages cannot set it."""

FETCH_DESTINATION: Final = "Sec-Fetch-Dest"
"""Header of the browser about what a page wants the reply for, such as `image` (Fetch Metadata, 2.1)."""

OWN_FETCH_SITES: Final = frozenset({"same-origin", "none"})
HEADER_NAMES: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2048}")
EXPOSED_HEADERS: Final = (
    "X-Request-Id, request-id, X-Gateway-Warning, X-Gateway-Stream-Id,"
    " X-Gateway-Token-Count, Idempotent-Replayed, Retry-After"
)
DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
FOREIGN_ORIGIN: Final = "foreign_origin"


def refuse_parts(request: web.Request) -> None:
    """Raise forbidden (code `foreign_origin`) for a part of a page, such as a picture.

    Its address may be a text of somebody else on a page of the gateway: reading it must change nothing.
    """
    wanted = request.headers.get(FETCH_DESTINATION, "empty")
    if wanted not in {"empty", "document"}:
        raise GatewayError(
            ErrorKind.FORBIDDEN,
            f"cannot accept the request: its reply would be part of a page, as {shorten(wanted)!r}",
            param=FETCH_DESTINATION,
            code=FOREIGN_ORIGIN,
        )


@dataclass(frozen=True, slots=True)
class OriginRules:
    """The permitted origins of the setting `cors_allow_origin`; `*` permits every origin.

    `site_url` returns the public address of the gateway, "" when it is not known.
    """

    allowed: tuple[str, ...]
    key_header: str
    site_url: Callable[[], str]

    def check(self, request: web.Request) -> None:
        """Raise forbidden (code `foreign_origin`) for a request from a page of another origin.

        The check does not depend on the credential. Programs other than browsers send no Origin (ASVS 5.0,
        3.5.1 and 3.5.2).
        """
        headers = request.headers
        if (FETCH_SITE not in headers and hdrs.ORIGIN not in headers) or self.is_own(request):
            return
        origin = request.headers.get(hdrs.ORIGIN)
        if "*" in self.allowed or origin in self.allowed:
            return
        raise GatewayError(
            ErrorKind.FORBIDDEN,
            f"cannot accept the request of a page from {shorten(origin or 'another site')!r}:"
            " cors_allow_origin does not name this origin",
            param=hdrs.ORIGIN,
            code=FOREIGN_ORIGIN,
        )

    def is_own(self, request: web.Request) -> bool:
        """Return whether a request comes from a page of this gateway, or from no page."""
        origin = request.headers.get(hdrs.ORIGIN)
        relation = request.headers.get(FETCH_SITE)
        if relation in OWN_FETCH_SITES or (relation is None and origin is None):
            return True
        if origin is None:
            return False
        if is_same(origin, self.site_url()):
            return True
        # The browser has compared the origins when it sends the relation.
        return relation is None and is_same(origin, base_url(request))

    def headers(self, request: web.Request) -> dict[str, str]:
        """Return the CORS headers of the reply (Fetch standard, 3.2); none for an origin that is not
        permitted."""
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None or not (origin in self.allowed or "*" in self.allowed):
            return {}
        headers: dict[str, str] = {
            hdrs.VARY: hdrs.ORIGIN,
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST, PUT, PATCH, DELETE",
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: self._allow_headers(request),
            hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: EXPOSED_HEADERS,
        }
        # A wildcard never permits credentials that the browser stores.
        headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin if origin in self.allowed else "*"
        if origin in self.allowed:
            headers[hdrs.ACCESS_CONTROL_ALLOW_CREDENTIALS] = "true"
        return headers

    def _allow_headers(self, request: web.Request) -> str:
        """Return the headers that a page may send: those that it requests, as each dialect has its own."""
        asked = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
        if HEADER_NAMES.fullmatch(asked):
            return asked
        return f"Authorization, Content-Type, {self.key_header}, X-Request-Id"


def is_same(origin: str, site: str) -> bool:
    """Return whether an origin is that of an address (RFC 6454, 5).

    An https page may call an address that the gateway sees as http, as a proxy in front may end TLS without
    reporting it.
    """
    scheme, found, host = origin.lower().partition("://")
    own_scheme, own_found, rest = site.lower().partition("://")
    if not found or not own_found or (scheme != own_scheme and (scheme, own_scheme) != ("https", "http")):
        return False
    port = DEFAULT_PORTS.get(scheme, "")
    own_host = rest.partition("/")[0]
    return host.removesuffix(port) == own_host.removesuffix(port)
