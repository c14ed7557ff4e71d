"""The exposition: the registry of prometheus_client, rendered in time slices.

Only this module imports the library. A scrape renders at most `SLICE_SAMPLES` samples at once and lets other
tasks run in between.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

from gatewayd.errors import GatewayError
from gatewayd.measurement.cells import HistogramCell
from gatewayd.observe.metrics.families import SCRAPE_SECONDS, MetricType
from gatewayd.observe.metrics.readings import MetricReading, Reader, SlowReader
from gatewayd.tasks import TaskRegistry
from gatewayd.time_slices import LoopPacer

log = logging.getLogger(__name__)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SLICE_READINGS: Final = 50
"""Maximum number of readings that are rendered at once; a histogram has one line a bucket."""

WAIT_SECONDS: Final = 0.5
"""Maximum wait of a scrape for the database."""

MAX_AGE_SECONDS: Final = 60.0
"""Maximum age of readings of the database; older ones are left out."""


class SlowReadings:
    """Readings of the database: read anew for each scrape, and the previous ones if that takes too long.

    At most one reading runs at a time.
    """

    def __init__(self, readers: Sequence[SlowReader], tasks: TaskRegistry) -> None:
        self._readers = readers
        self._tasks = tasks
        self._found: Sequence[MetricReading] = ()
        self._found_at = float("-inf")
        self._running: asyncio.Event | None = None

    async def read(self) -> Sequence[MetricReading]:
        """Return the readings; none while the database is away for longer than a minute."""
        if self._running is None:
            self._running = asyncio.Event()
            self._tasks.spawn("metrics of the database", self._read(self._running))
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._running.wait()
        except TimeoutError:
            log.debug("the metrics of the database are late")
        is_recent = time.monotonic() - self._found_at <= MAX_AGE_SECONDS
        return self._found if is_recent else ()

    async def _read(self, done: asyncio.Event) -> None:
        found: list[MetricReading] = []
        try:
            for read in self._readers:
                found += await read()
            self._found, self._found_at = found, time.monotonic()
        except GatewayError as error:
            # `gatewayd_database_up` says so.
            log.debug("cannot read the metrics of the database: %s", error.full_message)
        finally:
            self._running = None
            done.set()


class MetricExposition:
    """Renders all metrics. The registry belongs to this object; nothing is shared with other libraries.

    `database` tells within two seconds whether the database answers, and never raises; `slow` needs it.
    """

    def __init__(self, readers: Sequence[Reader], database: SlowReader, slow: SlowReadings) -> None:
        self._readers = readers
        self._database = database
        self._slow = slow
        self._seconds = 0.0
        self._late: Sequence[MetricReading] = ()
        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the families for the registry; a large one comes in several parts."""
        for read in self._readers:
            yield from _metrics(read())
        yield from _metrics(self._late)
        yield from _metrics([MetricReading(SCRAPE_SECONDS, (), self._seconds)])

    async def render(self) -> bytes:
        """Return the exposition as text."""
        began = time.perf_counter()
        late = [*await self._database(), *await self._slow.read()]
        pace = LoopPacer()
        parts: list[bytes] = []
        before = ""
        self._late = late
        for metric in self.registry.collect():
            text = generate_latest(_Single(metric))
            # The head, two lines, stands before the first part of a family only.
            parts.append(text if metric.name != before else text.split(b"\n", 2)[2])
            before = metric.name
            await pace.turn()
        self._seconds = time.perf_counter() - began
        return b"".join(parts)


class _Single:
    """A collector of one family."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return [self._metric]


def _metrics(readings: Iterable[MetricReading]) -> Iterator[Metric]:
    """Yield a family for each run of readings of one family, in parts of `SLICE_READINGS`."""
    for family, group in groupby(readings, key=lambda reading: reading.family):
        while part := list(islice(group, SLICE_READINGS)):
            # The library adds the ending of counters itself.
            metric = Metric(family.name.removesuffix("_total"), family.help, family.type.value)
            if family.type is not MetricType.COUNTER and family.name.endswith("_total"):
                raise ValueError(f"{family.name} is no counter")
            for reading in part:
                _add(
                    metric, family.name, dict(zip(family.labels, reading.labels, strict=True)), reading.value
                )
            yield metric


def _add(metric: Metric, name: str, labels: dict[str, str], value: float | HistogramCell) -> None:
    if not isinstance(value, HistogramCell):
        metric.add_sample(name, labels, value)
        return
    count = 0
    for bound, number in zip((*value.bounds, float("inf")), value.counts, strict=True):
        count += number
        text = "+Inf" if bound == float("inf") else str(bound)
        metric.add_sample(f"{name}_bucket", {**labels, "le": text}, count)
    metric.add_sample(f"{name}_sum", labels, value.total)
    metric.add_sample(f"{name}_count", labels, count)
