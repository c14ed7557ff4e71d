"""The reader of the change log: order, gaps, and the time for which memory is trusted."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import pytest

from gatewayd.cluster import reader as module
from gatewayd.cluster.freshness import TRUST_SECONDS
from gatewayd.cluster.invalidation import Changed, InvalidationMap
from gatewayd.cluster.reader import ChangeReader
from gatewayd.cluster.records import ChangeKind
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.transactions import CallbackTransactor, after_commit
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.cluster.memory_log import MemoryLog

SCHEMA = "0021_cluster_changes"


class Node:
    """A reader, what it applied, and a clock that tests turn."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self.now = 1000.0
        self.applied: list[str] = []
        self.reloaded: list[Changed] = []
        self.reload_error: GatewayError | None = None
        caches = InvalidationMap()
        caches.drop([ChangeKind.USER], self.applied.append)
        caches.reload([ChangeKind.SETTING], self.reload)
        self.caches = caches
        self.reader = ChangeReader(log, caches, SCHEMA, lambda: self.now)

    async def reload(self, changed: Changed) -> None:
        if self.reload_error is not None:
            raise self.reload_error
        self.reloaded.append(changed)

    @contextmanager
    def running(self) -> Iterator[None]:
        task = asyncio.ensure_future(self.reader.run())
        try:
            yield
        finally:
            task.cancel()


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
async def node(log: MemoryLog) -> AsyncIterator[Node]:
    node = Node(log)
    log.commit(("user", "before"))
    await node.reader.open()
    answering = asyncio.ensure_future(node.reader.answer())
    yield node
    answering.cancel()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


async def test_memory_is_not_trusted_before_the_database_was_asked(node: Node) -> None:
    assert not node.reader.is_fresh()
    await node.reader.renew()
    assert node.reader.is_fresh()
    assert (node.reader.version, node.applied) == (1, [])


async def test_trust_counts_from_the_question_and_not_from_the_answer(node: Node) -> None:
    node.log.answers.clear()
    asking = asyncio.ensure_future(node.reader.renew())
    await until(lambda: node.log.reads == 2)
    node.now += 0.5
    node.log.answers.set()
    await asking
    node.now += TRUST_SECONDS - 0.5 - 0.01
    assert node.reader.is_fresh()
    node.now += 0.02
    assert not node.reader.is_fresh()


async def test_changes_are_applied_in_their_order_and_once(node: Node) -> None:
    with node.running():
        node.log.commit(("user", "a"), ("user", "b"))
        node.log.commit(("user", "c"), ("unheard_of", "x"))
        await until(lambda: node.reader.version == 5)
        node.now += 10
        await node.reader.renew()
    assert node.applied == ["a", "b", "c"]
    assert node.caches.unknown == 1
    assert node.reader.clears == 0


async def test_a_notification_is_not_needed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.01)
    with node.running():
        await until(lambda: node.log.reads > 3)
        node.log.commit(("user", "a"), is_told=False)
        await until(lambda: node.applied == ["a"])


async def test_missing_rows_empty_every_cache(node: Node) -> None:
    node.log.commit(("user", "a"), ("user", "b"))
    del node.log.changes[1]
    await node.reader.renew()
    assert node.applied == [""]
    assert node.reloaded == [{(ChangeKind.SETTING, "")}]
    assert (node.reader.version, node.reader.clears) == (3, 1)


async def test_rows_that_end_too_early_empty_every_cache(node: Node) -> None:
    node.log.commit(("user", "a"), ("user", "b"))
    node.log.changes.pop()
    await node.reader.renew()
    assert node.applied == [""]


async def test_a_version_that_went_back_empties_every_cache(node: Node) -> None:
    node.log.version, node.log.changes = 0, []
    await node.reader.renew()
    assert (node.applied, node.reader.version) == ([""], 0)
    node.log.commit(("user", "a"))
    node.now += 10
    await node.reader.renew()
    assert node.applied == ["", "a"]


async def test_another_database_with_the_same_version_empties_every_cache(node: Node) -> None:
    node.log.identity = "1/00000002/1"
    await node.reader.renew()
    assert node.applied == [""]


async def test_an_answer_that_is_older_than_another_one_is_no_gap(node: Node) -> None:
    node.log.answers.clear()
    with node.running():
        # The question of the link is on its way, with the version 1.
        await until(lambda: node.log.reads == 2)
        node.log.commit(("user", "a"), is_told=False)
        early = node.log.answers
        node.log.answers = asyncio.Event()
        node.log.answers.set()
        await node.reader.renew()
        assert node.applied == ["a"]
        early.set()
        await until(lambda: node.log.reads == 3)
        await asyncio.sleep(0.01)
    assert (node.applied, node.reader.clears, node.reader.version) == (["a"], 0, 2)


