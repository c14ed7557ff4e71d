"""The vector index: pgvector, or the local index, which is loaded at first use."""

import asyncio
import importlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra, install_hint, is_installed
from gatewayd.ingest.interfaces import VectorIndex, VectorReader
from gatewayd.ingest.records import EmbeddingSpace, SearchHit, SearchScope
from gatewayd.settings import Settings
from gatewayd.storage.engine.database import Database
from gatewayd.storage.search.pgvector import PgVectorIndex, open_pgvector
from gatewayd.tasks import TaskRegistry

LOCAL_INDEX_MODULE: Final = "gatewayd.vectors.index.local_index"
INDEX_FOLDER: Final = "vectors"

log = logging.getLogger(__name__)


async def open_index(
    settings: Settings, database: Database, vectors: VectorReader, tasks: TaskRegistry, stack: AsyncExitStack
) -> VectorIndex:
    """Return pgvector where the database has it, else an index in this process.

    Raises not_configured for a node without pgvector: an index in memory never hears of other nodes.
    """
    if not database.location.is_sqlite:
        found = await open_pgvector(database, tasks)
        if found is not None:
            return found
        if settings.cluster:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                "cannot use cluster: the PostgreSQL server lacks the extension vector (pgvector), with which "
                "the nodes search",
                param="cluster",
            )
        log.warning("the database has no extension vector: vectors are searched in memory")
    if not is_installed(PackageExtra.GRAPH):
        log.info("searches compare every vector of a collection: %s", install_hint(PackageExtra.GRAPH))
    index = LazyIndex(vectors, settings.data_dir / INDEX_FOLDER, settings.vector_cache_size, tasks)
    stack.push_async_callback(index.close)
    return index


def describe_index(index: VectorIndex) -> str:
    """Return the kind of the index, for the health report."""
    if isinstance(index, PgVectorIndex):
        return "pgvector"
    return "hnsw" if is_installed(PackageExtra.GRAPH) else f"flat: {install_hint(PackageExtra.GRAPH)}"


def find_recall(index: VectorIndex) -> tuple[float, int] | None:
    """Return the lowest measured recall of a local HNSW index with its ef_search; None without one."""
    return index.recall if isinstance(index, LazyIndex) else None


def find_cache_state(index: VectorIndex) -> Mapping[str, object] | None:
    """Return the state of the vectors in memory, None when the database searches them."""
    return index.cache_state if isinstance(index, LazyIndex) else None


class LazyIndex:
    """The local index. Its libraries take long to load, so the first search loads them."""

    def __init__(self, vectors: VectorReader, folder: Path, budget: int, tasks: TaskRegistry) -> None:
        self._vectors = vectors
        self._folder = folder
        self._budget = budget
        self._tasks = tasks
        self._opening = asyncio.Lock()
        self._index: Any = None

    @property
    def recall(self) -> tuple[float, int] | None:
        """The lowest measured recall of an HNSW index with its ef_search; None without one."""
        found: tuple[float, int] | None = None if self._index is None else self._index.recall
        return found

    @property
    def cache_state(self) -> Mapping[str, object]:
        """Bytes in memory and their limit, the number of reloads, and the problem found, if any."""
        index = self._index
        return {
            "size_bytes": index.size if index is not None else 0,
            "limit_bytes": self._budget,
            "reloads": index.reloads if index is not None else 0,
            "problem": index.problem if index is not None else None,
        }

    async def load(self) -> VectorIndex:
        """Return the index itself."""
        async with self._opening:
            if self._index is None:
                module = await asyncio.to_thread(importlib.import_module, LOCAL_INDEX_MODULE)
                index = module.LocalIndex(self._vectors, self._folder, self._budget, self._tasks)
                await index.open()
                self._index = index
        loaded: VectorIndex = self._index
        return loaded

    async def search(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, limit: int
    ) -> Sequence[SearchHit]:
        """Return the nearest passages."""
        return await (await self.load()).search(space, scope, vector, limit)

    async def similarities(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, passage_ids: Sequence[int]
    ) -> Mapping[int, float]:
        """Return the cosines of passages."""
        return await (await self.load()).similarities(space, scope, vector, passage_ids)

    async def refresh(self, scope: SearchScope, file_id: str) -> None:
        """Apply a change; an index that was not loaded has nothing to update."""
        if self._index is not None:
            await self._index.refresh(scope, file_id)

    async def forget(self, scope: SearchScope) -> None:
        """Drop a scope. Files of it from an earlier run are removed when the index is loaded."""
        if self._index is not None:
            await self._index.forget(scope)

    async def check(self, space: EmbeddingSpace, scope: SearchScope) -> Sequence[str]:
        """Compare the index with the database and repair it."""
        return await (await self.load()).check(space, scope)

    async def close(self) -> None:
        """Save the index and close it."""
        if self._index is not None:
            await self._index.close()
