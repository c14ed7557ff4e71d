import asyncio
from contextlib import asynccontextmanager

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.client import HttpClient, TransportError
from gatewayd.upstream.http.connection import ProviderConnection
from gatewayd.upstream.http.connector import ConnectionDialer
from gatewayd.upstream.http.response import ProviderResponse
from gatewayd.upstream.sources.config import UpstreamTimeouts
from tests.fakes.http.byte_server import RawServer, on_both_loops

LONG = UpstreamTimeouts(connect=5.0, first_byte=30.0, idle=30.0)
HI = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
BEGUN = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
REST = b"0\r\n\r\n"


class Paced:
    """Answers every request when it is told to, in the order in which they came."""

    def __init__(self, begun: bytes = b"", rest: bytes = HI) -> None:
        self.begun = begun
        self.rest = rest
        self.paths: list[str] = []
        self.arrived = asyncio.Semaphore(0)
        self.permits = asyncio.Semaphore(0)

    async def __call__(self, peer):
        while request := await peer.request():
            self.paths.append(request.split()[1].decode())
            if self.begun:
                await peer.send(self.begun)
            self.arrived.release()
            await self.permits.acquire()
            await peer.send(self.rest)

    def answer(self, count=1):
        for _ in range(count):
            self.permits.release()


@asynccontextmanager
async def served(talk, timeouts=LONG, **options):
    async with RawServer(talk) as server:
        client = HttpClient(timeouts, **options)
        try:
            yield server, client
        finally:
            await client.close()


async def read(client, url) -> bytes:
    return await (await client.request("GET", url, {})).read(1000)


def pool_of(client):
    (pool,) = client._pools.values()
    return pool


async def settle(done):
    """Let the loop run until `done()`."""
    for _ in range(2000):
        if done():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not come to that")