async def test_what_is_read_again_is_read_before_the_node_is_fresh(node: Node) -> None:
    node.reload_error = GatewayError(ErrorKind.UNAVAILABLE, "cannot read the settings")
    node.log.commit(("setting", "x"))
    with pytest.raises(GatewayError, match="settings"):
        await node.reader.renew()
    assert not node.reader.is_fresh()
    node.reload_error = None
    node.now += 1
    await node.reader.renew()
    assert node.reader.is_fresh()
    assert node.reloaded == [{(ChangeKind.SETTING, "x")}]


async def test_a_gap_takes_the_trust_away_until_all_is_read_again(node: Node) -> None:
    await node.reader.renew()
    node.reload_error = GatewayError(ErrorKind.UNAVAILABLE, "cannot read the settings")
    node.log.identity = "2/00000001/1"
    with node.running():
        await until(lambda: node.reader.clears)
        assert not node.reader.is_fresh()


async def test_callers_share_a_question_that_was_sent_after_them(node: Node) -> None:
    node.log.answers.clear()
    first = [asyncio.ensure_future(node.reader.renew()) for _ in range(20)]
    await until(lambda: node.log.reads == 2)
    later = [asyncio.ensure_future(node.reader.renew()) for _ in range(20)]
    await asyncio.sleep(0)
    node.log.answers.set()
    await asyncio.gather(*first, *later)
    # The first question was sent before the later callers came, and is too old for them.
    assert node.log.reads == 3


async def test_callers_share_a_failure_and_one_that_left_harms_nobody(node: Node) -> None:
    node.log.is_broken = True
    callers = [asyncio.ensure_future(node.reader.renew()) for _ in range(20)]
    await asyncio.sleep(0)
    callers[0].cancel()
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(each) for each in results[1:]] == [GatewayError] * 19
    assert node.log.reads == 2
    node.log.is_broken = False
    await node.reader.renew()
    assert node.reader.is_fresh()


async def test_nobody_waits_for_a_reader_that_has_ended(log: MemoryLog) -> None:
    reader = Node(log).reader
    answering = asyncio.ensure_future(reader.answer())
    log.answers.clear()
    waiting = asyncio.ensure_future(reader.renew())
    await until(lambda: log.reads == 1)
    answering.cancel()
    for _ in range(2):
        with pytest.raises(GatewayError, match="ends"):
            await waiting
        waiting = asyncio.ensure_future(reader.renew())


async def test_a_change_in_a_transaction_of_the_caller_is_applied_outside_of_it(node: Node) -> None:
    delivered: list[str] = []
    node.caches.drop([ChangeKind.KEY], lambda user: after_commit(lambda: delivered.append(user)))
    with pytest.raises(RuntimeError):
        async with CallbackTransactor(Memory()).transaction():
            node.log.commit(("key", "u1"))
            await node.reader.renew()
            raise RuntimeError
    assert delivered == ["u1"]


async def test_a_silent_database_is_unavailable(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)
    node.log.answers.clear()
    with pytest.raises(GatewayError, match="did not answer within") as caught:
        await node.reader.renew()
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_lost_link_is_made_again(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RECONNECT_SECONDS", (0.0, 0.001))
    monkeypatch.setattr(module, "MAX_RECONNECT_SECONDS", (0.0, 0.001))
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.001)
    caplog.set_level(logging.INFO)
    with node.running():
        await until(lambda: node.log.links == 1 and node.log.reads > 2)
        node.log.is_broken = True
        await asyncio.sleep(0.02)
        node.log.commit(("user", "a"))
        node.log.is_broken = False
        await until(lambda: node.applied == ["a"])
    assert node.log.links >= 2
    # Tasks that an earlier test left may be collected here, and reported by asyncio.
    mine = [record for record in caplog.records if record.name == module.__name__]
    assert [record.message.split(":")[0] for record in mine] == [
        "cannot follow the change log, this is repeated",
        "the change log is followed again",
    ]


async def test_a_contraction_that_is_not_known_stops_the_node_once(node: Node) -> None:
    stops: list[int] = []
    node.reader.on_contraction = lambda: stops.append(1)
    node.log.contraction = "0009_earlier_contract"
    await node.reader.renew()
    assert stops == []
    node.log.contraction = "0099_later_contract"
    for _ in range(2):
        node.now += 10
        await node.reader.renew()
    assert stops == [1]


async def test_without_a_listener_a_contraction_is_only_logged(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.log.contraction = "0099_later_contract"
    await node.reader.renew()
    assert "0099_later_contract" in caplog.text
