"""Tests for gatewayd.http.public.events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import orjson
import pytest

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import Actor, Role
from gatewayd.chats.records import MAX_CONTENT_CHARACTERS, Chat
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.events.event_types import external_names
from gatewayd.events.records import Event, EventTarget
from gatewayd.events.rooms import EventLimits
from gatewayd.events.tickets import Tickets
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.public.events import EventRoutes, EventServices
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.events import SOON, TARGET, Clock, EventSite, fields, waiting
from tests.fakes.storage.memory_chats import ChatState

PATH = "/api/v1/events"
EVENT = "/api/v1/chats/c1/messages/m1/event"
ACTORS = {
    "ann": make_actor("ann", Role.USER),
    "bob": make_actor("bob", Role.USER),
    "root": make_actor("root", Role.ADMIN),
    "pending": make_actor("pam", Role.PENDING),
}


class Owners:
    """Whose chats are whose."""

    def __init__(self, state: ChatState) -> None:
        self._state = state

    async def owned(self, actor: Actor, chat_id: str) -> Chat:
        if chat_id not in self._state.chats:
            raise not_found("chat", chat_id)
        chat = self._state.chats[chat_id]
        if not actor.is_admin and chat.user_id != actor.user_id:
            raise GatewayError(ErrorKind.FORBIDDEN, f"cannot use chat {chat_id!r}: it is somebody else's")
        return chat


@dataclass
class Site:
    """The routes over services in memory, and what is put out."""

    client: Client
    inner: EventSite
    routes: EventRoutes
    shut_out: AccessRevocation
    clock: Clock = field(default_factory=Clock)

    def change(self, change: AccountChange) -> None:
        self.shut_out.on_change(change)
        self.routes.on_change(change)

    async def listen(self, path: str = PATH, who: str = "ann", **headers: str) -> "Stream":
        reply = await self.client.get(path, headers={**(bearer(who) if who else {}), **headers})
        return Stream(reply)

    async def emit(self, name: str = "status", chat_id: str = "c1", **data: Any) -> None:
        target = EventTarget("ann", chat_id, "m1")
        assert await self.inner.events.emit(target, {"type": name, "data": data})


@dataclass
class Stream:
    """One open stream, read frame by frame."""

    reply: aiohttp.ClientResponse

    async def frame(self) -> dict[str, str]:
        block = await asyncio.wait_for(self.reply.content.readuntil(b"\n\n"), SOON)
        found = fields(block)
        return found[0] if found else {"comment": block.decode()}

    async def session(self) -> Any:
        frame = await self.frame()
        assert frame["event"] == "session"
        return {**orjson.loads(frame["data"]), "id": frame["id"]}

    async def event(self) -> Any:
        frame = await self.frame()
        assert "event" not in frame
        return orjson.loads(frame["data"])

    async def is_over(self) -> bool:
        try:
            return await asyncio.wait_for(self.reply.content.read(), SOON) == b""
        except aiohttp.ClientError:
            return True


@asynccontextmanager
async def site_of(
    limits: EventLimits | None = None,
    actors: dict[str, Actor] | None = None,
    *,
    has_external_tools: bool = True,
) -> AsyncIterator[Site]:
    inner, clock = EventSite(limits=limits or EventLimits()), Clock()
    shut_out, tickets = AccessRevocation(), Tickets(clock=clock)
    services = EventServices(inner.events, inner.hub, inner.calls, tickets, Owners(inner.state))
    routes = EventRoutes(services, body_limit=10_000, has_external_tools=has_external_tools)
    known = actors or ACTORS
    async with serving(routes.routes(), known, shut_out=shut_out, tickets=tickets) as client:
        yield Site(client, inner, routes, shut_out, clock)
        inner.hub.close()


async def test_a_stream_begins_with_its_session() -> None:
    async with site_of() as site:
        stream = await site.listen()
        assert stream.reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert stream.reply.headers["Cache-Control"] == "no-store"
        frame = await stream.frame()
        assert frame.keys() == {"retry", "id", "event", "data"}
        told = orjson.loads(frame["data"])
        assert told == {"session_id": told["session_id"], "user_id": "ann", "resume_from": None, "gap": False}
        assert told["session_id"]


async def test_events_come_as_they_are_emitted() -> None:
    async with site_of() as site:
        stream, other = await site.listen(), await site.listen(who="bob")
        await stream.session()
        await other.session()
        await site.emit("status", description="Wörking\u2028on", done=False)
        frame = await stream.frame()
        assert frame.keys() == {"id", "data"}
        assert orjson.loads(frame["data"]) == {
            "chat_id": "c1",
            "message_id": "m1",
            "data": {"type": "status", "data": {"description": "Wörking\u2028on", "done": False}},
        }
        await site.inner.events.emit(EventTarget("bob"), {"type": "own"})
        assert (await other.event())["data"]["type"] == "own"


@pytest.mark.parametrize("place", ["header", "query"])
async def test_a_client_that_comes_back_goes_on(place: str) -> None:
    async with site_of() as site:
        first = await site.listen()
        await first.session()
        await site.emit(n=1)
        last = (await first.frame())["id"]
        first.reply.close()
        await site.emit(n=2)
        await site.emit(n=3)
        if place == "header":
            second = await site.listen(**{"Last-Event-ID": last})
        else:
            second = await site.listen(f"{PATH}?last_event_id={last}")
        told = await second.session()
        assert (told["resume_from"], told["gap"], told["id"]) == (last, False, last)
        assert [(await second.event())["data"]["data"]["n"] for _ in range(2)] == [2, 3]


async def test_a_gap_is_told() -> None:
    async with site_of() as site:
        stream = await site.listen(**{"Last-Event-ID": "before-7"})
        told = await stream.session()
        assert (told["resume_from"], told["gap"]) == (None, True)


async def test_one_chat_can_be_chosen() -> None:
    async with site_of() as site:
        stream = await site.listen(f"{PATH}?chat_id=c1")
        await stream.session()
        await site.emit(chat_id="c2", n=1)
        await site.emit(chat_id="c1", n=2)
        assert (await stream.event())["data"]["data"] == {"n": 2}


async def test_a_silent_stream_gets_a_comment() -> None:
    async with site_of() as site:
        stream = await site.listen()
        await stream.session()
        site.inner.clock.now += 15
        await site.inner.hub.tick()
        assert await stream.frame() == {"comment": ": keep-alive\n\n"}


async def test_who_may_listen() -> None:
    async with site_of() as site:
        for credential, status in {"": 401, "bad": 401, "pending": 403}.items():
            reply = await site.client.get(PATH, headers=bearer(credential) if credential else {})
            assert reply.status == status
        assert (await site.client.get(PATH, headers={"x-api-key": "ann"})).status == 200
        reply = await site.client.head(PATH, headers=bearer("ann"))
        assert (reply.status, reply.headers["Content-Type"]) == (200, "text/event-stream")


async def test_a_client_that_leaves_is_no_listener_any_more() -> None:
    async with site_of() as site:
        stream = await site.listen()
        await stream.session()
        left = asyncio.Event()

        class Watcher:
            def joined(self, listener: object) -> None:
                raise AssertionError

            def left(self, listener: object) -> None:
                left.set()

        site.inner.hub.watch(Watcher())
        stream.reply.close()
        await asyncio.wait_for(left.wait(), SOON)
        assert not site.inner.hub.is_live("ann")


@pytest.mark.parametrize("change", [AccountChange("ann", is_out=True), AccountChange("ann", asks_again=True)])
async def test_streams_end_at_once_when_rights_may_have_ended(change: AccountChange) -> None:
    async with site_of() as site:
        hers, his = await site.listen(), await site.listen(who="bob")
        await hers.session()
        await his.session()
        site.change(change)
        assert await hers.is_over()
        assert not site.inner.hub.is_live("ann")
        await site.inner.events.emit(EventTarget("bob"), {"type": "own"})
        assert (await his.event())["data"]["type"] == "own"


@pytest.mark.parametrize("change", [AccountChange("ann"), AccountChange(None)])
async def test_streams_by_key_end_at_any_change_as_keys_hang_on_permissions(change: AccountChange) -> None:
    async with site_of(actors={**ACTORS, "key": replace(ACTORS["ann"], key_id="k1")}) as site:
        by_key, by_session = await site.listen(who="key"), await site.listen()
        await by_key.session()
        await by_session.session()
        site.change(AccountChange("bob"))
        await site.emit(n=1)
        await by_key.event()
        site.change(change)
        assert await by_key.is_over()
        await by_session.event()
        await site.emit(n=2)
        assert (await by_session.event())["data"]["data"] == {"n": 2}


async def test_other_changes_end_nothing() -> None:
    async with site_of() as site:
        stream = await site.listen()
        await stream.session()
        site.change(AccountChange("ann"))
        site.change(AccountChange(None))
        await site.emit(n=1)
        assert (await stream.event())["data"]["data"] == {"n": 1}


async def test_everybody_can_be_put_out() -> None:
    async with site_of() as site:
        streams = [await site.listen(who=who) for who in ("ann", "bob")]
        site.change(AccountChange(None, is_out=True))
        for stream in streams:
            with pytest.raises((aiohttp.ClientError, asyncio.IncompleteReadError)):
                await stream.session()
                await stream.frame()


async def test_a_stream_ends_with_its_credential() -> None:
    async with site_of(actors={"ann": replace(ACTORS["ann"], expires_at=1)}) as site:
        stream = await site.listen()
        await stream.session()
        await site.inner.hub.tick()
        assert await stream.is_over()


async def test_a_slow_client_is_cut_off_and_comes_back() -> None:
    async with site_of(EventLimits(queue_frames=10)) as site:
        stream = await site.listen()
        told = await stream.session()
        # Nothing is read meanwhile: what does not fit into the buffers of the connection must wait.
        while site.inner.hub.is_live("ann"):
            await site.emit("own", text="x" * 20_000)
            await asyncio.sleep(0)
        stream.reply.close()
        again = await site.listen(**{"Last-Event-ID": told["id"]})
        assert (await again.session())["session_id"] != told["session_id"]


# Tickets --------------------------------------------------------------------------------------------------


async def ticket_of(site: Site, who: str = "ann") -> str:
    reply = await site.client.post(f"{PATH}/ticket", headers=bearer(who))
    assert (reply.status, reply.headers["Cache-Control"]) == (200, "no-store")
    body = await reply.json()
    assert body == {"ticket": body["ticket"], "expires_in": 30}
    return str(body["ticket"])


async def test_a_ticket_opens_one_stream() -> None:
    async with site_of() as site:
        ticket = await ticket_of(site)
        stream = await site.listen(f"{PATH}?ticket={ticket}", who="")
        assert (await stream.session())["user_id"] == "ann"
        again = await site.client.get(f"{PATH}?ticket={ticket}")
        assert again.status == 401
        assert "ticket" in (await again.json())["detail"]
        # The one who opened it is put out as everybody else.
        site.change(AccountChange("ann", is_out=True))
        assert await stream.is_over()


async def test_a_ticket_counts_before_another_credential() -> None:
    async with site_of() as site:
        ticket = await ticket_of(site, "bob")
        stream = await site.listen(f"{PATH}?ticket={ticket}", who="ann")
        assert (await stream.session())["user_id"] == "bob"
        assert (await site.client.get(f"{PATH}?ticket=x", headers=bearer("ann"))).status == 401


async def test_a_ticket_ends_after_half_a_minute() -> None:
    async with site_of() as site:
        ticket = await ticket_of(site)
        site.clock.now += 30
        assert (await site.client.get(f"{PATH}?ticket={ticket}")).status == 401


async def test_a_ticket_of_a_credential_that_ended_opens_nothing() -> None:
    actors = dict(ACTORS)
    async with site_of(actors=actors) as site:
        ticket = await ticket_of(site)
        del actors["ann"]
        assert (await site.client.get(f"{PATH}?ticket={ticket}")).status == 401


async def test_a_ticket_opens_the_stream_alone() -> None:
    async with site_of() as site:
        ticket = await ticket_of(site)
        assert (await site.client.get(f"{PATH}/calls?ticket={ticket}")).status == 401
        assert (await site.client.post(f"{PATH}/ticket", headers=bearer("pending"))).status == 403


# Calls ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def asked(site: Site) -> AsyncIterator[tuple["asyncio.Task[Any]", str]]:
    task = asyncio.ensure_future(site.inner.calls.ask(TARGET, Event("input", {"title": "t"})))
    while not site.inner.calls.pending("ann"):
        await asyncio.sleep(0)
    yield task, site.inner.calls.pending("ann")[0].id
    task.cancel()
    await asyncio.wait([task])


async def post(site: Site, path: str, body: Any, who: str = "ann") -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    reply = await site.client.post(
        path, data=data, headers={**bearer(who), "Content-Type": "application/json"}
    )
    return reply.status, await reply.json()


@pytest.mark.parametrize("result", [None, False, "text", {"value": 1}])
async def test_a_call_is_delivered_listed_and_answered(result: Any) -> None:
    async with site_of() as site:
        stream = await site.listen()
        await stream.session()
        async with asked(site) as (task, call_id):
            frame = await stream.event()
            assert frame["call_id"] == call_id
            listed = await (await site.client.get(f"{PATH}/calls", headers=bearer("ann"))).json()
            created = listed["calls"][0]["created_at"]
            assert listed == {"calls": [{**frame, "created_at": created}], "total": 1}
            assert isinstance(created, int)
            foreign = await site.client.get(f"{PATH}/calls", headers=bearer("bob"))
            assert await foreign.json() == {"calls": [], "total": 0}
            path = f"{PATH}/calls/{call_id}"
            assert (await post(site, path, {"result": 1}, "bob"))[0] == 404
            assert await post(site, path, {"result": result}) == (200, True)
            assert await asyncio.wait_for(task, SOON) == result
            assert (await post(site, path, {"result": result}))[0] == 409
            assert (await post(site, path, {"result": result}, "bob"))[0] == 404
            assert (await post(site, path, {"error": "late"}))[0] == 409


async def test_a_client_that_fails_says_so() -> None:
    async with site_of() as site:
        await (await site.listen()).session()
        async with asked(site) as (task, call_id):
            assert await post(site, f"{PATH}/calls/{call_id}", {"error": "it threw"}) == (200, True)
            with pytest.raises(RuntimeError, match="it threw"):
                await asyncio.wait_for(task, SOON)


@pytest.mark.parametrize(
    "body", [{}, {"result": 1, "error": "x"}, {"error": 5}, {"error": None}, [], b"{", b""]
)
async def test_an_answer_that_is_none_changes_nothing(body: Any) -> None:
    async with site_of() as site:
        await (await site.listen()).session()
        async with asked(site) as (_, call_id):
            assert (await post(site, f"{PATH}/calls/{call_id}", body))[0] == 400
            assert [call.id for call in site.inner.calls.pending("ann")] == [call_id]


async def test_a_call_that_is_not_there() -> None:
    async with site_of() as site:
        assert (await post(site, f"{PATH}/calls/none", {"result": 1}))[0] == 404


async def test_a_call_comes_again_on_a_new_stream() -> None:
    async with site_of() as site:
        first = await site.listen()
        told = await first.session()
        async with asked(site) as (_, call_id):
            first.reply.close()
            second = await site.listen(**{"Last-Event-ID": told["id"]})
            await second.session()
            assert (await second.event())["call_id"] == call_id


# External tools (4.9, 6.4) --------------------------------------------------------------------------------

PAYLOADS: dict[str, dict[str, Any]] = {
    "status": {"description": "x"},
    "notification": {"type": "info", "content": "x"},
    "chat:message:delta": {"content": "x"},
    "message": {"content": "x"},
    "chat:message": {"content": "x"},
    "replace": {"content": "x"},
    "files": {"files": [{"url": "/f"}]},
    "chat:message:files": {"files": [{"url": "/f"}]},
    "source": {"source": {"name": "s"}},
    "citation": {"source": {"name": "s"}},
}


def test_every_allowed_type_is_tried() -> None:
    assert set(PAYLOADS) == set(external_names())


@pytest.mark.parametrize("who", ["ann", "root"])
@pytest.mark.parametrize("name", PAYLOADS)
async def test_an_external_tool_emits_to_the_owner_of_the_chat(name: str, who: str) -> None:
    async with site_of() as site:
        stream = await site.listen()
        await stream.session()
        assert await post(site, EVENT, {"type": name, "data": PAYLOADS[name]}, who) == (200, True)
        sent = await stream.event()
        assert sent == {
            "chat_id": "c1",
            "message_id": "m1",
            "data": {"type": name, "data": PAYLOADS[name]},
        }
        message = site.inner.message()
        is_stored = bool(message.content or message.items)
        assert is_stored is not (name.startswith("chat:") or name == "notification")


REFUSED = ["input", "confirmation", "execute", "embeds", "chat:completion", "chat:title", "own:type"]


@pytest.mark.parametrize("name", REFUSED)
async def test_what_external_tools_may_not_send(name: str) -> None:
    async with site_of() as site:
        stream = await site.listen()
        await stream.session()
        status, body = await post(site, EVENT, {"type": name, "data": {"code": "return 1"}})
        assert (status, body["error"]["param"]) == (400, "type")
        assert body["detail"].startswith(f"cannot accept an event of type '{name}' from outside: only status")
        await site.emit("status", n=1)
        assert (await stream.event())["data"]["data"] == {"n": 1}


@pytest.mark.parametrize(
    ("body", "expected", "param"),
    [
        ({"data": {}}, 422, "type"),
        ({"type": 5, "data": {}}, 422, "type"),
        ({"type": "", "data": {}}, 400, "type"),
        ({"type": "status"}, 422, "data"),
        ({"type": "status", "data": "x"}, 422, "data"),
        ({"type": "status", "data": None}, 422, "data"),
        ({"type": "message", "data": {}}, 400, "data.content"),
        ({"type": "files", "data": {"files": 5}}, 400, "data.files"),
        ([], 422, "body"),
    ],
)
async def test_a_malformed_event_is_refused_and_its_field_named(body: Any, expected: int, param: str) -> None:
    async with site_of() as site:
        status, answer = await post(site, EVENT, body)
        assert (status, answer["error"]["param"]) == (expected, param)
        assert (site.inner.message().content, site.inner.message().items) == ("", {})


async def test_an_event_that_makes_a_message_too_long_is_refused() -> None:
    async with site_of() as site:
        messages = site.inner.state.messages["c1"]
        messages["m1"] = replace(messages["m1"], content="x" * MAX_CONTENT_CHARACTERS)
        status, answer = await post(site, EVENT, {"type": "message", "data": {"content": "y"}})
        assert (status, answer["error"]["param"]) == (413, "data.content")
        assert len(site.inner.message().content) == MAX_CONTENT_CHARACTERS


async def test_whose_chat_it_must_be() -> None:
    event = {"type": "status", "data": {}}
    async with site_of() as site:
        assert (await post(site, EVENT, event, "bob"))[0] == 403
        assert (await post(site, EVENT, event, "bad"))[0] == 401
        assert (await post(site, EVENT.replace("c1", "c9"), event))[0] == 404
        assert (await post(site, EVENT.replace("c1", "c9"), event, "root"))[0] == 404
        # A message that is not there is no failure.
        assert await post(site, EVENT.replace("m1", "m9"), event) == (200, True)
        assert site.inner.message().items == {}


async def test_a_write_that_fails_is_to_be_sent_again_and_nobody_hears_of_it() -> None:
    async with site_of() as site:
        listener = site.inner.hub.subscribe("ann")
        site.inner.state.outage = GatewayError(
            ErrorKind.UNAVAILABLE, "cannot write: it is away", retry_after=2
        )
        headers = {**bearer("ann"), "Content-Type": "application/json"}
        sent = b'{"type": "status", "data": {"n": 1}}'
        reply = await site.client.post(EVENT, data=sent, headers=headers)
        assert (reply.status, reply.headers["Retry-After"]) == (503, "2")
        assert not waiting(listener)
        notice = {"type": "info", "content": "Hi"}
        # A type that nothing is stored of needs no database.
        assert await post(site, EVENT, {"type": "notification", "data": notice}) == (200, True)
        site.inner.state.outage = None
        assert await post(site, EVENT, {"type": "status", "data": {"n": 1}}) == (200, True)
        assert site.inner.message().items == {"statusHistory": [{"n": 1}]}


async def test_nobody_reports_while_tools_are_told_nothing() -> None:
    async with site_of(has_external_tools=False) as site:
        for who in ("ann", "root", "bob"):
            status, answer = await post(site, EVENT, {"type": "status", "data": {}}, who)
            assert (status, "ENABLE_FORWARD_USER_INFO_HEADERS" in answer["detail"]) == (403, True)
        assert (await post(site, EVENT, {"type": "status", "data": {}}, "bad"))[0] == 401
