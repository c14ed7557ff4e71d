"""Connections at a stop: what was sent is answered, each answer is the last, and what is quiet is closed."""

import select
from typing import Any, Final

from aiohttp import web

LATE_HEAD_SECONDS: Final = 1.0
"""What a connection gets whose first head is not there yet, or whose next one has begun.

It covers two retransmissions of a lost packet (200 ms and 400 ms on Linux).
"""

QUIET_SECONDS: Final = 0.5
"""How long a connection lives on after its last answer.

A client that sends one request after another finds the end in the head of an answer, not in place of one.
"""

TRANSIT_SECONDS: Final = 0.1
"""What every connection gets: a request that is on its way, for one round trip, arrives.

It is all that connections add to a stop which have been idle for longer.
"""


class DrainingConnection(web.RequestHandler):
    """A connection that can be drained; until then the clock is read for each piece of data, and no more."""

    is_listening = False
    """Whether its request is a stream of events, which ends when the gateway ends it."""

    _head: Any = None
    _drained_at: float | None = None
    _read_at = 0.0
    _is_spared = False

    def data_received(self, data: bytes) -> None:
        """Note when data came last."""
        self._read_at = self._loop.time()
        # Shorter than by super(): it is called for each piece of data.
        web.RequestHandler.data_received(self, data)
        if self._drained_at is not None:
            self._mark()

    def drain(self) -> None:
        """Make the answer that is given, or the next one, the last; `look` closes the connection."""
        self._drained_at = self._loop.time()
        self._mark()

    def begun(self, head: Any) -> Any:
        """Note the head of the next request and return it, in a drain as one that ends the connection."""
        self.is_listening = False
        self._head = head
        return head if self._drained_at is None else self._last()

    @property
    def is_busy(self) -> bool:
        """Whether it has a request that is not wholly answered; a stream of events does not count."""
        return not (self.is_listening or self._is_idle or self._force_close)

    def look(self) -> None:
        """Close the connection when it is idle and has had its time; a drain calls this again and again."""
        if self._is_idle and self._is_due() and not self._is_held():
            self.force_close()

    def _mark(self) -> None:
        request = self._current_request
        if request is not None:
            request._message = self._last()
            request._cache.pop("keep_alive", None)

    def _last(self) -> Any:
        """Return the head as one that ends the connection, unless requests were sent behind it.

        They are answered too (RFC 9112, 9.3.2), and the last of them ends the connection.
        """
        return self._head if self._messages else self._head._replace(should_close=True)

    @property
    def _is_idle(self) -> bool:
        return self._waiter is not None and not self._waiter.done() and not self._messages

    def _is_due(self) -> bool:
        """Tell whether an idle connection has had its time."""
        now = self._loop.time()
        began = self._drained_at or 0.0
        # The library sets this when the connection is accepted and after each answer.
        answered = self._next_keepalive_close_time - self.keepalive_timeout
        if self.is_listening:
            return True
        if not self._request_count or self._read_at > answered:
            return now >= max(began, answered) + LATE_HEAD_SECONDS
        return now >= max(began + TRANSIT_SECONDS, answered + QUIET_SECONDS)

    def _is_held(self) -> bool:
        """Tell, once, whether the kernel has data that was not read: the loop may have been busy."""
        if self._is_spared or self.transport is None:
            return False
        self._is_spared = is_readable(self.transport.get_extra_info("socket").fileno())
        return self._is_spared


def mark_as_listener(request: web.Request) -> None:
    """Note that a request is a stream of events: a stop ends it, and does not wait for it."""
    if isinstance(request.protocol, DrainingConnection):
        request.protocol.is_listening = True


def is_readable(descriptor: int) -> bool:
    """Tell whether a socket has data, or a listening one a connection, that nobody has taken yet."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
