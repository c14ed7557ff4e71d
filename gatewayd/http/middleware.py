"""Middleware of the public application, which wraps every handler.

It sets the request id, checks the path, authenticates by the route row, applies endpoint restrictions and
adds headers.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Final, Protocol

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.audit import (
    AUDIT_TICKET,
    AUDITED_REFUSALS,
    REFUSED_CREDENTIAL,
    audit_change,
    is_audited,
    is_noted,
    wait_for_rows,
)
from gatewayd.http.body import check_media_type
from gatewayd.http.connections.admission import IDENTITY_PROVIDER, RequestAdmission, is_within, take_place
from gatewayd.http.connections.known_heads import KnownHead, remember_head
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import ACTOR, CLIENT, CREDENTIAL, FORGED_HEADERS, REPLY_HEADERS, REQUEST_ID, SITE
from gatewayd.http.errors import guard
from gatewayd.http.origins import FETCH_SITE, OriginRules
from gatewayd.http.responses.fast_response import JsonReply
from gatewayd.http.routes import ANTHROPIC_VERSION, BASES, Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.scim_auth import ScimAuthenticator
from gatewayd.http.trusted_headers import TrustedHeaders
from gatewayd.metering.begun_call import BEGUN, BegunCall
from gatewayd.scim.renderer import ROOT
from gatewayd.tasks import TaskRegistry

SANE_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
UNSAFE_PATH: Final = re.compile(r"//|/\.\.?(?:/|$)|%5c|%00|%2e", re.IGNORECASE)
SANE_HOST: Final = re.compile(
    r"(?:[A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}(?:%25[A-Za-z0-9._~-]{1,64})?\])(?::[0-9]{0,5})?"
)
"""Pattern of a Host (RFC 3986, 3.2.2; RFC 6874) without the characters that no host name has."""

RUNTIME_PREFIX: Final = "/ollama/api/"
MESSAGES_PATH: Final = re.compile(r"(?:/api)?(?:/v1)?/messages?(?:/|\Z)|/ollama/v1/messages(?:/|\Z)")
"""Begin of the paths of the messages dialect, also of endpoints that the gateway lacks."""

BASE_PREFIXES: Final = tuple(f"{base}/" for base in BASES)
AZURE_PATHS: Final = "/openai/"
AZURE_KEY_HEADER: Final = "api-key"
"""Header with the key of clients of Azure, and the start of their paths, on which it counts."""

CONTENT_POLICY: Final = "Content-Security-Policy"
NO_PAGE_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; sandbox"
"""Content policy of a reply that is no page: a browser loads nothing for it and shows it in no frame.

