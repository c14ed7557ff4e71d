"""Connections that answer plain requests without a task: the fast path.

aiohttp parses every request and wakes the task of the connection. A connection with a fast path asks it
before that; what the fast path does not take wakes the task. `USED_NAMES` are the private names of aiohttp
that this uses.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from aiohttp import StreamReader, hdrs, web
from aiohttp.helpers import HeadersMixin
from aiohttp.http import StreamWriter
from aiohttp.streams import EMPTY_PAYLOAD

from gatewayd.http.connections.slots import SeatedConnection
from gatewayd.metering.begun_call import BegunCall

USED_NAMES: Final = (
    *("_waiter", "_messages", "_parser", "_current_request", "_task_handler"),
    *("_manager", "_keepalive_handle", "_next_keepalive_close_time", "_process_keepalive", "_upgraded"),
)
"""Attributes of `aiohttp.web.RequestHandler` that are used, besides `_buffer` of `aiohttp.StreamReader`."""

USED_REQUEST_NAMES: Final = frozenset(
    {
        *("_message", "_protocol", "_payload_writer", "_payload", "_headers", "_method", "_version"),
        *("_cache", "_rel_url", "_state", "_task", "_loop", "_client_max_size", "_client_max_fields"),
        *("_transport_sslcontext", "_transport_peername", "_transport_sockname"),
    }
)
"""Attributes of `aiohttp.web.Request` that a `PlainRequest` has; `ATTRS` names all that it may have."""

OTHER_REQUEST_NAMES: Final = frozenset({"_post", "_read_bytes", "_match_info"})
"""Attributes of `aiohttp.web.Request` that have defaults."""

MAX_FAST_BYTES: Final = 64 * 1024
"""Maximum length of a body on the fast path."""

BODY_SECONDS: Final = 0.02
"""Time for the rest of a short body, which many clients send apart from its head."""

MAX_KNOWN_HEADS: Final = 4
"""Number of heads that are remembered of one connection, one after the other."""

MAX_HELD_TURNS: Final = 16
"""Turns of the event loop for which data waits for the task of its connection."""


def is_supported() -> bool:
    """Return whether this release of aiohttp has the attributes that the fast path uses."""
    has_names = all(hasattr(web.RequestHandler, name) for name in USED_NAMES)
    own = USED_REQUEST_NAMES | OTHER_REQUEST_NAMES | HeadersMixin.ATTRS
    return has_names and hasattr(StreamReader, "_buffer") and own == web.Request.ATTRS


class PlainRequest(web.Request):
    """A request of the fast path, whose target is a path: what few ask for is found when it is asked for."""

    _client_max_size = 0
    _client_max_fields = 0

    def __init__(self, message: Any, payload: Any, connection: "FastConnection", writer: Any) -> None:
        self._message = message
        self._protocol = connection
        self._payload_writer = writer
        self._payload = payload
        self._headers = message.headers
        self._method = message.method
        self._version = message.version
        self._cache = {}
        self._rel_url = message.url
        self._state = {}

    # The names of aiohttp ----------------------------------------------------------------------------------

    @property
    def app(self) -> web.Application:
        """The application: no route was looked up."""
        connection: Any = self._protocol
        app: web.Application | None = connection.app
        if app is None:
            raise RuntimeError("the connection belongs to no application")
        return app

    @property
    def _task(self) -> Any:  # type: ignore[override]
        return self._protocol._task_handler

    @property
    def _loop(self) -> Any:  # type: ignore[override]
        return self._protocol._loop

    @property
    def _transport_sslcontext(self) -> Any:  # type: ignore[override]
        return self._protocol.ssl_context

    @property
    def _transport_peername(self) -> Any:  # type: ignore[override]
        return self._protocol.peername

    @property
    def _transport_sockname(self) -> Any:  # type: ignore[override]
        return self._protocol.sockname

    def __getitem__(self, key: Any) -> Any:
        """Return what is stored."""
        return self._state[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store something."""
        self._state[key] = value


class FastExchange(Protocol):
    """A request on the fast path."""

    def leave(self) -> None:
        """End the request: its client has left, or the server stops."""
        ...


