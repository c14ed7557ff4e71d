"""The table of metric families: names, types, labels and one sentence each.

Names follow the conventions of Prometheus: base units, `_total` for counters. gatewayd-operations(7), METRICS
has the same table.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MetricType(StrEnum):
    """Types of families."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One family: name, type, a sentence without a full stop, and names of labels."""

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()


_COUNTER, _GAUGE, _HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM

BUILD_INFO: Final = MetricFamily(
    "gatewayd_build_info",
    _GAUGE,
    "Version of the gateway and of Python; the value is 1",
    ("version", "python"),
)
READY: Final = MetricFamily("gatewayd_ready", _GAUGE, "Whether the start has ended and no stop has begun")

HTTP_REQUESTS: Final = MetricFamily(
    "gatewayd_http_requests_total",
    _COUNTER,
    "Requests by path template, method and class of status",
    ("route", "method", "status"),
)
HTTP_DURATION: Final = MetricFamily(
    "gatewayd_http_request_duration_seconds",
    _HISTOGRAM,
    "Time from the head of a request to the end of its answer",
    ("route", "method"),
)
HTTP_IN_FLIGHT: Final = MetricFamily(
    "gatewayd_http_requests_in_flight", _GAUGE, "Requests without a complete answer"
)
HTTP_FAST: Final = MetricFamily(
    "gatewayd_http_fast_requests_total",
    _COUNTER,
    "Requests that the fast path has answered, without a task of their own",
)

MODEL_CALLS: Final = MetricFamily(
    "gatewayd_model_calls_total",
    _COUNTER,
    "Ended calls of models by outcome: answered, refused, failed, cut, cancelled",
    ("provider", "model", "endpoint", "outcome"),
)
MODEL_CALLS_IN_FLIGHT: Final = MetricFamily(
    "gatewayd_model_calls_in_flight", _GAUGE, "Calls of models that are not ended"
)
MODEL_STREAMS: Final = MetricFamily(
    "gatewayd_model_streams_in_flight", _GAUGE, "Streamed answers of models that are not ended"
)
MODEL_TOKENS: Final = MetricFamily(
    "gatewayd_model_tokens_total",
    _COUNTER,
    "Tokens by type: prompt and completion, of which cached, cache_written and reasoning are parts",
    ("provider", "model", "type"),
)
MODEL_FIRST_TOKEN: Final = MetricFamily(
    "gatewayd_model_time_to_first_token_seconds",
    _HISTOGRAM,
    "Time from the beginning of a call to the first part of its streamed answer",
    ("provider", "model"),
)
MODEL_DURATION: Final = MetricFamily(
    "gatewayd_model_call_duration_seconds",
    _HISTOGRAM,
    "Time from the beginning to the end of a call of a model",
    ("provider", "model"),
)
UPSTREAM_ERRORS: Final = MetricFamily(
    "gatewayd_upstream_errors_total",
    _COUNTER,
    "Calls of models that ended with an error, by kind of error",
    ("provider", "kind"),
)
UPSTREAM_RETRIES: Final = MetricFamily(
    "gatewayd_upstream_retries_total",
    _COUNTER,
    "Further attempts of calls of models, at the same provider or another one",
    ("provider",),
)
SOURCE_UP: Final = MetricFamily(
    "gatewayd_model_source_up", _GAUGE, "Whether the last list of models of a source arrived", ("provider",)
)
SOURCE_MODELS: Final = MetricFamily(
    "gatewayd_model_source_models", _GAUGE, "Models in the last list of a source", ("provider",)
)

INGEST_FILES: Final = MetricFamily(
    "gatewayd_ingest_files",
    _GAUGE,
    "Files of the ingest queue by state: waiting, working, failed",
    ("state",),
)
EXTRACTION_DOCUMENTS: Final = MetricFamily(
    "gatewayd_extraction_documents",
    _GAUGE,
    "Documents at the pool of reader processes by state: waiting, working",
    ("state",),
)
BATCHES: Final = MetricFamily(
    "gatewayd_batches", _GAUGE, "Batches that are not ended, by status", ("status",)
)
TASKS: Final = MetricFamily(
    "gatewayd_background_tasks", _GAUGE, "Background tasks by owner: gateway, user", ("owner",)
)
DEFERRED_WRITES: Final = MetricFamily(
    "gatewayd_deferred_writes", _GAUGE, "Writes to messages that wait for the database"
)

