"""Tests for gatewayd.observe.health."""

import asyncio

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.observe import health
from gatewayd.observe.health import HealthMonitor
from gatewayd.tasks import Tasks


async def test_many_askers_share_one_probe() -> None:
    tasks, probes = Tasks(), []

    async def ping() -> None:
        probes.append(1)
        await asyncio.sleep(0)

    monitor = HealthMonitor(ping, tasks)
    answers = await asyncio.gather(*(monitor.database_problem() for _ in range(100)))
    assert answers == [None] * 100
    assert await monitor.database_problem() is None
    assert len(probes) == 1
    await tasks.close()


async def test_failure_is_told_and_forgotten_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FRESH_SECONDS", -1.0)
    tasks, failing = Tasks(), [True]

    async def ping() -> None:
        if failing[0]:
            raise GatewayError(Kind.UNAVAILABLE, "cannot reach the database")

    monitor = HealthMonitor(ping, tasks)
    assert await monitor.database_problem() == "cannot reach the database"
    failing[0] = False
    assert await monitor.database_problem() is None
    await tasks.close()


async def test_hanging_database_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "DEADLINE_SECONDS", 0.01)
    tasks = Tasks()

    async def ping() -> None:
        await asyncio.Event().wait()

    problem = await asyncio.wait_for(HealthMonitor(ping, tasks).database_problem(), 1)
    assert problem is not None
    assert "did not answer" in problem
    await tasks.close()


async def test_a_probe_that_takes_long_leaves_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FRESH_SECONDS", -1.0)
    monkeypatch.setattr(health, "WAIT_SECONDS", 0.0)
    tasks, answered = Tasks(), asyncio.Event()
    answered.set()
    monitor = HealthMonitor(lambda: asyncio.wait_for(answered.wait(), None), tasks)  # type: ignore[arg-type]
    assert await monitor.database_problem() is None
    answered.clear()
    assert await asyncio.wait_for(monitor.database_problem(), 1) is None
    monkeypatch.setattr(health, "DEADLINE_SECONDS", 0.0)
    answered.set()
    await tasks.close()


async def test_a_probe_that_breaks_is_no_good_answer(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()

    async def ping() -> None:
        raise RuntimeError("boom")

    assert "probe failed" in (await HealthMonitor(ping, tasks).database_problem() or "")
    await tasks.close()
    assert [record.message for record in caplog.records] == ["background task failed"]
