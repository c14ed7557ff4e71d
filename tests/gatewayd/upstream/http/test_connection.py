import asyncio
import gc
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from gatewayd.deadlines import PAUSE_THRESHOLD_SECONDS
from gatewayd.errors import ErrorKind
from gatewayd.upstream.http import connection as connection_module
from gatewayd.upstream.http.client import HttpClient, TransportError
from gatewayd.upstream.http.request_head import build_head
from gatewayd.upstream.http.response import ProviderResponse
from gatewayd.upstream.sources.config import UpstreamTimeouts
from tests.fakes.http.byte_server import RawServer, on_both_loops

LONG = UpstreamTimeouts(connect=5.0, first_byte=30.0, idle=30.0)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HI = OK + b"Content-Length: 2\r\n\r\nhi"

NOT_HTTP = "its answer is not HTTP"
MALFORMED = "its answer broke off (malformed body)"


@asynccontextmanager
async def served(talk, timeouts=LONG, **options):
    async with RawServer(talk) as server:
        client = HttpClient(timeouts, **options)
        try:
            yield server, client
        finally:
            await client.close()


def saying(*pieces: bytes, close=True):
    """Answer the first request with these writes, each read before the next; then close, or wait."""

    async def talk(peer):
        await peer.request()
        for piece in pieces:
            await peer.send(piece)
            await asyncio.sleep(0)
        if not close:
            await peer.gone()

    return talk


def repeating(answer: bytes):
    """Answer every request with these bytes."""

    async def talk(peer):
        while await peer.request():
            await peer.send(answer)

    return talk


async def get(client, url, method="GET", body=None):
    response = await client.request(method, url, {}, body)
    return response, await response.read(1_000_000)


async def failure_of(client, url, method="GET") -> TransportError:
    with pytest.raises(TransportError) as caught:
        await get(client, url, method)
    return caught.value


WHOLE = [
    (HI, 200, b"hi"),
    (CHUNKED + b"1\r\nh\r\n1;x=y\r\ni\r\n0\r\nX-Trailer: 1\r\nY: 2\r\n\r\n", 200, b"hi"),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + HI, 200, b"hi"),
    (b"HTTP/1.1 204 No Content\r\nX-Odd: a b \r\n\r\n", 204, b""),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", 304, b""),
    (b"HTTP/1.1 200\ncontent-length: 2 \n\nhi", 200, b"hi"),
    (b"HTTP/1.0 404 \xff\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", 404, b"hi"),
]


@pytest.mark.parametrize(("answer", "status", "body"), WHOLE)
@on_both_loops
async def test_split_at_every_byte(answer, status, body):
    splits = iter(range(1, len(answer)))

    async def talk(peer):
        for split in splits:
            if not await peer.request():
                return
            await peer.send(answer[:split])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await peer.send(answer[split:])

    async with served(talk) as (server, client):
        for _ in range(1, len(answer)):
            response, read = await get(client, server.url)
            assert (response.status, read) == (status, body)
    assert len(server.peers) == 1


@on_both_loops
async def test_byte_by_byte():
    answer = CHUNKED + b"2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n"
    async with served(saying(*(answer[i : i + 1] for i in range(len(answer))))) as (server, client):
        response = await client.request("GET", server.url, {})
        parts = []
        while part := await response.read_some():
            parts.append(part)
        assert b"".join(parts) == b"hi!"
        assert await response.read_some() == b""


@on_both_loops
async def test_headers_are_looked_up_without_case():
    answer = OK + b"X-Odd:  caf\xe9 \r\nx-odd: second\r\nContent-Length: 0\r\n\r\n"
    async with served(saying(answer)) as (server, client):
        response, _ = await get(client, server.url)
    assert response.headers["X-ODD"] == "café"
    assert dict(response.headers) == {"x-odd": "café", "content-length": "0"}
    assert response.headers.get("X-None") is None


@on_both_loops
async def test_reads_return_all_that_came():
    go_on = asyncio.Event()

    async def talk(peer):
        await peer.request()
        await peer.send(CHUNKED + b"1\r\na\r\n1\r\nb\r\n")
        await go_on.wait()
        await peer.send(b"1\r\nc\r\n0\r\n\r\n")
        await peer.gone()

    async with served(talk) as (server, client):
        response = await client.request("GET", server.url, {})
        assert await response.read_some() == b"ab"
        go_on.set()
        assert await response.read_some() == b"c"
        assert await response.read_some() == b""


