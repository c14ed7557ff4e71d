"""Tests for gatewayd.http.connections.admission."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gatewayd.http.connections.admission import counted_address
from gatewayd.http.connections.capacity import DescriptorBudget, DescriptorLimits
from gatewayd.http.connections.request_uses import ConcurrencyBounds, ConcurrencyRules, RequestUse
from gatewayd.http.middleware import EdgeOptions
from gatewayd.http.routes import Route, RouteAccess
from tests.fakes.http.public_app import bearer, listening
from tests.fakes.providers.models import make_actor

PROXIES = (ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"))


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:470:1:2:3:4:5:6", "2001:470:1:2::/64"),
        # This machine, a unix socket, a proxy that names nobody: anybody may be behind them.
        ("127.0.0.1", ""),
        ("127.8.0.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("", ""),
        ("unknown", ""),
        ("10.1.2.3", ""),
        ("::ffff:10.1.2.3", ""),
        ("2001:db8::7", ""),
    ],
)
def test_addresses_that_are_counted(address: str, counted: str) -> None:
    assert counted_address(address, PROXIES) == counted


async def hang(request: web.Request) -> web.StreamResponse:
    await request.read()
    await asyncio.sleep(60)
    raise AssertionError("nobody waits for so long")


async def answer(request: web.Request) -> web.StreamResponse:
    return web.json_response({"status": True})


ROWS = [
    Route("GET", "/hang", hang, RouteAccess.VERIFIED, "Hang", use=RequestUse.ANSWER, interruptible=True),
    Route("POST", "/finish", hang, RouteAccess.VERIFIED, "Finish", use=RequestUse.ANSWER),
    Route("GET", "/answer", answer, RouteAccess.VERIFIED, "Answer", use=RequestUse.ANSWER),
    Route("GET", "/open", answer, RouteAccess.PUBLIC, "Answer anybody"),
    Route("GET", "/health", answer, RouteAccess.PUBLIC, "Health", use=RequestUse.PROBE),
]
ACTORS = {name: make_actor(name) for name in ("ann", "bob")}
ROOM = DescriptorLimits(100, 4, 50, 1_000_000)

Address = tuple[str, int]


async def ask(address: Address, path: str, headers: Mapping[str, str]) -> tuple[int, Any, Mapping[str, str]]:
    """Ask on a connection of its own."""
    url = f"http://{address[0]}:{address[1]}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as reply:
        return reply.status, await reply.json(), reply.headers


@asynccontextmanager
async def hanging(
    room: DescriptorBudget, address: Address, headers: Mapping[str, str]
) -> AsyncIterator[None]:
    """Have a request that is not answered."""
    before = room.taken
    reader, writer = await asyncio.open_connection(*address)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET /hang HTTP/1.1\r\nHost: gateway\r\n{lines}\r\n".encode())
    await until(lambda: room.taken == before + 2)
    try:
        yield
    finally:
        writer.transport.abort()
        await until(lambda: room.taken == before)
        del reader


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def test_an_account_over_its_bound_is_refused_and_others_are_not() -> None:
    room = DescriptorBudget(ROOM, ConcurrencyRules(account=ConcurrencyBounds(streams=1)))
    async with listening(ROWS, ACTORS, room=room) as address:
        for _ in range(3):
            assert (await ask(address, "/answer", bearer("ann")))[0] == 200
        async with hanging(room, address, bearer("ann")):
            status, body, headers = await ask(address, "/answer", bearer("ann"))
            assert (status, headers["Retry-After"]) == (429, "2")
            assert body["error"]["code"] == "too_many_streams"
            assert body["detail"] == (
                "cannot take the request: the account has 1 streams at once, the most for one account"
            )
            assert (await ask(address, "/answer", bearer("bob")))[0] == 200
            assert (await ask(address, "/open", {}))[0] == 200
        # Who left holds nothing.
        assert (await ask(address, "/answer", bearer("ann")))[0] == 200


async def test_work_that_goes_on_without_its_client_is_counted_until_it_is_done() -> None:
    room = DescriptorBudget(ROOM, ConcurrencyRules(account=ConcurrencyBounds(streams=1)))
    async with listening(ROWS, ACTORS, room=room) as address:
        _, writer = await asyncio.open_connection(*address)
        head = "".join(f"{name}: {value}\r\n" for name, value in bearer("ann").items())
        writer.write(f"POST /finish HTTP/1.1\r\nHost: gateway\r\n{head}\r\n".encode())
        await until(lambda: room.taken == 2)
        writer.close()
        # The descriptor of the provider alone.
        await until(lambda: room.taken == 1)
        assert (await ask(address, "/answer", bearer("ann")))[0] == 429
        assert (await ask(address, "/answer", bearer("bob")))[0] == 200
    # The end of the server cancels it.
    assert room.taken == 0


async def test_an_address_behind_a_trusted_proxy_is_the_one_that_the_proxy_names() -> None:
    room = DescriptorBudget(ROOM, ConcurrencyRules(address=ConcurrencyBounds(streams=1)))
    options = EdgeOptions(trusted_proxies=(ip_network("127.0.0.0/8"),))
    first, second = ({**bearer("ann"), "X-Forwarded-For": f"192.0.2.{last}"} for last in (1, 2))
    async with (
        listening(ROWS, ACTORS, room=room, options=options) as address,
        hanging(room, address, first),
        hanging(room, address, bearer("ann")),
    ):
        status, body, _ = await ask(address, "/answer", first)
        assert (status, body["error"]["code"]) == (429, "too_many_streams")
        assert "the address has 1 streams at once" in body["detail"]
        assert (await ask(address, "/answer", second))[0] == 200
        assert (await ask(address, "/answer", bearer("ann")))[0] == 200


async def test_without_room_the_health_alone_is_told() -> None:
    room = DescriptorBudget(DescriptorLimits(2, 4, 2, 1_000_000))
    async with listening(ROWS, ACTORS, room=room) as address:
        # A fourth of so few is nothing: this one has no account.
        busy = Seated()
        room.enter(busy)
        room.hold(busy, "", "", RequestUse.UPLOAD)
        status, body, headers = await ask(address, "/open", {})
        assert (status, headers["Retry-After"], headers["Connection"]) == (503, "2", "close")
        assert body["error"]["code"] == "too_many_connections"
        assert body["detail"] == "cannot take the request: the gateway has its 2 connections and files in use"
        # No credential is looked up for it.
        assert (await ask(address, "/answer", bearer("nobody")))[0] == 503
        assert (await ask(address, "/health", {}))[0] == 200
        room.leave(busy)


async def test_who_waits_is_closed_for_who_comes() -> None:
    room = DescriptorBudget(DescriptorLimits(100, 4, 2, 1_000_000))
    async with listening(ROWS, ACTORS, room=room) as address:
        waiting = [await asyncio.open_connection(*address) for _ in range(3)]
        assert await asyncio.wait_for(waiting[0][0].read(), 10) == b""
        assert (await ask(address, "/answer", bearer("ann")))[0] == 200
        for _, writer in waiting:
            writer.transport.abort()


class Seated:
    """A connection that does not wait for its peer."""

    is_spare = is_waiting = is_blocked = is_stranger = is_anonymous = False
    since = 0.0

    def evict(self) -> None:
        raise AssertionError("it does not wait for its peer")