async def cancel(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@on_both_loops
async def test_the_connection_used_last_is_used_next():
    talk = Paced()
    async with served(talk) as (server, client):
        tasks = [asyncio.create_task(read(client, f"{server.url}/{i}")) for i in range(3)]
        for _ in range(3):
            await talk.arrived.acquire()
        talk.answer(3)
        await asyncio.gather(*tasks)
        talk.answer(5)
        for i in range(5):
            await read(client, f"{server.url}/again{i}")
        counts = sorted(len(peer.requests) for peer in server.peers)
        assert counts == [1, 1, 6]
        assert (pool_of(client)._taken, len(pool_of(client)._idle)) == (3, 3)


@on_both_loops
async def test_limit_and_order_of_the_queue():
    talk = Paced()
    async with served(talk, connections=2) as (server, client):
        tasks = []
        for i in range(8):
            tasks.append(asyncio.create_task(read(client, f"{server.url}/{i}")))
            await asyncio.sleep(0)
        for _ in range(8):
            await talk.arrived.acquire()
            talk.answer()
        assert await asyncio.gather(*tasks) == [b"hi"] * 8
    assert len(server.peers) == 2
    assert talk.paths[2:] == [f"/{i}" for i in range(2, 8)]


@on_both_loops
async def test_nobody_overtakes_those_who_wait():
    talk = Paced()
    async with served(talk, connections=1) as (server, client):
        first = asyncio.create_task(read(client, f"{server.url}/first"))
        await talk.arrived.acquire()
        second = asyncio.create_task(read(client, f"{server.url}/second"))
        await asyncio.sleep(0)
        talk.answer(10)
        await first
        # The place was given to the second one, which did not run yet: the third one has to wait.
        await asyncio.gather(read(client, f"{server.url}/third"), second)
    assert talk.paths == ["/first", "/second", "/third"]


@on_both_loops
async def test_a_place_whose_connection_is_closed_goes_to_the_next():
    close = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
    talk = Paced(rest=close)
    talk.answer(100)
    async with served(talk, connections=2) as (server, client):
        assert await asyncio.gather(*(read(client, server.url) for _ in range(9))) == [b"hi"] * 9
        assert pool_of(client)._taken == 0
    assert len(server.peers) == 9


@on_both_loops
async def test_waiting_too_long_for_a_place():
    talk = Paced()
    async with served(talk, UpstreamTimeouts(connect=0.05), connections=1) as (server, client):
        busy = asyncio.create_task(read(client, server.url))
        await talk.arrived.acquire()
        with pytest.raises(TransportError) as caught:
            await read(client, server.url)
        assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE
        assert caught.value.sentence == "no connection within 0.05 s"
        assert not pool_of(client)._waiters
        talk.answer(2)
        assert await busy == b"hi"
        assert await read(client, server.url) == b"hi"


@on_both_loops
async def test_cancelled_while_it_waits_for_the_head():
    talk = Paced()
    async with served(talk, connections=1) as (server, client):
        task = asyncio.create_task(read(client, server.url))
        await talk.arrived.acquire()
        await cancel(task)
        assert pool_of(client)._taken == 0
        await settle(lambda: not pool_of(client)._open)
        talk.answer(2)
        assert await read(client, server.url) == b"hi"


@on_both_loops
async def test_cancelled_in_the_body():
    talk = Paced(BEGUN, REST)
    async with served(talk, connections=1) as (server, client):
        task = asyncio.create_task(read(client, server.url))
        await talk.arrived.acquire()
        await asyncio.sleep(0.01)
        await cancel(task)
        assert pool_of(client)._taken == 0
        await settle(lambda: not pool_of(client)._open)
        talk.answer(2)
        assert await read(client, server.url) == b"a"


@on_both_loops
async def test_cancelled_in_the_queue():
    talk = Paced()
    async with served(talk, connections=1) as (server, client):
        busy = asyncio.create_task(read(client, server.url))
        await talk.arrived.acquire()
        waiting = [asyncio.create_task(read(client, server.url)) for _ in range(3)]
        await asyncio.sleep(0)
        await cancel(waiting[0])
        await cancel(waiting[2])
        talk.answer(2)
        assert [await busy, await waiting[1]] == [b"hi", b"hi"]
        assert (pool_of(client)._taken, len(pool_of(client)._idle)) == (1, 1)
    assert len(server.peers) == 1


def when_passed_on(monkeypatch, pool, act):
    """Do `act(connection)` once, after a place was given to a request and before that request goes on."""
    pass_on = pool._pass_on

    def pass_on_and_act(connection):
        monkeypatch.undo()
        pass_on(connection)
        act(connection)

    monkeypatch.setattr(pool, "_pass_on", pass_on_and_act)


@pytest.mark.parametrize("is_kept", [True, False])
@on_both_loops
async def test_cancelled_just_when_its_turn_comes(is_kept, monkeypatch):
    talk = Paced(rest=HI if is_kept else HI.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    async with served(talk, connections=1) as (server, client):
        tasks = []
        for path in ("first", "second", "third"):
            tasks.append(asyncio.create_task(read(client, f"{server.url}/{path}")))
            await asyncio.sleep(0)
        await talk.arrived.acquire()
        pool = pool_of(client)
        when_passed_on(monkeypatch, pool, lambda _: tasks[1].cancel())
        talk.answer(3)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert (results[0], type(results[1]), results[2]) == (b"hi", asyncio.CancelledError, b"hi")
        assert pool._taken == len(pool._idle) == (1 if is_kept else 0)
    assert talk.paths == ["/first", "/third"]


class Hanging:
    """A dialer whose connections are never there."""

    def __init__(self):
        self.dials = 0

    async def dial(self, protocol, due):
        self.dials += 1
        await asyncio.get_running_loop().create_future()


@on_both_loops
async def test_cancelled_while_it_connects():
    talk = Paced()
    talk.answer(2)
    async with served(talk, connections=1) as (server, client):
        await read(client, server.url)
        pool = pool_of(client)
        real, pool._dialer = pool._dialer, Hanging()
        pool.take().drop()
        first = asyncio.create_task(read(client, server.url))
        second = asyncio.create_task(read(client, server.url))
        await asyncio.sleep(0)
        assert (pool._dialer.dials, pool._taken) == (1, 1)
        pool._dialer = real
        await cancel(first)
        assert await second == b"hi"
        assert pool._taken == 1


@pytest.mark.parametrize("moment", ["connection_made", "dial"])
@on_both_loops
async def test_cancelled_just_when_it_is_connected(monkeypatch, moment):
    talk = Paced()
    talk.answer(2)
    async with served(talk, connections=1) as (server, client):
        made, dial = ProviderConnection.connection_made, ConnectionDialer.dial

        def make_and_cancel(self, transport):
            made(self, transport)
            task.cancel()

        async def dial_and_be_cancelled(self, protocol, due):
            await dial(self, protocol, due)
            task.cancel()
            await asyncio.sleep(0)

        if moment == "dial":
            monkeypatch.setattr(ConnectionDialer, "dial", dial_and_be_cancelled)
        else:
            monkeypatch.setattr(ProviderConnection, "connection_made", make_and_cancel)
        task = asyncio.create_task(read(client, server.url))
        with pytest.raises(asyncio.CancelledError):
            await task
        pool = pool_of(client)
        await settle(lambda: server.peers and server.peers[0].left.is_set())
        assert (pool._taken, pool._open) == (0, set())
        monkeypatch.undo()
        assert await read(client, server.url) == b"hi"


@on_both_loops
async def test_lost_just_when_it_is_connected(monkeypatch):
    async def talk(peer):
        peer.abort()

    async with served(talk, connections=1) as (server, client):
        dial = ConnectionDialer.dial

        async def dial_and_lose(self, protocol, due):
            await dial(self, protocol, due)
            await settle(lambda: not protocol.is_open)

        monkeypatch.setattr(ConnectionDialer, "dial", dial_and_lose)
        with pytest.raises(TransportError, match=r"no connection \(connection closed\)"):
            await read(client, server.url)
        assert (pool_of(client)._taken, pool_of(client)._open) == (0, set())


@on_both_loops
async def test_cancelled_just_when_a_kept_connection_turns_out_to_be_closed(monkeypatch):
    async def talk(peer):
        await peer.request()
        await peer.send(HI)
        await peer.request()

    async with served(talk, connections=1) as (server, client):
        assert await read(client, server.url) == b"hi"
        wake = ProviderResponse.wake

        def wake_and_cancel(self):
            monkeypatch.undo()
            wake(self)
            task.cancel()

        monkeypatch.setattr(ProviderResponse, "wake", wake_and_cancel)
        task = asyncio.create_task(read(client, server.url))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pool_of(client)._taken == 0
    assert len(server.peers) == 1


@on_both_loops
async def test_cancelled_at_any_step():
    """Whatever a request waits for when it is cancelled, no place is lost and the pool goes on."""

    async def talk(peer):
        while await peer.request():
            await peer.send(BEGUN)
            await asyncio.sleep(0)
            await peer.send(REST)

    async with served(talk, connections=2) as (server, client):
        for steps in 3 * list(range(60)):
            tasks = [asyncio.create_task(read(client, server.url)) for _ in range(4)]
            for _ in range(steps):
                await asyncio.sleep(0)
            tasks[steps % 4].cancel()
            tasks[(steps // 4) % 4].cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                assert result == b"a" or isinstance(result, asyncio.CancelledError)
            pool = pool_of(client)
            assert pool._taken == len(pool._idle) <= 2
            assert not pool._waiters
        await settle(lambda: pool._open == set(pool._idle))


@on_both_loops
async def test_a_kept_connection_that_is_closed_is_forgotten_at_once():
    async def talk(peer):
        await peer.request()
        await peer.send(HI)

    async with served(talk) as (server, client):
        await read(client, server.url)
        pool = pool_of(client)
        await settle(lambda: not pool._open)
        assert (pool._taken, pool._idle) == (0, [])


@on_both_loops
async def test_a_connection_that_dies_on_its_way_to_a_waiter_is_replaced(monkeypatch):
    talk = Paced()
    async with served(talk, connections=1) as (server, client):
        first = asyncio.create_task(read(client, server.url))
        await talk.arrived.acquire()
        second = asyncio.create_task(read(client, server.url))
        await asyncio.sleep(0)
        pool = pool_of(client)
        when_passed_on(monkeypatch, pool, lambda kept: kept.fail(ErrorKind.UPSTREAM_FAILED, "died"))
        talk.answer(2)
        assert await asyncio.gather(first, second) == [b"hi", b"hi"]
        assert (pool._taken, len(pool._idle)) == (1, 1)
    assert [len(peer.requests) for peer in server.peers] == [1, 1]


@on_both_loops
async def test_closing_ends_everything():
    talk = Paced()
    async with served(talk, connections=1) as (server, client):
        busy = asyncio.create_task(read(client, server.url))
        await talk.arrived.acquire()
        waiting = asyncio.create_task(read(client, server.url))
        await asyncio.sleep(0)
        await client.close()
        for task in (busy, waiting):
            with pytest.raises(TransportError, match="its connections were closed"):
                await task
        with pytest.raises(TransportError, match="its connections were closed"):
            await read(client, server.url)
        assert (pool_of(client)._taken, pool_of(client)._open) == (0, set())
        await client.close()


@on_both_loops
async def test_closing_while_it_connects(monkeypatch):
    talk = Paced()
    async with served(talk) as (server, client):
        dial = ConnectionDialer.dial

        async def dial_and_close(self, protocol, due):
            closing = asyncio.create_task(client.close())
            await asyncio.sleep(0)
            await dial(self, protocol, due)
            await closing

        monkeypatch.setattr(ConnectionDialer, "dial", dial_and_close)
        with pytest.raises(TransportError, match="its connections were closed"):
            await read(client, server.url)
        await settle(lambda: not pool_of(client)._open)
        assert pool_of(client)._taken == 0


@on_both_loops
async def test_many_at_once():
    talk = Paced()
    talk.answer(10_000)
    async with served(talk, connections=7) as (server, client):
        assert await asyncio.gather(*(read(client, server.url) for _ in range(500))) == [b"hi"] * 500
    assert len(server.peers) == 7
