"""Observation of every request at its end: counts, the access log and traces.

The middleware stands around that of the edge, so that refused requests and those without a route are seen
too. It does no I/O and takes a few microseconds at most.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from gatewayd.http.context import ACTOR, REQUEST_ID, client_address
from gatewayd.http.responses.fast_response import FastReply, JsonReply
from gatewayd.http.routes import Handler
from gatewayd.measurement.request_notes import CURRENT_NOTES, RequestNotes, ServedRequest
from gatewayd.metering.begun_call import BegunCall

CLIENT_CLOSED_STATUS: Final = 499
"""Status of a request whose client did not wait for the answer."""

NO_ROUTE: Final = "-"
"""Path template of requests without a route."""

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER_METHOD: Final = "other"
"""Name of every other method, which any client may invent."""


class RequestTally(Protocol):
    """Counts the requests of one path template and method."""

    def finished(self, status: int, seconds: float) -> None:
        """Count one request at its end."""
        ...


class RequestTallies(Protocol):
    """Counts all requests."""

    in_flight: int
    """Number of requests without a complete answer."""
    fast: int
    """Number of requests that the fast path has answered."""

    def tally(self, route: str, method: str) -> RequestTally:
        """Return the tally of a path template and method."""
        ...


class ObservedRequest(Protocol):
    """The head of a request."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, whose names are read in any case."""
        ...


class RequestWatcher(Protocol):
    """Sees requests with their facts: the access log, and the tracer."""

    @property
    def is_on(self) -> bool:
        """Whether it wants any request."""
        ...

    @property
    def watches_begin(self) -> bool:
        """Whether it wants to see requests when they begin, and not at their end alone."""
        ...

    def begun(self, notes: RequestNotes, request: ObservedRequest) -> None:
        """Note the beginning of a request."""
        ...

    def served(self, served: ServedRequest) -> None:
        """Note the end of a request."""
        ...


SentReply = web.StreamResponse | FastReply
"""The reply to a request, on the general way or on the fast path."""

ObservedRow = tuple[str, RequestTally]
"""Path template and tally of a row."""


class Observed:
    """A request in flight; `began` is its beginning in seconds of `perf_counter`."""

    __slots__ = ("began", "notes", "row", "watching")

    def __init__(
        self, row: ObservedRow, watching: tuple[RequestWatcher, ...], notes: RequestNotes | None
    ) -> None:
        self.began = time.perf_counter()
        self.row = row
        self.watching = watching
        self.notes = notes


class RequestObservation:
    """Observes the requests of one application.

    `app` adds each of its rows; a request to another path counts for `NO_ROUTE`.
    """

    def __init__(self, tallies: RequestTallies, watchers: tuple[RequestWatcher, ...] = ()) -> None:
        self._tallies = tallies
        self._watchers = watchers
        self._rows: dict[tuple[Any, str], ObservedRow] = {}
        self._unrouted = {
            method: (NO_ROUTE, tallies.tally(NO_ROUTE, method)) for method in (*METHODS, OTHER_METHOD)
        }

    def add(self, handler: Handler, path: str, method: str) -> None:
        """Add a row of the application; a GET is also served as HEAD."""
        for served in (method, hdrs.METH_HEAD) if method == hdrs.METH_GET else (method,):
            self._rows[handler, served] = (path, self._tallies.tally(path, served))

    @property
    def middleware(self) -> Middleware:
        """The middleware for all requests, with or without a route."""

        @web.middleware
        async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
            row = self._rows.get((request.match_info.handler, request.method)) or self._row_of(request)
            observed = self.begin(request, row)
            begun: BegunCall | None = getattr(request.protocol, "handed_over", None)
            if begun is not None:
                observed.began = begun.began
                # The call of a model adds its facts to these.
                observed.notes = begun.notes or observed.notes
            notes = observed.notes
            token = None if notes is None else CURRENT_NOTES.set(notes)
            status = CLIENT_CLOSED_STATUS
            reply: web.StreamResponse | None = None
            try:
                reply = await handler(request)
                status = reply.status
                return reply
            finally:
                if token is not None:
                    # All requests of a connection run in one context.
                    CURRENT_NOTES.reset(token)
                self.end(observed, request, reply, status)

        return observe

    @property
    def is_traced(self) -> bool:
        """Whether a watcher wants to see requests when they begin."""
        for watcher in self._watchers:  # noqa: SIM110 - a generator would cost more than the loop
            if watcher.is_on and watcher.watches_begin:
                return True
        return False

    def row_of(self, handler: Handler, method: str) -> ObservedRow:
        """Return the row of a handler that was added."""
        return self._rows[handler, method]

    def begin(self, request: web.Request, row: ObservedRow) -> "Observed":
        """Note the beginning of a request; `end` must follow, or `withdraw`."""
        self._tallies.in_flight += 1
        watching: tuple[RequestWatcher, ...] = ()
        for watcher in self._watchers:
            if watcher.is_on:
                watching = (*watching, watcher)
        return Observed(row, watching, begin(request, watching) if watching else None)

    def end(self, observed: "Observed", request: web.Request, reply: SentReply | None, status: int) -> None:
        """Note the end of a request."""
        self._tallies.in_flight -= 1
        seconds = time.perf_counter() - observed.began
        observed.row[1].finished(status, seconds)
        if observed.notes is not None:
            served = served_request(request, observed.row[0], reply, status, seconds, observed.notes)
            for watcher in observed.watching:
                watcher.served(served)

    def note_fast(self) -> None:
        """Count a request that the fast path has answered."""
        self._tallies.fast += 1

    def withdraw(self) -> None:
        """Forget a request that begins anew."""
        self._tallies.in_flight -= 1

    def _row_of(self, request: web.Request) -> ObservedRow:
        return self._unrouted.get(request.method) or self._unrouted[OTHER_METHOD]


def begin(request: web.Request, watching: Sequence[RequestWatcher]) -> RequestNotes:
    """Return the notes of a request, which the watchers have seen."""
    notes = RequestNotes(time.monotonic())
    for watcher in watching:
        watcher.begun(notes, request)
    return notes


def served_request(
    request: web.Request,
    route: str,
    reply: SentReply | None,
    status: int,
    seconds: float,
    notes: RequestNotes,
) -> ServedRequest:
    """Return the facts of an ended request."""
    actor = request.get(ACTOR)
    user_id = email = key = ""
    if actor is not None:
        user_id, email, key = actor.user.id, actor.user.email, actor.key_prefix
    method = request.method
    return ServedRequest(
        request.get(REQUEST_ID, ""),
        client_address(request),
        method if method in METHODS else OTHER_METHOD,
        route,
        status,
        answer_size(request, reply),
        seconds,
        user_id,
        email,
        key,
        notes,
    )


def answer_size(request: web.Request, reply: SentReply | None) -> int:
    """Return the number of bytes of an answer: those sent so far, or those that a complete answer has."""
    if isinstance(reply, JsonReply | FastReply):
        return reply.size
    sent: int = request.writer.output_size
    if sent or reply is None:
        return sent
    if isinstance(reply, web.Response) and isinstance(reply.body, bytes):
        return len(reply.body)
    length = reply.content_length
    return -1 if length is None else length
