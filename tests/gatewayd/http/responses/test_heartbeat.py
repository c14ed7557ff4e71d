"""Tests for gatewayd.http.responses.heartbeat."""

import asyncio

import pytest

from gatewayd.http.responses.heartbeat import Heartbeat
from gatewayd.tasks import TaskRegistry


async def test_it_beats_again_and_again_while_nothing_else_is_said() -> None:
    beats: asyncio.Queue[int] = asyncio.Queue()
    tasks = TaskRegistry()

    async def beat() -> None:
        beats.put_nowait(1)

    async with Heartbeat(tasks, beat, seconds=0.001):
        for _ in range(3):
            await asyncio.wait_for(beats.get(), 5)
    assert tasks.list() == {}


async def test_a_touch_puts_it_off() -> None:
    beats: list[int] = []

    async def beat() -> None:
        beats.append(1)

    async with Heartbeat(TaskRegistry(), beat, seconds=5.0) as heart:
        for _ in range(3):
            heart.touch()
            heart._due()
            await asyncio.sleep(0)
    assert beats == []


async def test_the_end_stops_a_beat_under_way() -> None:
    tasks = TaskRegistry()
    begun = asyncio.Event()
    stopped = asyncio.Event()

    async def beat() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with Heartbeat(tasks, beat, seconds=0.001):
        await asyncio.wait_for(begun.wait(), 5)
    assert stopped.is_set()
    assert tasks.list() == {}


async def test_only_one_beat_at_a_time() -> None:
    tasks = TaskRegistry()
    release = asyncio.Event()
    count = 0

    async def beat() -> None:
        nonlocal count
        count += 1
        await release.wait()

    async with Heartbeat(tasks, beat, seconds=60.0) as heart:
        for _ in range(3):
            heart._touched = -60.0
            heart._due()
            await asyncio.sleep(0)
        assert count == 1
        release.set()


async def test_a_client_that_has_gone_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    tried = asyncio.Event()

    async def beat() -> None:
        tried.set()
        raise ConnectionResetError

    async with Heartbeat(TaskRegistry(), beat, seconds=0.001):
        await asyncio.wait_for(tried.wait(), 5)
    assert not caplog.records
