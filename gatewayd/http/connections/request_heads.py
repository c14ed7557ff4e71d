"""Connections, up to the point where a request is one: slow heads are cut, malformed ones clearly refused."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import HttpVersion11, http_exceptions, web

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.connections.capacity import DESCRIPTOR_BUDGET, DescriptorBudget, public_descriptor_limits
from gatewayd.http.connections.minimum_rate import RATES, MinimumRates
from gatewayd.http.connections.slots import SeatedConnection
from gatewayd.http.connections.slow_readers import UnsentWatch
from gatewayd.http.errors import render
from gatewayd.http.middleware import standard_headers

HEAD_SECONDS: Final = 10.0
"""How long a new connection may take until its first request is there with all its headers."""

log = logging.getLogger(__name__)

RequestFactory = Callable[..., web.BaseRequest]


class ServerConnection(SeatedConnection):
    """One connection. The library's own error pages are never shown: they repeat what was sent."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock of the first head; later ones are under that of idle connections."""
        super().connection_made(transport)
        if isinstance(self._manager, ConnectionServer) and self._manager.is_draining:
            self.drain()
        if self.transport is not None:
            self._timer = self._loop.call_later(HEAD_SECONDS, self._on_slow_head)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the clock."""
        self.heard()
        super().connection_lost(exc)

    def close(self) -> None:
        """Close once the request being answered is; at once when there is none.

        The library would end a waiting connection's task and leave the socket open.
        """
        if self._waiter is not None and not self._waiter.done():
            self.force_close()
        else:
            super().close()

    def heard(self) -> None:
        """Note that a request is there."""
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
        """Return the refusal of what is not a request, or of one whose handling failed outside of `guard`."""
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
    """Makes the connections of one application."""

    def __init__(
        self, plain: web.Server, options: dict[str, Any], room: DescriptorBudget, rates: MinimumRates
    ) -> None:
        super().__init__(
            plain.request_handler,
            request_factory=self._heard(plain.request_factory),
            handler_cancellation=plain.handler_cancellation,
        )
        self._options = options
        self._room = room
        self._unsent = UnsentWatch(self.open, rates.send)
        self.is_draining = False

    def __call__(self) -> web.RequestHandler:
        """Return the protocol of a new connection."""
        connection = ServerConnection(self, loop=asyncio.get_running_loop(), **self._options)
        connection.room = self._room
        self._unsent.start()
        return connection

    def drain(self) -> None:
        """Let every connection, also those that still come, end with its next answer."""
        self.is_draining = True
        for connection in self.open():
            connection.drain()

    def open(self) -> Sequence[ServerConnection]:
        """Return the connections."""
        return [connection for connection in self.connections if isinstance(connection, ServerConnection)]

    def _heard(self, factory: RequestFactory) -> RequestFactory:
        def make(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            if isinstance(protocol, ServerConnection):
                protocol.heard()
                protocol.begin(payload, writer)
                message = protocol.begun(message)
            return factory(message, payload, protocol, writer, task)

        return make


class ServerRunner(web.AppRunner):
    """An application's runner with connections of ours; `options` are those of the protocol."""

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
            await super()._make_server(), self._options, room, self.app.get(RATES, MinimumRates())
        )


async def send_100_continue(request: web.Request) -> None:
    """Tell a client that waits for that to send its body; others are ignored (RFC 9110, 10.1.1)."""
    if request.version >= HttpVersion11 and request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # The interim reply is no part of the answer.
        request.writer.output_size = 0


async def defer_100_continue(request: web.Request) -> None:
    """Leave it to the handler to call `send_100_continue`."""


def _reason(error: BaseException | None) -> str:
    """Return a few words without anything that was sent."""
    match error:
        case http_exceptions.LineTooLong():
            return "a line of its head is too long"
        case http_exceptions.BadStatusLine() | http_exceptions.InvalidURLError():
            return "its first line is malformed"
        case http_exceptions.InvalidHeader():
            return "a header is malformed"
        case _:
            return "it is not well-formed HTTP"
