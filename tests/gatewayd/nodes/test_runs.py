"""Tests for gatewayd.nodes.runs: claims, stops from other nodes, and the end of dead runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes import runs as runs_module
from gatewayd.nodes.duties import LocalDuties
from gatewayd.nodes.messages import NodeMessages
from gatewayd.nodes.records import RunClaim
from gatewayd.nodes.runs import RUN_NAME, LocalRuns, NodeRuns, RunReaper
from gatewayd.tasks import TaskOwner, TaskRegistry
from gatewayd.transactions import CallbackTransactor
from tests.fakes.documents.memory_stores import Library
from tests.fakes.storage.claimed_runs import MemoryRuns
from tests.fakes.storage.node_wire import Channel, Wire
from tests.fakes.storage.nodes import FakeMembership

OWNER = TaskOwner("u1", "c1", "m1")


class Node:
    """A node with its tasks."""

    def __init__(self, store: MemoryRuns, name: str, wire: Wire) -> None:
        self.tasks = TaskRegistry()
        self.pending: set[tuple[str, str]] = set()
        transactor = CallbackTransactor(Library())
        self.messages = NodeMessages(Channel(wire, name), self.tasks)
        self.runs = NodeRuns(
            store,
            FakeMembership(name),
            self.tasks,
            transactor,
            lambda key: key in self.pending,
            self.messages,
        )

    async def begin(self, owner: TaskOwner = OWNER) -> RunClaim:
        """Begin a run that goes on until it is stopped."""
        [claim] = await self.runs.claim([owner])

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await self.runs.end(claim)

        self.tasks.spawn(RUN_NAME, work(), owner, task_id=claim.task_id)
        await asyncio.sleep(0)
        return claim


@asynccontextmanager
async def two_nodes(*, connected: bool = False) -> AsyncIterator[tuple[MemoryRuns, Node, Node]]:
    store, wire = MemoryRuns(), Wire()
    wire.is_cut = not connected
    first, second = Node(store, "n1", wire), Node(store, "n2", wire)
    yield store, first, second
    await first.tasks.close()
    await second.tasks.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(runs_module, "STOP_SECONDS", 0.3)


async def test_a_daemon_alone_claims_without_asking_anybody() -> None:
    runs = LocalRuns()
    first, second = await runs.claim([OWNER, TaskOwner("u1", "c1", "m2")])
    assert first.owner == OWNER
    assert first.task_id != second.task_id
    async with runs.fenced(first):
        await runs.end(first)
    assert list(await runs.elsewhere()) == []
    assert not await runs.stop_elsewhere(first.task_id)


async def test_a_later_run_on_another_node_takes_the_message() -> None:
    async with two_nodes() as (store, first, second):
        old = await first.begin()
        async with first.runs.fenced(old):
            assert await store.hold(old)
        new = await second.begin()
        with pytest.raises(GatewayError, match="another run answers the message") as caught:
            async with first.runs.fenced(old):
                raise AssertionError("a write of the former run")
        assert caught.value.kind is ErrorKind.CONFLICT
        await first.runs.look()
        async with asyncio.timeout(5):
            while first.tasks.find(old.task_id) is not None:
                await asyncio.sleep(0)
        async with second.runs.fenced(new):
            assert second.tasks.find(new.task_id) is not None


async def test_a_run_of_another_node_is_listed_and_stopped() -> None:
    async with two_nodes() as (store, first, second):
        claim = await first.begin()
        first.tasks.spawn("look", first.runs.run())
        [info] = await second.runs.elsewhere()
        assert (info.id, info.name, info.purpose) == (claim.task_id, RUN_NAME, OWNER)
        assert list(await first.runs.elsewhere()) == []
        assert await second.runs.stop_elsewhere(claim.task_id)
        assert first.tasks.find(claim.task_id) is None
        assert store.rows == {}
        assert not await second.runs.stop_elsewhere(claim.task_id)


async def test_the_node_of_a_run_is_told_at_once_that_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "STOP_SECONDS", 5.0)
    async with two_nodes(connected=True) as (store, first, second):
        claim = await first.begin()
        assert first.runs.owns(claim.task_id)
        # It does not look into the database.
        assert await second.runs.stop_elsewhere(claim.task_id)
        assert first.tasks.find(claim.task_id) is None
        assert store.rows == {}
        assert not first.runs.owns(claim.task_id)


async def test_a_node_that_does_not_stop_in_time_is_told_of() -> None:
    async with two_nodes() as (_, first, second):
        claim = await first.begin()
        with pytest.raises(GatewayError, match=r"did not stop it within 0\.3 s") as caught:
            await second.runs.stop_elsewhere(claim.task_id)
        assert caught.value.kind is ErrorKind.TIMEOUT


async def test_a_message_is_kept_until_nothing_is_left_to_write() -> None:
    async with two_nodes() as (store, first, _):
        claim = await first.begin()
        first.pending.add(("c1", "m1"))
        await first.tasks.stop(claim.task_id)
        await first.runs.look()
        assert list(store.rows) == [OWNER]
        first.pending.clear()
        await first.runs.look()
        assert store.rows == {}


async def test_an_end_that_cannot_be_recorded_is_recorded_later(caplog: pytest.LogCaptureFixture) -> None:
    async with two_nodes() as (store, first, _):
        claim = await first.begin()
        first.tasks.spawn("look", first.runs.run())
        store.is_away = True
        await first.tasks.stop(claim.task_id)
        assert "the end of a run is recorded later" in caplog.text
        await asyncio.sleep(0.05)
        store.is_away = False
        async with asyncio.timeout(5):
            while store.rows:
                await asyncio.sleep(0.01)


async def test_the_reaper_ends_runs_of_dead_nodes_once_its_own_node_is_steady() -> None:
    ended = []

    async def end() -> int:
        ended.append(1)
        return 1

    async with two_nodes() as (store, first, _):
        await first.begin()
        member = FakeMembership("n3", is_steady=False)
        reaper = RunReaper(store, member, LocalDuties(), [end])
        store.dead.add("n1")
        assert await reaper.reap() == 0
        member.is_steady = True
        assert await reaper.reap() == 1
        assert (store.rows, ended) == ({}, [1])
        tasks = TaskRegistry()
        tasks.spawn("reaper", reaper.run())
        await first.begin(TaskOwner("u1", "c1", "m2"))
        async with asyncio.timeout(5):
            while store.rows:
                await asyncio.sleep(0.01)
        await tasks.close()