@pytest.mark.parametrize(
    "head", [OK + b"\r\n", b"HTTP/1.0 200 OK\r\n\r\n", OK + b"Transfer-Encoding: x\r\n\r\n"]
)
@on_both_loops
async def test_body_that_ends_with_the_connection(head):
    async with served(saying(head, b"a" * 100_000)) as (server, client):
        for _ in range(2):
            _, read = await get(client, server.url)
            assert read == b"a" * 100_000
    assert len(server.peers) == 2


@on_both_loops
async def test_a_reset_is_no_end_of_a_body():
    read = asyncio.Event()

    async def talk(peer):
        await peer.request()
        await peer.send(OK + b"\r\na")
        await read.wait()
        peer.abort()

    async with served(talk) as (server, client):
        response = await client.request("GET", server.url, {})
        assert await response.read_some() == b"a"
        read.set()
        with pytest.raises(TransportError, match=r"its answer broke off \(connection reset by peer\)"):
            await response.read_some()


@on_both_loops
async def test_head_has_no_body():
    async with served(repeating(OK + b"Content-Length: 9\r\n\r\n")) as (server, client):
        for _ in range(2):
            response, read = await get(client, server.url, "HEAD")
            assert (response.headers["Content-Length"], read) == ("9", b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"220 smtp ready\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + HI,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nzz",
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        OK + b"Content-Length: -1\r\n\r\nhi",
        OK + b"Content-Length: 99999999999999999999999\r\n\r\nhi",
        OK + b"X: a\x00b\r\nContent-Length: 2\r\n\r\nhi",
        OK + b"X-Big: %b\r\nContent-Length: 2\r\n\r\nhi" % (b"x" * connection_module.MAX_HEAD_BYTES),
        OK + b"X-Big: %b" % (b"x" * (1 + connection_module.MAX_HEAD_BYTES)),
        OK + b"X: y\r\n" * 201 + b"Content-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5000,
    ],
)
@on_both_loops
async def test_answer_that_is_not_http(answer):
    async with served(saying(answer, close=False)) as (server, client):
        error = await failure_of(client, server.url)
        assert (error.kind, error.sentence) == (ErrorKind.UPSTREAM_FAILED, NOT_HTTP)
        await asyncio.wait_for(server.peers[0].left.wait(), 5)


@pytest.mark.parametrize(
    "rest",
    [
        b"zz\r\n",
        b"fffffffffffffffffff\r\n",
        b"2\r\nhixx",
        b"1;%b" % (b"x" * 500_000),
        b"0\r\nX: %b" % (b"x" * 500_000),
    ],
)
@on_both_loops
async def test_malformed_body(rest):
    async with served(saying(CHUNKED + b"2\r\nok\r\n", rest, close=False)) as (server, client):
        response = await client.request("GET", server.url, {})
        assert (await response.read_some()).startswith(b"ok")
        with pytest.raises(TransportError) as caught:
            while await response.read_some():
                pass
        assert (caught.value.kind, caught.value.sentence) == (ErrorKind.UPSTREAM_FAILED, MALFORMED)
        await asyncio.wait_for(server.peers[0].left.wait(), 5)


@on_both_loops
async def test_head_at_the_limit():
    lines = b"".join(b"X-%03d: %b\r\n" % (i, b"y" * 300) for i in range(199))
    async with served(saying(OK + lines + b"Content-Length: 2\r\n\r\nhi")) as (server, client):
        response, read = await get(client, server.url)
    assert (len(response.headers), read) == (200, b"hi")


# Connections that are used again ----------------------------------------------------------------------------


