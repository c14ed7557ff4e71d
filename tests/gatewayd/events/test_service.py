"""Tests for gatewayd.events.service: the rows of 6.2 and 6.5, stored or not, and delivered."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from gatewayd import deferred_writes
from gatewayd.bus.memory import MemoryBus
from gatewayd.chats.records import MAX_CONTENT_CHARACTERS, MAX_ITEMS, MAX_ITEMS_BYTES
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.calls import CallTimeout, EventCalls
from gatewayd.events.event_types import EVENT_TYPES, PayloadFault
from gatewayd.events.hub import Hub
from gatewayd.events.records import EventTarget
from gatewayd.events.service import EventService
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.events import SOON, TARGET, EventSite, SlowEffects, heard, make_state, waiting
from tests.fakes.storage.memory_chats import MemoryEffects

DATA: dict[str, Any] = {
    "status": {"description": "Working", "done": False, "hidden": False, "level": "info"},
    "chat:completion": {"content": "so far", "done": False},
    "chat:message:delta": {"content": "a"},
    "message": {"content": "a"},
    "chat:message": {"content": "b"},
    "replace": {"content": "b"},
    "chat:message:files": {"files": [{"type": "image", "url": "/f"}]},
    "files": {"files": [{"type": "image", "url": "/f"}]},
    "chat:title": "A title",
    "chat:tags": ["one", "two"],
    "source": {"source": {"name": "s"}, "document": ["d"], "metadata": [{"source": "u"}]},
    "citation": {"source": {"name": "s"}, "document": ["d"], "metadata": [{"source": "u"}]},
    "notification": {"type": "info", "content": "Hi"},
    "chat:message:favorite": {"favorite": True},
    "confirmation": {"title": "t", "message": "m"},
    "input": {"title": "t", "message": "m", "placeholder": "p"},
    "execute": {"code": "return 1"},
    "chat:message:embeds": {"embeds": ["<p>"]},
    "embeds": {"embeds": ["<p>"]},
    "chat:message:error": {"error": {"content": "no"}},
    "chat:message:follow_ups": {"follow_ups": ["and?"]},
    "chat:active": {"active": True},
    "chat:list": {"chat_id": "c1"},
    "chat:reload": {"chat_id": "c1"},
    "chat:outlet": {"messages": []},
    "chat:tasks:cancel": {},
    "own:type": {"n": 1},
}

# What the message holds afterwards, for a message that began with "old" and one value in each list.
OLD = {"statusHistory": ["s0"], "embeds": ["e0"], "files": ["f0"], "sources": ["q0"]}
STORED: dict[str, dict[str, Any]] = {
    "status": {"statusHistory": ["s0", DATA["status"]]},
    "message": {"content": "olda"},
    "replace": {"content": "b"},
    "embeds": {"embeds": ["e0", "<p>"]},
    "files": {"files": ["f0", DATA["files"]["files"][0]]},
    "source": {"sources": ["q0", DATA["source"]]},
    "citation": {"sources": ["q0", DATA["citation"]]},
}
MERGED = {"files": {"files": ["f0", DATA["files"]["files"][0]]}, "embeds": {"embeds": ["e0", "<p>"]}}


def filled() -> EventSite:
    site = EventSite()
    site.state.messages["c1"]["m1"] = replace(site.message(), content="old", items=dict(OLD))
    return site


def test_every_name_is_tried() -> None:
    assert {name for row in EVENT_TYPES for name in row.names} == DATA.keys() - {"own:type"}


@pytest.mark.parametrize("is_heard", [True, False])
@pytest.mark.parametrize("name", DATA)
async def test_each_type_is_stored_or_not_and_delivered(name: str, is_heard: bool) -> None:
    site = filled()
    listener = site.hub.subscribe("ann") if is_heard else None
    assert await site.events.emit(TARGET, {"type": name, "data": DATA[name]}) is True
    message = site.message()
    assert {"content": message.content, **message.items} == {
        "content": "old",
        **OLD,
        **STORED.get(name, {}),
    }
    if listener is not None:
        data = MERGED.get(name, DATA[name])
        assert await heard(listener) == [
            {"chat_id": "c1", "message_id": "m1", "data": {"type": name, "data": data}}
        ]


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize(
    "target", [EventTarget("ann"), EventTarget("ann", "local:c1", "m1"), EventTarget("ann", "c1", "gone")]
)
async def test_without_a_stored_message_everything_is_delivered_only(name: str, target: EventTarget) -> None:
    site = filled()
    listener = site.hub.subscribe("ann")
    assert await site.events.emit(target, {"type": name, "data": DATA[name]}) is True
    assert (await heard(listener))[0]["data"]["data"] == DATA[name]
    assert (site.message().content, site.message().items) == ("old", OLD)


@pytest.mark.parametrize("data", ["text", None, 5, ["x"]])
@pytest.mark.parametrize("name", STORED)
async def test_a_wrong_payload_is_delivered_logged_and_not_stored(
    name: str, data: Any, caplog: pytest.LogCaptureFixture
) -> None:
    site = filled()
    listener = site.hub.subscribe("ann")
    assert await site.events.emit(TARGET, {"type": name, "data": data}) is True
    assert (await heard(listener))[0]["data"] == {"type": name, "data": data}
    assert (site.message().content, site.message().items) == ("old", OLD)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("value", [None, {}, {"type": None}, "x", 5, object(), {"data": {}}])
async def test_nonsense_is_dropped_and_never_raised(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    site = EventSite()
    listener = site.hub.subscribe("ann")
    assert await site.events.emit(TARGET, value) is True
    assert not waiting(listener)
    assert {record.levelname for record in caplog.records if record.name.startswith("gatewayd")} == {"DEBUG"}


async def test_nothing_of_one_user_reaches_another() -> None:
    site = EventSite()
    hers, his = site.hub.subscribe("ann"), site.hub.subscribe("bob")
    await site.events.emit(TARGET, {"type": "status", "data": {}})
    assert waiting(hers)
    assert not waiting(his)


@pytest.mark.parametrize("name", ["source", "citation"])
async def test_code_that_ran_is_stored_once_and_delivered_each_time(name: str) -> None:
    site = filled()
    listener = site.hub.subscribe("ann")
    begun = {"type": "code_execution", "id": "1", "name": "sum", "code": "1+1", "language": "python"}
    ended = {**begun, "result": {"output": "2"}}
    # One without an id, and a type that nobody knows, are sources like any other.
    others: list[dict[str, Any]] = [{"type": "code_execution", "code": "x"}, {"type": "own", "id": "1"}]
    sent = [begun, *others, {**begun, "id": "2"}, ended]
    for data in sent:
        assert await site.events.emit(TARGET, {"type": name, "data": data})
    assert [event["data"]["data"] for event in await heard(listener)] == sent
    assert site.message().items["sources"] == [*OLD["sources"], ended, *others, {**begun, "id": "2"}]


async def test_the_plugin_may_go_on_changing_what_it_emitted() -> None:
    site = EventSite()
    status: dict[str, Any] = {"description": "one"}
    event = {"type": "status", "data": status}
    await site.events.emit(TARGET, event)
    status["description"] = "two"
    await site.events.emit(TARGET, event)
    assert site.message().items["statusHistory"] == [{"description": "one"}, {"description": "two"}]
    assert event == {"type": "status", "data": {"description": "two"}}


@pytest.mark.parametrize("is_full", [True, False])
async def test_what_cannot_be_written_is_delivered_and_reported(
    is_full: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = EventSite()
    kind = ErrorKind.UNAVAILABLE if is_full else ErrorKind.INTERNAL
    monkeypatch.setattr(deferred_writes, "MAX_DEFERRED_WRITES", 0)
    site.state.outage = GatewayError(kind, "cannot write")
    listener = site.hub.subscribe("ann")
    target = replace(TARGET, request_id="r1")
    assert await site.events.emit(target, {"type": "message", "data": {"content": "a"}}) is False
    assert (await heard(listener))[0]["data"]["data"] == {"content": "a"}
    [record] = caplog.records
    told = record.__dict__
    assert (record.levelname, told["message_id"], told["request_id"]) == ("ERROR", "m1", "r1")


async def test_what_cannot_be_written_now_is_delivered_and_written_in_its_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deferred_writes, "FIRST_PAUSE_SECONDS", 0.0)
    site = filled()
    site.state.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: it is away")
    listener = site.hub.subscribe("ann")
    for name in STORED:
        assert await site.events.emit(TARGET, {"type": name, "data": DATA[name]}) is True
    told = [one["data"]["data"] for one in await heard(listener)]
    assert told == [DATA[name] for name in STORED]
    with pytest.raises(GatewayError, match="earlier writes"):
        await site.events.accept(TARGET, {"type": "status", "data": {}})
    site.state.outage = None
    # What comes now does not overtake what waits.
    await site.events.emit(TARGET, {"type": "message", "data": {"content": "c"}})
    await site.deferred.close(SOON)
    message = site.message()
    sources = [*STORED["source"]["sources"], DATA["citation"]]
    assert (message.content, message.items["sources"]) == ("bc", sources)
    assert message.items["statusHistory"] == STORED["status"]["statusHistory"]
    # Listeners put what they are told in the place of a list: they are told the whole of it, late.
    heard_late = [await heard(listener) for _ in iter(lambda: waiting(listener), False)]
    lists = [one["data"] for some in heard_late for one in some if one["data"]["type"] in MERGED]
    assert lists == [{"type": name, "data": MERGED[name]} for name in ("embeds", "files")]


async def test_a_content_that_a_user_wrote_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_writes, "FIRST_PAUSE_SECONDS", 0.0)
    site = filled()
    site.state.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: it is away")
    for name in ("status", "message", "replace"):
        await site.events.emit(TARGET, {"type": name, "data": DATA[name]})
    site.state.outage = None
    site.deferred.supersede(("c1", "m1"))
    await site.deferred.close(SOON)
    assert (site.message().content, len(site.message().items["statusHistory"])) == ("old", 2)


async def test_a_list_that_was_written_and_cannot_be_read_is_not_written_again() -> None:
    site = filled()

    class Unreadable(MemoryEffects):
        async def append_items(self, *where: Any) -> bool:
            done = await super().append_items(*where)
            self._state.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot read")
            return done

    events = EventService(Unreadable(site.state), site.hub, site.calls, site.deferred)
    listener = site.hub.subscribe("ann")
    assert await events.emit(TARGET, {"type": "files", "data": DATA["files"]}) is True
    assert (await heard(listener))[0]["data"]["data"] == DATA["files"]
    assert not site.deferred.count
    assert site.message().items["files"] == MERGED["files"]["files"]


async def test_the_events_of_a_message_stay_in_order_whatever_the_writes_take() -> None:
    state = make_state()
    hub, slow = Hub(MemoryBus()), SlowEffects(state)
    events = EventService(slow, hub, EventCalls(hub, timeout=1), DeferredWrites(TaskRegistry()))
    listener = hub.subscribe("ann")
    names = ["message", "status", "chat:message:delta", "message"]
    tasks = [
        asyncio.ensure_future(events.emit(TARGET, {"type": name, "data": {"content": str(number)}}))
        for number, name in enumerate(names)
    ]
    while not slow.begun:
        await asyncio.sleep(0)
    # Another message does not wait.
    await events.emit(EventTarget("ann", "c2", "m1"), {"type": "status", "data": {"content": "other"}})
    assert [one["chat_id"] for one in await heard(listener)] == ["c2"]
    slow.go.set()
    assert await asyncio.gather(*tasks) == [True] * 4
    assert [one["data"]["data"]["content"] for one in await heard(listener)] == ["0", "1", "2", "3"]
    assert state.messages["c1"]["m1"].content == "03"


async def test_many_at_once_lose_nothing() -> None:
    site = EventSite()
    sent = [
        site.events.emit(TARGET, {"type": name, "data": {"content": "x", "files": [number]}})
        for number in range(50)
        for name in ("message", "status", "files")
    ]
    await asyncio.gather(*sent)
    message = site.message()
    assert message.content == "x" * 50
    assert len(message.items["statusHistory"]) == 50
    assert message.items["files"] == list(range(50))


async def test_a_call_returns_the_answer() -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    task = asyncio.ensure_future(site.events.call(TARGET, {"type": "input", "data": {"title": "t"}}))
    while not site.calls.pending("ann"):
        await asyncio.sleep(0)
    (call,) = site.calls.pending("ann")
    assert (call.target, call.event.type, call.event.data) == (TARGET, "input", {"title": "t"})
    await site.calls.answer("ann", call.id, {"value": 5})
    assert await task == {"value": 5}


async def test_a_call_comes_after_what_was_emitted_before() -> None:
    state = make_state()
    hub, slow = Hub(MemoryBus()), SlowEffects(state)
    calls = EventCalls(hub, timeout=60)
    events = EventService(slow, hub, calls, DeferredWrites(TaskRegistry()))
    listener = hub.subscribe("ann")
    emitted = asyncio.ensure_future(events.emit(TARGET, {"type": "message", "data": {"content": "a"}}))
    asked = asyncio.ensure_future(events.call(TARGET, {"type": "confirmation"}))
    while not slow.begun:
        await asyncio.sleep(0)
    assert not calls.pending("ann")
    slow.go.set()
    await emitted
    while not calls.pending("ann"):
        await asyncio.sleep(0)
    assert [one["data"]["type"] for one in await heard(listener)] == ["message", "confirmation"]
    await calls.answer("ann", calls.pending("ann")[0].id, result=True)
    assert await asyncio.wait_for(asked, SOON) is True


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (None, "not an object with a type"),
        ({}, "not an object with a type"),
        ({"type": "status", "data": {}}, "only confirmation, input, execute can"),
        ({"type": "own:type", "data": {}}, "only confirmation, input, execute can"),
        ({"type": "execute", "data": {}}, "data.code is not a string"),
        ({"type": "input", "data": "x"}, "data is not an object"),
    ],
)
async def test_what_cannot_be_asked_fails_at_once(event: Any, words: str) -> None:
    site = EventSite()
    with pytest.raises(RuntimeError, match=words):
        await site.events.call(TARGET, event)
    assert site.calls.pending("ann") == []


async def test_a_call_to_nobody_raises_a_timeout() -> None:
    site = EventSite(grace=0)
    with pytest.raises(CallTimeout, match="no live connection") as caught:
        await site.events.call(TARGET, {"type": "confirmation", "data": {}})
    assert isinstance(caught.value, TimeoutError)


async def test_what_external_tools_may_send() -> None:
    events = EventSite().events
    assert events.is_allowed_outside("citation")
    for name in ("execute", "embeds", "chat:completion", "own:type", ""):
        assert not events.is_allowed_outside(name)
    assert events.find_fault("message", {}) == PayloadFault("data.content", "a string")
    assert events.find_fault("message", {"content": ""}) is None
    assert events.find_fault("own:type", None) is None


async def test_who_comes_back_gets_the_newest_content_of_each_answer_once() -> None:
    site = EventSite()
    listener = site.hub.subscribe("ann")
    last = listener.position
    listener.close()
    other = replace(TARGET, message_id="m2")
    for target, data in (
        (TARGET, {"content": "a"}),
        (other, {"content": "x"}),
        (TARGET, {"content": "ab"}),
        (TARGET, {"content": "", "usage": {}}),
        (TARGET, "no object"),
        (TARGET, {"content": "abc"}),
    ):
        await site.events.emit(target, {"type": "chat:completion", "data": data})
    again = site.hub.subscribe("ann", last_id=last)
    assert not again.opened.gap
    told = [payload["data"]["data"] for payload in await heard(again)]
    assert told == [{"content": "x"}, {"content": "", "usage": {}}, "no object", {"content": "abc"}]


@pytest.mark.parametrize(
    ("name", "data", "field"),
    [
        ("message", {"content": "x" * MAX_CONTENT_CHARACTERS}, "data.content"),
        ("replace", {"content": "x" * (MAX_CONTENT_CHARACTERS + 1)}, "data.content"),
        ("files", {"files": [0] * MAX_ITEMS}, "data.files"),
        ("status", {"description": "x" * MAX_ITEMS_BYTES}, "data"),
    ],
)
async def test_an_event_that_makes_a_message_too_long_is_refused(name: str, data: Any, field: str) -> None:
    site = EventSite()
    message = site.state.messages["c1"]["m1"]
    site.state.messages["c1"]["m1"] = replace(message, content="old", items={"files": ["f0"]})
    listener = site.hub.subscribe("ann")
    with pytest.raises(GatewayError) as caught:
        await site.events.emit(TARGET, {"type": name, "data": data})
    assert (caught.value.kind, caught.value.param) == (ErrorKind.TOO_LARGE, field)
    assert await site.events.emit(TARGET, {"type": "status", "data": {"description": "a"}})
    assert [frame["data"]["type"] for frame in await heard(listener)] == ["status"]


async def test_no_event_passes_while_messages_are_still() -> None:
    site = EventSite()
    emitted = {"type": "message", "data": {"content": "a"}}
    await site.events.emit(TARGET, emitted)
    site.hub.subscribe(TARGET.user_id)
    for text in ("so", "so far"):
        await site.events.emit(TARGET, {"type": "chat:completion", "data": {"content": text}})
    before = await site.hub.settled_position(TARGET.user_id)
    async with site.events.still(TARGET.user_id, TARGET.chat_id, [TARGET.message_id, "other", "other"]) as (
        position,
        texts,
    ):
        assert (position, texts) == (before, {TARGET.message_id: "so far"})
        late = asyncio.ensure_future(site.events.emit(TARGET, emitted))
        await asyncio.sleep(0)
        elsewhere = replace(TARGET, message_id="m2")
        await asyncio.wait_for(site.events.emit(elsewhere, emitted), SOON)
        assert site.message().content == "a"
        assert not late.done()
    assert await asyncio.wait_for(late, SOON)
    assert site.message().content == "aa"
