"""Event loop threads of plugins, which only `stop` ends, and values that other threads pass to a loop."""

import asyncio
import contextvars
import threading
from concurrent.futures import Future

import pytest

from gatewayd.plugins.runtime.event_loop_thread import (
    CrossThreadReply,
    DaemonThreads,
    PluginLoop,
    StoppedError,
    settle_future,
)
from gatewayd.plugins.runtime.invoke import PluginOutcome

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
async def home():
    made = PluginLoop("test", {"plugin": "p"})
    made.start()
    yield made
    assert await made.stop(10)


def here() -> contextvars.Context:
    return contextvars.copy_context()


async def test_work_runs_in_the_thread_of_the_home(home: PluginLoop) -> None:
    async def where() -> int:
        return threading.get_ident()

    first, second = await home.attempt(where, here()), await home.attempt(where, here())
    assert first == second
    assert first != PluginOutcome(threading.get_ident())


async def test_what_work_raises_is_its_outcome(home: PluginLoop) -> None:
    async def fail() -> None:
        raise SystemExit(4)

    outcome = await home.attempt(fail, here())
    assert isinstance(outcome.error, SystemExit)
    assert (await home.attempt(fail, here())).error is not outcome.error


async def test_cancelling_the_wait_cancels_the_work(home: PluginLoop) -> None:
    entered, ended = threading.Event(), threading.Event()

    async def work() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(home.attempt(work, here()))
    await asyncio.to_thread(entered.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_task_that_exits_does_not_end_the_loop(
    home: PluginLoop, caplog: pytest.LogCaptureFixture
) -> None:
    async def leave() -> None:
        raise KeyboardInterrupt

    async def spawn() -> None:
        task = asyncio.get_running_loop().create_task(leave())
        await asyncio.wait([task])
        assert isinstance(task.exception(), KeyboardInterrupt)

    await home.attempt(spawn, here())

    async def answer() -> int:
        return 1

    assert await home.attempt(answer, here()) == PluginOutcome(1)
    assert [vars(record)["plugin"] for record in caplog.records] == ["p"]


async def test_a_loop_that_spins_is_interrupted() -> None:
    home = PluginLoop("spinning", {})
    home.start()
    entered = threading.Event()

    async def spin() -> None:
        entered.set()
        while True:
            pass

    waiting = asyncio.ensure_future(home.attempt(spin, here()))
    await asyncio.to_thread(entered.wait)
    home.interrupt()
    assert isinstance((await waiting).error, SystemExit)
    assert await home.stop(10)


async def test_what_is_given_to_an_ended_home_is_stopped() -> None:
    home = PluginLoop("ended", {})
    home.start()
    assert await home.stop(10)

    async def answer() -> int:
        return 1

    assert isinstance((await home.attempt(answer, here())).error, StoppedError)


async def test_stopping_ends_what_still_runs() -> None:
    home = PluginLoop("busy", {})
    home.start()
    entered = threading.Event()

    async def work() -> None:
        entered.set()
        await asyncio.Event().wait()

    waiting = asyncio.ensure_future(home.attempt(work, here()))
    await asyncio.to_thread(entered.wait)
    assert await home.stop(10)
    assert isinstance((await waiting).error, StoppedError)


async def test_threads_for_blocking_work_take_nobodys_place(home: PluginLoop) -> None:
    let_go = threading.Event()

    async def many() -> int:
        blocked = [asyncio.ensure_future(asyncio.to_thread(let_go.wait)) for _ in range(50)]
        try:
            return await asyncio.to_thread(lambda: 7)
        finally:
            let_go.set()
            await asyncio.wait(blocked)

    assert await home.attempt(many, here()) == PluginOutcome(7)


def test_threads_of_the_executor_are_daemons_and_give_errors() -> None:
    executor = DaemonThreads()
    assert executor.submit(lambda: threading.current_thread().daemon).result(10)
    with pytest.raises(ZeroDivisionError):
        executor.submit(lambda: 1 // 0).result(10)


def test_a_cancelled_future_takes_nothing() -> None:
    future: Future[int] = Future()
    future.cancel()
    assert not settle_future(future, 1)


async def test_a_home_that_is_kept_busy_is_interrupted_when_it_is_to_end() -> None:
    home, entered = PluginLoop("h", {}), threading.Event()
    home.start()

    async def spin() -> None:
        while True:
            entered.set()

    home.submit(spin, contextvars.copy_context())
    await asyncio.to_thread(entered.wait)
    assert await home.stop(0.01)


async def test_a_value_from_another_thread_arrives() -> None:
    reply: CrossThreadReply[int] = CrossThreadReply()
    threading.Thread(target=reply.give, args=(3,)).start()
    assert await reply.future == 3


async def test_a_value_that_nobody_waits_for_is_dropped() -> None:
    reply: CrossThreadReply[int] = CrossThreadReply()
    reply.future.cancel()
    reply.give(3)
    await asyncio.sleep(0)
    assert reply.future.cancelled()


def test_a_value_for_a_closed_loop_is_dropped() -> None:
    async def make() -> CrossThreadReply[int]:
        return CrossThreadReply()

    reply = asyncio.run(make())
    reply.give(3)
    assert not reply.future.done()
