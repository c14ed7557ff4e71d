"""Connections of the servers until a request head is read: slow heads are cut, malformed ones refused."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import HttpVersion11, http_exceptions, web

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.connections.capacity import DESCRIPTOR_BUDGET, DescriptorBudget, public_descriptor_limits
from gatewayd.http.connections.fast_path import FAST_PATH, FastConnection, FastPath, is_supported
from gatewayd.http.connections.minimum_rate import RATES, MinimumRates
from gatewayd.http.connections.slow_readers import UnsentWatch
from gatewayd.http.errors import render
from gatewayd.http.middleware import standard_headers

HEAD_SECONDS: Final = 10.0
"""Longest time from the accept of a connection to the end of its first request head."""

log = logging.getLogger(__name__)

RequestFactory = Callable[..., web.BaseRequest]


class ServerConnection(FastConnection):
    """One connection of a server. It replaces the error pages of aiohttp, which repeat the request."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer of the first head; the timer of idle connections covers later heads."""
        super().connection_made(transport)
        if isinstance(self._manager, ConnectionServer) and self._manager.is_draining:
            self.drain()
        if self.transport is not None:
            self._timer = self._loop.call_later(HEAD_SECONDS, self._on_slow_head)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the timer."""
        self.head_received()
        super().connection_lost(exc)

    def close(self) -> None:
        """Close after the current request is answered, or at once when there is none.

        aiohttp would end the task of a waiting connection and leave the socket open.
        """
        if self._waiter is not None and not self._waiter.done():
            self.force_close()
        else:
            super().close()

    def head_received(self) -> None:
        """Stop the timer: a request head has arrived."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the refusal of a malformed request, or of a request that failed outside of `guard`."""
        if request.writer.output_size > 0:
            raise ConnectionError("cannot refuse the request: an answer has begun")
        request_id = ids.new_id()
        place = {"request_id": request_id, "route": "-"}
        if status >= 500:
            log.error("request failed", exc_info=exc, extra=place)
            failure = GatewayError(
                ErrorKind.INTERNAL, f"cannot serve the request: see the log for {request_id}"
            )
        else:
            failure = invalid(f"cannot read the request: {_reason(exc)}", code="malformed_request")
            log.info("request refused: %s", failure.message, extra={**place, "status": status})
        reply = render(failure)
        reply.headers.update(standard_headers(request_id))
        reply.force_close()
        return reply

    def _on_slow_head(self) -> None:
        self._timer = None
        log.info("connection cut: its first request took too long")
        self.force_close()


class ConnectionServer(web.Server):
    """Factory of the connections of one application."""

    def __init__(
        self,
        plain: web.Server,
        options: dict[str, Any],
        room: DescriptorBudget,
        rates: MinimumRates,
        app: web.Application | None = None,
    ) -> None:
        super().__init__(
            plain.request_handler,
            request_factory=self._with_head_received(plain.request_factory),
            handler_cancellation=plain.handler_cancellation,
        )
        self._options = options
        self._room = room
        self._app = app
        self._fast_path: FastPath | None = None if app is None else app.get(FAST_PATH)
        if self._fast_path is not None and not is_supported():
            log.warning("fast path off: this release of aiohttp lacks names that it uses")
            self._fast_path = None
        self._unsent = UnsentWatch(self.open, rates.send)
        self.is_draining = False

    def __call__(self) -> ServerConnection:
        """Return the protocol of a new connection."""
        connection = ServerConnection(self, loop=asyncio.get_running_loop(), **self._options)
        connection.room = self._room
        connection.fast_path, connection.app = self._fast_path, self._app
        self._unsent.start()
        return connection

    def drain(self) -> None:
        """Drain every open connection, and those that are accepted later."""
        self.is_draining = True
        for connection in self.open():
            connection.drain()

    def open(self) -> Sequence[ServerConnection]:
        """Return the open connections."""
        return [connection for connection in self.connections if isinstance(connection, ServerConnection)]

    def _with_head_received(self, factory: RequestFactory) -> RequestFactory:
        def make(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            if isinstance(protocol, ServerConnection):
                protocol.head_received()
                protocol.begin(payload, writer)
                message = protocol.begun(message)
            return factory(message, payload, protocol, writer, task)

        return make


class ServerRunner(web.AppRunner):
    """Runner of an application with `ServerConnection`; `options` go to the protocol."""

    __slots__ = ("_options",)

    def __init__(self, app: web.Application, options: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        self._options = options

    async def _make_server(self) -> web.Server:
        room = (
            self.app[DESCRIPTOR_BUDGET]
            if DESCRIPTOR_BUDGET in self.app
            else DescriptorBudget(public_descriptor_limits())
        )
        return ConnectionServer(
            await super()._make_server(),
            self._options,
            room,
            self.app.get(RATES, MinimumRates()),
            self.app,
        )


async def send_100_continue(request: web.Request) -> None:
    """Send 100 Continue to a client that expects it (RFC 9110, 10.1.1); do nothing for others."""
    if request.version >= HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # The interim reply does not count as a part of the answer.
        request.writer.output_size = 0


async def defer_100_continue(request: web.Request) -> None:
    """Do nothing: the handler calls `send_100_continue` itself."""


def _reason(error: BaseException | None) -> str:
    """Return a reason that repeats nothing of the request."""
    match error:
        case http_exceptions.LineTooLong():
            return "a line of its head is too long"
        case http_exceptions.BadStatusLine() | http_exceptions.InvalidURLError():
            return "its first line is malformed"
        case http_exceptions.InvalidHeader():
            return "a header is malformed"
        case _:
            return "it is not well-formed HTTP"
