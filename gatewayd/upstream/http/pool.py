"""The connections to one origin: kept ones first, a limit, a queue in the order of arrival.

A place is one of the `limit` connections that may exist. Exactly one party holds it: the exchange that uses
the connection, the list of idle connections, or the request that is about to connect.
"""

import asyncio
from collections import deque

from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.connection import ProviderConnection
from gatewayd.upstream.http.connector import ConnectionDialer
from gatewayd.upstream.http.errors import TransportError

CLOSED = "its connections were closed"


class ConnectionPool:
    """The connections to one origin; made inside a running loop."""

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
        """Return the connection that was used last, with its place; None when none is idle."""
        return self._idle.pop() if self._idle else None

    async def open(self, due: float, *, has_place: bool = False) -> ProviderConnection:
        """Return a connection with its place: a kept one when the wait for a place brings it, else a new one.

        With `has_place` the caller's place is used, and always for a new connection. Raises OSError,
        UnicodeError and TransportError; then, and when the caller is cancelled, no place is held.
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
                raise ConnectionResetError  # it was lost again before this request could go on
            is_connected = True
        finally:
            if not is_connected:
                connection.abort()
                self._pass_on(None)
        self._open.add(connection)  # not earlier: uvloop does not report the loss of one that was cancelled
        return connection

    async def close(self) -> None:
        """Close all connections, also those in use, and wait until they are closed."""
        self._is_closed = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)  # the place it gets is not real: it finds the pool closed
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
        """Drop a connection from the idle ones; one that is on its way to a waiter is dropped there."""
        if connection in self._idle:
            self._idle.remove(connection)
            self._pass_on(None)

    def gone(self, connection: ProviderConnection) -> None:
        """Note that a connection is closed."""
        self._open.discard(connection)
        if not self._open and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    # Details ----------------------------------------------------------------------------------------------

    async def _place(self) -> ProviderConnection | None:
        """Wait for a place; a kept connection may come with it."""
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
        """Give a place, and the connection in it if any, to the request that waits longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is not None and connection.is_open:
            self._idle.append(connection)
        else:
            self._taken -= 1
