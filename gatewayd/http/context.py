"""Facts about a request that the middleware stores for the handlers."""

from functools import partial
from typing import Final

from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.plugins.runtime.context import RequestFacts

ACTOR: web.RequestKey[Actor | None] = web.RequestKey("actor", object)  # type: ignore[arg-type]
# Scheme and host that a trusted proxy reports.
SITE: web.RequestKey[str] = web.RequestKey("site", str)
CLIENT: web.RequestKey[str] = web.RequestKey("client", str)
REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
CREDENTIAL: web.RequestKey[str] = web.RequestKey("credential", str)
# Headers of every reply to this request.
REPLY_HEADERS: web.RequestKey[dict[str, str]] = web.RequestKey("reply_headers", dict)
# Headers, in lower case, that the peer may not send.
FORGED_HEADERS: web.RequestKey[frozenset[str]] = web.RequestKey("forged_headers", frozenset)
# The failure with which the request was refused.
FAILURE: web.RequestKey[GatewayError] = web.RequestKey("failure", GatewayError)
# The stream whose head is sent, so that no other reply can follow.
STARTED: web.RequestKey[web.StreamResponse] = web.RequestKey("started", web.StreamResponse)

CLIENT_ID_HEADERS: Final = {
    f"claude_code_{name}_id": f"x-claude-code-{name.replace('_', '-')}-id"
    for name in ("session", "agent", "parent_agent")
}
"""Headers with the ids of a client's session and agents, by the name of their field in the log."""

MAX_CLIENT_ID_CHARACTERS: Final = 100
"""Maximum number of characters of such an id in the log."""


def find_actor(request: web.Request) -> Actor | None:
    """Return the actor of a request, None for an unauthenticated request on a route that permits it."""
    known: Actor | None = request.get(ACTOR)
    return known


def actor(request: web.Request) -> Actor:
    """Return the actor of a request; raises unauthenticated without one."""
    known = find_actor(request)
    if known is None:
        raise GatewayError(
            ErrorKind.UNAUTHENTICATED, "cannot authenticate the request: no credential was sent"
        )
    return known


def credential(request: web.Request) -> str:
    """Return the accepted credential of a request; raises unauthenticated without one."""
    sent: str | None = request.get(CREDENTIAL)
    if sent is None:
        raise GatewayError(
            ErrorKind.UNAUTHENTICATED, "cannot authenticate the request: no credential was sent"
        )
    return sent


def request_id(request: web.Request) -> str:
    """Return the id of a request in the reply, the log and the audit."""
    return request[REQUEST_ID]


def client_address(request: web.Request) -> str:
    """Return the client address of a request, as trusted proxies report it."""
    address: str = request.get(CLIENT) or request.remote or ""
    return address


def client_fields(request: web.Request) -> dict[str, str]:
    """Return the ids that Claude Code sends with a request, as fields of a line of the log."""
    found = {}
    for field, name in CLIENT_ID_HEADERS.items():
        value = request.headers.get(name)
        if value is not None:
            found[field] = value[:MAX_CLIENT_ID_CHARACTERS]
    return found


def base_url(request: web.Request) -> str:
    """Return the scheme and host that the client uses, `https://ai.example.org`."""
    site: str = request.get(SITE) or f"{request.scheme}://{request.host}"
    return site


def facts_of(request: web.Request) -> RequestFacts:
    """Return the facts of a request for plugins, with the headers as sent, without forged ones."""
    forged = request.get(FORGED_HEADERS, frozenset())
    return RequestFacts(
        method=request.method,
        path=request.path,
        query=request.query_string,
        headers=tuple(item for item in request.headers.items() if item[0].lower() not in forged),
        client=client_address(request),
        base_url=base_url(request),
        request_id=request_id(request),
    )


def caller_of(request: web.Request) -> RequestCaller:
    """Return the caller of a request to a model, with the facts for plugins; raises as `actor` does."""
    return RequestCaller(actor(request), request_id(request), partial(facts_of, request))
