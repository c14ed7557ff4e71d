"""What the edge knows about a request, for the handlers."""

from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError

ACTOR: web.RequestKey[Actor | None] = web.RequestKey("actor", object)  # type: ignore[arg-type]
# Scheme and host under which a trusted proxy is reached.
SITE: web.RequestKey[str] = web.RequestKey("site", str)
CLIENT: web.RequestKey[str] = web.RequestKey("client", str)
REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
CREDENTIAL: web.RequestKey[str] = web.RequestKey("credential", str)
# What every reply to this request carries.
REPLY_HEADERS: web.RequestKey[dict[str, str]] = web.RequestKey("reply_headers", dict)
# Why the request was refused.
FAILURE: web.RequestKey[GatewayError] = web.RequestKey("failure", GatewayError)
# The stream whose head is on its way, so that no other reply can follow.
STARTED: web.RequestKey[web.StreamResponse] = web.RequestKey("started", web.StreamResponse)


def find_actor(request: web.Request) -> Actor | None:
    """Return who asks, or None on routes that allow that."""
    known: Actor | None = request.get(ACTOR)
    return known


def actor(request: web.Request) -> Actor:
    """Return who asks; unauthenticated when nobody was named."""
    known = find_actor(request)
    if known is None:
        raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot tell who asks: no credential was sent")
    return known


def credential(request: web.Request) -> str:
    """Return what the caller proved its identity with; unauthenticated when it was nothing good."""
    sent: str | None = request.get(CREDENTIAL)
    if sent is None:
        raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot tell who asks: no credential was sent")
    return sent


def request_id(request: web.Request) -> str:
    """Return the id that names this request in the reply, the log and the audit."""
    return request[REQUEST_ID]


def client_address(request: web.Request) -> str:
    """Return the address that the request comes from, behind trusted proxies the one that they report."""
    address: str = request.get(CLIENT) or request.remote or ""
    return address


def base_url(request: web.Request) -> str:
    """Return scheme and host as the client sees them, `https://ai.example.org`."""
    site: str = request.get(SITE) or f"{request.scheme}://{request.host}"
    return site