EVENTS: Final = MetricFamily("gatewayd_events_total", _COUNTER, "Events that were published")
EVENT_ROOMS: Final = MetricFamily("gatewayd_event_rooms", _GAUGE, "Users with subscribers or buffered events")
EVENT_SUBSCRIBERS: Final = MetricFamily(
    "gatewayd_event_subscribers", _GAUGE, "Connected subscribers of events"
)

PLUGINS: Final = MetricFamily(
    "gatewayd_plugins", _GAUGE, "Installed plugins by state: active, inactive, failing", ("state",)
)
PLUGIN_CALLS: Final = MetricFamily(
    "gatewayd_plugin_calls_total",
    _COUNTER,
    "Calls of methods of plugins, by family: function, tool",
    ("family",),
)
PLUGIN_FAILURES: Final = MetricFamily(
    "gatewayd_plugin_failures_total",
    _COUNTER,
    "Failures of plugins, at a call or between calls, by family",
    ("family",),
)
PLUGIN_PROCESSES: Final = MetricFamily(
    "gatewayd_plugin_processes", _GAUGE, "Running processes of isolated plugins"
)

INDEX_BYTES: Final = MetricFamily(
    "gatewayd_vector_index_bytes", _GAUGE, "Memory of the vectors that are loaded; absent with pgvector"
)
INDEX_LIMIT_BYTES: Final = MetricFamily(
    "gatewayd_vector_index_limit_bytes", _GAUGE, "Limit of that memory; absent with pgvector"
)
INDEX_RELOADS: Final = MetricFamily(
    "gatewayd_vector_index_reloads_total", _COUNTER, "Vectors that were loaded again soon after an eviction"
)

DATABASE_UP: Final = MetricFamily("gatewayd_database_up", _GAUGE, "Whether the database answers")
DATABASE_PING: Final = MetricFamily(
    "gatewayd_database_ping_seconds", _GAUGE, "Duration of the last check of the database"
)
DATABASE_CONNECTIONS: Final = MetricFamily(
    "gatewayd_database_connections",
    _GAUGE,
    "Connections of the pool by state: idle, used; absent with SQLite",
    ("state",),
)
DATABASE_BYTES: Final = MetricFamily(
    "gatewayd_database_bytes", _GAUGE, "Size of the database file and its log; absent with PostgreSQL"
)

LOOP_LAG: Final = MetricFamily(
    "gatewayd_event_loop_lag_seconds",
    _HISTOGRAM,
    "Delay of a timer of the event loop, measured 20 times a second",
)
LOOP_STALLS: Final = MetricFamily(
    "gatewayd_event_loop_stalls_total", _COUNTER, "Times that the event loop was blocked for 0.1 s or longer"
)
LOOP_LONGEST: Final = MetricFamily(
    "gatewayd_event_loop_longest_stall_seconds", _GAUGE, "The longest of these stalls since the start"
)
LOG_DROPPED: Final = MetricFamily(
    "gatewayd_log_dropped_lines_total",
    _COUNTER,
    "Lines that were dropped because their reader is too slow, by log: access, journal",
    ("log",),
)
SCRAPE_SECONDS: Final = MetricFamily(
    "gatewayd_scrape_seconds", _GAUGE, "Time that the last scrape took, waiting included"
)

FAMILIES: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, MetricFamily))
"""All families, in the order of the exposition."""

PROCESS_FAMILIES: Final = (
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
)
"""Names of the families of the process itself, which are those of every client library."""

HTTP_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds of the buckets of requests and of calls of models, in seconds."""

FIRST_TOKEN_BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LAG_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
