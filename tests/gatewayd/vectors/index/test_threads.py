"""Threads of the indexes' own."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from gatewayd.vectors.index.threads import IndexThreads


@pytest.fixture
def threads() -> Iterator[IndexThreads]:
    made = IndexThreads()
    yield made
    made.close()


async def test_results_and_failures_come_back(threads: IndexThreads) -> None:
    assert await threads.search(max, 3, 4) == 4
    assert await threads.work(sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ValueError, match="invalid literal"):
        await threads.work(int, "x")


async def test_work_has_ended_when_its_caller_was_cancelled(threads: IndexThreads) -> None:
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(10)
        ended.set()

    caller = asyncio.ensure_future(threads.work(work))
    await asyncio.to_thread(begun.wait, 10)
    caller.cancel()
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.sleep(0)
    assert not caller.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()


async def test_a_failure_after_a_cancellation_is_told(
    threads: IndexThreads, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(10)
        raise OSError("no room")

    caller = asyncio.ensure_future(threads.work(work))
    await asyncio.to_thread(begun.wait, 10)
    caller.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert "no room" in caplog.text


async def test_searches_do_not_wait_for_work(threads: IndexThreads) -> None:
    go = threading.Event()
    waiting = [asyncio.ensure_future(threads.work(go.wait, 10)) for _ in range(8)]
    assert await threads.search(min, 3, 4) == 3
    go.set()
    assert all(await asyncio.gather(*waiting))
