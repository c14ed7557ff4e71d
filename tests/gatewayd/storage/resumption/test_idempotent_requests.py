"""Tests for gatewayd.storage.resumption.idempotent_requests, and for its stand-in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.encryption import ENCRYPTED_PREFIX
from gatewayd.resumption.interfaces import ReplyStore
from gatewayd.resumption.records import RequestRecord, StoredReply
from gatewayd.storage.engine.database import Database
from gatewayd.storage.resumption.idempotent_requests import MAX_SHORT_CHARACTERS, TortoiseReplies
from gatewayd.storage.tables.streams import IdempotentRequestRow
from tests.fakes.storage.streams import MemoryReplies
from tests.gatewayd.storage.conftest import ENGINES, make_location


@pytest.fixture(params=["memory", *ENGINES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ReplyStore]:
    """Return every implementation in turn."""
    if request.param == "memory":
        yield MemoryReplies()
        return
    async with Database.open(make_location(request, tmp_path, request.param)):
        yield TortoiseReplies(b"secret")


def asked(digest: str, at: int = 5, text: str | None = "{}", user_id: str = "u1") -> RequestRecord:
    reply = None if text is None else StoredReply(200, {"X-A": "b"}, text, "s1")
    return RequestRecord(digest, user_id, "f", at, reply)


async def test_reply_comes_back_and_the_running_request_without_one(store: ReplyStore) -> None:
    long = asked("c", text="x" * (MAX_SHORT_CHARACTERS + 1))
    for record in (asked("a", text=None), asked("b"), long):
        await store.put(record)
    assert await store.find("a") == asked("a", text=None)
    assert await store.find("b") == asked("b")
    assert await store.find("c") == long
    await store.put(asked("a"))
    assert await store.find("a") == asked("a")
    await store.remove("a")
    assert await store.find("a") is None


async def test_old_requests_and_those_over_the_limits_go_the_oldest_first(store: ReplyStore) -> None:
    records = [asked("a", 1), asked("b", 2, None), asked("c", 3), asked("d", 4), asked("e", 1, user_id="u2")]
    for record in records:
        await store.put(record)
    await store.trim("u1", 2, 10**6)
    assert [each.digest for each in records if await store.find(each.digest)] == ["b", "c", "d", "e"]
    await store.trim("u1", 9, 1)
    assert [each.digest for each in records if await store.find(each.digest)] == ["b", "e"]
    assert await store.prune(2) == 1
    assert await store.find("b") is not None


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_stored_reply_is_encrypted_and_unreadable_with_another_secret(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    async with Database.open(make_location(request, tmp_path, engine)):
        await TortoiseReplies(b"secret").put(asked("a", text='{"api_key": "sk-1234"}'))
        row = await IdempotentRequestRow.get(digest="a")
        assert row.reply.startswith(ENCRYPTED_PREFIX)
        assert "sk-1234" not in row.reply
        assert await TortoiseReplies(b"another").find("a") is None