class FastPath(Protocol):
    """Answers plain requests of connections."""

    def serves(self, connection: "FastConnection", message: Any) -> bool:
        """Return whether the head of a request is one of the fast path."""
        ...

    def begin(self, connection: "FastConnection", request: web.Request, body: bytes) -> FastExchange | None:
        """Begin a request with a complete body; None, with nothing sent, if the handler must answer it."""
        ...


FAST_PATH: Final[web.AppKey[FastPath]] = web.AppKey("fast_path", FastPath)
"""The fast path of an application that has one."""


class FastConnection(SeatedConnection):
    """A connection that asks `fast_path` for each request before it wakes its task.

    While a request is on the fast path the task waits for `_parked`, and `_waiter` is None, as it is while a
    handler runs: the timers and the drain of aiohttp then see a busy connection.
    """

    fast_path: FastPath | None = None
    app: web.Application | None = None
    """The application that serves the connection."""

    known_head: object | None = None
    """What the fast path knows of the head of an earlier request, which may come again."""

    heads_left = MAX_KNOWN_HEADS
    """Number of further heads that are remembered: many clients send other ones each time."""

    handed_over: BegunCall | None = None
    """The call of a model that the fast path has begun for the next request."""

    _exchange: FastExchange | None = None
    _parked: asyncio.Future[None] | None = None
    _body_timer: asyncio.TimerHandle | None = None
    _held = b""
    _held_turns = 0
    _begun: tuple[Any, Any] | None = None
    _counter: StreamWriter | None = None
    """Counts the bytes of the answers on the fast path."""

    _resumed: Callable[[], None] | None = None
    _is_unread = False

    def data_received(self, data: bytes) -> None:
        """Parse data, and begin a complete request of the fast path."""
        if self.fast_path is None or self._upgraded or not data:
            super().data_received(data)
        elif self._held:
            self._held += data
        elif self._exchange is not None or self._is_unread:
            super().data_received(data)
        elif self._parked is not None or (self._waiter is not None and not self._waiter.done()):
            self._receive(data)
        elif self._is_between_requests:
            self._hold_data(data)
        else:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End a request on the fast path, or the call of one that no handler has met yet."""
        self._leave()
        begun, self.handed_over = self.handed_over, None
        if begun is not None:
            begun.abandon()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Go on after an answer, or a part of one, that the client has read."""
        super().resume_writing()
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            resumed()
        if self._is_unread and not self._paused:
            self._is_unread = False
            self._finish()
            self._next()

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109 - as in aiohttp
        """End a request on the fast path, then do what aiohttp does."""
        self._leave()
        self._unpark()
        if self._waiter is not None and self._is_idle:
            # aiohttp would wait for a task that waits for a request.
            self._waiter.cancel()
        await super().shutdown(timeout)

    def close(self) -> None:
        """Close after the current request is answered."""
        if self._exchange is None:
            self._unpark()
        super().close()

    def force_close(self) -> None:
        """Close at once."""
        self._leave()
        self._unpark()
        super().force_close()

    def head_received(self) -> None:
        """Note that the head of a request has arrived."""

    # Called by the fast path -------------------------------------------------------------------------------

    def when_resumed(self, resumed: Callable[[], None]) -> None:
        """Call `resumed` once, when the client has read on."""
        self._resumed = resumed

    def answered(self, *, is_last: bool | None = None) -> None:
        """End the request on the fast path, whose answer is written.

        `is_last` tells whether the connection ends with it; None stands for what the request asks for.
        """
        request = self._current_request
        self._exchange = self._begun = self._resumed = None
        if self._parser is None or request is None:
            # The connection is lost.
            self._current_request = None
            return
        self._parser.message_consumed()
        if self._manager is not None:
            self._manager.requests_count += 1
        if not request.keep_alive if is_last is None else is_last:
            self._finish()
            self._unpark()
            self.close()
        elif self._paused:
            # The request counts, and the next one waits, until the client has read the answer.
            self._is_unread = True
        else:
            self._finish()
            self._next()

    def hand_over(self, begun: BegunCall | None) -> None:
        """Let the task of the connection answer the request on the fast path."""
        self._exchange = self._current_request = None
        found, self._begun = self._begun, None
        if found is None or self._parser is None:
            if begun is not None:
                begun.abandon()
            return
        self.handed_over = begun
        self._messages.appendleft(found)
        self._unpark()

    # Details -----------------------------------------------------------------------------------------------

    @property
    def _is_between_requests(self) -> bool:
        """Whether the task has answered a request and is about to wait for the next one."""
        has_request = self._current_request is not None or self._payload is not None or self._messages
        return bool(self._request_count and not has_request)

    def _receive(self, data: bytes) -> None:
        """Parse data without a wake of the task, then begin the request or wake the task."""
        if self._parked is None:
            self._parked, self._waiter = self._waiter, None
        super().data_received(data)
        if len(self._messages) == 1 and not self._force_close and not self._close:
            message, payload = self._messages[0]
            if self._may_begin(message, payload):
                if not payload.is_eof():
                    self._await_body()
                    return
                if self._begin(message, payload):
                    return
        self._unpark()

    def _may_begin(self, message: Any, payload: Any) -> bool:
        if self.is_spare or self.fast_path is None or not self.fast_path.serves(self, message):
            return False
        if payload is EMPTY_PAYLOAD:
            return bool(message.method == hdrs.METH_GET)
        length = message.headers.get(hdrs.CONTENT_LENGTH, "")
        return length.isdecimal() and 0 < int(length[:12]) <= MAX_FAST_BYTES

    def _await_body(self) -> None:
        if self._body_timer is None:
            self._body_timer = self._loop.call_later(BODY_SECONDS, self._unpark)

    def _begin(self, message: Any, payload: Any) -> bool:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None
        fast_path = self.fast_path
        if fast_path is None:
            return False
        self._messages.popleft()
        # The payload stays unread, for a handler that the request is left to.
        body = b"" if payload is EMPTY_PAYLOAD else b"".join(payload._buffer)
        writer = self._counter
        if writer is None:
            writer = self._counter = StreamWriter(self, self._loop)
        self.head_received()
        self.begin(payload, writer)
        writer.output_size = 0
        request = PlainRequest(self.begun(message), payload, self, writer)
        self._begun, self._current_request = (message, payload), request
        exchange = fast_path.begin(self, request, body)
        if exchange is None:
            self._current_request = self._begun = None
            self._messages.appendleft((message, payload))
            return False
        self._exchange = exchange
        return True

    def _leave(self) -> None:
        exchange, self._exchange = self._exchange, None
        self._current_request = None if exchange is not None else self._current_request
        self._begun = self._resumed = None
        if exchange is not None:
            exchange.leave()

    def _finish(self) -> None:
        """Release what the answered request holds."""
        request, self._current_request = self._current_request, None
        if request is not None:
            self.log_access(request, None, None)  # type: ignore[arg-type]

    def _next(self) -> None:
        """Wait for the next request, as aiohttp's task does."""
        self._next_keepalive_close_time = due = self._loop.time() + self.keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(due, self._process_keepalive)
        self._unpark()

    def _unpark(self) -> None:
        """Let the task wait again, and wake it if there is a request."""
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None
        parked, self._parked = self._parked, None
        if parked is None:
            return
        self._waiter = parked
        if self._messages and not parked.done():
            parked.set_result(None)

    def _hold_data(self, data: bytes) -> None:
        """Keep data until the task, which has just answered a request, waits for the next one."""
        if not self._held:
            self._held_turns = 0
            self._loop.call_soon(self._feed_held)
        self._held += data

    def _feed_held(self) -> None:
        self._held_turns += 1
        is_over = self._parser is None or self._force_close or self._close
        if not is_over and self._waiter is None and self._held_turns < MAX_HELD_TURNS:
            self._loop.call_soon(self._feed_held)
            return
        data, self._held = self._held, b""
        if not is_over:
            self.data_received(data) if self._waiter is not None else super().data_received(data)
