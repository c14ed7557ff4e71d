"""The fast path: plain requests that are answered in callbacks, without a task.

It uses the functions of the edge and of the services that need no wait. Whatever would wait, refuse or fail
is left to the handler of the row, before anything is sent or with what has come: every refusal has one home.
"""

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import HttpVersion11, hdrs, web

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.errors import GatewayError
from gatewayd.http.access_revocation import access_ended
from gatewayd.http.connections.fast_path import FastConnection
from gatewayd.http.connections.known_heads import KnownHead
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import REPLY_HEADERS, REQUEST_ID, STARTED
from gatewayd.http.errors import refuse
from gatewayd.http.middleware import STANDARD_LINES, PublicEdge, add_dialect_headers, standard_headers
from gatewayd.http.observation import (
    CLIENT_CLOSED_STATUS,
    Observed,
    ObservedRow,
    RequestObservation,
    SentReply,
)
from gatewayd.http.responses.fast_response import FastReply
from gatewayd.http.routes import (
    ANTHROPIC_VERSION,
    BegunAnswer,
    BegunStream,
    Handler,
    Route,
    RouteAccess,
    RouteDialect,
    StreamEnd,
)
from gatewayd.measurement.request_notes import CURRENT_NOTES
from gatewayd.pipeline.begun_stream import Pending

DECLINED_HEADERS: Final = (hdrs.EXPECT, hdrs.CONTENT_ENCODING, hdrs.ORIGIN)
"""Headers of requests that the handlers answer."""

BETA_QUERY: Final = "?beta=true"
"""The query of clients of messages, which rows in that dialect ignore."""

