"""Index of one scope in memory: a flat index, and an HNSW index beside it for a large scope.

New vectors enter the flat index and are found at once; a background task moves them to the HNSW index. Every
change holds the lock; searches do not take it.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.ingest.interfaces import VectorReader
from gatewayd.ingest.records import VectorBatch
from gatewayd.vectors.index.checkpoints import CheckpointKey, GraphCheckpoints
from gatewayd.vectors.index.flat_index import FlatIndex, Rows, Scored, pack_ids, unpack_batches, unpack_ids
from gatewayd.vectors.index.hnsw_index import HnswIndex, graph_capacity
from gatewayd.vectors.index.hybrid_index import FlatAndHnsw
from gatewayd.vectors.index.packed_files import (
    files_behind,
    miscounted_files,
    newest_files,
    pack_by_file,
    sort_packed,
)
from gatewayd.vectors.index.recall import GraphRecall, RecallCheck
from gatewayd.vectors.index.threads import IndexThreads

log = logging.getLogger(__name__)

MAX_INLINE_VECTORS: Final = 2_000
"""Maximum number of vectors that are compared on the event loop: a thread would cost more than it saves."""
COPY_BATCH_SIZE: Final = 128
"""Vectors that are copied into a graph per hold of the lock: some tens of milliseconds."""
BATCH_BYTES: Final = 4 << 20
"""Bytes of vectors that are read and added to the flat index at a time."""
PROBED_FILES: Final = 8
"""Number of files whose vectors are compared with those of a checkpoint."""
MAX_RELOADED_FILES: Final = 200
"""Maximum number of files that are read one by one; for more, all vectors of the scope are read."""
FIXED_BYTES: Final = 4_096
BYTES_PER_FILE: Final = 250


@dataclass(frozen=True, slots=True)
class IndexRules:
    """Thresholds of the maintenance of an index.

    A scope has an HNSW graph from `threshold` vectors on and loses it below half of that. The graph takes
    over the vectors of the flat index when they are `tail`. It is rebuilt when the fraction of removed
    vectors exceeds `waste`. A checkpoint is written after `changes` changes, and after `idle` seconds without
    a change. Recall is measured for a new graph, after growth by the fraction `growth`, and every `check`
    seconds.
    """

    threshold: int = 20_000
    tail: int = 512
    waste: float = 0.3
    changes: int = 10_000
    idle: float = 300.0
    growth: float = 0.25
    check: float = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class IndexServices:
    """Services that all loaded scopes share."""

    reader: VectorReader
    checkpoints: GraphCheckpoints
    threads: IndexThreads
    rules: IndexRules


class ScopeIndex:
    """Index of one scope in one embedding space."""

    def __init__(self, key: CheckpointKey, tools: IndexServices) -> None:
        self.key = key
        self.is_ready = False
        self.is_wanted = True
        self.changed_at = time.monotonic()
        self.parts = FlatAndHnsw(FlatIndex(key.space.dimension))
        self.recall: GraphRecall | None = None
        # The graph of the last recall check, its size at that time, and the time.
        self._checked: tuple[HnswIndex | None, int, float] = (None, 0, 0.0)
        self._tools = tools
        self._threads = tools.threads
        self._rules = tools.rules
        # The packed ids of the passages of each file: the ids that the index is to hold.
        self._files: dict[str, bytes] = {}
        self._changes = 0
        self._lock = asyncio.Lock()

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return FIXED_BYTES + self.parts.size + len(self._files) * BYTES_PER_FILE

    @property
    def has_graph(self) -> bool:
        """Whether the scope has an HNSW graph."""
        return self.parts.graph is not None

    @property
    def is_due(self) -> bool:
        """Whether maintenance is due: `tend` has something to do."""
        return self.is_ready and self._due() is not None

    @property
    def is_unsaved(self) -> bool:
        """Whether the graph changed since its last checkpoint."""
        return self.has_graph and self._changes > 0

    async def open(self) -> None:
        """Load the vectors of the scope from a checkpoint or the database; once only."""
        async with self._lock:
            if self.is_ready:
                return
            count = await self._tools.reader.count_vectors(self.key.space.name, self.key.scope)
            if count < self._rules.threshold // 2 or not await self._restore():
                await self._read_all(count)
            self.is_ready = True

    async def search(self, query: Rows, limit: int) -> Scored:
        """Return the passages most similar to a vector of length 1, best first."""
        parts = self.parts
        if parts.graph is None and len(parts.flat) <= MAX_INLINE_VECTORS:
            return parts.search(query, limit)
        return await self._threads.search(parts.search, query, limit)

    async def similarities(self, query: Rows, ids: Sequence[int]) -> Scored:
        """Return the cosines of the passages that the index holds."""
        parts = self.parts
        if parts.graph is None and len(ids) <= MAX_INLINE_VECTORS:
            return parts.similarities(query, ids)
        return await self._threads.search(parts.similarities, query, ids)

    async def refresh(self, file_id: str) -> None:
        """Read the vectors of one file again; do nothing if the scope is not loaded yet."""
        async with self._lock:
            if self.is_ready:
                batches = await self._read_file(file_id)
                await self._threads.work(self._replace, file_id, batches)

    async def tend(self) -> None:
        """Do the maintenance that is due, one step after the other."""
        while self.is_wanted and (work := self._due()) is not None:
            await work()

    async def save(self) -> None:
        """Write a checkpoint of the graph if it changed since the last one."""
        async with self._lock:
            graph = self.parts.graph
            if graph is None or not self._changes:
                return
            snapshot = await self._threads.work(graph.snapshot)
            self._changes = 0
        write = self._tools.checkpoints.write
        try:
            await self._threads.work(write, self.key, snapshot, lambda: self.is_wanted)
        except OSError as error:
            # No data is lost: the next start reads the vectors from the database, which takes longer.
            log.warning("cannot write a checkpoint: %s", error, extra={"scope": self.key.scope.id})

    async def compare(self) -> Sequence[str]:
        """Compare with the database, reload files that differ, and return a sentence for each difference."""
        sentences: list[str] = []
        for file_id in await self._suspects():
            # Pending refreshes have completed by now: a difference that remains is no concurrent change.
            async with self._lock:
                batches = await self._read_file(file_id)
                sentences += await self._threads.work(self._correct, file_id, batches)
        async with self._lock:
            strays = await self._threads.work(self._remove_strays)
        return [*sentences, f"the index held {strays} passages of no file"] if strays else sentences

    # Reading

    async def _read_all(self, count: int) -> None:
        flat = FlatIndex(self.key.space.dimension, count)
        held: dict[str, list[int]] = {}
        async for batches in self._batches():
            await self._threads.work(_add_batches, flat, held, batches)
        self._files = await self._threads.work(pack_by_file, held)
        self.parts = FlatAndHnsw(flat)

    async def _batches(self) -> AsyncIterator[Sequence[VectorBatch]]:
        """Yield all vectors of the scope, some megabytes at a time."""
        batches: list[VectorBatch] = []
        waiting = 0
        async for batch in self._tools.reader.load(self.key.space.name, self.key.scope):
            batches.append(batch)
            waiting += len(batch.vectors)
            if waiting >= BATCH_BYTES:
                yield batches
                batches, waiting = [], 0
        if batches:
            yield batches

    async def _read_file(self, file_id: str) -> Sequence[VectorBatch]:
        return await self._tools.reader.load_file(self.key.space.name, self.key.scope, file_id)

    async def _restore(self) -> bool:
        """Load a checkpoint and the changes since; return False without a valid one."""
        graph = await self._threads.work(self._tools.checkpoints.read, self.key)
        if graph is None:
            return False
        packed: dict[str, bytes] = {}
        async for file_id, ids in self._tools.reader.load_ids(self.key.space.name, self.key.scope):
            packed[file_id] = packed.get(file_id, b"") + ids
        missing = await self._threads.work(files_behind, graph, packed)
        parts = FlatAndHnsw(FlatIndex(self.key.space.dimension), graph)
        if not await self._is_genuine(parts, {one: packed[one] for one in packed.keys() - missing}):
            log.warning("cannot use a checkpoint: another database", extra={"scope": self.key.scope.id})
            await self._threads.work(self._tools.checkpoints.remove, self.key.stem)
            return False
        self.parts = parts
        self._files = await self._threads.work(sort_packed, packed)
        await self._threads.work(self._forget_others, missing)
        await self._catch_up(missing)
        return True

    async def _is_genuine(self, parts: FlatAndHnsw, packed: Mapping[str, bytes]) -> bool:
        """Compare the newest vectors: a restored database assigns the same ids to other passages."""
        for file_id in await self._threads.work(newest_files, packed, PROBED_FILES):
            batches = await self._read_file(file_id)
            if await self._threads.work(_differing, parts, batches):
                return False
        return True

    async def _catch_up(self, missing: set[str]) -> None:
        if len(missing) <= MAX_RELOADED_FILES:
            for file_id in missing:
                await self._threads.work(self._replace, file_id, await self._read_file(file_id))
            return
        wanted: dict[str, list[VectorBatch]] = {}
        async for batches in self._batches():
            for batch in batches:
                if batch.file_id in missing:
                    wanted.setdefault(batch.file_id, []).append(batch)
        for file_id in missing:
            await self._threads.work(self._replace, file_id, wanted.get(file_id, []))

    # Writing: in a thread, with the lock

    def _forget_others(self, missing: set[str]) -> None:
        for file_id in missing:
            # The graph may hold part of a file.
            self._files[file_id] = b""
        self._changes += self._remove_strays()

    def _remove_strays(self) -> int:
        """Remove the passages that belong to no file; return their number."""
        strays = self.parts.ids - self._alive()
        self.parts.remove(strays)
        return len(strays)

    def _replace(self, file_id: str, batches: Sequence[VectorBatch]) -> None:
        """Replace the vectors of a file. The vector of an id never changes."""
        ids, rows = unpack_batches(batches, self.key.space.dimension)
        old = set(unpack_ids(self._files.get(file_id, b"")))
        places = [place for place, one in enumerate(ids) if one not in self.parts]
        if places:
            self.parts.flat.add([ids[place] for place in places], rows[places])
        gone = old.difference(ids)
        self.parts.remove(gone)
        self._files[file_id] = pack_ids(ids)
        if not ids:
            del self._files[file_id]
        if places or gone:
            self._changes += len(places) + len(gone)
            self.changed_at = time.monotonic()

    def _all_ids(self) -> list[int]:
        return sorted(self.parts.ids)

    def _alive(self) -> set[int]:
        return set(unpack_ids(b"".join(self._files.values())))

    # Maintenance

    def _due(self) -> Callable[[], Awaitable[None]] | None:
        flat, graph, rules = self.parts.flat, self.parts.graph, self._rules
        if graph is None:
            return self._build if len(flat) >= rules.threshold else None
        if len(flat) + len(graph) < rules.threshold // 2:
            return self._flatten
        if graph.waste > rules.waste or (len(flat) >= rules.tail and graph.free < len(flat)):
            return self._build
        if len(flat) >= rules.tail:
            return self._absorb
        if self._changes >= rules.changes:
            return self.save
        return self._check_recall if self._is_recall_unknown(graph) else None

    def _is_recall_unknown(self, graph: HnswIndex) -> bool:
        checked, size, at = self._checked
        has_grown = len(graph) > (1 + self._rules.growth) * size
        return checked is not graph or has_grown or time.monotonic() - at >= self._rules.check

    async def _check_recall(self) -> None:
        """Measure the recall of the graph, and raise its ef_search if it is too low."""
        graph = self.parts.graph
        if graph is not None:
            self._checked = graph, len(graph), time.monotonic()
            check = RecallCheck(graph, self._threads, self.key.scope.id)
            self.recall = await check.run(lambda: self.is_wanted)

    async def _build(self) -> None:
        """Build a new graph of all vectors; it replaces the present one."""
        async with self._lock:
            waiting = await self._threads.work(self._all_ids)
        graph = HnswIndex(self.key.space.dimension, graph_capacity(len(waiting)))
        await self._fill(graph, waiting)
        self._changes = max(self._changes, self._rules.changes)

    async def _absorb(self) -> None:
        """Move the vectors of the flat index to the graph."""
        graph = self.parts.graph
        if graph is not None:
            await self._fill(graph, sorted(self.parts.flat.ids[: graph.free]))

    async def _fill(self, graph: HnswIndex, waiting: Sequence[int]) -> None:
        for start in range(0, len(waiting), COPY_BATCH_SIZE):
            async with self._lock:
                await self._threads.work(self.parts.copy, waiting[start : start + COPY_BATCH_SIZE], graph)
        async with self._lock:
            await self._threads.work(self._settle, graph)

    def _settle(self, graph: HnswIndex) -> None:
        """Use a graph for searches, with a flat index for the vectors that it lacks."""
        alive = self._alive()
        graph.remove(set(graph.ids) - alive)
        rest = sorted(one for one in alive if one not in graph)
        flat = FlatIndex(self.key.space.dimension, len(rest))
        self.parts.copy(rest, flat)
        # A new object: a search that still reads the former one misses nothing.
        self.parts = FlatAndHnsw(flat, graph)

    async def _flatten(self) -> None:
        """Move all vectors to the flat index, and drop the graph and its checkpoints."""
        async with self._lock:
            ids = await self._threads.work(self._all_ids)
            flat = FlatIndex(self.key.space.dimension, len(ids))
            await self._threads.work(self.parts.copy, ids, flat)
            self.parts = FlatAndHnsw(flat)
            self.recall = None
            await self._threads.work(self._tools.checkpoints.remove, self.key.stem)

    # Comparing

    async def _suspects(self) -> Sequence[str]:
        wrong: set[str] = set()
        seen: dict[str, list[int]] = {}
        async with self._lock:
            async for batches in self._batches():
                wrong |= await self._threads.work(self._differing, batches, seen)
            wrong |= await self._threads.work(miscounted_files, self._files, seen)
        return sorted(wrong)

    def _differing(self, batches: Sequence[VectorBatch], seen: dict[str, list[int]]) -> set[str]:
        wrong = set()
        for batch in batches:
            ids, rows = unpack_batches([batch], self.key.space.dimension)
            seen.setdefault(batch.file_id, []).extend(ids)
            if any(one not in self.parts for one in ids) or self.parts.differing(ids, rows):
                wrong.add(batch.file_id)
        return wrong

    def _correct(self, file_id: str, batches: Sequence[VectorBatch]) -> Sequence[str]:
        ids, rows = unpack_batches(batches, self.key.space.dimension)
        missing = sum(one not in self.parts for one in ids)
        gone = len(set(unpack_ids(self._files.get(file_id, b""))).difference(ids))
        differing = self.parts.differing(ids, rows)
        # Passages with another vector are removed first.
        self.parts.remove(ids)
        self._replace(file_id, batches)
        counts = {"were missing": missing, "were gone from the file": gone, "had other vectors": differing}
        return [f"{count} passages of file {file_id!r} {what}" for what, count in counts.items() if count]


def _add_batches(flat: FlatIndex, held: dict[str, list[int]], batches: Sequence[VectorBatch]) -> None:
    for batch in batches:
        ids, rows = unpack_batches([batch], flat.dimension)
        places = [place for place, one in enumerate(ids) if one not in flat]
        flat.add([ids[place] for place in places], rows[places])
        held.setdefault(batch.file_id, []).extend(ids)


def _differing(parts: FlatAndHnsw, batches: Sequence[VectorBatch]) -> int:
    return parts.differing(*unpack_batches(batches, parts.flat.dimension))
