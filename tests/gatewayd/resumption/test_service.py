"""Tests for gatewayd.resumption.service, with its readers and recordings."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.messages import NodeMessages
from gatewayd.resumption import reader as reader_module
from gatewayd.resumption import service
from gatewayd.resumption.live_stream import MAX_PENDING_BYTES, StreamRecording
from gatewayd.resumption.records import FrameBatch, StreamRecord, StreamState
from gatewayd.resumption.service import ResumableStreams, StreamTimes
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.node_wire import Channel, Wire, meet
from tests.fakes.storage.streams import CountingLimiter, MemoryStreams


class World:
    """The service over a store in memory."""

    def __init__(self, store: MemoryStreams | None = None, nodes: NodeMessages | None = None) -> None:
        self.store = store or MemoryStreams()
        self.tasks = TaskRegistry()
        self.limiter = CountingLimiter()
        self.now = 1_000
        self.streams = ResumableStreams(
            self.store, self.tasks, self.limiter, clock=lambda: self.now, nodes=nodes
        )

    def begin(self, frames: Sequence[bytes], *, user_id: str = "u1", holds: bool = False) -> StreamRecording:
        async def produce(recording: StreamRecording) -> None:
            recording.begin({})
            try:
                for frame in frames:
                    recording.add(frame)
                    await recording.room()
                if holds:
                    await asyncio.Event().wait()
            except asyncio.CancelledError:
                recording.finish(StreamState.BROKEN, b"data: error\n\n", self.now)
                raise
            recording.finish(StreamState.COMPLETE, b"data: end\n\n", self.now)

        return self.streams.begin(user_id, "openai", produce)

    async def read(self, stream_id: str, after: int = 0) -> bytes:
        parts = []
        with await self.streams.open(stream_id, "u1", after) as reader:
            while part := await reader.next():
                parts.append(part)
        return b"".join(parts)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.tasks.close()


def numbered(*texts: str) -> bytes:
    return b"".join(b"id: %d\ndata: %b\n\n" % (place, text.encode()) for place, text in enumerate(texts, 1))


async def until_over(recording: StreamRecording) -> None:
    while not recording.is_over:
        await asyncio.sleep(0)


async def test_reader_gets_the_frames_from_memory_and_later_from_the_store(world: World) -> None:
    recording = world.begin([b"data: a\n\n", b"data: b\n\n"])
    await recording.begun()
    assert await world.read(recording.id) == numbered("a", "b", "end")
    await world.streams.write()
    assert recording.memory == 0
    for after in range(4):
        expected = b"".join(numbered("a", "b", "end").partition(b"id: %d" % (after + 1))[1:])
        assert await world.read(recording.id, after) == expected
    await asyncio.sleep(0)
    assert world.limiter.running == 0


async def test_reader_follows_frames_that_are_partly_stored(world: World) -> None:
    gate = asyncio.Event()

    async def produce(recording: StreamRecording) -> None:
        recording.begin({})
        recording.add(b"data: a\n\n")
        await gate.wait()
        recording.add(b"data: b\n\n")
        recording.finish(StreamState.COMPLETE, b"", world.now)

    recording = world.streams.begin("u1", "openai", produce)
    await recording.begun()
    await world.streams.write()
    with await world.streams.open(recording.id, "u1") as reader:
        assert await reader.next() == numbered("a")
        following = asyncio.ensure_future(reader.next())
        await asyncio.sleep(0)
        gate.set()
        assert await following == b"id: 2\ndata: b\n\n"
        assert await reader.next() == b""
        assert reader.is_at_end


@pytest.mark.parametrize("user_id", ["u2", ""])
async def test_stream_of_another_user_is_not_found_at_any_time(world: World, user_id: str) -> None:
    recording = world.begin([b"data: a\n\n"], holds=True)
    await recording.begun()
    for _ in range(2):
        for attempt in (world.streams.open(recording.id, user_id), world.streams.stop(recording.id, user_id)):
            with pytest.raises(GatewayError) as caught:
                await attempt
            assert caught.value.kind is ErrorKind.NOT_FOUND
        await world.streams.write()
    assert not recording.is_over


async def test_number_that_the_stream_does_not_have_is_refused(world: World) -> None:
    recording = world.begin([b"data: a\n\n"], holds=True)
    await recording.begun()
    with pytest.raises(GatewayError) as caught:
        await world.streams.open(recording.id, "u1", 2)
    assert caught.value.param == "Last-Event-ID"


async def test_interrupted_stream_has_what_was_stored_whatever_its_client_has(world: World) -> None:
    record = StreamRecord("s1", "u1", "openai", StreamState.RUNNING, 5, last=9)
    await world.store.write([record], [FrameBatch("s1", 1, 1, numbered("a"))])
    await world.streams.resume()
    assert await world.read("s1") == numbered("a")
    assert await world.read("s1", 7) == b""
    assert (await world.streams.open("s1", "u1", 7)).is_interrupted


async def test_unread_answer_ends_after_its_time_and_a_read_one_does_not(world: World) -> None:
    world.streams.configure(StreamTimes(unread=0))
    unread, read = world.begin([b"data: a\n\n"], holds=True), world.begin([b"data: a\n\n"], holds=True)
    await unread.begun()
    await read.begun()
    with await world.streams.open(read.id, "u1"):
        await world.streams._end_unread()
        await until_over(unread)
        assert not read.is_over
    assert unread.ending is not None
    assert unread.ending.code == "stream_unread"
    assert (await world.read(unread.id)).endswith(b"data: error\n\n")


async def test_stopped_stream_is_gone(world: World) -> None:
    recording = world.begin([b"data: a\n\n"], holds=True)
    await recording.begun()
    await world.streams.stop(recording.id, "u1")
    assert recording.record.state is StreamState.BROKEN
    assert (world.store.streams, world.store.batches, world.limiter.running) == ({}, {}, 0)
    with pytest.raises(GatewayError):
        await world.streams.open(recording.id, "u1")


async def test_streams_of_an_account_without_access_end(world: World) -> None:
    own, other = world.begin([], holds=True), world.begin([], user_id="u2", holds=True)
    await other.begun()
    world.streams.stop_account("u1")
    await until_over(own)
    assert not other.is_over


async def test_streams_of_a_removed_account_are_gone_and_stay_so(world: World) -> None:
    ended, own = world.begin([b"data: a\n\n"]), world.begin([b"data: b\n\n"], holds=True)
    other = world.begin([b"data: c\n\n"], user_id="u2", holds=True)
    await until_over(ended)
    await world.streams.write()
    assert len(world.store.streams) == 3
    world.streams.forget_account("u1")
    await until_over(own)
    await world.streams.write()
    assert list(world.store.streams) == [other.id]
    assert list(world.store.batches) == [other.id]
    assert list(world.streams._running) == [other.id]


async def test_stream_that_fails_before_it_begins_is_never_stored(world: World) -> None:
    async def produce(recording: StreamRecording) -> None:
        recording.refuse(GatewayError(ErrorKind.RATE_LIMITED, "cannot"))

    recording = world.streams.begin("u1", "openai", produce)
    await recording.begun()
    assert recording.failure is not None
    await asyncio.sleep(0)
    await world.streams.write()
    assert (world.store.streams, world.limiter.running) == ({}, 0)


async def test_stream_stopped_before_its_first_step_ends(world: World) -> None:
    recording = world.begin([b"data: a\n\n"])
    await world.streams.abandon(recording)
    await asyncio.wait_for(recording.begun(), 1)
    assert recording.failure is not None
    assert world.limiter.running == 0


async def test_running_streams_of_a_user_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_RUNNING_STREAMS_PER_USER", 1)
    world.begin([], holds=True)
    with pytest.raises(GatewayError) as caught:
        world.begin([])
    assert (caught.value.kind, caught.value.code) == (ErrorKind.RATE_LIMITED, "too_many_streams")
    monkeypatch.setattr(service, "MAX_RUNNING_STREAMS", 1)
    with pytest.raises(GatewayError):
        world.begin([], user_id="u2")


async def test_kept_streams_are_bounded_by_age_number_and_size(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = StreamRecord("s0", "u1", "openai", StreamState.COMPLETE, 0, ended_at=1_000, size=10)
    records = [replace(ended, id=f"s{place}", ended_at=1_000 + place) for place in range(5)]
    other = replace(ended, id="x", user_id="u2", ended_at=900)
    await world.store.write([*records, other], [])
    world.streams.configure(StreamTimes(kept=50))
    assert await world.streams.prune() == 1
    monkeypatch.setattr(service, "MAX_KEPT_STREAMS_PER_USER", 3)
    assert await world.streams.prune() == 2
    monkeypatch.setattr(service, "MAX_KEPT_BYTES_PER_USER", 25)
    assert await world.streams.prune() == 1
    monkeypatch.setattr(service, "MAX_KEPT_STREAMS", 1)
    assert await world.streams.prune() == 1
    assert list(world.store.streams) == ["s4"]


async def test_answer_waits_for_a_store_that_is_out_and_loses_nothing(world: World) -> None:
    world.store.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot")
    frame = b"data: " + b"x" * (MAX_PENDING_BYTES // 2) + b"\n\n"
    recording = world.begin([frame] * 40)
    await recording.begun()
    for _ in range(3):
        await asyncio.sleep(0)
        with pytest.raises(GatewayError):
            await world.streams.write()
    assert recording.memory < 2 * MAX_PENDING_BYTES
    world.store.outage = None
    while not recording.is_over:
        await world.streams.write()
        await asyncio.sleep(0)
    assert recording.memory < 2 * MAX_PENDING_BYTES
    await world.streams.write()
    assert (await world.read(recording.id)).count(b"id: ") == 41


async def test_a_thousand_unread_streams_cost_bounded_memory(world: World) -> None:
    frames = [b"data: " + b"x" * 8_000 + b"\n\n"] * 25
    recordings = [world.begin(frames, user_id=f"u{place % 20}", holds=True) for place in range(1_000)]
    most = 0
    for _ in range(8):
        await asyncio.sleep(0)
        most = max(most, sum(each.memory for each in recordings))
        await world.streams.write()
    # 200 MB were produced.
    assert most <= 1_000 * (MAX_PENDING_BYTES + 9_000)
    assert sum(each.memory for each in recordings) == 0
    assert world.store.writes <= 8


async def test_closing_stores_the_end_of_running_streams(world: World) -> None:
    recordings = [world.begin([b"data: a\n\n"], holds=True) for _ in range(3)]
    await recordings[-1].begun()
    await world.tasks.close()
    assert {each.state for each in world.store.streams.values()} == {StreamState.BROKEN}
    assert {await world.read(each.id) for each in recordings} == {numbered("a", "error")}


@pytest.fixture
async def nodes(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Wire, World, World]]:
    """Two nodes with one store; the first has one stream that goes on."""
    monkeypatch.setattr(reader_module, "POLL_SECONDS", 0.01)
    wire, store, tasks = Wire(), MemoryStreams(), TaskRegistry()
    messages = [NodeMessages(Channel(wire, name), tasks) for name in ("a", "b")]
    for each in messages:
        tasks.spawn("messages", each.run())
    await meet(messages)
    first, second = (World(store, each) for each in messages)
    yield wire, first, second
    for registry in (tasks, first.tasks, second.tasks):
        await registry.close()


async def test_a_stream_of_another_node_is_read_to_its_end(nodes: tuple[Wire, World, World]) -> None:
    _, first, second = nodes
    recording = first.begin([b"data: a\n\n"], holds=True)
    await recording.begun()
    await first.streams.write()
    assert await second.streams.runs_elsewhere(recording.id, "u1")
    assert not await second.streams.runs_elsewhere(recording.id, "u2")
    assert not await first.streams.runs_elsewhere(recording.id, "u1")
    assert await second.streams.is_whole(recording.id)
    # What a client has may not be stored yet.
    later = asyncio.ensure_future(second.read(recording.id, 1))
    recording.unread_since = -1000.0
    async with asyncio.timeout(5):
        while recording.unread_since < 0:
            await asyncio.sleep(0.01)
    assert not later.done()
    await first.tasks.stop(recording.task_id)
    await first.streams.write()
    assert (await later).endswith(b"id: 2\ndata: error\n\n")


async def test_a_slow_reader_on_another_node_reads(nodes: tuple[Wire, World, World]) -> None:
    _, first, second = nodes
    recording = first.begin([b"data: a\n\n"], holds=True)
    await recording.begun()
    await first.streams.write()
    recording.unread_since = -1000.0
    with await second.streams.open(recording.id, "u1") as reader:
        # It never waits for frames.
        assert await reader.next()
        assert reader.told_seconds == 10.0
    async with asyncio.timeout(5):
        while recording.unread_since < 0:
            await asyncio.sleep(0)


async def test_the_node_of_a_stream_is_told_before_it_counts_as_unread(
    nodes: tuple[Wire, World, World],
) -> None:
    _, first, second = nodes
    recording = first.begin([b"data: a\n\n"], holds=True)
    await recording.begun()
    await first.streams.write()
    second.streams.configure(StreamTimes(unread=0.03))
    with await second.streams.open(recording.id, "u1", 1) as reader:
        reading = asyncio.ensure_future(reader.next())
        for _ in range(3):
            recording.unread_since = -1000.0
            async with asyncio.timeout(5):
                while recording.unread_since < 0:
                    await asyncio.sleep(0.001)
        await first.tasks.stop(recording.task_id)
        await first.streams.write()
        assert await reading


async def test_a_stream_of_a_node_that_is_gone_ends(nodes: tuple[Wire, World, World]) -> None:
    _, first, second = nodes
    recording = first.begin([b"data: a\n\n"], holds=True)
    await recording.begun()
    await first.streams.write()
    with await second.streams.open(recording.id, "u1", 1) as reader:
        reading = asyncio.ensure_future(reader.next())
        await asyncio.sleep(0)
        await second.streams.resume()
        assert await reading == b""
        assert reader.is_interrupted


async def test_another_node_stops_a_stream(nodes: tuple[Wire, World, World]) -> None:
    wire, first, second = nodes
    recording = first.begin([b"data: a\n\n"], holds=True)
    await recording.begun()
    await first.streams.write()
    with pytest.raises(GatewayError) as caught:
        await second.streams.stop(recording.id, "u2")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    wire.is_cut = True
    with pytest.raises(GatewayError) as caught:
        await second.streams.stop(recording.id, "u1")
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    wire.is_cut = False
    await second.streams.stop(recording.id, "u1")
    assert recording.is_over
    await first.streams.write()
    assert first.store.streams == {}
