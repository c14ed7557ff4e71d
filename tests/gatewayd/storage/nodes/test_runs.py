"""Tests for gatewayd.storage.nodes.runs, on PostgreSQL."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import Node, RunClaim
from gatewayd.storage.engine.database import Database
from gatewayd.storage.nodes.nodes import TortoiseNodes
from gatewayd.storage.nodes.runs import TortoiseAnswerRuns
from gatewayd.tasks import TaskOwner
from tests.fakes.storage.records import chat, message
from tests.gatewayd.storage.conftest import make_chatting

pytestmark = pytest.mark.parametrize("location", ["postgres"], indirect=True)

ONE, TWO = TaskOwner("u1", "c1", "m1"), TaskOwner("u1", "c1", "m2")


async def test_a_claim_ends_the_earlier_one_and_never_comes_back(database: Database) -> None:
    runs = TortoiseAnswerRuns()
    two, one = await runs.claim("n1", [("t2", TWO), ("t1", ONE)], at=5)
    assert (two.owner, one.owner) == (TWO, ONE)
    assert await runs.hold(one)
    [other] = await runs.claim("n2", [("t3", ONE)], at=6)
    assert other.fence > one.fence
    assert not await runs.hold(one)
    assert await runs.hold(other)
    await runs.end(one)
    assert [run.claim.task_id for run in await runs.list()] == ["t2", "t3"]
    assert [run.claim for run in await runs.list("n2")] == [other]
    await runs.end(other)
    [again] = await runs.claim("n1", [("t4", ONE)], at=7)
    assert again.fence > other.fence, "a run of before cannot take the new claim for its own"


async def test_a_stop_is_noted_for_the_node_of_the_run(database: Database) -> None:
    runs = TortoiseAnswerRuns()
    await runs.claim("n1", [("t1", ONE)], at=5)
    assert await runs.stop("t1")
    assert not await runs.stop("t2")
    assert not await runs.stop("t" * 65)
    [run] = await runs.list()
    assert (run.is_stopped, run.node_id, run.started_at) == (True, "n1", 5)
    await runs.claim("n1", [("t2", ONE)], at=6)
    [run] = await runs.list()
    assert not run.is_stopped


async def test_two_nodes_that_claim_at_once(database: Database) -> None:
    runs = TortoiseAnswerRuns()
    found = await asyncio.gather(
        *(runs.claim(f"n{n}", [(f"t{n}", ONE), (f"s{n}", TWO)], at=5) for n in range(4))
    )
    claims = [claim for one in found for claim in one]
    held = [claim for claim in claims if await runs.hold(claim)]
    # Numbers are given before a claim waits for another one: the last claim need not have the highest.
    assert sorted(claim.owner.message_id for claim in held) == ["m1", "m2"]
    assert len({claim.fence for claim in claims}) == len(claims) == 8


async def test_claims_of_dead_nodes_are_removed(database: Database) -> None:
    runs, nodes = TortoiseAnswerRuns(), TortoiseNodes()
    await nodes.add(Node("n1", "one"), 30)
    await nodes.add(Node("n2", "two"), -1)
    await runs.claim("n1", [("t1", ONE)], at=5)
    await runs.claim("n2", [("t2", TWO)], at=5)
    await runs.claim("n3", [("t3", TaskOwner("u2", "c1", "m1"))], at=5)
    assert await runs.remove_dead() == 2
    assert [run.claim.task_id for run in await runs.list()] == ["t1"]
    assert (await nodes.uses())["n1"].runs == 1


async def test_ids_that_no_row_can_hold_are_refused(database: Database) -> None:
    with pytest.raises(GatewayError, match="cannot accept chat_id") as caught:
        await TortoiseAnswerRuns().claim("n1", [("t1", TaskOwner("u1", "c" * 256, "m1"))], at=5)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert not await TortoiseAnswerRuns().hold(RunClaim("t1", ONE, 1))


async def test_the_runs_of_a_deleted_chat_are_stopped_on_all_nodes(database: Database) -> None:
    chats = (await make_chatting()).chats
    for chat_id in ("c1", "kept"):
        await chats.add(chat(chat_id), [message("m1")])
    runs = TortoiseAnswerRuns()
    await runs.claim("n1", [("t1", ONE)], at=5)
    await runs.claim("n2", [("t2", TaskOwner("u1", "kept", "m1"))], at=6)
    assert await chats.hide("c1")
    await chats.purge(["c1"])
    assert [(run.claim.task_id, run.is_stopped) for run in await runs.list()] == [("t1", True), ("t2", False)]
