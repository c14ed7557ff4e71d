"""The connection of notifications: its options of TCP, and its end."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine import postgres_listener
from gatewayd.storage.engine.postgres_errors import LostConnectionError, is_lost
from gatewayd.storage.engine.postgres_listener import PostgresListener, watch_peer


def with_socket(peer: socket.socket | None) -> Any:
    return SimpleNamespace(_transport=SimpleNamespace(get_extra_info=lambda _: peer))


def test_a_silent_peer_is_given_up_by_the_system() -> None:
    with socket.socket() as peer:
        watch_peer(with_socket(peer))
        assert peer.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 1
        assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2000


def test_a_unix_socket_is_not_watched() -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        watch_peer(with_socket(peer))
        assert peer.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
    watch_peer(with_socket(None))


class SilentConnection:
    """A connection whose server does not answer."""

    def __init__(self) -> None:
        self.is_terminated = False

    async def close(self, timeout: float) -> None:
        raise TimeoutError

    async def fetch(self, query: str) -> None:
        raise asyncpg.InternalClientError

    def terminate(self) -> None:
        self.is_terminated = True

    def is_closed(self) -> bool:
        raise asyncpg.InterfaceError("returned to the pool")


async def test_the_end_does_not_wait_for_a_silent_server() -> None:
    connection = SilentConnection()
    listener = PostgresListener(connection)
    with pytest.raises(LostConnectionError):
        await listener.query("SELECT 1")
    await listener.close()
    assert connection.is_terminated
    assert is_lost(connection)


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        options = {"host": "127.0.0.1", "port": taken.getsockname()[1], "user": "u", "min_size": 1}
        with pytest.raises(GatewayError) as caught:
            await PostgresListener.connect(options, "channel", lambda: None)
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_connection_that_cannot_listen_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(SilentConnection):
        _transport = SimpleNamespace(get_extra_info=lambda _: None)

        def add_termination_listener(self, call: object) -> None:
            self.call = call

        async def add_listener(self, channel: str, call: object) -> None:
            raise OSError

    deaf = Deaf()

    async def connect(**_: object) -> Deaf:
        await asyncio.sleep(0)
        return deaf

    monkeypatch.setattr(postgres_listener.asyncpg, "connect", connect)
    with pytest.raises(GatewayError):
        await PostgresListener.connect({}, "channel", lambda: None)
    assert deaf.is_terminated
