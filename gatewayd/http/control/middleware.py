"""Middleware of the control socket: peer check, protocol version and error replies."""

from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from gatewayctl.wire.base import HEADER, VERSION
from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import wait_for_rows
from gatewayd.http.connections.admission import count, count_work
from gatewayd.http.context import REPLY_HEADERS, REQUEST_ID
from gatewayd.http.control.peer import PEER, PeerRules, read_peer
from gatewayd.http.errors import guard
from gatewayd.http.middleware import SANE_REQUEST_ID, is_cancellable, standard_headers
from gatewayd.http.routes import Handler, Route, RouteAccess, RouteDialect
from gatewayd.tasks import TaskRegistry

# Headers of browsers: a web page must not reach the socket through a port forwarder.
BROWSER_HEADERS: Final = (hdrs.ORIGIN, hdrs.REFERER)


class ControlEdge:
    """The middleware of the control application; see `http.middleware.EdgeMiddleware`."""

    def __init__(self, peers: PeerRules, tasks: TaskRegistry) -> None:
        self._peers = peers
        self._tasks = tasks

    def wrap(self, route: Route) -> Handler:
        """Return the handler of a row; a write runs to its end even when its client leaves."""
        if route.access is not RouteAccess.CONTROL:
            raise ValueError(f"{route.path} is no control route")

        async def serve(request: web.Request) -> web.StreamResponse:
            if is_cancellable(route, request):
                return await guard(_counted(route, request), RouteDialect.CONTROL, request, route.path)
            work = guard(_finished(route, request), RouteDialect.CONTROL, request, route.path)
            return await self._tasks.finish(route.path, work)

        return serve

    @property
    def middleware(self) -> Middleware:
        """The middleware for all requests, with or without a route."""

        @web.middleware
        async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
            given = request.headers.get("X-Request-Id", "")
            request[REQUEST_ID] = given if SANE_REQUEST_ID.fullmatch(given) else ids.new_id()
            request[REPLY_HEADERS] = {**standard_headers(request[REQUEST_ID]), HEADER: VERSION}
            path = request.match_info.route.resource
            route = path.canonical if path is not None else "-"
            reply = await guard(self._admitted(request, handler), RouteDialect.CONTROL, request, route)
            if not reply.prepared:
                reply.headers.update(request[REPLY_HEADERS])
            return reply

        return around

    async def _admitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        request[PEER] = read_peer(request)
        self._peers.admit(request)
        for name in BROWSER_HEADERS:
            if name in request.headers:
                raise GatewayError(
                    ErrorKind.FORBIDDEN,
                    f"cannot answer a browser: the request has a {name} header",
                    param=name,
                )
        spoken = request.headers.get(HEADER)
        if spoken != VERSION:
            raise GatewayError(
                ErrorKind.INVALID_REQUEST,
                f"cannot use protocol {spoken!r}: this daemon has {VERSION!r}",
                param=HEADER,
                code="protocol_mismatch",
            )
        return await handler(request)


async def _counted(route: Route, request: web.Request) -> web.StreamResponse:
    """Await the handler of a row; its descriptors count without an account."""
    count(request, route.use)
    reply = await route.handler(request)
    await wait_for_rows(request)
    return reply


async def _finished(route: Route, request: web.Request) -> web.StreamResponse:
    """Await a handler as `_counted` does, also after its client has left."""
    done = count_work(request, route.use)
    try:
        reply = await route.handler(request)
    finally:
        done()
    await wait_for_rows(request)
    return reply
