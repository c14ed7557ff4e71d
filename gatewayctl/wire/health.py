"""The state of the daemon, and the levels of its loggers, on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request


class SourceState(Reply):
    """A model source: the number of models in its last list, and its last problem."""

    name: str
    models: int
    problem: str | None = None


class VectorCache(Reply):
    """The vectors in memory: bytes, maximum, number of reloads soon after an eviction, and a sentence while
    reloads are frequent."""

    size_bytes: int
    limit_bytes: int
    reloads: int
    problem: str | None = None


class Health(Reply):
    """The daemon's state; `status` is `pass`, `warn` (a source or the vector cache has a problem, or a part
    is degraded) or `fail` (no database).

    `extraction_sandbox` is the confinement of the processes that extract documents: `full`, `off`, or the
    missing features; None with an external extractor.
    `vector_index` is the index of the vectors: `hnsw`, `pgvector`, or `flat` and why.
    `vector_recall` (0 to 1) is the lowest measured recall@10 of an HNSW index, `vector_ef_search` its
    parameter ef_search.
    `vector_cache` is None if the database searches vectors.
    `database_problem` says why the database fails.
    `degraded` names the parts that do not work without Redis.
    `stalls` counts the times since the start that the event loop was blocked for 100 ms or longer.
    """

    status: str
    version: str
    protocol: str
    started_at: str | None = None
    uptime_seconds: int
    database: bool
    sources: list[SourceState] = Field(default_factory=list)
    extraction_sandbox: str | None = None
    vector_index: str | None = None
    vector_recall: float | None = None
    vector_ef_search: int | None = None
    vector_cache: VectorCache | None = None
    stalls: int = 0
    longest_stall_ms: int = 0
    database_problem: str | None = None
    degraded: list[str] = Field(default_factory=list)


class LoggerLevel(Reply):
    """The level of a logger; `changed` until the daemon ends or the level is set to `default`."""

    logger: str
    level: str
    changed: bool = False


class LoggerLevels(Reply):
    """Levels, by name of the logger."""

    levels: list[LoggerLevel]


class LevelChange(Request):
    """A logger and its level: debug, info, warning, error, critical, or default for that of the settings."""

    logger: str = Field(max_length=1000)
    level: str = Field(max_length=100)
