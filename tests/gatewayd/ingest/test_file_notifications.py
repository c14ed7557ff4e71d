"""Waiting for changes of files."""

import asyncio

import pytest

from gatewayd.ingest.file_notifications import FileWatch


async def begin(watch: FileWatch, file_id: str) -> "asyncio.Task[None]":
    """Start to wait for a file."""
    waiting = asyncio.get_running_loop().create_task(watch.wait(file_id, watch.version))
    await asyncio.sleep(0)
    return waiting


async def test_all_who_wait_for_a_file_are_woken() -> None:
    watch = FileWatch()
    one, two, other = [await begin(watch, name) for name in ("a", "a", "b")]
    watch.notify("a")
    await asyncio.gather(one, two)
    assert not other.done()
    watch.notify("b")
    await other
    assert watch._waiting == {}


async def test_a_change_before_the_wait_is_not_missed() -> None:
    watch = FileWatch()
    seen = watch.version
    watch.notify("a")
    await watch.wait("a", seen)


async def test_nothing_is_kept_of_those_who_gave_up() -> None:
    watch = FileWatch()
    one, two = await begin(watch, "a"), await begin(watch, "a")
    for waiting in (one, two):
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert watch._waiting == {}
    watch.notify("a")


async def test_nobody_waits_once_it_is_over() -> None:
    watch = FileWatch()
    one, two = await begin(watch, "a"), await begin(watch, "b")
    assert not watch.is_over
    watch.end()
    await asyncio.gather(one, two)
    await watch.wait("a", watch.version)
    assert watch.is_over
    assert watch._waiting == {}
