"""The hand-over of pieces between a sender and the library that sends them on."""

import asyncio

import pytest

from gatewayd.upstream.objects.part_feed import PartFeed


async def test_a_sender_waits_until_its_piece_is_taken() -> None:
    feed = PartFeed()
    sent: list[int] = []

    async def send() -> None:
        for number in range(3):
            await feed.offer(bytes([number]))
            sent.append(number)
        feed.end()

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        await asyncio.sleep(0)
        assert sent == []
        assert [piece async for piece in feed.pieces()] == [b"\x00", b"\x01", b"\x02"]
    assert sent == [0, 1, 2]


async def test_an_error_of_the_sender_reaches_the_reader_in_place_of_what_waits() -> None:
    feed = PartFeed()
    async with asyncio.TaskGroup() as group:
        offering = group.create_task(feed.offer(b"a"))
        await asyncio.sleep(0)
        feed.fail(RuntimeError("the client left"))
        await offering
    with pytest.raises(RuntimeError, match="the client left"):
        await anext(feed.pieces())


async def test_nobody_waits_for_a_reader_that_is_gone() -> None:
    feed = PartFeed()
    async with asyncio.timeout(1), asyncio.TaskGroup() as group:
        group.create_task(feed.offer(b"a"))
        await asyncio.sleep(0)
        feed.close()
