"""Items, pulled one by one out of another thread."""

import asyncio
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from gatewayd.plugins.runtime.event_loop_thread import PluginLoop, StoppedError
from gatewayd.plugins.runtime.iterators import AbandonedCalls, PluginIterator, TaskProducer, ThreadProducer

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
async def home():
    made = PluginLoop("items", {})
    made.start()
    yield made
    await made.stop(10)


def same(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(repr(error))


def plain(
    source: Iterator[object], left: AbandonedCalls | None = None
) -> tuple[PluginIterator, ThreadProducer]:
    producer = ThreadProducer(source, left or AbandonedCalls())
    producer.start(contextvars.copy_context())
    return PluginIterator(producer, same), producer


def at_home(home: PluginLoop, source: AsyncIterator[object]) -> tuple[PluginIterator, TaskProducer]:
    producer = TaskProducer(home, source, contextvars.copy_context())
    return PluginIterator(producer, same), producer


async def test_nothing_is_made_before_it_is_asked_for(home: PluginLoop) -> None:
    made: list[int] = []

    async def count() -> AsyncIterator[int]:
        for number in range(3):
            made.append(number)
            yield number

    items, producer = at_home(home, count())
    assert await anext(items) == 0
    assert made == [0]
    assert [item async for item in items] == [1, 2]
    await asyncio.wrap_future(producer.ended)


async def test_a_plain_iterator_is_closed_when_nobody_wants_more() -> None:
    closed = threading.Event()

    def count() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.set()

    items, _ = plain(count())
    assert await anext(items) == 0
    await items.aclose()
    assert closed.is_set()
    with pytest.raises(StopAsyncIteration):
        await anext(items)


async def test_items_that_are_forgotten_end_their_source(home: PluginLoop) -> None:
    closed = [threading.Event(), threading.Event()]

    def count() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed[0].set()

    async def count_later() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed[1].set()

    for items, _ in (plain(count()), at_home(home, count_later())):
        await anext(items)
    del items, _
    gc.collect()
    for event in closed:
        assert await asyncio.to_thread(event.wait, 10)


async def test_a_plain_iterator_that_is_left_is_counted_until_it_comes_back() -> None:
    entered, go, left = threading.Event(), threading.Event(), AbandonedCalls()

    def slow() -> Iterator[int]:
        entered.set()
        go.wait()
        yield 1

    items, producer = plain(slow(), left)
    waiting = asyncio.ensure_future(anext(items))
    await asyncio.to_thread(entered.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert left.count == 1
    go.set()
    await asyncio.wrap_future(producer.ended)
    assert left.count == 0


async def test_items_of_a_home_that_ends_fail(home: PluginLoop) -> None:
    entered = threading.Event()

    async def slow() -> AsyncIterator[int]:
        entered.set()
        await asyncio.Event().wait()
        yield 1

    items, _ = at_home(home, slow())
    waiting = asyncio.ensure_future(anext(items))
    await asyncio.to_thread(entered.wait)
    await home.stop(10)
    with pytest.raises(StoppedError):
        await waiting
    later, _ = at_home(home, slow())
    with pytest.raises((StoppedError, StopAsyncIteration)):
        await anext(later)
    await later.aclose()


async def test_closing_before_the_first_item_ends_at_once(home: PluginLoop) -> None:
    async def never() -> AsyncIterator[int]:
        yield 1

    items, producer = at_home(home, never())
    await items.aclose()
    assert producer.ended.done()


async def test_an_iterator_that_spins_ends_when_it_is_closed() -> None:
    entered = threading.Event()

    def spin() -> Iterator[int]:
        while True:
            entered.set()
            if not entered:
                yield 1

    left = AbandonedCalls()
    items, producer = plain(spin(), left)
    waiting = asyncio.ensure_future(anext(items))
    await asyncio.to_thread(entered.wait)
    await items.aclose()
    assert producer.ended.done()
    assert left.count == 0
    with pytest.raises(RuntimeError, match="Interrupted"):
        await waiting
