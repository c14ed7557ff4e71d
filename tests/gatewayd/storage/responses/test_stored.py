"""Tests for gatewayd.storage.responses.stored, and the conformance of the store in memory."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.pipeline.responses.archive import ArchiveBounds, StoredResponse, StoredResponses
from gatewayd.storage.engine.database import Database
from gatewayd.storage.responses.stored import TortoiseResponses
from gatewayd.storage.tables.usage import UsageRow
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.fakes.storage.memory_responses import MemoryResponses
from tests.gatewayd.storage.conftest import ENGINES, make_location

BOUNDS = ArchiveBounds()


@pytest.fixture(params=["memory", *ENGINES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoredResponses]:
    """Return every implementation in turn, with the users u1 and u2."""
    if request.param == "memory":
        yield MemoryResponses()
        return
    async with Database.open(make_location(request, tmp_path, request.param)):
        for name in ("u1", "u2"):
            await TortoiseUsers().add(user(name), None)
        yield TortoiseResponses()


def response(name: str, at: int = 1, user_id: str = "u1", **fields: Any) -> StoredResponse:
    made = StoredResponse(
        id=name,
        user_id=user_id,
        model="m",
        response={"id": name, "output": [{"type": "message", "text": "ä\x00"}]},
        input=[{"role": "user", "content": "hi"}],
        created_at=at,
        expires_at=at + 10,
        pieces=[3, 0, 4],
        pings=[5],
    )
    return replace(made, **fields)


async def test_a_response_is_read_as_it_was_stored(store: StoredResponses) -> None:
    one = response("r1", response={"id": "r1", "output": []}, previous_id="r0", source="acme")
    assert await store.add(one, BOUNDS)
    assert await store.find("r1") == one
    assert await store.find("r2") is None
    assert await store.find("r" * 5000) is None


async def test_an_id_is_stored_once(store: StoredResponses) -> None:
    assert await store.add(response("r1"), BOUNDS)
    assert not await store.add(response("r1", user_id="u2"), BOUNDS)
    found = await store.find("r1")
    assert found is not None
    assert found.user_id == "u1"


async def test_a_chain_is_oldest_first_and_stays_with_its_user(store: StoredResponses) -> None:
    await store.add(response("r1"), BOUNDS)
    await store.add(response("r2", previous_id="r1"), BOUNDS)
    await store.add(response("r3", previous_id="r2"), BOUNDS)
    await store.add(response("x1", user_id="u2", previous_id="r3"), BOUNDS)
    await store.add(response("round", previous_id="round"), BOUNDS)
    assert [each.id for each in await store.chain("r3", 10)] == ["r1", "r2", "r3"]
    assert [each.id for each in await store.chain("r3", 2)] == ["r2", "r3"]
    assert [each.id for each in await store.chain("x1", 10)] == ["x1"]
    assert len(await store.chain("round", 10)) == 10
    assert await store.chain("none", 10) == []


@pytest.mark.parametrize("store", ENGINES, indirect=True)
async def test_responses_go_with_their_user(store: StoredResponses) -> None:
    await store.add(response("r1"), BOUNDS)
    assert await TortoiseUsers().remove("u1")
    assert await store.find("r1") is None


async def test_expired_responses_are_deleted_unless_renewed(store: StoredResponses) -> None:
    for name in ("r1", "r2", "r3"):
        await store.add(response(name), BOUNDS)
    await store.renew(["r1"], 100)
    await store.renew(["r1"], 50)
    assert await store.prune(12) == 2
    assert await store.find("r1") is not None
    assert await store.prune(60) == 0
    assert await store.remove("r1")
    assert not await store.remove("r1")


async def test_the_oldest_of_a_user_give_way(store: StoredResponses) -> None:
    few = replace(BOUNDS, user_responses=2)
    await store.add(response("x1", 0, "u2"), few)
    for at, name in enumerate(("r1", "r2", "r3")):
        assert await store.add(response(name, at), few)
    assert [await store.find(name) is not None for name in ("r1", "r2", "r3", "x1")] == [
        False,
        True,
        True,
        True,
    ]
    small = replace(BOUNDS, user_bytes=250)
    assert await store.add(response("r4", 4), small)
    assert await store.find("r2") is None
    assert not await store.add(response("r5", 5, input=["x" * 300]), small)
    assert await store.find("r4") is not None


async def test_the_bound_of_a_user_is_in_bytes(store: StoredResponses) -> None:
    small = replace(BOUNDS, user_bytes=300)
    assert await store.add(response("r1", input=["x" * 100]), small)
    assert not await store.add(response("r2", 2, input=["\u6f22" * 100]), small)
    assert await store.find("r1") is not None


async def test_another_state_replaces_a_response_of_its_user_within_the_bounds(
    store: StoredResponses,
) -> None:
    queued, ended = response("r1", response={"status": "queued"}), response("r1", pieces=[1])
    assert not await store.replace(ended, BOUNDS)
    await store.add(queued, BOUNDS)
    assert not await store.replace(ended, replace(BOUNDS, user_bytes=10))
    assert await store.find("r1") == queued
    assert await store.replace(ended, BOUNDS)
    found = await store.find("r1")
    assert found is not None
    assert (found.pieces, found.response["id"]) == ([1], "r1")


async def test_the_usage_of_a_response_is_added_once(store: StoredResponses) -> None:
    pending = {"pending_usage": {"counted": [3, 0, 0, 0, 0]}}
    one, own = response("r1", response=pending, source="acme"), response("r2", response={"id": "r2"})
    assert await store.add(one, BOUNDS)
    assert await store.add(own, BOUNDS)
    key = UsageKey("2026-09-21", "u1", "", "m", "acme", "responses")
    usage = {key: UsageSums(prompt=-2, completion=20, estimated=-1)}
    assert not await store.settle(replace(one, user_id="u2"), usage)
    # A response of the gateway's own has its content there.
    assert not await store.settle(own, usage)
    assert await store.find("r2") == own
    assert await asyncio.gather(*(store.settle(one, usage) for _ in range(3))) == [True, False, False]
    assert await store.find("r1") == replace(one, response={})
    await store.remove("r1")
    assert not await store.settle(one, usage)
    if isinstance(store, MemoryResponses):
        assert store.usage == usage
    else:
        [row] = await UsageRow.all()
        assert (row.day, row.user_id, row.provider) == (key.day, "u1", "acme")
        assert (row.requests, row.prompt, row.completion, row.estimated) == (0, -2, 20, -1)
