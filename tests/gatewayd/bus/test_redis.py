"""Events over a real Redis that is stopped, paused, emptied and restarted."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.bus import redis as module
from gatewayd.bus.redis import RedisBus, order_of, parse_place
from gatewayd.events.records import EventFrame, FramePlace
from tests.fakes.daemons.bus_nodes import BusNode, Reader, bus_nodes
from tests.fakes.daemons.redis_server import RedisServer


@pytest.fixture
async def nodes(redis: RedisServer) -> AsyncIterator[list[BusNode]]:
    async with bus_nodes(redis.url, 2) as made:
        yield made


async def healed(node: BusNode, number: int) -> None:
    """Wait until what a node publishes reaches the other one again."""
    assert node.client is not None
    async with asyncio.timeout(15):
        while not node.client.is_usable or node.bus.position("ann") is None:
            await asyncio.sleep(0.05)
            await node.hub.publish("probe", "c", {"n": number})


async def closed(reader: Reader) -> None:
    """Read until the subscriber is closed."""
    async with asyncio.timeout(15):
        while True:
            try:
                reader.take(await reader.chunk())
            except ConnectionResetError:
                return


async def test_a_run_goes_on_without_redis_and_readers_see_one_gap(
    redis: RedisServer, nodes: list[BusNode], caplog: pytest.LogCaptureFixture
) -> None:
    here, there = await Reader().connect(nodes[0]), await Reader().connect(nodes[1])
    await nodes[0].publish(0)
    assert (await here.read(1), await there.read(1)) == ([0], [0])
    assert [node.hub.is_whole for node in nodes] == [True, True]
    redis.stop()
    # A node that publishes nothing notices it, too.
    async with asyncio.timeout(5):
        while any(node.hub.is_whole for node in nodes):
            await asyncio.sleep(0.01)
    async with asyncio.timeout(5):
        for number in range(1, 20):
            await nodes[0].publish(number)
    # Local delivery goes on, in order.
    assert await here.read(20) == list(range(20))
    assert "events reach only the clients of this node" in caplog.text
    redis.start()
    # Both are told that somebody may have missed something, and come again.
    await asyncio.gather(closed(here), closed(there))
    await here.connect(nodes[1])
    await there.connect(nodes[0])
    assert (here.gaps, there.gaps) == ([20], [1])
    await healed(nodes[0], 1)
    await nodes[0].publish(20)
    assert [node.hub.is_whole for node in nodes] == [True, True]
    for reader in (here, there):
        numbers = await reader.until(20, nodes[0])
        assert len(numbers) == len(set(numbers))


async def test_a_paused_redis_holds_nobody_up(redis: RedisServer, nodes: list[BusNode]) -> None:
    here = await Reader().connect(nodes[0])
    redis.pause()
    try:
        async with asyncio.timeout(2):
            for number in range(50):
                await nodes[0].publish(number)
            assert await here.read(50) == list(range(50))
        other = Reader()
        other.last_id = "epoch-1-0"
        async with asyncio.timeout(2):
            await other.connect(nodes[0])
        assert other.gaps == [0]
    finally:
        redis.go_on()
    await closed(here)
    await here.connect(nodes[0])
    # What Redis had taken before its pause is not delivered a second time.
    await healed(nodes[0], 1)
    await nodes[0].publish(50)
    numbers = await here.until(50, nodes[0])
    assert len(numbers) == len(set(numbers))


async def test_an_emptied_redis_is_a_gap_for_all(redis: RedisServer, nodes: list[BusNode]) -> None:
    reader = await Reader().connect(nodes[0])
    await nodes[0].publish(0)
    await reader.read(1)
    redis.command("FLUSHALL")
    away = Reader()
    away.last_id = reader.last_id
    assert (await away.connect(nodes[1])).gaps == [0]
    await nodes[1].publish(1)
    await closed(reader)
    await reader.connect(nodes[1])
    assert len(reader.gaps) == 1
    await nodes[0].publish(2)
    assert (await reader.until(2, nodes[1]))[-2:] == [1, 2]


async def test_frames_that_expired_are_a_gap_and_quiet_users_have_none(
    redis: RedisServer,
) -> None:
    async with bus_nodes(redis.url, 2, replay_seconds=0.2) as nodes:
        first, quiet = await Reader().connect(nodes[0]), await Reader("bob").connect(nodes[0])
        for user_id in ("ann", "bob"):
            await nodes[0].publish(0, user_id)
        await first.read(1)
        await quiet.read(1)
        first.leave()
        quiet.leave()
        await nodes[0].publish(1)
        await nodes[0].settle()
        await asyncio.sleep(0.4)
        assert (await first.connect(nodes[1])).gaps == [1]
        assert (await quiet.connect(nodes[1])).gaps == []
        first.leave()
        await nodes[0].publish(2)
        late = Reader()
        late.last_id = first.last_id
        await nodes[0].settle()
        await late.connect(nodes[1])
        assert late.gaps == []
        assert (await late.read(1)) == [2]


async def test_too_many_frames_for_redis_are_delivered_here(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED_FRAMES", 3)
    async with bus_nodes(redis.url, 1) as [node]:
        reader = await Reader().connect(node)
        for number in range(10):
            await node.publish(number)
        await closed(reader)
        await reader.connect(node)
        await node.publish(10)
        numbers = await reader.until(10, node)
        assert reader.gaps or numbers == list(range(11))


async def test_too_many_users_with_gaps_are_all_users(
    redis: RedisServer, nodes: list[BusNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_GAP_USERS", 1)
    reader = await Reader("carl").connect(nodes[1])
    await nodes[0].publish(0, "carl")
    await reader.read(1)
    redis.stop()
    for user_id in ("ann", "bob"):
        await nodes[0].publish(1, user_id)
    await asyncio.sleep(0.6)
    await nodes[0].publish(1, "dora")
    redis.start()
    await closed(reader)
    await reader.connect(nodes[1])
    assert reader.gaps == [1]


async def test_an_older_copy_of_redis_is_a_gap(redis: RedisServer, nodes: list[BusNode]) -> None:
    reader = await Reader().connect(nodes[0])
    await nodes[0].publish(0)
    await reader.read(1)
    assert isinstance(nodes[0].bus, RedisBus)
    assert reader.last_id is not None
    place = parse_place(reader.last_id)
    assert place is not None
    # The client knows a frame that this Redis does not have.
    ahead = Reader()
    ahead.last_id = FramePlace(place.epoch, (place.order[0] + 10, 0)).id
    assert (await ahead.connect(nodes[1])).gaps == [0]
    # A node that was ahead of the end of a shard begins anew.
    bus = nodes[0].bus
    shard = bus._shard("ann")
    bus._ids[shard] = f"{place.order[0] + 10_000_000}-0"
    await bus.attach()
    assert order_of(bus._ids[shard]) < (place.order[0] + 10_000_000, 0)
    await closed(reader)


async def test_what_was_sent_twice_by_a_lost_reply_is_delivered_once(
    redis: RedisServer, nodes: list[BusNode]
) -> None:
    reader = await Reader().connect(nodes[0])
    bus = nodes[0].bus
    assert isinstance(bus, RedisBus)
    append_all = bus._append_all

    async def lose_the_reply(given: list[tuple[str, EventFrame, int, bytes]]) -> list[Exception]:
        await append_all(given)
        return [TimeoutError()] * len(given)

    bus._append_all = lose_the_reply  # type: ignore[method-assign, assignment]
    await nodes[0].publish(0)
    assert await reader.read(1) == [0]
    bus._append_all = append_all  # type: ignore[method-assign]
    await nodes[0].publish(1)
    assert await reader.read(2) == [0, 1]


@pytest.mark.parametrize("text", ["", "a", "a-1", "a-1-", "-1-1", "a-x-1", "a-1-x", "a-1-1-1", "a-\u0661-1"])
def test_what_is_no_place(text: str) -> None:
    assert parse_place(text) is None


def test_a_place_has_an_id() -> None:
    place = parse_place("abc-12-3")
    assert place is not None
    assert (place.id, place.order) == ("abc-12-3", (12, 3))


async def test_entries_of_a_foreign_writer_are_skipped(
    redis: RedisServer, nodes: list[BusNode], caplog: pytest.LogCaptureFixture
) -> None:
    reader = await Reader().connect(nodes[1])
    await nodes[0].publish(0)
    assert await reader.read(1) == [0]
    last = reader.last_id
    shard = nodes[0].bus._shard("ann")  # type: ignore[union-attr]
    for fields in ("x y", "e \\xff", "e e u ann c c p {} a a n n i one k e b 0-0", "b what"):
        redis.command("XADD", shard, "*", *fields.split())
    # An entry of a later version, of a kind that is unknown here.
    redis.command(
        "XADD", shard, "*", *f"e {(last or '').split('-')[0]} u ann c c p {{}} a a n n i 1 k z".split()
    )
    await nodes[0].publish(1)
    assert await reader.read(2) == [0, 1]
    assert "is not understood, and skipped" in caplog.text
    redis.command("XADD", "{gatewayd}:frames:ann", "*", "x", "y")
    missed = await nodes[1].bus.missed("ann", last or "")
    assert (missed.is_gap, list(missed.frames)) == (True, [])


async def test_a_redis_that_refuses_is_not_asked_without_a_pause(
    redis: RedisServer,
    nodes: list[BusNode],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_GAP_USERS", 2)
    node = nodes[0]
    assert node.client is not None
    commands = 0
    run = node.client.run

    async def counted(command: Any) -> Any:
        nonlocal commands
        commands += 1
        return await run(command)

    monkeypatch.setattr(node.client, "run", counted)
    reader = await Reader().connect(node)
    # As a full one does.
    redis.command("CONFIG", "SET", "maxmemory", "1")
    for users in (["ann"], ["ann", "bob", "cid"]):
        commands = 0
        for user in users:
            await node.publish(len(users), user)
        await reader.read(1)
        await asyncio.sleep(3 * module.RETRY_SECONDS)
        assert commands < 20
    # Once for each node.
    assert caplog.text.count("events reach only the clients of this node") in {1, len(nodes)}
    redis.command("CONFIG", "SET", "maxmemory", "0")
    await closed(reader)
    assert reader.numbers == [1, 3]


async def test_a_text_that_redis_cannot_have_fails_its_publisher_alone(nodes: list[BusNode]) -> None:
    reader = await Reader().connect(nodes[1])
    # As a plugin may say, which can change the ids of its emitter.
    with pytest.raises(UnicodeEncodeError):
        await nodes[0].bus.publish("\ud800", EventFrame("c", b"{}"))
    with pytest.raises(AttributeError):
        await nodes[0].bus.publish(7, EventFrame("c", b"{}"))  # type: ignore[arg-type]
    await nodes[0].publish(1)
    assert await reader.read(1) == [1]
