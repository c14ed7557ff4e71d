"""A connection of PostgreSQL for notifications, which is no connection of the pool.

A pooled connection loses its listeners when it returns to the pool, and a full pool must not delay it.
"""

import socket
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import asyncpg

from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.postgres_errors import FOREIGN_ERRORS, wrap_errors

POOL_OPTIONS: Final = frozenset({"min_size", "max_size"})

SILENT_MILLISECONDS: Final = 2000
"""Time after which the system gives a connection up whose server acknowledges nothing."""

KEEPALIVE_SECONDS: Final = 1
KEEPALIVE_PROBES: Final = 2
CLOSE_SECONDS: Final = 1.0


class PostgresListener:
    """One connection with a listener; `connect` makes it, and `close` ends it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, options: Mapping[str, Any], channel: str, notice: Callable[[], None]) -> Self:
        """Connect with the options of a pool and listen; `notice` must not block.

        Raises the errors of the database as GatewayError.
        """
        wanted = {name: value for name, value in options.items() if name not in POOL_OPTIONS}
        with translate_errors("listen to the database"):
            connection = await wrap_errors(asyncpg.connect, **wanted)
            call = _called_without_arguments(notice)
            connection.add_termination_listener(call)
            watch_peer(connection)
            is_listening = False
            try:
                await wrap_errors(connection.add_listener, channel, call)
                is_listening = True
            finally:
                if not is_listening:
                    connection.terminate()
        return cls(connection)

    async def query(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Return the rows of a query by column."""
        rows = await wrap_errors(self._connection.fetch, query, *values)
        return [dict(row) for row in rows]

    async def close(self) -> None:
        """Close the connection, also one whose server does not answer."""
        try:
            await self._connection.close(timeout=CLOSE_SECONDS)
        except (*FOREIGN_ERRORS, TimeoutError):
            self._connection.terminate()


def watch_peer(connection: Any) -> None:
    """Let the system end a connection of TCP whose peer is silent; a unix socket needs no watch."""
    peer = connection._transport.get_extra_info("socket")
    if peer is None or peer.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_SECONDS)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_SECONDS)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_MILLISECONDS)


def _called_without_arguments(notice: Callable[[], None]) -> Callable[..., None]:
    def call(*_: object) -> None:
        notice()

    return call
