"""Interfaces and facts of the state of the daemon, which both sockets tell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatewayd.errors import GatewayError


class DaemonMonitor(Protocol):
    """Monitors the database and the event loop."""

    @property
    def stalls(self) -> tuple[int, float]:
        """Number of stalls of the event loop since the start, and the longest one in seconds."""
        ...

    @property
    def degraded(self) -> Sequence[str]:
        """Names of the parts that do not work just now, while requests are served all the same."""
        ...

    async def database_problem(self) -> GatewayError | None:
        """Return the failure of a database that does not answer in time, None for a working one."""
        ...


class SourceStates(Protocol):
    """Lists the states of model sources; implemented by the catalogue."""

    def source_states(self) -> Sequence[Mapping[str, object]]:
        """Return name, number of models and last problem of each source."""
        ...


@dataclass(frozen=True, slots=True)
class DaemonFacts:
    """Facts about the daemon, determined at the start; None where another program does the work.

    `find_recall` returns the lowest measured recall of an HNSW index with its ef_search, None without one.
    `find_cache` returns the state of the vectors in memory.
    """

    extraction_sandbox: str | None = None
    vector_index: str | None = None
    find_recall: Callable[[], tuple[float, int] | None] = lambda: None
    find_cache: Callable[[], Mapping[str, object] | None] = lambda: None
