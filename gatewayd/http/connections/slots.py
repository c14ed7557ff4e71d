"""Connections with a seat: their descriptors are counted, and what waits to be sent can be asked for."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter

from gatewayd.http.connections.capacity import DescriptorBudget, RequestHold
from gatewayd.http.connections.drain import DrainingConnection
from gatewayd.http.connections.slow_readers import acknowledged_bytes
from gatewayd.http.connections.uses import RequestUse


class SeatedConnection(DrainingConnection):
    """A connection that takes a place of `room`, which is to be set at once, and gives it back.

    It is closed when there is none.
    """

    room: DescriptorBudget
    network: str | None = None
    """The network that its last request was counted for, None before the first."""

    is_spare = False
    is_stranger = True
    # Stays after the library has let go of it, until all is sent.
    _wire: asyncio.Transport | None = None
    _writer: AbstractStreamWriter | None = None
    _payload: StreamReader | None = None
    _written = 0
    _hold: RequestHold | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place."""
        super().connection_made(transport)
        self._wire = cast(asyncio.Transport, transport)
        if not self.room.enter(self):
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Give back what is held."""
        self._release()
        self._wire = None
        self.room.leave(self)
        super().connection_lost(exc)

    def begin(self, payload: StreamReader, writer: AbstractStreamWriter) -> None:
        """Note that a request begins, and what its body and its answer go through."""
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

        What is returned is to be called when the work is done.
        """
        self.hold(account, address, use)
        hold = self._hold
        if hold is not None:
            hold.owners += 1
        else:
            # The client has gone already, or the health is asked for.
            hold = self.room.hold(self, account, address, use)
        return partial(self.room.release, hold)

    def log_access(self, request: web.BaseRequest, response: web.StreamResponse, time: float | None) -> None:
        """Give back what a request held: the library calls this when the answer is sent."""
        if self._payload is not None and self._payload.is_eof():
            # Else the rest of the body is awaited for a moment.
            self._payload = None
        hold, self._hold = self._hold, None
        if hold is not None:
            self.room.release(hold)

    @property
    def is_waiting(self) -> bool:
        """Whether it has no request, not even one that was read and has not begun."""
        return self._is_idle or not self._request_count

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for its peer: for a request, for the rest of one, or until an answer is taken."""
        if self._payload is not None and (self._upgraded or self._paused or not self._payload.is_eof()):
            return True
        return self.is_waiting or self._wire is None or self._wire.is_closing()

    @property
    def is_anonymous(self) -> bool:
        """Whether no account holds its request."""
        return self._hold is None or self._hold.account is None

    @property
    def since(self) -> float:
        """When it came, or had its last answer; the library sets this."""
        return self._next_keepalive_close_time

    @property
    def unsent(self) -> int:
        """How many bytes wait to be sent."""
        return 0 if self._wire is None else self._wire.get_write_buffer_size()

    @property
    def sent(self) -> int:
        """How many bytes the peer has taken."""
        channel = None if self._wire is None else self._wire.get_extra_info("socket")
        taken = None if channel is None else acknowledged_bytes(channel)
        if taken is not None:
            return taken
        return self._written + (self._writer.output_size if self._writer is not None else 0) - self.unsent

    @property
    def peer(self) -> str:
        """The address of the other end, "" for a unix socket."""
        name = None if self._wire is None else self._wire.get_extra_info("peername")
        return name[0] if isinstance(name, tuple) else ""

    def evict(self) -> None:
        """Close at once, with what was not yet sent."""
        if self._wire is not None:
            self._wire.abort()

    def _release(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            self.room.release(hold)
