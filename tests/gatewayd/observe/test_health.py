"""Tests for gatewayd.observe.health."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.observe import health
from gatewayd.observe.health import HealthMonitor
from gatewayd.tasks import TaskRegistry


async def test_many_askers_share_one_probe() -> None:
    tasks, probes = TaskRegistry(), []

    async def ping() -> None:
        probes.append(1)
        await asyncio.sleep(0)

    monitor = HealthMonitor(ping, tasks)
    answers = await asyncio.gather(*(monitor.database_problem() for _ in range(100)))
    assert answers == [None] * 100
    assert monitor.is_well
    assert await monitor.database_problem() is None
    assert len(probes) == 1
    await tasks.close()


async def test_failure_is_told_and_forgotten_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, failing = TaskRegistry(), [True]

    async def ping() -> None:
        if failing[0]:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database")

    monitor = HealthMonitor(ping, tasks, "db:5432/gatewayd")
    assert not monitor.is_well
    problem = await monitor.database_problem()
    assert problem is not None
    assert problem.message == "cannot reach the database"
    assert problem.full_message == "cannot reach the database at db:5432/gatewayd"
    assert not monitor.is_well
    failing[0] = False
    monkeypatch.setattr(health, "FRESH_SECONDS", -1.0)
    assert await monitor.database_problem() is None
    assert not monitor.is_well
    await tasks.close()


async def test_hanging_database_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "DEADLINE_SECONDS", 0.01)
    tasks = TaskRegistry()

    async def ping() -> None:
        await asyncio.Event().wait()

    problem = await asyncio.wait_for(HealthMonitor(ping, tasks, "db:5432/x").database_problem(), 1)
    assert problem is not None
    assert problem.full_message == "the database did not answer within 0.01 s at db:5432/x"
    await tasks.close()


@pytest.mark.parametrize("age", [5.0, -1.0], ids=["recent", "old"])
async def test_what_is_known_is_told_while_a_probe_waits_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, age: float
) -> None:
    monkeypatch.setattr(health, "FRESH_SECONDS", -1.0)
    monkeypatch.setattr(health, "WAIT_SECONDS", 0.0)
    tasks, waits = TaskRegistry(), [False]

    async def ping() -> None:
        if waits[0]:
            await asyncio.Event().wait()

    monitor = HealthMonitor(ping, tasks)
    assert await monitor.database_problem() is None
    waits[0] = True
    monkeypatch.setattr(health, "DEADLINE_SECONDS", 0.0)
    monkeypatch.setattr(health, "MAX_AGE_SECONDS", age)
    problem = await asyncio.wait_for(monitor.database_problem(), 1)
    assert (problem is None) is (age > 0)
    await tasks.close()


async def test_a_transaction_of_seconds_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"FRESH": -1.0, "WAIT": 0.0}.items():
        monkeypatch.setattr(health, f"{name}_SECONDS", seconds)
    tasks, committed = TaskRegistry(), asyncio.Event()
    committed.set()
    probed = asyncio.Event()

    async def ping() -> None:
        await committed.wait()
        probed.set()

    monitor = HealthMonitor(ping, tasks)
    assert await monitor.database_problem() is None
    committed.clear()
    probed.clear()
    monkeypatch.setattr(health, "DEADLINE_SECONDS", 0.0)
    for _ in range(10):
        assert await monitor.database_problem() is None
        await asyncio.sleep(0)
    committed.set()
    await probed.wait()
    assert await monitor.database_problem() is None
    await tasks.close()


async def test_a_database_that_answers_no_more_is_told_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, probed = TaskRegistry(), asyncio.Event()

    async def ping() -> None:
        if not probed.is_set():
            probed.set()
            return
        await asyncio.Event().wait()

    monitor = HealthMonitor(ping, tasks)
    assert await monitor.database_problem() is None
    for name, seconds in {"FRESH": -1.0, "WAIT": 5.0, "MAX_AGE": 0.05}.items():
        monkeypatch.setattr(health, f"{name}_SECONDS", seconds)
    problem = await asyncio.wait_for(monitor.database_problem(), 4)
    assert problem is not None
    assert "did not answer" in problem.message
    await tasks.close()


async def test_a_probe_that_breaks_is_no_good_answer(caplog: pytest.LogCaptureFixture) -> None:
    tasks = TaskRegistry()

    async def ping() -> None:
        raise RuntimeError("boom")

    problem = await HealthMonitor(ping, tasks).database_problem()
    assert problem is not None
    assert "probe failed" in problem.full_message
    await tasks.close()
    assert [record.message for record in caplog.records] == ["background task failed"]
