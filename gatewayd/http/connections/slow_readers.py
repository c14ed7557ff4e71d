"""Closing of connections whose peers read their answers below the minimum rate.

Only unsent bytes count: a stream with a silent source has none. A timer checks the connections, so that a
write has no extra cost.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from gatewayd.http.connections.minimum_rate import MinimumRate, RateCredit

CHECKS_PER_WINDOW: Final = 6
"""Number of checks in the time that a peer may stay below the rate."""

_INFO_BYTES: Final = 128
# struct tcp_info of linux/tcp.h: u64 tcpi_bytes_acked.
_BYTES_ACKED: Final = 120

log = logging.getLogger(__name__)


class SendingConnection(Protocol):
    """The part of a connection that the watch reads."""

    @property
    def unsent(self) -> int:
        """Number of unsent bytes."""
        ...

    @property
    def sent(self) -> int:
        """Number of bytes that the peer has acknowledged since a fixed time."""
        ...

    @property
    def peer(self) -> str:
        """The address of the other end, "" for a unix socket."""
        ...

    def evict(self) -> None:
        """Close the connection at once."""
        ...


@dataclass(slots=True)
class _Slow:
    """A connection with unsent bytes: the acknowledged bytes at the last check, and the time left."""

    credit: RateCredit
    sent: int
    at: float


class UnsentWatch:
    """Watch over the connections of one server; the server calls `start` for each new connection."""

    def __init__(self, connections: Callable[[], Iterable[SendingConnection]], rate: MinimumRate) -> None:
        self._connections = connections
        self._rate = rate
        self._pause = rate.seconds / CHECKS_PER_WINDOW
        self._timer: asyncio.TimerHandle | None = None
        self._slow: dict[SendingConnection, _Slow] = {}

    def start(self) -> None:
        """Check the connections at an interval until the last one ends."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._on_timer)

    def look(self, now: float) -> int:
        """Check the connections once and return their number."""
        count = 0
        before, self._slow = self._slow, {}
        for connection in self._connections():
            count += 1
            if not connection.unsent:
                continue
            sent = connection.sent
            slow = before.get(connection) or _Slow(RateCredit(self._rate), sent, now)
            # A delay of the event loop does not count against the peer.
            waited = min(now - slow.at, 2 * self._pause)
            slow.credit.note(waited, max(sent - slow.sent, 0))
            slow.sent, slow.at = sent, now
            if slow.credit.left > 0:
                self._slow[connection] = slow
            else:
                self._cut(connection)
        return count

    def _on_timer(self) -> None:
        loop = asyncio.get_running_loop()
        has_any = self.look(loop.time())
        self._timer = loop.call_later(self._pause, self._on_timer) if has_any else None

    def _cut(self, connection: SendingConnection) -> None:
        log.info(
            "connection cut: the client read %s",
            self._rate,
            extra={"address": connection.peer, "unsent": connection.unsent},
        )
        connection.evict()


def acknowledged_bytes(channel: socket.socket) -> int | None:
    """Return how many bytes the other end has acknowledged (tcp(7), TCP_INFO); None for a unix socket."""
    if channel.family == socket.AF_UNIX:
        return None
    info = channel.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    return int(struct.unpack_from("=Q", info, _BYTES_ACKED)[0])
