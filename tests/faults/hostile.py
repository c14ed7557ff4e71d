"""Connections that keep a gateway busy without an end, each kind of one account or of nobody."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

FORM = "multipart/form-data; boundary=b"
BEGIN_OF_FORM = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
    b"Content-Type: text/plain\r\n\r\nx"
)
AT_ONCE = 100


@dataclass(frozen=True)
class Target:
    """A gateway on loopback, the credential of the attacker, a file of theirs, and a model that is silent."""

    port: int
    key: str
    file_id: str
    model: str

    def head(self, method: str, path: str, *lines: str, key: str | None = None) -> bytes:
        """Return the head of a request; `key` is that of the attacker unless it is another one or ""."""
        credential = self.key if key is None else key
        given = [f"{method} {path} HTTP/1.1", "Host: gateway", *lines]
        if credential:
            given.append(f"Authorization: Bearer {credential}")
        return "\r\n".join([*given, "", ""]).encode()


Sent = Callable[[Target], bytes]


def slow_upload(target: Target) -> bytes:
    """An upload that does not go on."""
    lines = (f"Content-Type: {FORM}", "Content-Length: 1000000")
    return target.head("POST", "/api/v1/files/?process=false", *lines) + BEGIN_OF_FORM


def unread_download(target: Target) -> bytes:
    """A download that is not read."""
    return target.head("GET", f"/api/v1/files/{target.file_id}/content")


def chat_stream(target: Target) -> bytes:
    """A stream of a model that is silent."""
    asked = {"model": target.model, "stream": True, "messages": [{"role": "user", "content": "hold"}]}
    body = json.dumps(asked).encode()
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    return target.head("POST", "/api/chat/completions", *lines) + body


def half_chat(target: Target) -> bytes:
    """A chat request whose body does not go on."""
    lines = ("Content-Type: application/json", "Content-Length: 100000")
    return target.head("POST", "/api/chat/completions", *lines) + b"{"


def listener(target: Target) -> bytes:
    """An event stream."""
    return target.head("GET", "/api/v1/events")


def kept_alive(target: Target) -> bytes:
    """A connection that waits after an answer."""
    return target.head("GET", "/api/v1/auths/")


def idle(target: Target) -> bytes:
    """A connection that says nothing."""
    del target
    return b""


def half_head(target: Target) -> bytes:
    """A head that does not go on."""
    return target.head("GET", "/health", key="")[:-4]


def half_sign_in(target: Target) -> bytes:
    """A sign-in whose body does not go on."""
    lines = ("Content-Type: application/json", "Content-Length: 1000")
    return target.head("POST", "/api/v1/auths/signin", *lines, key="") + b"{"


def anonymous_socket(target: Target) -> bytes:
    """A websocket of nobody."""
    lines = (
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )
    return target.head("GET", "/ws/socket.io/?EIO=4&transport=websocket", *lines, key="")


def joined_socket(target: Target) -> bytes:
    """A websocket of the account."""
    packet = b"40" + json.dumps({"token": target.key}).encode()
    # A mask of zeros.
    frame = bytes([0x81, 0xFE]) + len(packet).to_bytes(2, "big") + bytes(4) + packet
    return anonymous_socket(target) + frame


OF_ACCOUNT: Sequence[Sent] = (
    slow_upload,
    unread_download,
    chat_stream,
    half_chat,
    listener,
    joined_socket,
    kept_alive,
)
OF_NOBODY: Sequence[Sent] = (idle, half_head, half_sign_in, anonymous_socket)


def bad_token(target: Target) -> bytes:
    """A whole request with a credential of nobody."""
    return target.head("GET", "/api/v1/auths/", "Connection: close", key="sk-0123456789abcdef")


async def open_one(target: Target, sent: Sent) -> socket.socket:
    """Open a connection, send, and read nothing."""
    loop = asyncio.get_running_loop()
    channel = socket.socket()
    channel.setblocking(False)
    # What is not read fills it at once.
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await loop.sock_connect(channel, ("127.0.0.1", target.port))
    with contextlib.suppress(ConnectionError):
        await loop.sock_sendall(channel, sent(target))
    return channel


@contextlib.asynccontextmanager
async def attacking(target: Target, kinds: Sequence[Sent], count: int) -> AsyncIterator[list[socket.socket]]:
    """Hold `count` connections, of each kind in turn, until the end of the block."""
    channels: list[socket.socket] = []
    works: list[Awaitable[socket.socket]] = []
    try:
        for number in range(count):
            works.append(open_one(target, kinds[number % len(kinds)]))
            if len(works) == AT_ONCE:
                channels += await asyncio.gather(*works)
                works.clear()
        channels += await asyncio.gather(*works)
        yield channels
    finally:
        for channel in channels:
            channel.close()


@contextlib.asynccontextmanager
async def hammering(target: Target, sent: Sent, count: int) -> AsyncIterator[None]:
    """Have `count` clients that send, read, and connect again at once, until the end of the block."""

    async def hammer() -> None:
        while True:
            with contextlib.suppress(ConnectionError):
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
                try:
                    writer.write(sent(target))
                    await reader.read()
                finally:
                    writer.transport.abort()

    clients = [asyncio.ensure_future(hammer()) for _ in range(count)]
    try:
        yield
    finally:
        for client in clients:
            client.cancel()
        ended = await asyncio.gather(*clients, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