@on_both_loops
async def test_kept_connection():
    async with served(repeating(HI)) as (server, client):
        for _ in range(5):
            assert (await get(client, server.url, "POST", b"body"))[1] == b"hi"
    assert len(server.peers) == 1
    assert [request.partition(b"\r\n\r\n")[2] for request in server.requests] == [b"body"] * 5


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        HI + b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
        HI + b"H",
        CHUNKED + b"2\r\nhi\r\n0\r\n\r\nx",
    ],
)
@on_both_loops
async def test_connection_that_is_not_used_again(answer):
    async with served(repeating(answer)) as (server, client):
        for _ in range(3):
            assert (await get(client, server.url))[1] == b"hi"
    assert len(server.peers) == 3


@on_both_loops
async def test_data_that_comes_while_nothing_is_asked_for():
    poison = asyncio.Event()

    async def talk(peer):
        while await peer.request():
            await peer.send(HI)
            if len(server.peers) == 1:
                await poison.wait()
                await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")

    async with served(talk) as (server, client):
        assert (await get(client, server.url))[1] == b"hi"
        poison.set()
        await asyncio.wait_for(server.peers[0].left.wait(), 5)
        assert (await get(client, server.url))[1] == b"hi"
    assert len(server.peers) == 2


@pytest.mark.parametrize("how", ["close", "abort"])
@on_both_loops
async def test_request_that_races_with_the_close_of_a_kept_connection(how):
    async def talk(peer):
        await peer.request()
        await peer.send(HI)
        if len(server.peers) == 1:
            await peer.request()
            getattr(peer, how)()  # the request was taken, no byte of an answer came

    async with served(talk, connections=1) as (server, client):
        assert (await get(client, server.url))[1] == b"hi"
        assert (await get(client, server.url, "POST", b"again"))[1] == b"hi"
    assert [len(peer.requests) for peer in server.peers] == [2, 1]
    assert server.requests[1] == server.requests[2]


@on_both_loops
async def test_request_is_sent_again_only_once():
    async def talk(peer):
        await peer.request()
        if len(server.peers) == 1:
            await peer.send(HI)
            await peer.request()

    async with served(talk) as (server, client):
        assert (await get(client, server.url))[1] == b"hi"
        error = await failure_of(client, server.url)
    assert error.kind is ErrorKind.UPSTREAM_FAILED
    assert error.sentence == "it closed the connection without an answer (end of stream)"
    assert len(server.peers) == 2


@on_both_loops
async def test_request_is_not_sent_again_when_an_answer_had_begun():
    async def talk(peer):
        await peer.request()
        await peer.send(HI)
        await peer.request()
        await peer.send(b"HTTP/1.1 2")

    async with served(talk) as (server, client):
        assert (await get(client, server.url))[1] == b"hi"
        error = await failure_of(client, server.url)
    assert "it closed the connection without an answer" in error.sentence
    assert len(server.peers) == 1


@on_both_loops
async def test_request_is_not_sent_again_when_the_provider_thought_about_it():
    async def talk(peer):
        await peer.request()
        await peer.send(HI)
        await peer.request()
        await asyncio.sleep(0.2)  # longer than the time in which a close can have raced with the request

    async with served(talk, UpstreamTimeouts(connect=0.1, first_byte=5)) as (server, client):
        assert (await get(client, server.url))[1] == b"hi"
        error = await failure_of(client, server.url)
    assert "it closed the connection without an answer" in error.sentence
    assert len(server.peers) == 1


@on_both_loops
async def test_fresh_connection_that_closes_is_a_failure():
    async def talk(peer):
        await peer.request()
        peer.abort()

    async with served(talk) as (server, client):
        error = await failure_of(client, server.url)
    assert error.sentence == "it closed the connection without an answer (connection reset by peer)"
    assert len(server.peers) == 1


