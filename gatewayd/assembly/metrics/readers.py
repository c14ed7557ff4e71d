"""What each service tells at a scrape of the metrics, in the order of gatewayd-operations(7), METRICS."""

import asyncio
import logging
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gatewayd import __version__
from gatewayd.assembly.documents import DocumentServices
from gatewayd.assembly.events import LiveServices
from gatewayd.assembly.indexes import find_cache_state
from gatewayd.assembly.metrics.services import MonitoringServices
from gatewayd.assembly.services import GatewayServices
from gatewayd.catalog.service import Catalog
from gatewayd.extract.pool import ExtractorPool
from gatewayd.observe.health import HealthMonitor
from gatewayd.observe.journal import JournalHandler
from gatewayd.observe.metrics import families
from gatewayd.observe.metrics.exposition import MetricExposition, SlowReadings
from gatewayd.observe.metrics.readings import MetricReading, Reader, SlowReader, cells, distributions, value
from gatewayd.plugins.registry import PluginManager
from gatewayd.storage.engine.database import Database
from gatewayd.tasks import TaskRegistry

Readings = Iterator[MetricReading]


def make_exposition(services: GatewayServices) -> MetricExposition:
    """Return the exposition of all metrics of a gateway."""
    slow: Sequence[SlowReader] = (lambda: _ingestion(services), lambda: _batches(services))
    return MetricExposition(
        make_readers(services),
        lambda: _database(services.health, services.database),
        SlowReadings(slow, services.tasks),
    )


def make_readers(services: GatewayServices) -> Sequence[Reader]:
    """Return the readers of what is in memory."""
    requests, calls = services.monitoring.requests, services.monitoring.calls
    registry = services.extensions.registry
    return [
        lambda: _gateway(services.health),
        cells(families.HTTP_REQUESTS, requests.requests),
        distributions(families.HTTP_DURATION, requests.durations),
        lambda: [
            value(families.HTTP_IN_FLIGHT, requests.in_flight),
            value(families.HTTP_FAST, requests.fast),
        ],
        cells(families.MODEL_CALLS, calls.calls),
        lambda: [
            value(families.MODEL_CALLS_IN_FLIGHT, calls.in_flight),
            value(families.MODEL_STREAMS, calls.streams),
        ],
        cells(families.MODEL_TOKENS, calls.tokens),
        distributions(families.MODEL_FIRST_TOKEN, calls.first_tokens),
        distributions(families.MODEL_DURATION, calls.durations),
        cells(families.UPSTREAM_ERRORS, calls.errors),
        cells(families.UPSTREAM_RETRIES, calls.retries),
        lambda: _sources(services.catalog),
        lambda: _extraction(services.documents),
        lambda: _tasks(services.tasks),
        lambda: _live(services.live),
        cells(families.PLUGIN_CALLS, registry.calls),
        cells(families.PLUGIN_FAILURES, registry.failures),
        lambda: _plugins(services, registry),
        lambda: _index(services.documents),
        lambda: _connections(services.database),
        lambda: _loop(services.health),
        lambda: _lost_lines(services.monitoring),
    ]


def _gateway(health: HealthMonitor) -> Readings:
    yield value(families.BUILD_INFO, 1, __version__, platform.python_version())
    yield value(families.READY, health.ready)


def _sources(catalog: Catalog) -> Readings:
    states = [(str(each["name"]), each["problem"], each["models"]) for each in catalog.source_states()]
    yield from (value(families.SOURCE_UP, problem is None, name) for name, problem, _ in states)
    yield from (
        MetricReading(families.SOURCE_MODELS, (name,), float(str(count))) for name, _, count in states
    )


def _extraction(documents: DocumentServices) -> Readings:
    pool = documents.extractor
    if isinstance(pool, ExtractorPool):
        waiting, working = pool.documents
        yield value(families.EXTRACTION_DOCUMENTS, waiting, "waiting")
        yield value(families.EXTRACTION_DOCUMENTS, working, "working")


def _tasks(tasks: TaskRegistry) -> Readings:
    started = len(tasks.started())
    yield value(families.TASKS, tasks.count - started, "gateway")
    yield value(families.TASKS, started, "user")


def _live(live: LiveServices) -> Readings:
    yield value(families.DEFERRED_WRITES, live.deferred.count)
    yield value(families.EVENTS, live.hub.published)
    rooms, subscribers = live.hub.audience
    yield value(families.EVENT_ROOMS, rooms)
    yield value(families.EVENT_SUBSCRIBERS, subscribers)


def _plugins(services: GatewayServices, registry: PluginManager) -> Readings:
    plugins = registry.list()
    states = Counter(
        "inactive" if not each.is_active else "failing" if each.problem is not None else "active"
        for each in plugins
    )
    yield from (value(families.PLUGINS, states[name], name) for name in ("active", "inactive", "failing"))
    places = services.extensions.places
    yield value(families.PLUGIN_PROCESSES, sum(places.of(each).pid is not None for each in plugins))


def _index(documents: DocumentServices) -> Readings:
    state = find_cache_state(documents.engines.index)
    if state is not None:
        yield value(families.INDEX_BYTES, float(str(state["size_bytes"])))
        yield value(families.INDEX_LIMIT_BYTES, float(str(state["limit_bytes"])))
        yield value(families.INDEX_RELOADS, float(str(state["reloads"])))


def _connections(database: Database) -> Readings:
    pool = database.engine.connections
    if pool is not None:
        idle, used = pool
        yield value(families.DATABASE_CONNECTIONS, idle, "idle")
        yield value(families.DATABASE_CONNECTIONS, used, "used")


def _loop(health: HealthMonitor) -> Readings:
    stalls, longest = health.stalls
    yield MetricReading(families.LOOP_LAG, (), health.loop.lag)
    yield value(families.LOOP_STALLS, stalls)
    yield value(families.LOOP_LONGEST, longest)


def _lost_lines(monitoring: MonitoringServices) -> Readings:
    yield value(families.LOG_DROPPED, monitoring.access_log.lost, "access")
    handlers = [each for each in logging.getLogger().handlers if isinstance(each, JournalHandler)]
    yield from (value(families.LOG_DROPPED, each.journal.lost, "journal") for each in handlers[:1])


async def _database(health: HealthMonitor, database: Database) -> Sequence[MetricReading]:
    found = [value(families.DATABASE_UP, await health.database_problem() is None)]
    if health.probe_seconds is not None:
        found.append(value(families.DATABASE_PING, health.probe_seconds))
    path = database.location.path
    if path is not None:
        found.append(value(families.DATABASE_BYTES, await asyncio.to_thread(_size_of, path)))
    return found


def _size_of(path: Path) -> int:
    """Return the size of a SQLite file and its log."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(each.stat().st_size for each in files if each.exists())


async def _ingestion(services: GatewayServices) -> Sequence[MetricReading]:
    state = await services.documents.queue.state()
    return [
        value(families.INGEST_FILES, state.waiting, "waiting"),
        value(families.INGEST_FILES, state.working, "working"),
        value(families.INGEST_FILES, state.failed, "failed"),
    ]


async def _batches(services: GatewayServices) -> Sequence[MetricReading]:
    waiting, running = await services.batches.worker.queue()
    return [value(families.BATCHES, waiting, "waiting"), value(families.BATCHES, running, "running")]