Opened as a document, it has an origin of its own and runs nothing (ASVS 5.0, 3.2.1).
"""
CHANGING_HEADERS: Final = ("X-Request-Id", hdrs.ORIGIN, FETCH_SITE, hdrs.COOKIE)
"""Headers of requests whose head is not remembered: they differ from request to request, or name a page."""

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
REPEATED_SLASHES: Final = re.compile(r"/{2,}")
SCIM_PREFIX: Final = f"{ROOT}/"
CLIENT_CLOSED_STATUS: Final = 499
"""Logged status of a request whose client did not wait for the answer."""


class EdgeMiddleware(Protocol):
    """The middleware of an application: that of the public one or that of the control socket."""

    @property
    def middleware(self) -> Middleware:
        """The middleware for all requests, with or without a route."""
        ...

    def wrap(self, route: Route) -> Handler:
        """Return the handler of a row, wrapped in authentication, checks and error replies."""
        ...


class RequestAuthenticator(Protocol):
    """Authenticates requests; implemented by the account services."""

    def find(self, credential: str, method: str, path: str, digest: str = "") -> Actor | None:
        """Return what `authenticate` returns if that needs no wait, else None; raises as it does.

        `digest` is that of the credential, "" if it is not known.
        """
        ...

    async def authenticate(self, credential: str, method: str, path: str) -> Actor:
        """Return the actor of a credential for a routed path; raises unauthenticated or forbidden."""
        ...


class TicketStore(Protocol):
    """Redeems tickets of the event stream."""

    async def redeem(self, ticket: str) -> str | None:
        """Use up a ticket and return its credential; None for an invalid ticket."""
        ...


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """The places of credentials, the permitted origins and the trusted proxies."""

    key_header: str = "x-api-key"
    cookie: str = "token"
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    site_url: Callable[[], str] = str
    """Returns the public address of the gateway, "" when it is not known."""


@dataclass(frozen=True, slots=True)
class EdgeServices:
    """The services for authentication, SCIM clients, admission and the revocation of access."""

    accounts: RequestAuthenticator
    provisioning: ScimAuthenticator
    shut_out: AccessRevocation
    tickets: TicketStore | None = None
    trusted_headers: TrustedHeaders | None = None


class PublicEdge:
    """The middleware of the public application."""

    def __init__(self, services: EdgeServices, tasks: TaskRegistry, options: EdgeOptions) -> None:
        self._authenticator = services.accounts
        self._provisioning = services.provisioning
        self._shut_out = services.shut_out
        self._tickets = services.tickets
        self._trusted_headers = services.trusted_headers
        self._tasks = tasks
        self._options = options
        self._admission = RequestAdmission(options.trusted_proxies)
        self._origins = OriginRules(options.allowed_origins, options.key_header, options.site_url)

    def wrap(self, route: Route) -> Handler:
        """Return the handler of a row, wrapped in authentication, checks and error replies."""

        async def serve(request: web.Request) -> web.StreamResponse:
            dialect = dialect_of(route, request)
            add_dialect_headers(request, dialect)
            is_interruptible = is_cancellable(route, request)
            work = guard(self._serve_admitted(route, request, is_interruptible), dialect, request, route.path)
            if route.access is RouteAccess.SCIM:
                work = self._with_scim_audit(route, request, work)
            if is_interruptible:
                return await work
            return await self._tasks.finish(route.path, work)

        return serve

    async def _serve_admitted(
        self, route: Route, request: web.Request, is_interruptible: bool
    ) -> web.StreamResponse:
        if getattr(request.protocol, "is_spare", False) and route.use is not RequestUse.PROBE:
            take_place(request)
        if not route.slashes and "%" in request.raw_path and has_slash(request.raw_path):
            raise GatewayError(ErrorKind.NOT_FOUND, "Not Found", code="route_not_found")
        if request.method not in SAFE_METHODS or route.guarded:
            self._origins.check(request)
        if route.access is RouteAccess.SCIM:
            await self._provisioning.check(request)
        elif route.access is not RouteAccess.PUBLIC:
            request[ACTOR] = await self._identify(route, request)
        if request.method not in SAFE_METHODS and route.takes:
            check_media_type(request, route.takes)
        actor = request.get(ACTOR)
        is_answered = False
        try:
            reply = await self._run_handler(route, request, actor, is_interruptible)
            is_answered = True
        finally:
            # A handler notes a change after it is made, so that a later failure does not drop its line.
            if actor is not None and (
                is_audited(route, request, actor) if is_answered else is_noted(request)
            ):
                audit_change(route, request, actor)
        if AUDIT_TICKET in request:
            await wait_for_rows(request)
        return reply

    def _run_handler(
        self, route: Route, request: web.Request, actor: Actor | None, is_interruptible: bool
    ) -> Awaitable[web.StreamResponse]:
        account = actor.user_id if actor is not None else _account_of(route)
        if not is_interruptible:
            return self._run_to_end(route, request, account)
        self._admission.count(request, account, route.use)
        work = route.handler(request)
        return work if actor is None else self._shut_out.run(account, work, actor.jti)

    async def _run_to_end(self, route: Route, request: web.Request, account: str) -> web.StreamResponse:
        """Await a handler that goes on without its client; it counts until it is done."""
        done = self._admission.count_work(request, account, route.use)
        try:
            return await route.handler(request)
        finally:
            done()

    async def _with_scim_audit(
        self, route: Route | None, request: web.Request, work: Awaitable[web.StreamResponse]
    ) -> web.StreamResponse:
        try:
            reply = await work
        except asyncio.CancelledError:
            self._provisioning.note(route, request, CLIENT_CLOSED_STATUS)
            raise
        self._provisioning.note(route, request, reply.status)
        return await guard(_after_rows(request, reply), RouteDialect.SCIM, request, "-")

    async def _identify(self, route: Route, request: web.Request) -> Actor | None:
        credential = await self._ticket_credential(request) if route.tickets else None
        credential = credential or self._credential(request)
        if credential is None:
            if route.access is RouteAccess.OPTIONAL:
                return None
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "Not authenticated")
        try:
            actor = await self._shut_out.identify_again(
                lambda: self._authenticator.authenticate(credential, request.method, request.path)
            )
            if self._trusted_headers is not None:
                self._trusted_headers.check(request, actor)
        except GatewayError as error:
            # A failure of the database does not make the credential invalid.
            if route.access is RouteAccess.OPTIONAL and error.kind in {
                ErrorKind.UNAUTHENTICATED,
                ErrorKind.FORBIDDEN,
            }:
                return None
            request[REFUSED_CREDENTIAL] = error.kind in AUDITED_REFUSALS
            raise
        # A refusal by the access policy names the account.
        request[ACTOR] = actor
        check_access(route.access, actor)
        request[CREDENTIAL] = credential
        return actor

    async def _ticket_credential(self, request: web.Request) -> str | None:
        """Return the credential of the ticket in the query, None without a ticket."""
        ticket = request.query.get("ticket")
        if ticket is None or self._tickets is None:
            return None
        credential = await self._tickets.redeem(ticket)
        if credential is None:
            raise GatewayError(
                ErrorKind.UNAUTHENTICATED,
                "cannot accept the ticket: unknown, used before, or older than 30 s",
            )
        return credential

    def _credential(self, request: web.Request) -> str | None:
        scheme, _, value = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if scheme.lower() == "bearer" and value.strip():
            return value.strip()
        key = request.headers.get(self._options.key_header)
        if not key and request.path.startswith(AZURE_PATHS):
            key = request.headers.get(AZURE_KEY_HEADER)
        if key:
            return key.strip()
        token = request.cookies.get(self._options.cookie)
        if token and (request.method in SAFE_METHODS or self._origins.is_own(request)):
            return token
        return None

    @property
    def middleware(self) -> Middleware:
        """The middleware for all requests, with or without a route."""

        @web.middleware
        async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
            started = time.perf_counter()
            begun: BegunCall | None = getattr(request.protocol, "handed_over", None)
            headers = self._open(request, None if begun is None else begun.request_id)
            if begun is None:
                reply = await self._reply(request, handler)
            else:
                reply = await self._go_on(request, handler, begun)
            if not reply.prepared:
                headers["X-Process-Time"] = f"{time.perf_counter() - started:.6f}"
                if not isinstance(reply, JsonReply):
                    _add_headers(reply, headers)
            return reply

        return around

    def _open(self, request: web.Request, known_id: str | None = None) -> dict[str, str]:
        """Store the facts of a request, and return the headers of its reply."""
        headers = request[REPLY_HEADERS] = standard_headers(self._note(request, known_id))
        if hdrs.ORIGIN in request.headers:
            headers.update(self._origins.headers(request))
        return headers

    def _note(self, request: web.Request, known_id: str | None = None) -> str:
        """Store the facts of a request, and return its id."""
        given = known_id or request.headers.get("X-Request-Id")
        request_id = given if given is not None and SANE_REQUEST_ID.fullmatch(given) else ids.new_id()
        request[REQUEST_ID] = request_id
        if self._options.trusted_proxies or uses_unix_socket(request):
            request[CLIENT] = forwarded_for(request, self._options.trusted_proxies)
            if is_proxy(request, self._options.trusted_proxies):
                request[SITE] = forwarded_site(request)
        if self._trusted_headers is not None:
            request[FORGED_HEADERS] = self._trusted_headers.find_forged(request)
        return request_id

    async def _go_on(self, request: web.Request, handler: Handler, begun: BegunCall) -> web.StreamResponse:
        """Answer a request whose call of a model the fast path has begun."""
        request.protocol.handed_over = None  # type: ignore[attr-defined]
        token = BEGUN.set(begun)
        try:
            return await self._reply(request, handler)
        finally:
            BEGUN.reset(token)
            begun.abandon()

    def note_plain(self, request: web.Request) -> bool:
        """Store the facts of a request of the fast path, and return whether its Host is one."""
        self._note(request)
        hosts = request.headers.getall(hdrs.HOST, ())
        return len(hosts) == 1 and is_host(hosts[0])

    def admit(self, route: Route, request: web.Request, known: KnownHead | None = None) -> Actor | None:
        """Return the actor of a request of the fast path, once it is counted; None if that needs a wait.

        `request` has exactly the path of an interruptible row of users, before its query. Raises the refusals
        of the general way, which words them. `known` is its head as `known_head` has returned it for an
        earlier request.
        """
        digest = ""
        if known is None:
            credential = self._credential(request)
            if credential is None:
                return None
            self._origins.check(request)
        else:
            credential, digest = known.credential, known.digest
        path = request.raw_path.partition("?")[0]
        actor = self._authenticator.find(credential, route.method, path, digest)
        if actor is None:
            return None
        if self._trusted_headers is not None:
            self._trusted_headers.check(request, actor)
        check_access(route.access, actor)
        if known is None and request.method not in SAFE_METHODS:
            check_media_type(request, route.takes)
        request[ACTOR], request[CREDENTIAL] = actor, credential
        self._admission.count(request, actor.user_id, route.use)
        return actor

    def known_head(self, route: Route, request: web.Request) -> KnownHead | None:
        """Return the head of an answered request for `admit`; None if more than its credential counts."""
        headers = request.headers
        for name in CHANGING_HEADERS:
            if name in headers:
                return None
        if self._options.trusted_proxies or uses_unix_socket(request) or self._trusted_headers is not None:
            return None
        if request.method not in SAFE_METHODS and headers.get(hdrs.CONTENT_TYPE, "") not in route.takes:
            return None
        return remember_head(request._message, request.get(CREDENTIAL, ""))

    @property
    def shut_out(self) -> AccessRevocation:
        """The revocation of access, which ends running requests."""
        return self._shut_out

    def _reply(self, request: web.Request, handler: Handler) -> Awaitable[web.StreamResponse]:
        if is_unsafe(request.raw_path.partition("?")[0]):
            unsafe = GatewayError(ErrorKind.NOT_FOUND, "Not Found", code="route_not_found")
            return self._unrouted(_refuse(unsafe), request)
        hosts = request.headers.getall(hdrs.HOST, ())
        if len(hosts) > 1:
            ambiguous = invalid("cannot serve the request: it has more than one header Host", param=hdrs.HOST)
            return self._unrouted(_refuse(ambiguous), request)
        if hosts and hosts[0] and not is_host(hosts[0]):
            malformed = invalid("cannot serve the request: the header Host is no host name", param=hdrs.HOST)
            return self._unrouted(_refuse(malformed), request)
        if request.match_info.http_exception is not None:
            if request.method == "OPTIONS" and hdrs.ORIGIN in request.headers:
                return _no_content()
            return self._unrouted(handler(request), request)
        return handler(request)

    async def _unrouted(
        self, work: Awaitable[web.StreamResponse], request: web.Request
    ) -> web.StreamResponse:
        dialect = unrouted_dialect(request)
        add_dialect_headers(request, dialect)
        answer = guard(work, dialect, request, "-")
        return await (
            self._with_scim_audit(None, request, answer) if dialect is RouteDialect.SCIM else answer
        )


def _account_of(route: Route) -> str:
    """Return the account name that a request without a user counts for, "" for none."""
    return IDENTITY_PROVIDER if route.access is RouteAccess.SCIM else ""


def has_slash(raw_path: str) -> bool:
    """Return whether a path has an encoded slash."""
    return "%2f" in raw_path.partition("?")[0].lower()


def single_slashes(path: str) -> str:
    """Return a SCIM path with repeated slashes below the base address merged, other paths unchanged.

    The SCIM rows match such paths themselves (`app.with_repeated_slashes`).
    """
    if not path.startswith(SCIM_PREFIX):
        return path
    return ROOT + REPEATED_SLASHES.sub("/", path.removeprefix(ROOT))


@lru_cache(maxsize=256)
def is_unsafe(path: str) -> bool:
    """Return whether a path has parts that a proxy in front may read differently from the gateway."""
    return UNSAFE_PATH.search(single_slashes(path)) is not None


@lru_cache(maxsize=64)
def is_host(name: str) -> bool:
    """Return whether a Host is a host name or an address, with or without a port."""
    return SANE_HOST.fullmatch(name) is not None


def dialect_of(route: Route, request: web.Request) -> RouteDialect:
    """Return the dialect of a row. Model lists serve two dialects, which `anthropic-version`
    distinguishes."""
    if route.dialect is RouteDialect.OPENAI and ANTHROPIC_VERSION in request.headers:
        return RouteDialect.ANTHROPIC
    return route.dialect


def unrouted_dialect(request: web.Request) -> RouteDialect:
    """Return the dialect in which a request without a route is refused."""
    if f"{REPEATED_SLASHES.sub('/', request.path)}/".startswith(SCIM_PREFIX):
        return RouteDialect.SCIM
    if ANTHROPIC_VERSION in request.headers or MESSAGES_PATH.match(request.path):
        return RouteDialect.ANTHROPIC
    if request.path.startswith(RUNTIME_PREFIX):
        return RouteDialect.OLLAMA
    is_program = request.path.startswith(BASE_PREFIXES)
    return RouteDialect.OPENAI if is_program else RouteDialect.NATIVE


def is_cancellable(route: Route, request: web.Request) -> bool:
    """Return whether a request may be cancelled: reading ones, and those of interruptible rows.

    A request that ends its own session must not be cancelled by that.
    """
    return route.interruptible or (request.method in SAFE_METHODS and not route.writes)


def check_access(access: RouteAccess, actor: Actor) -> None:
    """Raise forbidden when the access policy of the row excludes the actor."""
    if access is RouteAccess.ADMIN and not actor.is_admin:
        raise GatewayError(ErrorKind.FORBIDDEN, "cannot do this: an administrator is needed")
    if access is RouteAccess.VERIFIED and not actor.is_verified:
        raise GatewayError(
            ErrorKind.FORBIDDEN, "cannot do this: the account is pending, an administrator must activate it"
        )


def standard_headers(request_id: str) -> dict[str, str]:
    """Return the headers of every reply."""
    return {
        "X-Request-Id": request_id,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        CONTENT_POLICY: NO_PAGE_POLICY,
        "Server": "gatewayd",
    }


def add_dialect_headers(request: web.Request, dialect: RouteDialect) -> None:
    """Add the headers of every reply in a dialect: clients of messages read the request id from their own."""
    if dialect is RouteDialect.ANTHROPIC:
        request[REPLY_HEADERS]["request-id"] = request[REQUEST_ID]


STANDARD_LINES: Final = "".join(
    f"{name}: {value}\r\n" for name, value in standard_headers("").items() if value
)
"""Lines of the headers of every reply but its request id."""


def forwarded_for(request: web.Request, trusted: tuple[IPv4Network | IPv6Network, ...]) -> str:
    """Return the client address: the peer, or behind trusted proxies the last untrusted hop."""
    address = request.remote or ""
    # A proxy may add a header line of its own below a forged one of the client.
    given = ",".join(request.headers.getall("X-Forwarded-For", ()))
    hops = [hop.strip() for hop in given.split(",") if hop.strip()]
    if hops and is_proxy(request, trusted):
        address = _without_port(hops.pop())
    while hops and is_within(address, trusted):
        address = _without_port(hops.pop())
    return address


def is_proxy(request: web.Request, trusted: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """Return whether a peer is a trusted proxy: one of a network, or of a unix socket."""
    return uses_unix_socket(request) or is_within(request.remote or "", trusted)


def uses_unix_socket(request: web.Request) -> bool:
    """Return whether the peer of a request is a process of this machine that may open a unix socket."""
    return getattr(request.protocol, "uses_unix_socket", False)


def _without_port(hop: str) -> str:
    """Return the address of a hop without its port, which some proxies add (RFC 7239, 6)."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    address, _, port = hop.partition(":")
    return hop if ":" in port else address


def forwarded_site(request: web.Request) -> str:
    """Return the scheme and host that a trusted proxy reports; the default of each is that of the request."""
    scheme = request.headers.get("X-Forwarded-Proto", "").partition(",")[0].strip().lower()
    host = request.headers.get("X-Forwarded-Host", "").partition(",")[0].strip()
    if scheme not in {"http", "https"}:
        scheme = request.scheme
    return f"{scheme}://{host if SANE_HOST.fullmatch(host) else request.host}"


def _add_headers(reply: web.StreamResponse, headers: Mapping[str, str]) -> None:
    """Add headers to a reply; a content policy of the handler stays."""
    policy = reply.headers.get(CONTENT_POLICY)
    reply.headers.update(headers)
    if policy is not None:
        reply.headers[CONTENT_POLICY] = policy


async def _no_content() -> web.StreamResponse:
    return web.Response(status=204)


async def _after_rows(request: web.Request, reply: web.StreamResponse) -> web.StreamResponse:
    await wait_for_rows(request)
    return reply


async def _refuse(error: GatewayError) -> web.StreamResponse:
    raise error