@on_both_loops
async def test_answer_before_the_request_was_sent_whole():
    body = b"x" * 20_000_000

    async def talk(peer):
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        if len(server.peers) == 1:
            await peer.gone()

    async with served(talk) as (server, client):
        response, read = await get(client, server.url, "POST", body)
        assert (response.status, read) == (413, b"no")
        await asyncio.wait_for(server.peers[0].left.wait(), 5)
        assert (await get(client, server.url))[1] == b"no"
    assert len(server.peers) == 2


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 3_000_000])
@on_both_loops
async def test_bodies_of_any_size_are_sent(size):
    body = bytes(i % 251 for i in range(1000)) * (size // 1000 + 1)
    async with served(repeating(HI)) as (server, client):
        await get(client, server.url, "POST", body[:size])
    head, _, sent = server.requests[0].partition(b"\r\n\r\n")
    assert sent == body[:size]
    assert b"Content-Length: %d" % size in head


@on_both_loops
async def test_unused_connections_are_closed(monkeypatch):
    monkeypatch.setattr(connection_module, "TICK_SECONDS", 0.02)
    async with served(repeating(HI)) as (server, client):
        await get(client, server.url)
        await asyncio.wait_for(server.peers[0].left.wait(), 5)
        assert (await get(client, server.url))[1] == b"hi"
    assert len(server.peers) == 2


# Deadlines --------------------------------------------------------------------------------------------------

SILENT = UpstreamTimeouts(connect=0.05, first_byte=0.1, idle=0.05)


@pytest.mark.parametrize(
    ("pieces", "timeouts", "sentence"),
    [
        ([], SILENT, "no first byte within 0.1 s"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n"], SILENT, "no first byte within 0.1 s"),
        ([], UpstreamTimeouts(total=0.1), "no first byte within 0.1 s"),
        ([CHUNKED], SILENT, "it was silent for 0.1 s"),
        ([CHUNKED + b"1\r\na\r\n"], SILENT, "it was silent for 0.05 s"),
        ([CHUNKED + b"1\r\na\r\n"], UpstreamTimeouts(total=0.1), "the answer took too long"),
    ],
)
@on_both_loops
async def test_silence(pieces, timeouts, sentence):
    async with served(saying(*pieces, close=False), timeouts) as (server, client):
        error = await failure_of(client, server.url)
        assert (error.kind, error.sentence) == (ErrorKind.TIMEOUT, sentence)
        await asyncio.wait_for(server.peers[0].left.wait(), 5)


def dripping(first: bytes, drop: bytes):
    async def talk(peer):
        await peer.request()
        await peer.send(first)
        while not peer.reader.at_eof():
            await peer.send(drop)
            await asyncio.sleep(0.01)

    return talk


@pytest.mark.parametrize(
    ("first", "drop", "sentence"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", "no first byte within 0.1 s"),
        (CHUNKED + b"1\r\na\r\n", b"0", "it was silent for 0.05 s"),
        (CHUNKED + b"1\r\na\r\n0\r\nX: ", b"x", "it was silent for 0.05 s"),
    ],
)
@on_both_loops
async def test_bytes_without_content_are_silence(first, drop, sentence):
    async with served(dripping(first, drop), SILENT) as (server, client):
        error = await failure_of(client, server.url)
    assert (error.kind, error.sentence) == (ErrorKind.TIMEOUT, sentence)


class TurnedClock:
    """What a connection asks of its loop, with a clock that the test turns."""

    def __init__(self):
        self._now = 100.0
        self._timers = []
        self.create_future = asyncio.get_running_loop().create_future

    def time(self):
        return self._now

    def call_at(self, due, callback):
        self._timers.append(timer := Timer(due, callback, self._timers))
        return timer

    def turn(self, seconds):
        """Let so much time go by, in which timers fire when they are due."""
        end = self._now + seconds
        while due := [timer for timer in self._timers if timer.due <= end]:
            timer = min(due, key=lambda each: each.due)
            self._now = timer.due
            timer.cancel()
            timer.callback()
        self._now = end


@dataclass
class Timer:
    due: float
    callback: Callable[[], None]
    timers: list["Timer"]

    def cancel(self):
        self.timers[:] = [timer for timer in self.timers if timer is not self]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("pause", "is_silent"), [(0.29, False), (0.3, True)])
async def test_a_body_that_drips_is_not_silent(whole, pause, is_silent):
    clock, recorder = TurnedClock(), Recorder()
    connection = connection_module.ProviderConnection(recorder, clock)
    connection.connection_made(recorder)
    response = ProviderResponse(UpstreamTimeouts(first_byte=0.3, idle=0.3), clock)
    connection.send(response, build_head("GET", "http://acme.test/", {}), None)
    connection.data_received(CHUNKED)

    async def read():
        found = await response.read(100) if whole else b""
        while part := await response.read_some():
            found += part
        return found

    reading = asyncio.create_task(read())
    for piece in [b"1\r\na\r\n"] * 10 + [b"0\r\n\r\n"]:
        await asyncio.sleep(0)
        clock.turn(pause)
        assert ("abort" in recorder.said) is is_silent
        if is_silent:
            break
        connection.data_received(piece)
    if is_silent:
        with pytest.raises(TransportError, match=r"it was silent for 0\.3 s"):
            await reading
    else:
        assert await reading == b"a" * 10
    connection.abort()


@on_both_loops
async def test_a_pause_of_the_gateway_is_not_the_providers():
    def answer(listener):
        peer, _ = listener.accept()
        with peer:
            peer.recv(65536)
            asked.set()
            resumed.wait(30)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    asked, resumed = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        provider = threading.Thread(target=answer, args=(listener,))
        provider.start()
        client = HttpClient(UpstreamTimeouts(connect=0.2, first_byte=0.2))
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            request = asyncio.ensure_future(client.request("GET", url, {}))
            while not asked.is_set():
                await asyncio.sleep(0.001)
            # The loop stands still, and the answer is read a moment after that.
            time.sleep(0.4 + PAUSE_THRESHOLD_SECONDS + 0.1)
            asyncio.get_running_loop().call_later(0.02, resumed.set)
            assert await (await request).read(10) == b"hi"
        finally:
            await client.close()
            provider.join(30)


@on_both_loops
async def test_total_ends_an_answer_that_drips():
    async with served(dripping(CHUNKED, b"1\r\na\r\n"), UpstreamTimeouts(total=0.2)) as (server, client):
        error = await failure_of(client, server.url)
    assert (error.kind, error.sentence) == (ErrorKind.TIMEOUT, "the answer took too long")


# What was read and what waits -------------------------------------------------------------------------------


@on_both_loops
async def test_what_came_before_a_cut_is_read_first():
    async with served(saying(CHUNKED + b"1\r\na\r\n")) as (server, client):
        response = await client.request("GET", server.url, {})
        assert await response.read_some() == b"a"
        for _ in range(2):
            with pytest.raises(TransportError, match=r"its answer broke off \(end of stream\)"):
                await response.read_some()


@on_both_loops
async def test_a_slow_reader_stops_the_provider_and_memory_stays_bounded():
    size = 200_000_000
    sent = 0

    async def talk(peer):
        nonlocal sent
        await peer.request()
        await peer.send(OK + b"Content-Length: %d\r\n\r\n" % size)
        block = b"x" * 1_000_000
        while sent < size:
            await peer.send(block)
            sent += len(block)
        await peer.gone()

    async with served(talk) as (server, client):
        response = await client.request("GET", server.url, {})
        taken = len(await response.read_some())
        before = -1
        while before != sent:  # until the buffers of the system are full
            before = sent
            await asyncio.sleep(0.1)
        assert sent < size / 2
        gc.collect()
        tracemalloc.start()
        while part := await response.read_some():
            assert len(part) < 1_000_000
            taken += len(part)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert taken == size
        assert peak < 20_000_000


@on_both_loops
async def test_a_stopped_connection_reads_on_for_the_next_request():
    big = OK + b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000
    async with served(repeating(big)) as (server, client):
        for _ in range(3):
            response = await client.request("GET", server.url, {})
            await asyncio.sleep(0.02)  # so that much waits before it is read
            assert len(await response.read(1_000_000)) == 300_000
    assert len(server.peers) == 1


@pytest.mark.parametrize("answer", [OK + b"Content-Length: 3000\r\n\r\n", CHUNKED + b"bb8\r\n"])
@on_both_loops
async def test_body_over_the_limit(answer):
    async with served(saying(answer + b"x" * 2000, close=False)) as (server, client):
        response = await client.request("GET", server.url, {})
        with pytest.raises(TransportError, match="its answer is over 1000 bytes"):
            await response.read(1000)
        await asyncio.wait_for(server.peers[0].left.wait(), 5)


@pytest.mark.parametrize("value", [b"gzip", b" BR"])
@on_both_loops
async def test_compressed_body(value):
    answer = b"HTTP/1.1 400 Bad\r\nContent-Encoding: %b\r\nContent-Length: 2\r\n\r\nhi" % value
    async with served(saying(answer)) as (server, client):
        response = await client.request("GET", server.url, {})
        assert response.status == 400
        with pytest.raises(
            TransportError, match="its answer is compressed, although the request accepts only identity"
        ):
            await response.read_some()


@on_both_loops
async def test_identity_is_no_compression():
    answer = OK + b"Content-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi"
    async with served(saying(answer)) as (server, client):
        assert (await get(client, server.url))[1] == b"hi"


@on_both_loops
async def test_reading_after_closing():
    async with served(saying(CHUNKED + b"1\r\na\r\n", close=False)) as (server, client):
        response = await client.request("GET", server.url, {})
        response.close()
        response.close()
        with pytest.raises(TransportError, match="broke off"):
            await response.read_some()
        await asyncio.wait_for(server.peers[0].left.wait(), 5)


@on_both_loops
async def test_finish_takes_the_end_that_comes_at_once():
    read = asyncio.Event()

    async def talk(peer):
        while await peer.request():
            await peer.send(CHUNKED + b"1\r\na\r\n")
            await read.wait()
            read.clear()
            await peer.send(b"1\r\nb\r\n")
            await peer.send(b"0\r\n\r\n")

    async with served(talk) as (server, client):
        for _ in range(3):
            response = await client.request("GET", server.url, {})
            assert await response.read_some() == b"a"
            read.set()
            await response.finish()
    assert len(server.peers) == 1


@on_both_loops
async def test_finish_does_not_wait_for_an_answer_that_goes_on():
    async with served(dripping(CHUNKED + b"1\r\na\r\n", b"1\r\nb\r\n")) as (server, client):
        response = await client.request("GET", server.url, {})
        assert await response.read_some()
        await asyncio.wait_for(response.finish(), 5)
        assert (await get_nothing(response)) == []


async def get_nothing(response) -> list[bytes]:
    with pytest.raises(TransportError):
        await response.read_some()
    return []


@on_both_loops
async def test_a_fault_of_our_own_is_not_blamed_on_the_provider(monkeypatch):
    faults = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["exception"]))

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(connection_module.ProviderConnection, "on_headers_complete", broken)
    async with served(saying(HI)) as (server, client):
        await failure_of(client, server.url)
    assert isinstance(faults[0].__context__, ZeroDivisionError)