DEFECTS: Final = (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""Errors of a request whose beginning fails by a defect, which must not cut the connection."""

LEFT: Final = "request left to its handler: the fast path failed"

FAILED_STATUS: Final = 500
"""Logged status of a request whose answer could not be sent."""

log = logging.getLogger(__name__)


class FastRows:
    """The `connections.fast_path.FastPath` of an application: its rows with a `begin`."""

    def __init__(self, edge: PublicEdge, observation: RequestObservation) -> None:
        self._edge = edge
        self._shut_out = edge.shut_out
        self._observation = observation
        self._rows: dict[tuple[str, str], tuple[Route, ObservedRow]] = {}

    def add(self, row: Route, handler: Handler, paths: Iterable[str]) -> None:
        """Add a row of users that may be cancelled, or a public one that is ready, with its exact paths."""
        is_read = row.method == hdrs.METH_GET and not row.writes
        if row.ready is not None:
            is_served = is_read and row.access is RouteAccess.PUBLIC and row.use is RequestUse.PROBE
        else:
            may_end = row.interruptible or is_read
            is_served = may_end and row.access is RouteAccess.VERIFIED and row.begin is not None
        if not is_served:
            return
        queries = ("", BETA_QUERY) if row.dialect is RouteDialect.ANTHROPIC else ("",)
        for path in paths:
            if "{" not in path:
                for query in queries:
                    self._rows[row.method, path + query] = row, self._observation.row_of(handler, row.method)

    def serves(self, connection: FastConnection, message: Any) -> bool:
        """Return whether the head of a request is one of the fast path."""
        known = connection.known_head
        if isinstance(known, KnownHead) and known.is_of(message):
            return not self._observation.is_traced
        connection.known_head = None
        # A malformed request has neither.
        row = self._rows.get((getattr(message, "method", ""), getattr(message, "path", "")))
        if row is None:
            return False
        if message.version != HttpVersion11 or message.should_close or message.upgrade:
            return False
        headers = message.headers
        for name in DECLINED_HEADERS:
            if name in headers:
                return False
        if ANTHROPIC_VERSION in headers and row[0].dialect is not RouteDialect.ANTHROPIC:
            # Some rows answer it in another dialect.
            return False
        return not self._observation.is_traced

    def begin(self, connection: FastConnection, request: web.Request, body: bytes) -> "Exchange | None":
        """Begin a request; None, with nothing sent, if the handler must answer it."""
        route, row = self._rows[request.method, request.raw_path]
        observed = self._observation.begin(request, row)
        exchange = Exchange(connection, request, observed, self, route)
        token = None if observed.notes is None else CURRENT_NOTES.set(observed.notes)
        known = connection.known_head
        if not isinstance(known, KnownHead):
            known = None
        try:
            self._ask(exchange, route, body, known)
        except GatewayError:
            exchange.answer = None
        except DEFECTS:
            # The handler meets it again, and answers.
            log.warning(LEFT, exc_info=True)
        finally:
            if token is not None:
                CURRENT_NOTES.reset(token)
        if exchange.answer is None and exchange.ready is None:
            self._observation.withdraw()
            return None
        if known is None and connection.heads_left:
            connection.heads_left -= 1
            connection.known_head = self._edge.known_head(route, request)
        self._enter(exchange)
        return exchange

    def _ask(self, exchange: "Exchange", route: Route, body: bytes, known: KnownHead | None) -> None:
        """Give a request its actor, if it needs one, and its answer to come or its reply."""
        request = exchange.request
        if known is not None:
            request[REQUEST_ID] = ids.new_id()
        elif not self._edge.note_plain(request):
            return
        if route.ready is not None:
            exchange.ready = route.ready()
            return
        exchange.actor = actor = self._edge.admit(route, request, known)
        if actor is None or route.begin is None:
            return
        answer = route.begin(request, body, actor, exchange.arrived)
        if isinstance(answer, FastReply):
            exchange.ready = answer
        else:
            exchange.answer = answer

    def _enter(self, exchange: "Exchange") -> None:
        """Note a request of a user that has begun among those that a revocation ends."""
        request, actor = exchange.request, exchange.actor
        if exchange.answer is not None and exchange.answer.is_stream:
            request[REPLY_HEADERS] = standard_headers(request[REQUEST_ID])
            add_dialect_headers(request, exchange.route.dialect)
        if actor is not None:
            self._shut_out.enter(actor.user_id, exchange, actor.jti)
        if exchange.ready is not None:
            # Not at once: the connection has to know the request first.
            asyncio.get_running_loop().call_soon(exchange.send_ready)

    def end(self, exchange: "Exchange", reply: SentReply | None, status: int) -> None:
        """Note the end of a request; without a reply it was not answered."""
        self.forget(exchange)
        if exchange.stream is not None:
            # It and the request refer to each other.
            exchange.request.pop(STARTED, None)
        if reply is not None:
            self._observation.note_fast()
        self._observation.end(exchange.observed, exchange.request, reply, status)

    def forget(self, exchange: "Exchange") -> None:
        """Remove a request from those that a revocation ends."""
        if exchange.actor is not None:
            self._shut_out.leave(exchange.actor.user_id, exchange)

    def withdraw(self, exchange: "Exchange") -> None:
        """Forget a request that the handler goes on with."""
        self.forget(exchange)
        self._observation.withdraw()


@dataclass(slots=True, eq=False, repr=False)
class Exchange:
    """A request on the fast path, from its beginning to its answer."""

    _connection: FastConnection
    request: web.Request
    observed: Observed
    _rows: FastRows
    route: Route
    actor: Actor | None = None
    """The actor, None for a request to a public row."""
    answer: BegunAnswer | None = None
    """The answer to come."""
    ready: FastReply | None = None
    """The reply of a request that has asked nobody."""
    stream: BegunStream | None = None
    """The answer that has begun to come in chunks."""

    def send_ready(self) -> None:
        """Send the reply, unless the request has ended."""
        reply, self.ready = self.ready, None
        if reply is not None:
            self._send(reply)

    def arrived(self) -> None:
        """Send the answer that has arrived, or let the handler of the row read it."""
        answer = self.answer
        if answer is None or self.stream is not None:
            return
        notes = self.observed.notes
        token = None if notes is None else CURRENT_NOTES.set(notes)
        reply: FastReply | BegunStream | Pending | None = None
        try:
            reply = answer.take()
        except DEFECTS:
            # Not raised: the connection of the provider would end with it.
            log.warning(LEFT, exc_info=True)
        finally:
            if token is not None:
                CURRENT_NOTES.reset(token)
            if reply is None:
                # After an error too: the handler meets it again, and answers.
                self._hand_over(answer)
        if isinstance(reply, FastReply):
            self._send(reply)
        elif reply is not None and not isinstance(reply, Pending):
            self.stream = reply
            is_begun = False
            try:
                reply.begin(self._streamed)
                is_begun = True
            finally:
                if not is_begun:
                    self._break_off()

    def _send(self, reply: FastReply) -> None:
        self.answer = None
        request = self.request
        common = (
            f"X-Request-Id: {request[REQUEST_ID]}\r\n{STANDARD_LINES}"
            f"X-Process-Time: {time.perf_counter() - self.observed.began:.6f}\r\n"
        )
        if self.route.dialect is RouteDialect.ANTHROPIC:
            common = f"{common}request-id: {request[REQUEST_ID]}\r\n"
        sent, status = None, FAILED_STATUS
        try:
            reply.send(request, common)
            sent, status = reply, 200
        except ConnectionResetError:
            # The client has left while its answer came; aiohttp reports it in a moment.
            status = CLIENT_CLOSED_STATUS
        finally:
            try:
                self._rows.end(self, sent, status)
            finally:
                if status == FAILED_STATUS:
                    self._connection.force_close()
                self._connection.answered()

    def _streamed(self, end: StreamEnd) -> None:
        """Note the end of the stream, which is released."""
        stream, self.answer = self.stream, None
        if stream is None:
            raise RuntimeError("a stream ends after its beginning")
        try:
            match end:
                case StreamEnd.SENT:
                    self._rows.end(self, stream.reply, stream.reply.status)
                case StreamEnd.LEFT:
                    self._rows.end(self, None, CLIENT_CLOSED_STATUS)
                case StreamEnd.FAILED:
                    self._rows.end(self, None, FAILED_STATUS)
        finally:
            if end is StreamEnd.FAILED:
                self._connection.force_close()
            self._connection.answered(is_last=not stream.reply.keep_alive)

    def _break_off(self) -> None:
        """End a stream that failed before it was sent, unless its own end has done so."""
        if self._cancel():
            self._rows.end(self, None, FAILED_STATUS)
            self._connection.force_close()

    def leave(self) -> None:
        """End the request: its client has left, or the server stops."""
        if self._cancel():
            self._rows.end(self, None, CLIENT_CLOSED_STATUS)

    def revoke(self) -> None:
        """End the request, whose account or session has lost its access.

        The handler refuses it, unless a stream has begun, which is cut.
        """
        if not self._cancel():
            return
        if self.stream is not None:
            refused = refuse(self.request, access_ended(), self.route.dialect, self.route.path)
            self._rows.end(self, refused, refused.status)
        else:
            self._rows.withdraw(self)
            self._connection.hand_over(None)

    def _cancel(self) -> bool:
        """Drop the answer, and return whether there was one."""
        is_begun, answer = self.answer is not None or self.ready is not None, self.answer
        self.answer = self.ready = None
        if answer is not None:
            answer.cancel()
        return is_begun

    def _hand_over(self, answer: BegunAnswer) -> None:
        self.answer = None
        self._rows.withdraw(self)
        begun = answer.hand_over()
        begun.began, begun.notes = self.observed.began, self.observed.notes
        self._connection.hand_over(begun)
