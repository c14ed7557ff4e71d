"""Draining of a connection at a stop: its requests are answered, then it is closed."""

import select
from typing import Any, Final

from aiohttp import web

LATE_HEAD_SECONDS: Final = 1.0
"""Time for a connection without its first head, or with a head that has begun.

It covers two retransmissions of a lost packet (200 ms and 400 ms on Linux).
"""

QUIET_SECONDS: Final = 0.5
"""Time that a connection stays open after its last answer.

A client that sends one request after another then finds `Connection: close` in an answer, and loses no
request.
"""

TRANSIT_SECONDS: Final = 0.1
"""Time that every connection gets, so that a request on its way arrives: one round trip.

Connections that were idle for longer delay a stop by this time alone.
"""


class DrainingConnection(web.RequestHandler):
    """A connection that can be drained. Before the drain it only records the time of its last data."""

    is_listening = False
    """Whether the request is a stream of events, which the gateway ends at a stop."""

    _head: Any = None
    _drained_at: float | None = None
    _read_at = 0.0
    _is_spared = False

    def data_received(self, data: bytes) -> None:
        """Record the time and pass the data on."""
        self._read_at = self._loop.time()
        # Faster than super(): this method runs for each piece of data.
        web.RequestHandler.data_received(self, data)
        if self._drained_at is not None:
            self._mark()

    def drain(self) -> None:
        """Make the current answer, or the next one, the last; `look` closes the connection."""
        self._drained_at = self._loop.time()
        self._mark()

    def begun(self, head: Any) -> Any:
        """Return the head of the next request; during a drain it asks for the end of the connection."""
        self.is_listening = False
        self._head = head
        return head if self._drained_at is None else self._last()

    @property
    def is_busy(self) -> bool:
        """Whether the connection has an unanswered request; a stream of events does not count."""
        return not (self.is_listening or self._is_idle or self._force_close)

    def look(self) -> None:
        """Close the connection when it is idle and its time is over; a drain calls this repeatedly."""
        if self._is_idle and self._is_due() and not self._is_held():
            self.force_close()

    def _mark(self) -> None:
        request = self._current_request
        if request is not None:
            request._message = self._last()
            request._cache.pop("keep_alive", None)

    def _last(self) -> Any:
        """Return the head changed to end the connection, unless further requests follow it.

        Pipelined requests are answered too (RFC 9112, 9.3.2), and the last of them ends the connection.
        """
        return self._head if self._messages else self._head._replace(should_close=True)

    @property
    def _is_idle(self) -> bool:
        return self._waiter is not None and not self._waiter.done() and not self._messages

    def _is_due(self) -> bool:
        """Return whether the time of an idle connection is over."""
        now = self._loop.time()
        began = self._drained_at or 0.0
        # aiohttp sets this when the connection is accepted and after each answer.
        answered = self._next_keepalive_close_time - self.keepalive_timeout
        if self.is_listening:
            return True
        if not self._request_count or self._read_at > answered:
            return now >= max(began, answered) + LATE_HEAD_SECONDS
        return now >= max(began + TRANSIT_SECONDS, answered + QUIET_SECONDS)

    def _is_held(self) -> bool:
        """Return, once, whether the kernel has unread data, as after a delay of the event loop."""
        if self._is_spared or self.transport is None:
            return False
        self._is_spared = is_readable(self.transport.get_extra_info("socket").fileno())
        return self._is_spared


def mark_as_listener(request: web.Request) -> None:
    """Mark a request as a stream of events, which a stop ends without waiting."""
    if isinstance(request.protocol, DrainingConnection):
        request.protocol.is_listening = True


def is_readable(descriptor: int) -> bool:
    """Return whether a socket has unread data, or a listening socket a connection to accept."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
