"""Peers that are too slow are refused or cut by the real daemon, at each door, and leave nothing behind."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gatewayctl.wire.base import HEADER, VERSION
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.failing_provider_site import make_key
from tests.fakes.http.raw_http import send
from tests.faults.hostile import BEGIN_OF_FORM, FORM, Target, listener, open_one, slow_upload, unread_download

pytestmark = pytest.mark.faults

SECONDS = "0.5"
PIECE, PIECES, PAUSE = 400, 30, 0.2
LARGE = 12 * 1024 * 1024
RATE = "less than 1024 bytes a second for 0.5 s"
JSON = ("Content-Type: application/json", "Content-Length: 1000")

Head = Callable[[Target], bytes]


def running_gateway(folder: Path, seconds: str) -> AbstractContextManager[Daemon]:
    settings = {"CLIENT_BODY_TIMEOUT": seconds, "SEND_TIMEOUT": seconds, "ENABLE_API_KEYS": "true"}
    return running_daemon(folder, **settings)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running_gateway(tmp_path_factory.mktemp("slow"), SECONDS) as running:
        yield running


@pytest.fixture(scope="module")
def target(daemon: Daemon) -> Target:
    return make_target(daemon)


def make_target(daemon: Daemon) -> Target:
    """Make an account with a large file."""
    key = make_key(daemon)
    signed = {"Authorization": f"Bearer {key}", "Content-Type": FORM}
    form = BEGIN_OF_FORM + b"x" * LARGE + b"\r\n--b--\r\n"
    sent = send(daemon.base_url, "POST", "/api/v1/files/?process=false", form, signed)
    return Target(int(daemon.base_url.rpartition(":")[2]), key, sent.json["id"], "m")


def on(path: str, *lines: str) -> Head:
    """Return the head of a request whose body is to come."""

    def head(target: Target) -> bytes:
        return target.head("POST", path, *(lines or JSON))

    return head


async def answer_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the first line of an answer and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    return head.partition(b"\r\n")[0], await reader.readexactly(length)


async def dripped(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
) -> tuple[bytes, dict[str, object]]:
    """Send a head, then a byte now and then; return the first line of the answer and its body."""
    writer.write(head)

    async def drip() -> None:
        while not writer.is_closing():
            writer.write(b"1\r\n{\r\n" if b"chunked" in head else b"{")
            await asyncio.sleep(0.05)

    dripping = asyncio.ensure_future(drip())
    try:
        async with asyncio.timeout(20):
            line, body = await answer_of(reader)
            return line, json.loads(body)
    finally:
        dripping.cancel()
        writer.transport.abort()


PUBLIC = {
    "chat": on("/api/chat/completions"),
    "messages": on("/api/v1/messages"),
    "runtime": on("/ollama/api/chat"),
    "passed on": on("/api/v1/responses"),
    "sign-in": on("/api/v1/auths/signin"),
    "in chunks": on("/api/chat/completions", JSON[0], "Transfer-Encoding: chunked"),
    "upload": slow_upload,
}
CONTROL = {"body": ("/v1/users", JSON), "upload": ("/v1/files?name=a.txt", JSON[1:])}


@pytest.mark.short
async def test_a_body_that_drips_is_refused_with_the_rate(daemon: Daemon, target: Target) -> None:
    works = []
    for head in PUBLIC.values():
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        works.append(dripped(reader, writer, head(target)))
    for path, lines in CONTROL.values():
        reader, writer = await asyncio.open_unix_connection(str(daemon.socket))
        head = target.head("POST", path, f"{HEADER}: {VERSION}", *lines, key="")
        works.append(dripped(reader, writer, head))
    answers = await asyncio.gather(*works)
    for name, (line, body) in zip([*PUBLIC, *CONTROL], answers, strict=True):
        assert line.startswith(b"HTTP/1.1 408 "), (name, line, body)
        assert RATE in json.dumps(body), (name, body)
    assert list((daemon.state / "files" / "incoming").iterdir()) == []


@pytest.mark.short
async def test_a_download_that_is_not_read_is_cut_and_a_quiet_stream_is_not(
    daemon: Daemon, target: Target
) -> None:
    quiet = await open_one(target, listener)
    stuck = await open_one(target, unread_download)
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(daemon.wait_for, f"connection cut: the client read {RATE}")
    total = 0
    with stuck, quiet:
        try:
            while data := await loop.sock_recv(stuck, 65536):
                total += len(data)
        except ConnectionResetError:
            pass
        assert 0 < total < LARGE
        assert b"event: session" in await loop.sock_recv(quiet, 65536)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.sock_recv(quiet, 1), 0.1)
    assert "".join(daemon.log).count("connection cut") == 1


async def slow_upload_above(target: Target) -> None:
    """Send a file at twice the rate, and read it back."""
    content = b"x" * PIECE * PIECES
    body = BEGIN_OF_FORM[:-1] + content + b"\r\n--b--\r\n"
    lines = (f"Content-Type: {FORM}", f"Content-Length: {len(body)}")
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    writer.write(target.head("POST", "/api/v1/files/?process=false", *lines))
    for start in range(0, len(body), PIECE):
        writer.write(body[start : start + PIECE])
        await asyncio.sleep(PAUSE)
    made = json.loads((await answer_of(reader))[1])
    writer.write(target.head("GET", f"/api/v1/files/{made['id']}/content"))
    assert (await answer_of(reader))[1] == content
    writer.close()


async def slow_download_above(target: Target) -> None:
    """Read the beginning of a file slowly, then the rest."""
    loop, taken = asyncio.get_running_loop(), bytearray()
    with await open_one(target, unread_download) as channel:
        for _ in range(PIECES):
            taken += await loop.sock_recv(channel, 16 * PIECE)
            await asyncio.sleep(PAUSE)
        whole = len(taken.partition(b"\r\n\r\n")[0]) + 4 + LARGE + 1
        while len(taken) < whole:
            data = await loop.sock_recv(channel, 1 << 20)
            assert data, "cut"
            taken += data
    assert taken.endswith(b"\r\n\r\n" + b"x" * (LARGE + 1))


async def test_slow_peers_above_the_rate_lose_nothing(tmp_path: Path) -> None:
    """They take three times as long as a peer may stay below the rate."""
    seconds = f"{PIECES * PAUSE / 3:g}"
    with running_gateway(tmp_path, seconds) as daemon:
        target = make_target(daemon)
        await asyncio.gather(slow_upload_above(target), slow_download_above(target))
        assert "connection cut" not in "".join(daemon.log)
