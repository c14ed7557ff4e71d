"""The state of the daemon on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply


class SourceState(Reply):
    """A model source: how many models it listed last, and its last problem."""

    name: str
    models: int
    problem: str | None = None


class VectorCache(Reply):
    """The vectors in memory: bytes, the most there may be, how often collections were loaded again soon after
    they were let go for want of memory, and a sentence while that happens."""

    size_bytes: int
    limit_bytes: int
    reloads: int
    problem: str | None = None


class Health(Reply):
    """The daemon's state; `status` is `pass`, `warn` (a source or the vector cache has a problem) or `fail`
    (no database).

    `extraction_sandbox` says how the processes are confined that read documents: `full`, `off`, or what it is
    without; None where documents are read elsewhere.
    `vector_index` says how vectors are searched: `hnsw`, `pgvector`, or `flat` and why.
    `vector_recall` (0 to 1) is the lowest recall@10 that was measured of a graph, and `vector_ef_search` the
    number of candidates that its searches follow.
    `vector_cache` is None where the database searches vectors.
    `database_problem` says why the database fails.
    `stalls` counts how often the event loop did not turn for 100 ms or longer since the start.
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
