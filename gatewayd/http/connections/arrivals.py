"""Connections between their accept and their first request head: the PROXY header and the handshake of TLS.

They wait for their peer, so each has a place in the budget of descriptors like a connection without a
credential, and the oldest are closed when places are needed.
"""

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from gatewayd.errors import system_reason
from gatewayd.http.connections.admission import is_within
from gatewayd.http.connections.drain import LATE_HEAD_SECONDS
from gatewayd.http.connections.proxy_header import (
    MalformedHeaderError,
    PeerName,
    missing_bytes,
    parse_header,
)
from gatewayd.http.connections.request_heads import ConnectionServer, ServerConnection
from gatewayd.tasks import TaskRegistry

HEADER_SECONDS: Final = 5.0
"""Maximum time of a PROXY header; a proxy sends it at once, and a lost packet costs it 3 seconds at most."""

HANDSHAKE_SECONDS: Final = 10.0
"""Maximum time of a handshake of TLS."""

MAX_ACCEPTED: Final = 256
"""Maximum number of connections that one turn of the event loop accepts from a listener."""

ACCEPT_PAUSE_SECONDS: Final = 1.0
"""Pause of a listener that cannot accept, as when the process has no descriptors left."""

LOG_SECONDS: Final = 60.0
"""Least time between two log lines about refused connections."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArrivalRules:
    """What comes before the first request: a PROXY header if `proxies` are given, a handshake with `tls`.

    With `proxies` a connection from elsewhere is refused.
    """

    tls: ssl.SSLContext | None = None
    proxies: tuple[IPv4Network | IPv6Network, ...] | None = None


class Arrival:
    """An accepted connection without a protocol; it has a place in the budget until `room.leave`."""

    is_spare = False
    is_waiting = True
    is_blocked = True
    is_stranger = True
    is_anonymous = True

    def __init__(self, channel: socket.socket, peer: PeerName, connection: ServerConnection) -> None:
        self.channel = channel
        self.peer = peer
        self.connection = connection
        """The protocol of the connection, which has no transport yet."""
        self.is_owner = True
        """Whether nobody else closes the socket."""
        # Comparable with the time of a connection, see `SeatedConnection.since`.
        self.since = asyncio.get_running_loop().time() + connection.keepalive_timeout

    @property
    def address(self) -> str:
        """The address of the other end for the log, "" when it is not known."""
        return self.peer[0] if isinstance(self.peer, tuple) else ""

    def hand_over(self) -> ServerConnection:
        """Return the protocol for the transport, which closes the socket from then on."""
        self.is_owner = False
        self.connection.arrival = self
        return self.connection

    def evict(self) -> None:
        """End the connection: whoever waits for its bytes sees the end."""
        try:
            self.channel.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The peer has left already.
            return


class ArrivalServer:
    """Listeners whose connections bring more than HTTP; it stands for the `asyncio.Server` of a site."""

    def __init__(
        self,
        server: ConnectionServer,
        sockets: Sequence[socket.socket],
        rules: ArrivalRules,
        tasks: TaskRegistry,
    ) -> None:
        self.sockets = list(sockets)
        self._server = server
        self._rules = rules
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._open: set[Arrival] = set()
        self._drained_at: float | None = None
        self._refused = 0
        self._logged_at = -math.inf

    def start(self, backlog: int) -> None:
        """Listen; raises OSError."""
        for channel in self.sockets:
            channel.setblocking(False)
            channel.listen(backlog)
        for channel in self.sockets:
            self._loop.add_reader(channel, self._accept, channel)

    def close(self) -> None:
        """Accept no more; the accepted connections stay. The site of aiohttp calls it."""
        for channel in self.sockets:
            self._loop.remove_reader(channel)
            channel.close()
        self.sockets = []

    def drain(self) -> None:
        """Give the connections a moment for what they have begun; `look` ends the others."""
        self._drained_at = self._loop.time()

    def look(self) -> int:
        """End the connections whose moment is over, and return the number of open ones."""
        if self._drained_at is not None and self._loop.time() >= self._drained_at + LATE_HEAD_SECONDS:
            for arrival in self._open:
                arrival.evict()
        return len(self._open)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(MAX_ACCEPTED):
            try:
                channel, peer = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("connections cannot be accepted: %s", system_reason(error))
                self._loop.remove_reader(listener)
                self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume, listener)
                return
            self._welcome(channel, peer)

    def _resume(self, listener: socket.socket) -> None:
        if listener in self.sockets:
            self._loop.add_reader(listener, self._accept, listener)

    def _welcome(self, channel: socket.socket, peer: PeerName) -> None:
        channel.setblocking(False)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        arrival = Arrival(channel, peer, self._server())
        proxies = self._rules.proxies
        if proxies is not None and not is_within(arrival.address, proxies):
            self._refuse(arrival, "it comes from outside trusted_proxies")
            channel.close()
            return
        room = arrival.connection.room
        self._open.add(arrival)
        if not room.enter(arrival):
            self._forget(arrival)
            return
        self._tasks.spawn("arrival", self._arrive(arrival), at_end=lambda: self._forget(arrival))

    def _forget(self, arrival: Arrival) -> None:
        """Release the place; the socket is closed unless a transport has it."""
        self._open.discard(arrival)
        arrival.connection.room.leave(arrival)
        if arrival.is_owner:
            arrival.channel.close()

    async def _arrive(self, arrival: Arrival) -> None:
        if self._rules.proxies is not None:
            try:
                async with asyncio.timeout(HEADER_SECONDS):
                    arrival.peer = await self._read_header(arrival)
            except TimeoutError:
                self._refuse(arrival, f"it sent no PROXY header within {HEADER_SECONDS:g} s")
                return
            except MalformedHeaderError as error:
                self._refuse(arrival, str(error))
                return
            except OSError:
                # The peer has left, as programs do that only look whether the port is open.
                return
        tls = self._rules.tls
        try:
            await self._loop.connect_accepted_socket(
                arrival.hand_over,
                arrival.channel,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else HANDSHAKE_SECONDS,
            )
        except OSError as error:
            # Scanners and clients that do not trust the certificate end handshakes all the time.
            log.debug("handshake failed", extra={"address": arrival.address, "reason": type(error).__name__})

    async def _read_header(self, arrival: Arrival) -> PeerName:
        """Return the name of the client; raises MalformedHeaderError and OSError."""
        data = b""
        while (missing := missing_bytes(data)) > 0:
            part = await self._loop.sock_recv(arrival.channel, missing)
            if not part:
                raise ConnectionResetError
            data += part
        return parse_header(data, arrival.peer)

    def _refuse(self, arrival: Arrival, reason: str) -> None:
        """Log, at most once a minute, the number of refused connections and the reason of this one."""
        self._refused += 1
        now = self._loop.time()
        if now < self._logged_at + LOG_SECONDS:
            return
        log.warning(
            "connection refused: %s", reason, extra={"address": arrival.address, "count": self._refused}
        )
        self._logged_at, self._refused = now, 0
