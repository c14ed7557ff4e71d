"""Plain calls in threads of their own."""

import asyncio
import contextlib
import contextvars
import sys
import threading
from collections import deque
from collections.abc import Callable

import pytest

from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime import call_threads as plain_threads
from gatewayd.plugins.runtime.call_threads import SWITCH_INTERVAL_SECONDS, CallThreads
from gatewayd.plugins.runtime.interrupts import Interrupted
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.iterators import AbandonedCalls, ThreadProducer
from tests.fakes.plugins.memory import Plugged, make_registry, plugin_of

pytestmark = pytest.mark.timeout(30)
NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("number", default=0)


async def test_work_runs_in_a_new_thread_and_in_its_context() -> None:
    context = contextvars.copy_context()
    context.run(NUMBER.set, 4)

    def work() -> tuple[int, int, bool]:
        thread = threading.current_thread()
        return NUMBER.get(), threading.get_ident(), thread.daemon

    outcome = await CallThreads(AbandonedCalls()).run(work, context, lambda: None)
    number, thread, is_daemon = outcome.value
    assert (number, is_daemon) == (4, True)
    assert thread != threading.get_ident()


async def test_calls_that_never_return_take_nobodys_place() -> None:
    go, left = threading.Event(), AbandonedCalls()
    noted: list[int] = []

    def call() -> "asyncio.Future[object]":
        return asyncio.ensure_future(
            CallThreads(left).run(go.wait, contextvars.copy_context(), lambda: noted.append(left.count))
        )

    stuck = [call() for _ in range(40)]
    outcome = await CallThreads(left).run(lambda: 1, contextvars.copy_context(), lambda: None)
    assert outcome.value == 1
    for one in stuck:
        one.cancel()
    await asyncio.wait(stuck)
    assert left.count == 40
    assert max(noted) == 40
    go.set()
    while left.count:
        await asyncio.sleep(0.001)


async def test_an_iterator_that_comes_too_late_is_closed() -> None:
    entered, go, closed = threading.Event(), threading.Event(), threading.Event()

    class Numbers:
        def __next__(self) -> int:
            return 1

        def close(self) -> None:
            closed.set()

    def work() -> Numbers:
        entered.set()
        with contextlib.suppress(Interrupted):
            go.wait()
        return Numbers()

    left = AbandonedCalls()
    waiting = asyncio.ensure_future(CallThreads(left).run(work, contextvars.copy_context(), lambda: None))
    await asyncio.to_thread(entered.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    assert await asyncio.to_thread(closed.wait, 10)


async def test_an_iterator_comes_back_as_its_producer() -> None:
    outcome = await CallThreads(AbandonedCalls()).run(
        lambda: iter("a"), contextvars.copy_context(), lambda: None
    )
    assert isinstance(outcome.value, ThreadProducer)
    outcome.value.abandon()
    await asyncio.wrap_future(outcome.value.ended)


async def test_stopped_code_that_is_not_blocked_ends() -> None:
    entered = threading.Event()
    left = AbandonedCalls()

    def spin() -> None:
        while True:
            entered.set()

    waiting = asyncio.ensure_future(CallThreads(left).run(spin, contextvars.copy_context(), lambda: None))
    await asyncio.to_thread(entered.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    while left.count:
        await asyncio.sleep(0.001)


async def test_a_thread_serves_the_next_call_unless_it_is_busy() -> None:
    threads, go = CallThreads(AbandonedCalls()), threading.Event()

    async def number(work: Callable[[], object]) -> object:
        return (await threads.run(work, contextvars.copy_context(), lambda: None)).value

    def wait() -> int:
        go.wait()
        return threading.get_ident()

    first = await number(threading.get_ident)
    assert await number(threading.get_ident) == first
    waiting = asyncio.ensure_future(number(wait))
    await asyncio.sleep(0)
    other = await number(threading.get_ident)
    go.set()
    assert await waiting == first
    assert other != first
    threads.close()


async def test_a_call_finds_nothing_of_the_call_before_it_in_the_thread() -> None:
    threads = CallThreads(AbandonedCalls())

    def use_loop() -> None:
        NUMBER.set(5)
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.close()

    await threads.run(use_loop, contextvars.copy_context(), lambda: None)
    outcome = await threads.run(asyncio.get_event_loop, contextvars.copy_context(), lambda: None)
    assert isinstance(outcome.error, RuntimeError)
    assert (await threads.run(NUMBER.get, contextvars.copy_context(), lambda: None)).value == 0
    threads.close()


async def test_a_thread_that_was_interrupted_serves_on() -> None:
    threads, entered = CallThreads(AbandonedCalls()), threading.Event()

    def spin() -> None:
        entered.set()
        while True:
            pass

    for _ in range(5):
        entered.clear()
        waiting = asyncio.ensure_future(threads.run(spin, contextvars.copy_context(), lambda: None))
        await asyncio.to_thread(entered.wait)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await threads.run(lambda: 1, contextvars.copy_context(), lambda: None)).value == 1
    threads.close()


async def test_threads_that_wait_end_when_they_are_closed_or_wait_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seconds in (60, 0.01):
        monkeypatch.setattr(plain_threads, "IDLE_SECONDS", seconds)
        threads = CallThreads(AbandonedCalls())
        outcome = await threads.run(threading.current_thread, contextvars.copy_context(), lambda: None)
        if seconds == 60:
            threads.close()
        await asyncio.to_thread(outcome.value.join)
        later = await threads.run(threading.current_thread, contextvars.copy_context(), lambda: None)
        assert later.value is not outcome.value
        threads.close()


async def test_a_thread_that_comes_to_rest_while_they_are_closed_gets_no_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = CallThreads(AbandonedCalls())

    class Late(deque[threading.Thread]):
        def append(self, thread: threading.Thread) -> None:
            threads.close()
            super().append(thread)

    monkeypatch.setattr(threads, "_idle", Late())
    first = await threads.run(threading.current_thread, contextvars.copy_context(), lambda: None)
    await asyncio.to_thread(first.value.join)
    later = await threads.run(threading.current_thread, contextvars.copy_context(), lambda: None)
    assert later.value is not first.value


async def ended(plugged: Plugged) -> None:
    while plugged.tasks.list():
        await asyncio.sleep(0.001)


async def test_turns_are_short_while_a_plugin_lives() -> None:
    before = sys.getswitchinterval()
    source = "class Filter: pass"
    async with make_registry(*(plugin_of(name, source, is_active=False) for name in "ab")) as plugged:
        registry = plugged.registry
        assert sys.getswitchinterval() == before
        for name in "ab":
            await registry.loaded(PluginFamily.FUNCTION, name)
            assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_SECONDS)
        registry.drop(PluginFamily.FUNCTION, "a")
        await ended(plugged)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_SECONDS)
        registry.drop(PluginFamily.FUNCTION, "b")
        await ended(plugged)
        assert sys.getswitchinterval() == before
        on_trial = await registry.probe(plugin_of("c", source))
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_SECONDS)
        await on_trial.end(10)
        assert sys.getswitchinterval() == before


async def test_turns_are_as_before_after_a_plugin_that_does_not_load_and_at_the_end() -> None:
    before = sys.getswitchinterval()
    async with make_registry(
        plugin_of("a", "class Filter: 1 / 0", is_active=False),
        plugin_of("b", "class Filter: pass", is_active=False),
    ) as plugged:
        with pytest.raises(PluginError):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "a")
        assert sys.getswitchinterval() == before
        await plugged.registry.loaded(PluginFamily.FUNCTION, "b")
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_SECONDS)
    assert sys.getswitchinterval() == before
