"""Connections that take a place in the descriptor budget and report their unsent bytes."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Protocol, cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter

from gatewayd.http.connections.capacity import DescriptorBudget, LimitedConnection, RequestHold
from gatewayd.http.connections.drain import DrainingConnection
from gatewayd.http.connections.proxy_header import PeerName
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.connections.slow_readers import acknowledged_bytes


class ArrivedConnection(LimitedConnection, Protocol):
    """A connection before it had a protocol: its place in the budget, and the name of its client."""

    @property
    def peer(self) -> PeerName:
        """The name of the other end, or that of the client which a proxy names."""
        ...


class SeatedConnection(DrainingConnection):
    """A connection that takes a place in the budget `room` and releases it at its end.

    It is closed when no place is free. The server sets `room` right after the construction.
    """

    room: DescriptorBudget
    network: str | None = None
    """Network of the last request in the counts, None before the first."""

    uses_unix_socket = False
    """Whether the peer is a process of this machine that may open a unix socket."""

    arrival: ArrivedConnection | None = None
    """What the connection was before, None for one that begins with a request."""

    is_spare = False
    is_stranger = True
    # Kept after aiohttp has released it, until all bytes are sent.
    _wire: asyncio.Transport | None = None
    _writer: AbstractStreamWriter | None = None
    _payload: StreamReader | None = None
    _written = 0
    _hold: RequestHold | None = None
    _peer_name: PeerName = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place in the budget."""
        super().connection_made(transport)
        self._wire = cast(asyncio.Transport, transport)
        # A peer that left at once has no address either, whatever it used.
        self.uses_unix_socket = transport.get_extra_info("socket").family is socket.AF_UNIX
        self._peer_name = "" if self.uses_unix_socket else transport.get_extra_info("peername")
        if self.arrival is not None:
            self._peer_name = self.arrival.peer
            self.room.leave(self.arrival)
        if not self.room.enter(self):
            self.force_close()

    @property
    def peername(self) -> PeerName:
        """The address of the other end, "" for a unix socket, whose peer may have a name like an address."""
        return self._peer_name

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release the place and the request."""
        self._release()
        self._wire = None
        self.room.leave(self)
        super().connection_lost(exc)

    def begin(self, payload: StreamReader, writer: AbstractStreamWriter) -> None:
        """Record the start of a request, with the reader of its body and the writer of its answer."""
        if self._writer is not None:
            self._written += self._writer.output_size
        self._writer = writer
        self._payload = payload

    def hold(self, account: str, address: str, use: RequestUse) -> None:
        """Count the request for an account and an address, "" for none; raises as `DescriptorBudget.hold`."""
        if self._hold is not None:
            self._release()
        if use is RequestUse.PROBE or self._wire is None:
            return
        self._hold = self.room.hold(self, account, address, use)
        if account and self.is_stranger:
            self.room.note_authenticated(self)
            self.is_stranger = False

    def hold_work(self, account: str, address: str, use: RequestUse) -> Callable[[], None]:
        """Count a request whose work goes on when the client leaves; raises as `DescriptorBudget.hold` does.

        The caller calls the returned function when the work is done.
        """
        self.hold(account, address, use)
        hold = self._hold
        if hold is not None:
            hold.owners += 1
        else:
            # The client has left already, or the request is a health check.
            hold = self.room.hold(self, account, address, use)
        return partial(self.room.release, hold)

    def log_access(self, request: web.BaseRequest, response: web.StreamResponse, time: float | None) -> None:
        """Release the hold of a request: aiohttp calls this when the answer is sent."""
        if self._payload is not None and self._payload.is_eof():
            # Otherwise aiohttp waits a moment for the rest of the body.
            self._payload = None
        hold, self._hold = self._hold, None
        if hold is not None:
            self.room.release(hold)

    @property
    def is_waiting(self) -> bool:
        """Whether the connection has no request, not even one in its queue."""
        return self._is_idle or not self._request_count

    @property
    def is_blocked(self) -> bool:
        """Whether the connection waits for its peer: for a request, its rest, or the reading of an answer."""
        if self._payload is not None and (self._upgraded or self._paused or not self._payload.is_eof()):
            return True
        return self.is_waiting or self._wire is None or self._wire.is_closing()

    @property
    def is_anonymous(self) -> bool:
        """Whether the request of the connection has no account."""
        return self._hold is None or self._hold.account is None

    @property
    def since(self) -> float:
        """Time of the accept or of the last answer, as aiohttp sets it."""
        return self._next_keepalive_close_time

    @property
    def unsent(self) -> int:
        """Number of unsent bytes."""
        return 0 if self._wire is None else self._wire.get_write_buffer_size()

    @property
    def sent(self) -> int:
        """Number of bytes that the peer has acknowledged."""
        channel = None if self._wire is None else self._wire.get_extra_info("socket")
        taken = None if channel is None else acknowledged_bytes(channel)
        if taken is not None:
            return taken
        return self._written + (self._writer.output_size if self._writer is not None else 0) - self.unsent

    @property
    def peer(self) -> str:
        """The address of the other end, "" for a unix socket."""
        return self._peer_name[0] if isinstance(self._peer_name, tuple) else ""

    def evict(self) -> None:
        """Close at once and drop the unsent bytes."""
        if self._wire is not None:
            self._wire.abort()

    def _release(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            self.room.release(hold)
