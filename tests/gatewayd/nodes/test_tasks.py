"""Tests for gatewayd.nodes.tasks: tasks of other nodes are listed and stopped."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes import messages as messages_module
from gatewayd.nodes import tasks as module
from gatewayd.nodes.messages import NodeMessages
from gatewayd.nodes.tasks import ChatTasks, NodeTasks
from gatewayd.tasks import TaskInfo, TaskOwner, TaskRegistry
from tests.fakes.storage.node_wire import Channel, Wire, meet

OWNER = TaskOwner("u1", "c1", "m1")


class Claims:
    """The claimed answers, of all nodes."""

    def __init__(self, *claimed: TaskInfo) -> None:
        self.claimed = list(claimed)
        self.stopped: list[str] = []

    async def elsewhere(self) -> Sequence[TaskInfo]:
        return self.claimed

    async def stop_elsewhere(self, task_id: str) -> bool:
        self.stopped.append(task_id)
        return any(info.id == task_id for info in self.claimed)

    def owns(self, task_id: str) -> bool:
        return any(info.id == task_id for info in self.claimed)


class Site:
    """Two nodes."""

    def __init__(self, *claimed: TaskInfo) -> None:
        self.wire, self.claims = Wire(), Claims(*claimed)
        self.registries = [TaskRegistry(), TaskRegistry()]
        self.messages = [
            NodeMessages(Channel(self.wire, name), tasks)
            for name, tasks in zip("ab", self.registries, strict=True)
        ]
        self.nodes = [
            NodeTasks(self.claims, messages, tasks)
            for messages, tasks in zip(self.messages, self.registries, strict=True)
        ]

    async def begin(self) -> "Site":
        for messages, tasks in zip(self.messages, self.registries, strict=True):
            tasks.spawn("messages", messages.run())
        await meet(self.messages)
        return self

    async def close(self) -> None:
        for tasks in self.registries:
            await tasks.close()


async def test_tasks_of_another_node_are_listed_and_stopped_with_its_answers() -> None:
    site = await Site(TaskInfo("t0", "answer", OWNER, 5)).begin()
    task_id = site.registries[0].spawn("action", asyncio.Event().wait(), OWNER)  # type: ignore[arg-type]
    # It is claimed, so that it is not named a second time.
    site.registries[0].spawn("answer", asyncio.Event().wait(), OWNER, task_id="t0")  # type: ignore[arg-type]
    site.registries[0].spawn("of the gateway", asyncio.Event().wait())  # type: ignore[arg-type]
    found = await site.nodes[1].elsewhere()
    assert [(info.id, info.name, info.purpose) for info in found] == [
        ("t0", "answer", OWNER),
        (task_id, "action", OWNER),
    ]
    assert await site.nodes[1].stop_elsewhere(task_id)
    assert site.registries[0].find(task_id) is None
    assert not await site.nodes[1].stop_elsewhere(task_id)
    assert await site.nodes[1].stop_elsewhere("t0")
    assert site.claims.stopped == [task_id, task_id, "t0"]
    await site.close()


async def test_only_the_wanted_tasks_travel(caplog: pytest.LogCaptureFixture) -> None:
    site = await Site(TaskInfo("t0", "answer", OWNER, 5)).begin()
    first = site.registries[0]
    other = first.spawn("action", asyncio.Event().wait(), TaskOwner("u2", "c2"))  # type: ignore[arg-type]
    mine = first.spawn("action", asyncio.Event().wait(), OWNER)  # type: ignore[arg-type]
    assert [info.id for info in await site.nodes[1].elsewhere(chat_id="c1")] == ["t0", mine]
    assert [info.id for info in await site.nodes[1].elsewhere(task_id=other)] == [other]
    assert await site.nodes[0]._list({"chat": "c3"}) == []
    told = [{**asdict(info), "new": 1} for info in first.started(chat_id="c1")]
    replies: list[Any] = [told, [{"id": "x"}], 7]

    async def reply(_: object) -> Any:
        return replies.pop(0)

    # Other versions: one says more, the others something else.
    site.messages[0].serve(module.LISTED, reply)
    assert [info.id for info in await site.nodes[1].elsewhere(chat_id="c1")] == ["t0", mine]
    for _ in range(2):
        assert [info.id for info in await site.nodes[1].elsewhere()] == ["t0"]
    assert caplog.text.count("are not understood") == 2
    await site.close()


async def test_without_messages_the_answers_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_module, "REPLY_SECONDS", 0.01)
    site = await Site(TaskInfo("t0", "answer", OWNER, 5)).begin()
    site.registries[0].spawn("action", asyncio.Event().wait(), OWNER)  # type: ignore[arg-type]
    site.wire.is_cut = True
    assert [info.id for info in await site.nodes[1].elsewhere()] == ["t0"]
    assert await site.nodes[1].stop_elsewhere("t0")
    with pytest.raises(GatewayError) as caught:
        await site.nodes[1].stop_elsewhere("other")
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    await site.close()


async def test_a_node_names_its_newest_tasks_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LISTED_TASKS", 2)
    site = await Site().begin()
    made = [
        site.registries[0].spawn("action", asyncio.Event().wait(), OWNER)  # type: ignore[arg-type]
        for _ in range(3)
    ]
    assert [info.id for info in await site.nodes[1].elsewhere()] == made[1:]
    await site.close()


async def test_the_tasks_of_chats_are_stopped_on_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STOPPED_CHATS", 2)
    site = await Site().begin()
    stoppers = [
        ChatTasks(tasks, messages) for tasks, messages in zip(site.registries, site.messages, strict=True)
    ]
    wanted, other = ("c0", "c1", "c2"), "c9"
    for tasks in site.registries:
        for chat_id in (*wanted, other):
            tasks.spawn("action", asyncio.Event().wait(), TaskOwner("u1", chat_id))  # type: ignore[arg-type]
    await stoppers[1].stop(wanted)
    for tasks in site.registries:
        assert [info.purpose.chat_id for info in tasks.started()] == [other]
    await site.close()


async def test_a_task_that_does_not_end_holds_up_no_other() -> None:
    site = await Site().begin()
    first, end = site.registries[0], asyncio.Event()

    async def stubborn() -> None:
        while not end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await end.wait()

    first.spawn("action", stubborn(), OWNER)
    other = first.spawn("action", asyncio.Event().wait(), OWNER)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(ChatTasks(first, site.messages[0])._stop(["c1"]))
    async with asyncio.timeout(5):
        while first.find(other) is not None:
            await asyncio.sleep(0)
    assert not stopping.done()
    end.set()
    await stopping
    await site.close()