@on_both_loops
async def test_nothing_is_sent_on_a_closed_connection():
    async with served(repeating(HI)) as (server, client):
        assert (await get(client, server.url))[1] == b"hi"
        (pool,) = client._pools.values()
        kept = pool.take()
        kept.drop()
        with pytest.raises(RuntimeError, match="not open"):
            kept.send(
                ProviderResponse(LONG, asyncio.get_running_loop()), build_head("GET", server.url, {}), None
            )


class Recorder:
    """A transport and an owner that note what they are told."""

    def __init__(self):
        self.said: list[str] = []

    def __getattr__(self, name):
        return lambda *_: self.said.append(name)

    def get_write_buffer_size(self):
        return 0


async def test_what_is_on_its_way_when_reading_stops_may_be_the_end():
    loop = asyncio.get_running_loop()
    recorder = Recorder()
    connection = connection_module.ProviderConnection(recorder, loop)
    connection.connection_made(recorder)
    response = ProviderResponse(LONG, loop)
    connection.send(response, build_head("GET", "http://acme.test/", {}), None)
    connection.data_received(OK + b"Content-Length: 100001\r\n\r\n" + b"x" * 100_000)
    connection.data_received(b"x")
    assert recorder.said == ["write", "pause_reading", "resume_reading", "release"]
    assert len(await response.read(200_000)) == 100_001
    connection.abort()


async def test_reading_does_not_stop_at_the_end():
    loop = asyncio.get_running_loop()
    recorder = Recorder()
    connection = connection_module.ProviderConnection(recorder, loop)
    connection.connection_made(recorder)
    response = ProviderResponse(LONG, loop)
    connection.send(response, build_head("GET", "http://acme.test/", {}), None)
    connection.data_received(OK + b"Content-Length: 100000\r\n\r\n" + b"x" * 100_000)
    assert recorder.said == ["write", "release"]
    connection.abort()
