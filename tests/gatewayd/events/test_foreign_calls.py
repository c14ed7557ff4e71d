"""Tests for gatewayd.events.foreign_calls and shown_calls: two nodes whose news are lost."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gatewayd.bus.memory import MemoryBus
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events import calls as calls_module
from gatewayd.events import foreign_calls as module
from gatewayd.events.calls import EventCalls
from gatewayd.events.hub import EVERYBODY, Hub
from gatewayd.events.records import Event, EventTarget
from gatewayd.events.shown_calls import ShownCall
from gatewayd.nodes import messages as messages_module
from gatewayd.nodes.messages import NodeMessages
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.events import SOON, Clock, heard
from tests.fakes.storage.node_wire import Channel, Wire, meet

TARGET = EventTarget("ann", "c", "m")
EVENT = Event("confirmation", {"title": "t"})


class Node:
    """One node; its clock is that of the wire."""

    def __init__(self, wire: Wire, name: str, clock: Clock) -> None:
        self.tasks, self.clock = TaskRegistry(), clock
        self.hub = Hub(MemoryBus())
        self.messages = NodeMessages(Channel(wire, name), self.tasks, clock)
        self.calls = EventCalls(self.hub, timeout=SOON, grace=0.05, messages=self.messages, elapsed=clock)

    def ask(self, target: EventTarget = TARGET) -> "asyncio.Task[object]":
        return asyncio.ensure_future(self.calls.ask(target, EVENT))


@pytest.fixture
async def nodes(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Wire, Node, Node]]:
    monkeypatch.setattr(messages_module, "BEAT_SECONDS", 0.005)
    monkeypatch.setattr(calls_module, "OPEN_SECONDS", 0.01)
    wire, clock = Wire(), Clock()
    first, second = Node(wire, "a", clock), Node(wire, "b", clock)
    for node in (first, second):
        node.tasks.spawn("messages", node.messages.run())
    await meet([first.messages, second.messages])
    yield wire, first, second
    for node in (first, second):
        await node.tasks.close()


async def until(check: object) -> None:
    async with asyncio.timeout(SOON):
        while not check():  # type: ignore[operator]
            await asyncio.sleep(0.001)


async def test_a_cut_wire_ends_the_hearing_of_others_after_a_while(nodes: tuple[Wire, Node, Node]) -> None:
    wire, first, second = nodes
    listener = second.hub.subscribe("ann")
    task = first.ask()
    [call] = await heard(listener)
    wire.is_cut = True
    await asyncio.sleep(0.1)
    assert not task.done(), "the other node may still have the user"
    first.clock.now += calls_module.DEAD_SECONDS + 1
    with pytest.raises(calls_module.CallTimeout, match="no live connection"):
        await task
    assert second.calls.pending("ann") == [], "its node is silent"
    wire.is_cut = False
    await meet([first.messages, second.messages])
    # The news of the end were lost, and its node is asked.
    with pytest.raises(GatewayError) as caught:
        await second.calls.answer("ann", call["call_id"], 1)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    await asyncio.sleep(0.05)
    assert second.calls.pending("ann") == [], "it is no longer named"


async def test_calls_of_a_node_that_is_gone_are_forgotten(nodes: tuple[Wire, Node, Node]) -> None:
    _, first, second = nodes
    listener = second.hub.subscribe("ann")
    task = first.ask()
    await heard(listener)
    await first.tasks.close()
    second.clock.now += module.FORGET_SECONDS + 1
    await until(lambda: not second.calls._foreign._calls)
    task.cancel()
    await asyncio.wait([task])


async def test_a_session_that_is_nowhere_opens_the_call_to_all(nodes: tuple[Wire, Node, Node]) -> None:
    _, first, second = nodes
    here, there = first.hub.subscribe("ann"), second.hub.subscribe("ann")
    task = first.ask(EventTarget("ann", "c", "m", "gone"))
    assert (await heard(here))[0]["call_id"] == (await heard(there))[0]["call_id"]
    [call] = second.calls.every()
    # A call is shown once to a session, and again to one that comes back.
    shown = ShownCall(call, is_open=True)
    for _ in range(2):
        shown.show(second.hub)
    assert len(await heard(there)) == 1
    everybody = second.hub.subscribe(EVERYBODY)
    assert (await heard(everybody))[0]["user_id"] == "ann"
    there.close()
    again = second.hub.subscribe("ann")
    assert (await heard(again))[0]["call_id"] == call.id
    await second.calls.refuse("ann", call.id, "no")
    with pytest.raises(RuntimeError, match="could not answer"):
        await task


async def test_no_more_calls_of_others_are_kept_than_there_may_be(
    nodes: tuple[Wire, Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FOREIGN_CALLS", 1)
    _, first, second = nodes
    first.hub.subscribe("ann")
    asked = [first.ask() for _ in range(2)]
    await until(lambda: second.calls.every())
    await asyncio.sleep(0.02)
    assert len(second.calls.every()) == 1
    # The other one is not sent again each second.
    wanted: list[object] = []
    first.messages.on(module.WANTED, lambda sender, body: wanted.append(body))
    await asyncio.sleep(0.03)
    assert wanted == []
    for task in asked:
        task.cancel()
    await asyncio.wait(asked)


async def test_a_call_that_is_too_large_for_others_is_serialised_once(
    nodes: tuple[Wire, Node, Node], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(messages_module, "MAX_MESSAGE_BYTES", 400)
    _, first, second = nodes
    first.hub.subscribe("ann")
    event = Event("confirmation", {"title": "t" * 400})
    asked = asyncio.ensure_future(first.calls.ask(TARGET, event))
    await asyncio.sleep(0.05)
    assert second.calls.every() == []
    [call] = first.calls.every()
    assert caplog.text.count("only this node shows a call") == 1
    await first.calls.answer("ann", call.id, 1)
    assert await asked == 1


@pytest.mark.parametrize(
    "change",
    [
        {"target": {"user_id": []}},
        {"target": {"chat_id": {}}},
        {"id": 1},
        {"type": None},
        {"created_at": "then"},
        {"target": None},
    ],
)
async def test_forged_calls_do_no_harm(
    nodes: tuple[Wire, Node, Node], change: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    _, first, second = nodes
    listener = second.hub.subscribe("ann")
    # A later version says more.
    target = {
        "user_id": "ann",
        "chat_id": "c",
        "message_id": "",
        "session_id": "",
        "request_id": "",
        "new": 1,
    }
    body = {"id": "x", "target": target, "type": "input", "data": {}, "created_at": 1, "is_open": True}
    if isinstance(change.get("target"), dict):
        change = {"target": {**target, **change["target"]}}  # type: ignore[dict-item]
    first.messages.tell(module.ASKED, {**body, **change})
    await until(lambda: "is not understood" in caplog.text)
    assert second.calls.every() == []
    first.messages.tell(module.ASKED, body)
    assert (await heard(listener))[0]["call_id"] == "x"
    assert list(second.tasks.list().values()) == ["messages"], "it goes on"
