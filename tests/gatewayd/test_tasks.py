"""Tests for gatewayd.tasks."""

import asyncio
import logging

import pytest

from gatewayd.tasks import TaskOwner, TaskRegistry


async def test_stop_cancels_and_waits() -> None:
    tasks = TaskRegistry()
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task_id = tasks.spawn("waiter", work())
    await asyncio.sleep(0)
    assert tasks.list() == {task_id: "waiter"}
    assert await tasks.stop(task_id)
    assert cancelled.is_set()
    assert not await tasks.stop(task_id)


async def test_failure_is_logged_with_its_name(caplog: pytest.LogCaptureFixture) -> None:
    tasks = TaskRegistry()

    async def work() -> None:
        raise RuntimeError("boom")

    with caplog.at_level(logging.ERROR):
        tasks.spawn("broken", work())
        await asyncio.sleep(0.01)
    assert "background task failed" in caplog.text
    assert "boom" in caplog.text
    assert tasks.list() == {}


async def test_finish_runs_to_the_end_though_its_caller_leaves() -> None:
    tasks = TaskRegistry()
    release, finished = asyncio.Event(), asyncio.Event()

    async def work() -> int:
        await release.wait()
        finished.set()
        return 7

    caller = asyncio.ensure_future(tasks.finish("write", work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    release.set()
    await asyncio.wait_for(finished.wait(), 1)
    assert await tasks.finish("write", work()) == 7


async def test_close_ends_everything() -> None:
    tasks = TaskRegistry()
    tasks.spawn("one", asyncio.Event().wait())  # type: ignore[arg-type]
    tasks.spawn("two", asyncio.Event().wait())  # type: ignore[arg-type]
    await tasks.close()
    assert tasks.list() == {}


async def test_tasks_that_users_started_are_found_by_chat() -> None:
    tasks = TaskRegistry()

    async def work() -> None:
        await asyncio.Event().wait()

    tasks.spawn("of the gateway", work())
    task_id = tasks.spawn("answer", work(), TaskOwner("u1", "c1", "m1"))
    found = tasks.find(task_id)
    assert found is not None
    assert (found.name, found.purpose) == ("answer", TaskOwner("u1", "c1", "m1"))
    assert tasks.started() == [found]
    assert tasks.started(chat_id="c1") == [found]
    assert not tasks.started(chat_id="c2")
    await tasks.close()
    assert tasks.find(task_id) is None
    assert not tasks.started()


async def test_what_users_started_is_ended_alone_and_counted() -> None:
    tasks = TaskRegistry()

    async def work() -> None:
        await asyncio.Event().wait()

    kept = tasks.spawn("of the gateway", work())
    tasks.spawn("answer", work(), TaskOwner("u1", "c1", "m1"))
    await asyncio.sleep(0)
    assert [await tasks.end_started(), await tasks.end_started()] == [1, 0]
    assert list(tasks.list()) == [kept]
    assert tasks.is_closing
    await tasks.close()


async def test_awaited_work_with_a_purpose_is_found_and_stopped() -> None:
    tasks = TaskRegistry()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def wait() -> str:
        try:
            await tasks.finish("work", work(), TaskOwner("u1", "c1", "m1"))
        except asyncio.CancelledError:
            return "stopped"
        return "finished"

    waiting = asyncio.ensure_future(wait())
    await begun.wait()
    [info] = tasks.started(chat_id="c1")
    assert (info.name, info.purpose) == ("work", TaskOwner("u1", "c1", "m1"))
    assert await tasks.stop(info.id)
    assert await waiting == "stopped"
    assert not tasks.started()


async def test_last_write_of_a_stopped_task_is_not_cut_off_by_a_second_stop() -> None:
    tasks = TaskRegistry()
    begun, stopping, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    written = []

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopping.set()
            await go_on.wait()
            written.append(tasks.is_closing)
            raise

    task_id = tasks.spawn("work", work(), TaskOwner("u1", "c1"))
    await begun.wait()
    stops = [asyncio.ensure_future(tasks.stop(task_id))]
    await stopping.wait()
    stops += [asyncio.ensure_future(tasks.stop(task_id)), asyncio.ensure_future(tasks.close())]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*stops)
    assert written == [True]


async def test_the_end_of_a_task_is_told_also_when_it_never_began() -> None:
    tasks, ended = TaskRegistry(), []

    async def work(name: str) -> None:
        ended.append(f"work of {name}")

    await tasks.stop(tasks.spawn("cut", work("cut"), at_end=lambda: ended.append("cut")))
    task_id = tasks.spawn("whole", work("whole"), at_end=lambda: ended.append("whole"))
    while task_id in tasks.list():
        await asyncio.sleep(0)
    assert ended == ["cut", "work of whole", "whole"]
