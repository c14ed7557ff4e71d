"""Tests for gatewayd.pipeline.runs.debouncer."""

import asyncio
import logging

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.pipeline.runs.debouncer import Paced
from gatewayd.tasks import Tasks


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_first_touch_counts_at_once_and_the_next_ones_later() -> None:
    done, tasks = [], Tasks()

    async def work() -> None:
        done.append(1)

    async with Paced(tasks, work, lambda: 3600, {}) as pace:
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
    done, go_on, tasks = [], asyncio.Event(), Tasks()

    async def work() -> None:
        done.append(1)
        await go_on.wait()

    async with Paced(tasks, work, lambda: 0, {}) as pace:
        pace.touch()
        await settle()
        pace.touch()
        pace.touch()
        go_on.set()
        await settle()
        assert done == [1, 1]


async def test_failure_is_logged_and_the_next_touch_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    done, tasks = [], Tasks()

    async def work() -> None:
        done.append(1)
        raise GatewayError(Kind.UNAVAILABLE, "cannot write now")

    with caplog.at_level(logging.WARNING):
        async with Paced(tasks, work, lambda: 0, {}) as pace:
            pace.touch()
            await settle()
            pace.touch()
            await settle()
    assert done == [1, 1]
    assert "cannot write now" in caplog.text
