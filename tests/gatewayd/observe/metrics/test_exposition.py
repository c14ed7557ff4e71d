"""The text of the metrics."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.measurement.cells import HistogramCell, counters
from gatewayd.observe.metrics import exposition, families
from gatewayd.observe.metrics.exposition import MetricExposition, SlowReadings
from gatewayd.observe.metrics.readings import MetricReading, Reader, cells, value
from gatewayd.tasks import TaskRegistry


@pytest.fixture
async def tasks() -> AsyncIterator[TaskRegistry]:
    registry = TaskRegistry()
    yield registry
    await registry.close()


async def up() -> Sequence[MetricReading]:
    return [value(families.DATABASE_UP, 1)]


def made(tasks: TaskRegistry, *readers: Reader) -> MetricExposition:
    return MetricExposition(readers, up, SlowReadings((), tasks))


async def test_each_family_has_its_head_once_and_a_parser_reads_all(tasks: TaskRegistry) -> None:
    found = counters()
    for number in range(180):
        found.at(f'a "quoted"\n\\{number}', "GET", "2xx").add()
    spread = HistogramCell((0.1, 1.0))
    for seen in (0.05, 0.5, 5):
        spread.observe(seen)
    text = await made(
        tasks,
        cells(families.HTTP_REQUESTS, found),
        lambda: [MetricReading(families.LOOP_LAG, (), spread), value(families.LOOP_LONGEST, 0.25)],
    ).render()
    read = {family.name: family for family in text_string_to_metric_families(text.decode())}
    assert text.count(b"# TYPE gatewayd_http_requests_total counter") == 1
    assert len(read["gatewayd_http_requests"].samples) == 180
    assert 'a "quoted"\n\\7' in {sample.labels["route"] for sample in read["gatewayd_http_requests"].samples}
    lag = {
        (sample.name.rpartition("_")[2], sample.labels.get("le")): sample.value
        for sample in read["gatewayd_event_loop_lag_seconds"].samples
    }
    assert lag == {
        ("bucket", "0.1"): 1,
        ("bucket", "1.0"): 2,
        ("bucket", "+Inf"): 3,
        ("sum", None): 5.55,
        ("count", None): 3,
    }
    assert set(families.PROCESS_FAMILIES) <= {
        sample.name for family in read.values() for sample in family.samples
    }
    assert read["gatewayd_database_up"].samples[0].value == 1


async def test_a_large_scrape_lets_others_run(tasks: TaskRegistry) -> None:
    found = counters(limit=5000)
    for number in range(5000):
        found.at(f"/{number}", "GET", "2xx").add()
    gaps: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            gaps.append(time.perf_counter() - before)

    tasks.spawn("watch", watch())
    await made(tasks, cells(families.HTTP_REQUESTS, found)).render()
    # Fast machines need few slices; at once there would be one gap or two.
    assert len(gaps) > 3
    # Half a second on a busy machine; at once it is a fifth of that with all samples, not with a slice.
    assert sorted(gaps)[-2] < 0.05


async def test_readings_of_an_absent_database_are_left_out(tasks: TaskRegistry) -> None:
    async def gone() -> Sequence[MetricReading]:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database")

    whole = MetricExposition((), up, SlowReadings((gone,), tasks))
    text = await whole.render()
    assert b"gatewayd_database_up 1.0" in text
    assert b"gatewayd_batches" not in text


async def test_a_silent_database_does_not_hold_a_scrape(
    tasks: TaskRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposition, "WAIT_SECONDS", 0.01)
    answers = asyncio.Event()
    answers.set()
    asked = 0

    async def slow() -> Sequence[MetricReading]:
        nonlocal asked
        asked += 1
        await answers.wait()
        return [value(families.DEFERRED_WRITES, asked)]

    whole = MetricExposition((), up, SlowReadings((slow,), tasks))
    assert b"gatewayd_deferred_writes 1.0" in await whole.render()
    answers.clear()
    for _ in range(3):
        assert b"gatewayd_deferred_writes 1.0" in await whole.render()
    assert asked == 2
    monkeypatch.setattr(exposition, "MAX_AGE_SECONDS", -1.0)
    assert b"gatewayd_deferred_writes" not in await whole.render()
