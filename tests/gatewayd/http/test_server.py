"""Tests for gatewayd.http.server."""

import asyncio
import errno
import grp
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.server import HttpServer


async def hello(request: web.Request) -> web.StreamResponse:
    return web.Response(text="hello")


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    app = web.Application()
    app.router.add_get("/", hello)
    server = HttpServer(app)
    await server.open()
    yield server
    await server.close()


async def fetch(address: str, connector: aiohttp.BaseConnector | None = None) -> str:
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"http://{address}/") as reply,
    ):
        return await reply.text()


async def test_listens_on_tcp_and_names_a_busy_port(server: HttpServer) -> None:
    address = await server.listen_tcp("127.0.0.1", 0)
    assert await fetch(address) == "hello"
    port = int(address.rpartition(":")[2])
    with pytest.raises(GatewayError) as caught:
        await server.listen_tcp("127.0.0.1", port)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    assert str(port) in caught.value.message


async def test_listens_on_sockets_it_is_given(server: HttpServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as channel:
        (address,) = await server.listen_sockets([channel])
        assert await fetch(address) == "hello"
        await server.close()


async def test_unix_socket_is_private_and_replaces_a_stale_one(server: HttpServer, tmp_path: Path) -> None:
    path = tmp_path / "run" / "control.sock"
    await server.listen_unix(path, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await fetch("control", aiohttp.UnixConnector(str(path))) == "hello"
    await server.stop_listening()
    other = HttpServer(web.Application())
    await other.open()
    await other.listen_unix(path, "")
    await other.close()


async def test_the_peer_of_a_unix_socket_has_no_address_even_if_its_name_looks_like_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tell(request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"remote={request.remote!r}")

    app = web.Application()
    app.router.add_get("/", tell)
    server = HttpServer(app)
    await server.open()
    path = await server.listen_unix(tmp_path / "http.sock", "")
    monkeypatch.chdir(tmp_path)
    client = socket.socket(socket.AF_UNIX)
    client.bind("127.0.0.1")
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, path)
    reader, writer = await asyncio.open_unix_connection(sock=client)
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), 5)).endswith(b"remote=''")
    writer.close()
    await server.close()


async def test_unix_socket_is_opened_to_the_group(server: HttpServer, tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    await server.listen_unix(path, grp.getgrgid(os.getgid()).gr_name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    with pytest.raises(GatewayError, match="no-such-group"):
        await server.listen_unix(tmp_path / "other.sock", "no-such-group")


async def test_a_group_that_may_not_be_given_is_a_sentence(
    server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    path, group = tmp_path / "control.sock", grp.getgrgid(os.getgid()).gr_name
    with pytest.raises(GatewayError, match=f"control_group {group!r}: operation not permitted") as caught:
        await server.listen_unix(path, group)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    assert str(path) in caught.value.message
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
