"""Tests for gatewayd.http.socketio.sessions."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from gatewayd.accounts.records import Actor, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import Event, EventTarget
from gatewayd.events.rooms import EventLimits
from gatewayd.http.socketio import sessions as module
from gatewayd.http.socketio.sessions import MAX_PACKET_BYTES, SocketRoutes
from gatewayd.tasks import TaskRegistry
from tests.fakes.http.public_app import Client, FakeAuthenticator, serving
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.events import SOON, TARGET, EventSite

PATH = "/ws/socket.io/?EIO=4&transport=websocket"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
ACTORS = {
    "ann": make_actor("ann", Role.USER),
    "bob": make_actor("bob", Role.USER),
    "pending": make_actor("pam", Role.PENDING),
}

Socket = aiohttp.ClientWebSocketResponse


@dataclass
class Site:
    client: Client
    inner: EventSite
    routes: SocketRoutes

    async def open(self, auth: Any = None) -> Socket:
        """Return a connection whose greetings are read; `auth` is what the client says who it is."""
        socket = await self.client.ws_connect(PATH)
        assert (await text(socket)).startswith('0{"sid":')
        await socket.send_str(f"40{orjson.dumps(auth).decode()}" if auth is not None else "40")
        assert (await text(socket)).startswith('40{"sid":')
        return socket

    async def emit(self, n: int, user_id: str = "ann") -> None:
        await self.inner.events.emit(EventTarget(user_id, "c1", ""), {"type": "own", "data": {"n": n}})


async def text(socket: Socket) -> str:
    return await asyncio.wait_for(socket.receive_str(), SOON)


async def event(socket: Socket) -> tuple[str, Any]:
    """Return the id and the payload of the next event."""
    packet = await text(socket)
    assert packet.startswith("42")
    digits, found, rest = packet[2:].partition("[")
    assert found
    name, payload = orjson.loads(f"[{rest}")
    assert name == "events"
    return digits, payload


async def is_closed(socket: Socket) -> bool:
    async with asyncio.timeout(SOON):
        async for _ in socket:
            pass
    return socket.closed


@asynccontextmanager
async def site_of(
    limits: EventLimits | None = None,
    known: FakeAuthenticator | None = None,
    check: Callable[[web.Request, Actor], None] | None = None,
) -> AsyncIterator[Site]:
    inner, tasks = EventSite(limits=limits or EventLimits()), TaskRegistry()
    known = known or FakeAuthenticator(ACTORS)
    routes = SocketRoutes(
        inner.hub,
        inner.calls,
        lambda token: known.authenticate(token, "GET", "/ws/socket.io"),
        tasks,
        check=check,
    )
    async with serving(routes.routes()) as client:
        yield Site(client, inner, routes)
        inner.hub.close()
        await routes.close()
    await tasks.close()


async def test_events_come_to_the_user_of_the_token() -> None:
    async with site_of() as site:
        hers, his = await site.open({"token": "ann"}), await site.open({"token": "bob"})
        await site.emit(1)
        await site.emit(2, "bob")
        payload = {"chat_id": "c1", "message_id": "", "data": {"type": "own", "data": {"n": 1}}}
        assert await event(hers) == ("", payload)
        assert (await event(his))[1]["data"]["data"] == {"n": 2}


@pytest.mark.parametrize("auth", [None, {}, {"token": "bad"}, {"token": 5}, {"token": "pending"}, [], "ann"])
async def test_a_client_without_a_good_token_stays_and_hears_nothing_until_it_joins(auth: Any) -> None:
    async with site_of() as site:
        socket = await site.open(auth)
        await site.emit(1)
        await socket.send_str('427["user-join",{"auth":{"token":"bad"}}]')
        assert await text(socket) == "437[null]"
        await socket.send_str('428["user-join",{"auth":{"token":"ann"}}]')
        assert await text(socket) == '438[{"id":"ann","name":"ann"}]'
        await site.emit(2)
        assert (await event(socket))[1]["data"]["data"] == {"n": 2}


async def test_a_proxy_that_names_another_person_lets_nobody_join() -> None:
    def check(request: web.Request, actor: Actor) -> None:
        if actor.user_id != "bob":
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the session")

    async with site_of(check=check) as site:
        hers, his = await site.open({"token": "ann"}), await site.open({"token": "bob"})
        await site.emit(1)
        await site.emit(2, "bob")
        assert (await event(his))[1]["data"]["data"] == {"n": 2}
        await hers.send_str('428["user-join",{"auth":{"token":"ann"}}]')
        assert await text(hers) == "438[null]"


class Failing(FakeAuthenticator):
    """Knows nobody, as the account services fail."""

    def __init__(self, failure: GatewayError) -> None:
        super().__init__({})
        self.failure = failure

    async def authenticate(self, credential: str, method: str, path: str) -> Actor:
        raise self.failure


@pytest.mark.parametrize(
    ("kind", "level"),
    [(ErrorKind.INTERNAL, "ERROR"), (ErrorKind.UNAVAILABLE, "WARNING"), (ErrorKind.FORBIDDEN, "INFO")],
)
async def test_why_nobody_joined_is_logged_with_the_id_of_the_request(
    kind: ErrorKind, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with site_of(known=Failing(GatewayError(kind, "cannot read it"))) as site:
        socket = await site.open({"token": "ann"})
        [told] = [line for line in caplog.records if "cannot read it" in line.getMessage()]
        assert (told.levelname, told.getMessage()) == (level, "socket without a user: cannot read it")
        assert vars(told)["kind"] == kind.value
        assert vars(told)["request_id"]
        assert bool(told.exc_info) is (kind is ErrorKind.INTERNAL)
        await socket.close()


async def test_joining_as_somebody_else_leaves_the_first_room() -> None:
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        await socket.send_str('421["user-join",{"auth":{"token":"bob"}}]')
        assert await text(socket) == '431[{"id":"bob","name":"bob"}]'
        await site.emit(1)
        await site.emit(2, "bob")
        assert (await event(socket))[1]["data"]["data"] == {"n": 2}
        assert not site.inner.hub.is_live("ann")


async def test_the_session_is_the_id_of_the_socket() -> None:
    async with site_of() as site:
        socket = await site.client.ws_connect(PATH)
        opened = orjson.loads((await text(socket))[1:])
        await socket.send_str('40{"token":"ann"}')
        assert orjson.loads((await text(socket))[2:]) == {"sid": opened["sid"]}
        (listener,) = site.inner.hub.listeners("ann")
        assert listener.opened.session_id == opened["sid"]


async def test_other_events_and_the_heartbeat() -> None:
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        for sent in ('42["usage",{"model":"m"}]', '425["own"]', '42["heartbeat",{}]', '429["heartbeat",{}]'):
            await socket.send_str(sent)
        assert await text(socket) == "439[null]"


@pytest.mark.parametrize("result", [True, False, None, "text", {"value": 1}])
async def test_a_call_is_answered_by_an_acknowledgement(result: Any) -> None:
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        task = asyncio.ensure_future(site.inner.calls.ask(TARGET, Event("input", {"title": "t"})))
        number, payload = await event(socket)
        assert payload["data"] == {"type": "input", "data": {"title": "t"}}
        # An answer to nothing, and one by somebody else, change nothing.
        await socket.send_str(f"4399{orjson.dumps([result]).decode()}")
        other = await site.open({"token": "bob"})
        await other.send_str(f"43{number}[1]")
        await socket.send_str(f"43{number}{orjson.dumps([result]).decode()}")
        assert await asyncio.wait_for(task, SOON) == result
        await socket.send_str(f"43{number}[5]")


async def test_an_acknowledgement_that_comes_late_does_no_harm() -> None:
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        task = asyncio.ensure_future(site.inner.calls.ask(TARGET, Event("input", {})))
        number, payload = await event(socket)
        await site.inner.calls.answer("ann", payload["call_id"], "elsewhere")
        assert await asyncio.wait_for(task, SOON) == "elsewhere"
        await socket.send_str(f"43{number}[]")
        await socket.send_str('421["heartbeat"]')
        assert await text(socket) == "431[null]"


async def test_a_socket_that_leaves_is_no_listener_any_more() -> None:
    async with site_of() as site:
        for goodbye in ("41", "1", ""):
            socket = await site.open({"token": "ann"})
            assert site.inner.hub.is_live("ann")
            if goodbye:
                await socket.send_str(goodbye)
                assert await is_closed(socket)
            await socket.close()
            async with asyncio.timeout(SOON):
                while site.inner.hub.is_live("ann"):
                    await asyncio.sleep(0)


async def test_who_is_put_out_is_closed() -> None:
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        site.inner.hub.disconnect("ann")
        assert await text(socket) == "41"
        assert await is_closed(socket)


@pytest.mark.parametrize("sent", ["45-", "42[", '42{"a":1}', "42[]", "42[5]", "4", "4x"])
async def test_a_malformed_packet_closes_the_connection(sent: str) -> None:
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        await socket.send_str(sent)
        assert await is_closed(socket)
        assert not site.inner.hub.is_live("ann")


async def test_a_packet_that_is_too_large_or_no_text_closes_the_connection() -> None:
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        await socket.send_str("42" + "x" * MAX_PACKET_BYTES)
        assert await is_closed(socket)
        socket = await site.open({"token": "ann"})
        await socket.send_bytes(b"42")
        assert await is_closed(socket)


async def test_another_namespace_is_refused() -> None:
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        await socket.send_str("40/admin,")
        assert await text(socket) == '44/admin,{"message":"Unable to connect"}'


@pytest.mark.parametrize("query", ["", "?EIO=3&transport=websocket", "?EIO=4&transport=polling", "?EIO=4"])
async def test_other_transports_are_refused(query: str) -> None:
    async with site_of() as site:
        reply = await site.client.get(f"/ws/socket.io/{query}")
        assert (reply.status, (await reply.json())["error"]["param"]) == (400, "transport")


async def test_a_request_for_no_websocket_is_refused() -> None:
    async with site_of() as site:
        assert (await site.client.get(PATH)).status == 400


async def test_pings_are_sent_and_must_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PING_SECONDS", 0.01)
    async with site_of() as site:
        socket = await site.open({"token": "ann"})
        for _ in range(2):
            assert await text(socket) == "2"
            await socket.send_str("3")
        monkeypatch.setattr(module, "PONG_SECONDS", 0.01)
        assert await is_closed(socket)


async def test_a_client_that_never_says_who_it_is_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PING_SECONDS", 0.01)
    monkeypatch.setattr(module, "ANONYMOUS_SECONDS", 0.0)
    async with site_of() as site:
        socket = await site.client.ws_connect(PATH)
        assert await is_closed(socket)


async def test_all_connections_can_be_closed() -> None:
    async with site_of() as site:
        anonymous = await site.open()
        await site.routes.close()
        assert await is_closed(anonymous)
        reply = await site.client.get(PATH, headers=UPGRADE)
        assert reply.status == 503


async def test_a_client_that_takes_nothing_does_not_hold_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)
    async with site_of() as site:
        deaf, other = await site.open(), await site.open()
        first, second = site.routes._sockets

        async def never() -> None:
            await asyncio.Event().wait()

        with monkeypatch.context() as patch:
            patch.setattr(first, "close", never)
            async with asyncio.timeout(SOON):
                await site.routes.close()
        assert [first.closed, second.closed] == [False, True]
        await first.close()
        assert await is_closed(deaf)
        assert await is_closed(other)


async def test_a_client_of_the_library_works() -> None:
    socketio = pytest.importorskip("socketio")
    async with site_of() as site:
        client = socketio.AsyncClient(reconnection=False)
        heard: asyncio.Queue[Any] = asyncio.Queue()

        @client.on("events")  # type: ignore[untyped-decorator]
        async def on_events(payload: Any) -> Any:
            heard.put_nowait(payload)
            return {"value": "typed"} if "call_id" in payload else None

        url = str(site.client.make_url("/"))
        await client.connect(
            url, auth={"token": "ann"}, socketio_path="/ws/socket.io", transports=["websocket"]
        )
        assert await client.call("user-join", {"auth": {"token": "ann"}}, timeout=5) == {
            "id": "ann",
            "name": "ann",
        }
        await site.emit(1)
        assert (await asyncio.wait_for(heard.get(), SOON))["data"]["data"] == {"n": 1}
        target = EventTarget("ann", "c1", "m1", client.get_sid())
        asked = site.inner.calls.ask(target, Event("input", {"title": "t"}))
        assert await asyncio.wait_for(asked, SOON) == {"value": "typed"}
        await client.disconnect()


async def test_a_client_without_a_user_is_closed_whatever_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANONYMOUS_SECONDS", 0.0)
    async with site_of() as site:
        socket = await site.client.ws_connect(PATH)
        # Each of them would put the next ping off.
        await socket.send_str("3")
        assert await is_closed(socket)
