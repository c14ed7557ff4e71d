"""What every bus does for hubs: order, replay on any node, bounds, and gaps that are told."""

import asyncio

import pytest

from tests.fakes.daemons.bus_nodes import BusNode, Reader


@pytest.fixture
def nodes(either: list[BusNode]) -> list[BusNode]:
    return either


async def test_every_node_delivers_in_one_order(nodes: list[BusNode]) -> None:
    readers = [await Reader().connect(node) for node in nodes]
    stranger = await Reader("bob").connect(nodes[0])
    for number in range(30):
        await nodes[number % 3].publish(number)
    seen = [await reader.read(30) for reader in readers]
    assert seen[0] == seen[1] == seen[2]
    assert sorted(seen[0]) == list(range(30))
    # What one node publishes stays in order.
    assert [number for number in seen[0] if number % 3 == 1] == list(range(1, 30, 3))
    assert stranger.numbers == []


async def test_a_reader_resumes_on_another_node_without_loss_or_doubling(nodes: list[BusNode]) -> None:
    reader = await Reader().connect(nodes[0])
    for number in range(15):
        await nodes[0].publish(number)
        if number == 4:
            await reader.read(5)
            reader.leave()
    await nodes[0].settle()
    await reader.connect(nodes[1])
    await nodes[2].publish(15)
    assert await reader.read(16) == list(range(16))
    assert reader.gaps == []


async def test_a_reader_that_saw_nothing_resumes_after_its_position(nodes: list[BusNode]) -> None:
    reader = await Reader().connect(nodes[0])
    reader.leave()
    await nodes[1].publish(1)
    await nodes[1].settle()
    await reader.connect(nodes[2])
    assert await reader.read(1) == [1]
    assert reader.gaps == []


async def test_frames_that_pass_while_a_reader_resumes_come_once(nodes: list[BusNode]) -> None:
    reader = await Reader().connect(nodes[0])
    await nodes[0].publish(0)
    await reader.read(1)

    async def publish() -> None:
        for number in range(1, 200):
            await nodes[1].publish(number, chat_id="c")
            if number % 10 == 0:
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(publish())
        for turn in range(8):
            reader.leave()
            await reader.connect(nodes[turn % 3])
            await asyncio.sleep(0.002)
            assert reader.listener is not None
            if not reader.listener.is_idle:
                reader.take(await reader.chunk())
    if not reader.gaps:
        assert await reader.read(200) == list(range(200))
    assert len(reader.numbers) == len(set(reader.numbers))


@pytest.mark.parametrize("count", [21, 60])
async def test_more_frames_than_are_kept_are_a_gap(nodes: list[BusNode], count: int) -> None:
    reader = await Reader().connect(nodes[0])
    await nodes[0].publish(0)
    await reader.read(1)
    reader.leave()
    for number in range(1, count + 1):
        await nodes[0].publish(number)
    await nodes[0].settle()
    await reader.connect(nodes[1])
    assert reader.gaps == [1]
    assert await reader.read(20) == list(range(count - 19, count + 1))


async def test_bytes_are_bounded_too(nodes: list[BusNode]) -> None:
    reader = await Reader().connect(nodes[0])
    await nodes[0].publish(0)
    await reader.read(1)
    reader.leave()
    for number in range(1, 6):
        await nodes[0].hub.publish("ann", "c", {"n": number, "text": "x" * 700})
    await nodes[0].settle()
    await reader.connect(nodes[1])
    assert reader.gaps == [1]
    assert await reader.read(2) == [4, 5]


async def test_a_newer_frame_about_the_same_replaces_the_older_one(nodes: list[BusNode]) -> None:
    reader = await Reader().connect(nodes[0])
    await nodes[0].publish(0)
    await reader.read(1)
    reader.leave()
    for number in range(1, 41):
        await nodes[0].publish(number, about="answer")
    await nodes[0].publish(41)
    await nodes[0].settle()
    await reader.connect(nodes[1])
    assert reader.gaps == []
    assert await reader.read(3) == [0, 40, 41]


async def test_a_reader_of_one_chat_gets_no_other(nodes: list[BusNode]) -> None:
    reader = await Reader(chat_id="c").connect(nodes[0])
    await nodes[0].publish(0)
    await reader.read(1)
    reader.leave()
    await nodes[0].publish(1, chat_id="other")
    await nodes[0].publish(2)
    await nodes[0].settle()
    await reader.connect(nodes[1])
    await nodes[2].publish(3, chat_id="other")
    await nodes[2].publish(4)
    assert await reader.read(3) == [0, 2, 4]


@pytest.mark.parametrize(
    "last_id", ["x", "abcdef-1-0", "--", "a-b-c", "a-1-99999999999999999999999999", "é-1-1", "*"]
)
async def test_foreign_positions_are_gaps(nodes: list[BusNode], last_id: str) -> None:
    await nodes[0].publish(1)
    await nodes[0].settle()
    reader = Reader()
    reader.last_id = last_id
    await reader.connect(nodes[1])
    assert reader.gaps == [0]
    await nodes[0].publish(2)
    assert (await reader.read(1))[-1] in {1, 2}


async def test_the_position_after_publishing_covers_what_was_published(nodes: list[BusNode]) -> None:
    await Reader().connect(nodes[0])
    for number in range(5):
        await nodes[0].publish(number)
    reader = Reader()
    reader.last_id = await nodes[0].hub.settled_position("ann")
    await nodes[0].publish(5)
    await reader.connect(nodes[1])
    assert await reader.read(1) == [5]
    assert reader.gaps == []
