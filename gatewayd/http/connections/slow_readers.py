"""Cuts connections whose peers take what is sent to them below the minimum rate.

Only bytes that wait to be sent count: a stream whose source is silent has none. The connections are looked at
now and then, so that a write costs nothing.
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
"""How often a connection is looked at in the time that a peer may stay below the rate."""

_INFO_BYTES: Final = 128
# struct tcp_info of linux/tcp.h: u64 tcpi_bytes_acked.
_BYTES_ACKED: Final = 120

log = logging.getLogger(__name__)


class SendingConnection(Protocol):
    """A connection, as this module sees it."""

    @property
    def unsent(self) -> int:
        """How many bytes wait to be sent."""
        ...

    @property
    def sent(self) -> int:
        """How many bytes the peer has taken since some time."""
        ...

    @property
    def peer(self) -> str:
        """The address of the other end, "" for a unix socket."""
        ...

    def evict(self) -> None:
        """Close at once."""
        ...


@dataclass(slots=True)
class _Slow:
    """A connection with bytes that wait: what its peer had taken by when."""

    credit: RateCredit
    sent: int
    at: float


class UnsentWatch:
    """Looks at the connections of one server; `start` is to be called when there is a new one."""

    def __init__(self, connections: Callable[[], Iterable[SendingConnection]], rate: MinimumRate) -> None:
        self._connections = connections
        self._rate = rate
        self._pause = rate.seconds / CHECKS_PER_WINDOW
        self._timer: asyncio.TimerHandle | None = None
        self._slow: dict[SendingConnection, _Slow] = {}

    def start(self) -> None:
        """Look from time to time, until there is no connection."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._on_timer)

    def look(self, now: float) -> int:
        """Look once, and return how many connections there are."""
        count = 0
        before, self._slow = self._slow, {}
        for connection in self._connections():
            count += 1
            if not connection.unsent:
                continue
            sent = connection.sent
            slow = before.get(connection) or _Slow(RateCredit(self._rate), sent, now)
            # The time in which the daemon itself did not run is not the peer's.
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
            "connection cut: the client took %s",
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
