"""Local vector index: loads a scope on its first query and keeps it within the memory budget."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from gatewayd.errors import GatewayError
from gatewayd.extras import PackageExtra, is_installed
from gatewayd.ingest.interfaces import VectorReader
from gatewayd.ingest.records import EmbeddingSpace, SearchHit, SearchScope
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.index.cache import ScopeCache
from gatewayd.vectors.index.checkpoints import CheckpointKey, GraphCheckpoints, scope_stem
from gatewayd.vectors.index.eviction_watch import ReloadWatch
from gatewayd.vectors.index.flat_index import check_query
from gatewayd.vectors.index.scope_index import IndexRules, IndexServices, ScopeIndex
from gatewayd.vectors.index.threads import IndexThreads

MAX_GRAPHS: Final = 99
"""Maximum number of HNSW graphs in memory: an empty one takes megabytes."""
UPKEEP_SECONDS: Final = 30.0


class LocalIndex:
    """Implements `ingest.interfaces.VectorIndex`.

    `folder` holds checkpoints of the largest scopes; only one process may use it. `budget` is the memory of
    the loaded scopes in bytes; a scope that exceeds it is loaded alone. Without the extra `graph` every scope
    is a flat index, whatever its size.
    """

    def __init__(
        self,
        passages: VectorReader,
        folder: Path,
        budget: int,
        tasks: TaskRegistry,
        rules: IndexRules | None = None,
    ) -> None:
        self._reader = passages
        self._checkpoints = GraphCheckpoints(folder)
        self._threads = IndexThreads()
        self._rules = rules or IndexRules()
        if not is_installed(PackageExtra.GRAPH):
            self._rules = replace(self._rules, threshold=sys.maxsize)
        self._tools = IndexServices(passages, self._checkpoints, self._threads, self._rules)
        self._reloads = ReloadWatch(budget)
        self._cache = ScopeCache(budget, MAX_GRAPHS, self._reloads)
        self._tasks = tasks
        # Ids of tasks: those that maintain a loaded scope, and those that save an evicted one.
        self._tending: dict[ScopeIndex, str] = {}
        self._leaving: dict[ScopeIndex, str] = {}
        self._upkeep: list[str] = []

    @property
    def size(self) -> int:
        """Bytes of memory that the loaded scopes take."""
        return self._cache.size

    @property
    def recall(self) -> tuple[float, int] | None:
        """The lowest measured recall of a loaded graph with its ef_search, None without a measurement."""
        measured = [loaded.recall for loaded in self._cache if loaded.recall is not None]
        least = min(measured, key=lambda found: found.recall, default=None)
        return None if least is None else (least.recall, least.ef_search)

    @property
    def reloads(self) -> int:
        """Number of scopes that were loaded again soon after their eviction for memory."""
        return self._reloads.count

    @property
    def problem(self) -> str | None:
        """A sentence if the memory budget is too small, else None."""
        return self._reloads.problem

    async def open(self) -> None:
        """Prepare the folder, and start a task that removes unneeded checkpoints."""
        keys = await self._threads.work(self._checkpoints.open)
        self._upkeep = [
            self._tasks.spawn("old checkpoints", self._sweep(keys)),
            self._tasks.spawn("checkpoints of the vector index", self._save_idle()),
        ]

    async def close(self) -> None:
        """Save the scopes that changed since their checkpoint, and stop the tasks and threads."""
        unsaved = [*self._leaving, *self._cache]
        for task in [*self._upkeep, *self._leaving.values(), *self._tending.values()]:
            await self._tasks.stop(task)
        for loaded in unsaved:
            await loaded.save()
        await asyncio.to_thread(self._threads.close)

    async def search(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, limit: int
    ) -> Sequence[SearchHit]:
        """Return the passages most similar to a vector of length 1, best first; scores are cosines."""
        query = check_query(vector, space.dimension)
        loaded = await self._open(CheckpointKey(space, scope))
        return [SearchHit(one, _cosine(score)) for one, score in await loaded.search(query, limit)]

    async def similarities(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, passage_ids: Sequence[int]
    ) -> Mapping[int, float]:
        """Return the cosines of the passages that have a vector in the space and belong to the scope."""
        query = check_query(vector, space.dimension)
        loaded = await self._open(CheckpointKey(space, scope))
        return {one: _cosine(score) for one, score in await loaded.similarities(query, passage_ids)}

    async def refresh(self, scope: SearchScope, file_id: str) -> None:
        """Apply the current passages of a file to the loaded indexes of a scope; idempotent.

        The refresh completes even if the caller is cancelled.
        """
        for loaded in self._cache.of(scope):
            await self._tasks.finish(f"vectors of file {file_id}", self._refresh(loaded, file_id))

    async def forget(self, scope: SearchScope) -> None:
        """Drop the indexes and checkpoints of a deleted scope."""
        leaving = [loaded for loaded in self._leaving if loaded.key.scope == scope]
        for loaded in [*self._cache.of(scope), *leaving]:
            await self._drop(loaded)
        await self._threads.work(self._checkpoints.remove, scope_stem(scope))

    async def check(self, space: EmbeddingSpace, scope: SearchScope) -> Sequence[str]:
        """Compare with the database, correct differences, and return a sentence for each."""
        key = CheckpointKey(space, scope)
        damaged = await self._threads.work(self._checkpoints.verify, key)
        loaded = await self._open(key)
        differing = await self._tasks.finish("comparison of vectors", loaded.compare())
        self._settle(loaded)
        return [*damaged, *differing]

    async def _open(self, key: CheckpointKey) -> ScopeIndex:
        loaded = self._cache.find(key)
        if loaded is None:
            loaded = ScopeIndex(key, self._tools)
            self._cache.put(loaded)
        if not loaded.is_ready:
            # Other callers wait for the same load: it continues if this caller is cancelled.
            await self._tasks.finish(f"vectors of {key.scope.kind} {key.scope.id}", loaded.open())
            self._settle(loaded)
        return loaded

    async def _refresh(self, loaded: ScopeIndex, file_id: str) -> None:
        try:
            await loaded.refresh(file_id)
        except GatewayError:
            # The loaded vectors may be stale now: the next query reads them again.
            await self._drop(loaded)
            raise
        self._settle(loaded)

    async def _drop(self, loaded: ScopeIndex) -> None:
        loaded.is_wanted = False
        self._cache.remove(loaded)
        await self._stop_tending(loaded)

    def _settle(self, loaded: ScopeIndex) -> None:
        """Evict scopes for a scope that has changed, and start its maintenance in the background."""
        for gone in self._cache.measure(loaded):
            self._leaving[gone] = self._tasks.spawn("checkpoint of unused vectors", self._leave(gone))
        if loaded in self._cache and loaded.is_due and loaded not in self._tending:
            name = f"graph of {loaded.key.scope.kind} {loaded.key.scope.id}"
            self._tending[loaded] = self._tasks.spawn(name, self._tend(loaded))

    async def _tend(self, loaded: ScopeIndex) -> None:
        try:
            await loaded.tend()
        finally:
            self._tending.pop(loaded, None)
        self._settle(loaded)

    async def _stop_tending(self, loaded: ScopeIndex) -> None:
        task = self._tending.get(loaded)
        if task is not None:
            await self._tasks.stop(task)
            # A task that is stopped before its first step never runs its `finally`.
            self._tending.pop(loaded, None)

    async def _leave(self, loaded: ScopeIndex) -> None:
        try:
            await self._stop_tending(loaded)
            await loaded.save()
        finally:
            self._leaving.pop(loaded, None)

    async def _sweep(self, keys: Sequence[CheckpointKey]) -> None:
        for key in keys:
            count = await self._reader.count_vectors(key.space.name, key.scope)
            if count < self._rules.threshold // 2:
                await self._threads.work(self._checkpoints.remove, key.stem)

    async def _save_idle(self) -> None:
        while True:
            await asyncio.sleep(min(UPKEEP_SECONDS, self._rules.idle))
            for loaded in self._cache:
                if loaded.is_unsaved and time.monotonic() - loaded.changed_at >= self._rules.idle:
                    await loaded.save()
                if loaded.is_due:
                    self._settle(loaded)


def _cosine(score: float) -> float:
    return min(1.0, max(-1.0, score))
