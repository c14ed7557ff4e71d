"""Connection pool of one origin: reuse of idle connections, a limit, and a first-in-first-out queue.

A slot is the right to one of the `limit` connections. Exactly one party holds it: the exchange that uses the
connection, the list of idle connections, or the request that is about to connect.
"""

import asyncio
from collections import deque

from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.connection import ProviderConnection
from gatewayd.upstream.http.connector import ConnectionDialer
from gatewayd.upstream.http.errors import TransportError

CLOSED = "its connections were closed"


class ConnectionPool:
    """The connections to one origin; needs a running loop."""

    def __init__(self, dialer: ConnectionDialer, limit: int) -> None:
        self._dialer = dialer
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._taken = 0
        self._idle: list[ProviderConnection] = []
        self._waiters: deque[asyncio.Future[ProviderConnection | None]] = deque()
        self._open: set[ProviderConnection] = set()
        self._is_closed = False
        self._emptied: asyncio.Future[None] | None = None

    def take(self) -> ProviderConnection | None:
        """Return the idle connection that was used last, with its slot; None if none is idle."""
        return self._idle.pop() if self._idle else None

    async def open(self, due: float, *, has_place: bool = False) -> ProviderConnection:
        """Return a connection with its slot: an idle one if the wait for a slot brings it, else a new one.

        With `has_place` the slot of the caller is used, always for a new connection. Raises OSError,
        UnicodeError and TransportError; then, and when the caller is cancelled, no slot is held.
        """
        if not has_place:
            kept = await self._place()
            if kept is not None and kept.is_open:
                return kept
        connection = ProviderConnection(self, self._loop)
        is_connected = False
        try:
            if not self._is_closed:
                await self._dialer.dial(connection, due)
            if self._is_closed:
                raise TransportError(ErrorKind.UPSTREAM_UNREACHABLE, CLOSED)
            if not connection.is_open:
                raise ConnectionResetError  # lost before this request could use it
            is_connected = True
        finally:
            if not is_connected:
                connection.abort()
                self._pass_on(None)
        self._open.add(connection)  # not earlier: uvloop does not report the loss of a cancelled connection
        return connection

    async def close(self) -> None:
        """Close all connections, also those in use, and wait until they are closed."""
        self._is_closed = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)  # not a real slot: the waiter finds the pool closed
                self._taken += 1
        self._waiters.clear()
        for connection in tuple(self._open):
            connection.fail(ErrorKind.UPSTREAM_FAILED, CLOSED)
        if self._open:
            self._emptied = self._loop.create_future()
            await self._emptied

    # Called by connections --------------------------------------------------------------------------------

    def release(self, connection: ProviderConnection) -> None:
        """Take back a connection whose exchange is over, open or not."""
        self._pass_on(connection if connection.is_open else None)

    def unusable(self, connection: ProviderConnection) -> None:
        """Remove a connection from the idle ones; the waiter drops one that it is about to receive."""
        if connection in self._idle:
            self._idle.remove(connection)
            self._pass_on(None)

    def gone(self, connection: ProviderConnection) -> None:
        """Record that a connection is closed."""
        self._open.discard(connection)
        if not self._open and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    # Details ----------------------------------------------------------------------------------------------

    async def _place(self) -> ProviderConnection | None:
        """Wait for a slot; an idle connection may come with it."""
        if self._taken < self._limit:
            self._taken += 1
            return None
        waiter: asyncio.Future[ProviderConnection | None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self._pass_on(waiter.result())
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    def _pass_on(self, connection: ProviderConnection | None) -> None:
        """Pass a slot, and its connection if there is one, to the request that waits longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is not None and connection.is_open:
            self._idle.append(connection)
        else:
            self._taken -= 1
