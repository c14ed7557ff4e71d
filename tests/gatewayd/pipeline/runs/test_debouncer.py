"""Tests for gatewayd.pipeline.runs.debouncer."""

import asyncio
import logging

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.runs.debouncer import Debouncer
from gatewayd.tasks import TaskRegistry


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_first_touch_counts_at_once_and_the_next_ones_later() -> None:
    done, tasks = [], TaskRegistry()

    async def work() -> None:
        done.append(1)

    async with Debouncer(tasks, work, lambda: 3600, {}) as pace:
        await settle()
        assert done == []
        pace.touch()
        await settle()
        pace.touch()
        pace.touch()
        await settle()
        assert done == [1]
    assert tasks.list() == {}


async def test_touches_while_it_works_count_once_more() -> None:
    done, go_on, tasks = [], asyncio.Event(), TaskRegistry()

    async def work() -> None:
        done.append(1)
        await go_on.wait()

    async with Debouncer(tasks, work, lambda: 0, {}) as pace:
        pace.touch()
        await settle()
        pace.touch()
        pace.touch()
        go_on.set()
        await settle()
        assert done == [1, 1]


async def test_failure_is_logged_and_the_next_touch_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    done, tasks = [], TaskRegistry()

    async def work() -> None:
        done.append(1)
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot write now")

    with caplog.at_level(logging.WARNING):
        async with Debouncer(tasks, work, lambda: 0, {}) as pace:
            pace.touch()
            await settle()
            pace.touch()
            await settle()
    assert done == [1, 1]
    assert "cannot write now" in caplog.text
