"""Tests for gatewayd.storage.resumption.streams, and for its stand-in."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd.pipeline.responses.archive import ArchiveBounds, StoredResponse
from gatewayd.resumption.interfaces import StreamStore
from gatewayd.resumption.records import FrameBatch, RequestRecord, StoredReply, StreamRecord, StreamState
from gatewayd.storage.engine.database import Database
from gatewayd.storage.responses.stored import TortoiseResponses
from gatewayd.storage.resumption.idempotent_requests import TortoiseReplies
from gatewayd.storage.resumption.streams import TortoiseStreams
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.fakes.storage.streams import MemoryStreams
from tests.gatewayd.storage.conftest import ENGINES, make_location


@pytest.fixture(params=["memory", *ENGINES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StreamStore]:
    """Return every implementation in turn."""
    if request.param == "memory":
        yield MemoryStreams()
        return
    async with Database.open(make_location(request, tmp_path, request.param)):
        yield TortoiseStreams()


def stream(stream_id: str, **changes: object) -> StreamRecord:
    record = StreamRecord(stream_id, "u1", "openai", StreamState.RUNNING, 10, headers={"X-A": "b"})
    return replace(record, **changes)  # type: ignore[arg-type]


async def test_frames_come_back_byte_for_byte_and_from_any_number(store: StreamStore) -> None:
    batches = [
        FrameBatch("s1", 1, 2, b"id: 1\ndata: \xff\x00\n\nid: 2\n\n"),
        FrameBatch("s1", 3, 3, b"id: 3\n\n"),
    ]
    await store.write([stream("s1", last=3, size=30)], batches)
    assert await store.find("s1") == stream("s1", last=3, size=30)
    assert await store.read("s1", 0, 8) == batches
    assert await store.read("s1", 1, 1) == batches[:1]
    assert await store.read("s1", 2, 8) == batches[1:]
    assert await store.read("s1", 3, 8) == []
    assert await store.find("s2") is None
    assert await store.find("\x00" * 99) is None


async def test_repeated_write_replaces_its_frames_and_the_state(store: StreamStore) -> None:
    await store.write([stream("s1", last=1)], [FrameBatch("s1", 1, 1, b"a\n\n")])
    ended = stream("s1", last=2, state=StreamState.COMPLETE, ended_at=12)
    await store.write([ended], [FrameBatch("s1", 1, 2, b"a\n\nb\n\n")])
    assert await store.find("s1") == ended
    assert await store.read("s1", 0, 8) == [FrameBatch("s1", 1, 2, b"a\n\nb\n\n")]


async def test_running_streams_of_an_ended_process_are_interrupted_where_they_were_stored(
    store: StreamStore,
) -> None:
    complete = stream("s2", state=StreamState.COMPLETE, ended_at=11)
    batches = [FrameBatch("s1", 1, 2, b"a\n\nb\n\n"), FrameBatch("s1", 3, 4, b"c\n\nd\n\n")]
    await store.write([stream("s1", last=9), complete, stream("s3")], batches)
    assert await store.interrupt(20) == 2
    assert await store.interrupt(21) == 0
    assert await store.find("s1") == stream("s1", last=4, state=StreamState.INTERRUPTED, ended_at=20)
    assert await store.find("s2") == complete
    assert [each.id for each in await store.ended()] == ["s3", "s1", "s2"]


async def test_removed_stream_leaves_no_frames(store: StreamStore) -> None:
    await store.write([stream("s1"), stream("s2")], [FrameBatch("s1", 1, 1, b"a\n\n")])
    assert await store.remove(["s1", "s9"]) == 1
    assert await store.find("s1") is None
    assert await store.read("s1", 0, 8) == []
    assert await store.find("s2") is not None


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_removed_user_takes_streams_and_stored_replies_along(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    async with Database.open(make_location(request, tmp_path, engine)):
        store, replies, responses = TortoiseStreams(), TortoiseReplies(b"secret"), TortoiseResponses()
        for name in ("u1", "u2"):
            await TortoiseUsers().add(user(name), None)
            await store.write([stream(f"s-{name}", user_id=name)], [FrameBatch(f"s-{name}", 1, 1, b"a\n\n")])
            await replies.put(RequestRecord(f"d-{name}", name, "f", 1, StoredReply(text="a")))
            kept = StoredResponse(f"r-{name}", name, "m", {}, [], created_at=1, expires_at=9)
            assert await responses.add(kept, ArchiveBounds())
        assert await TortoiseUsers().remove("u1")
        assert [bool(await store.find(f"s-{name}")) for name in ("u1", "u2")] == [False, True]
        assert [len(await store.read(f"s-{name}", 0, 9)) for name in ("u1", "u2")] == [0, 1]
        assert [bool(await replies.find(f"d-{name}")) for name in ("u1", "u2")] == [False, True]
        assert [bool(await responses.find(f"r-{name}")) for name in ("u1", "u2")] == [False, True]
        await store.remove_user("u2")
        await replies.remove_user("u2")
        assert (await store.find("s-u2"), await replies.find("d-u2")) == (None, None)
