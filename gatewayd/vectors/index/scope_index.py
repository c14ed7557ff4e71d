"""The vectors of one scope in memory: a matrix, and beside it a graph where there are many.

What is new enters the matrix and is found at once; from there the graph takes it over in the background. The
lock is held by whoever changes anything; searches take none.
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
"""Vectors that are compared so fast that a thread is not worth its while."""
COPY_BATCH_SIZE: Final = 128
"""Vectors that enter a graph under one hold of the lock: some tens of milliseconds."""
BATCH_BYTES: Final = 4 << 20
"""Vectors that are put into the matrix at once while reading."""
PROBED_FILES: Final = 8
"""Files whose vectors are compared with those of a checkpoint."""
MAX_RELOADED_FILES: Final = 200
"""Files that are read one by one rather than with all others."""
FIXED_BYTES: Final = 4_096
BYTES_PER_FILE: Final = 250


@dataclass(frozen=True, slots=True)
class IndexRules:
    """When what is done.

    From `threshold` vectors on there is a graph, below half of it no more. `tail` of them wait in the matrix
    before the graph takes them over. A graph is built anew when a part of it over `waste` was removed. A
    checkpoint is written after `changes`, and when there was none for `idle` seconds. What a graph finds is
    compared with what there is when it is new, when it has grown by `growth`, and every `check` seconds.
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
    """What every loaded scope works with."""

    reader: VectorReader
    checkpoints: GraphCheckpoints
    threads: IndexThreads
    rules: IndexRules


class ScopeIndex:
    """One scope in one space."""

    def __init__(self, key: CheckpointKey, tools: IndexServices) -> None:
        self.key = key
        self.is_ready = False
        self.is_wanted = True
        self.changed_at = time.monotonic()
        self.parts = FlatAndHnsw(FlatIndex(key.space.dimension))
        self.recall: GraphRecall | None = None
        # The graph whose recall was measured last, its size then, and when that was.
        self._checked: tuple[HnswIndex | None, int, float] = (None, 0, 0.0)
        self._tools = tools
        self._threads = tools.threads
        self._rules = tools.rules
        # The passages of each file, packed: what is alive.
        self._files: dict[str, bytes] = {}
        self._changes = 0
        self._lock = asyncio.Lock()

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return FIXED_BYTES + self.parts.size + len(self._files) * BYTES_PER_FILE

    @property
    def has_graph(self) -> bool:
        """Whether a graph answers."""
        return self.parts.graph is not None

    @property
    def is_due(self) -> bool:
        """Whether `tend` has something to do."""
        return self.is_ready and self._due() is not None

    @property
    def is_unsaved(self) -> bool:
        """Whether there is a graph that is newer than its checkpoints."""
        return self.has_graph and self._changes > 0

    async def open(self) -> None:
        """Read everything, unless that is done."""
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
        if parts.graph is None and len(parts.matrix) <= MAX_INLINE_VECTORS:
            return parts.search(query, limit)
        return await self._threads.search(parts.search, query, limit)

    async def similarities(self, query: Rows, ids: Sequence[int]) -> Scored:
        """Return the cosines of those of the passages that are in."""
        parts = self.parts
        if parts.graph is None and len(ids) <= MAX_INLINE_VECTORS:
            return parts.similarities(query, ids)
        return await self._threads.search(parts.similarities, query, ids)

    async def refresh(self, file_id: str) -> None:
        """Read the vectors of one file again; nothing when nothing was read yet."""
        async with self._lock:
            if self.is_ready:
                batches = await self._read_file(file_id)
                await self._threads.work(self._replace, file_id, batches)

    async def tend(self) -> None:
        """Do what is due, one after the other."""
        while self.is_wanted and (work := self._due()) is not None:
            await work()

    async def save(self) -> None:
        """Write a checkpoint of the graph, unless the newest one is as new."""
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
            # The database has everything: the next start takes longer, that is all.
            log.warning("a checkpoint was not written: %s", error, extra={"scope": self.key.scope.id})

    async def compare(self) -> Sequence[str]:
        """Compare with the database, read again what differs, and return a sentence for each difference."""
        sentences: list[str] = []
        for file_id in await self._suspects():
            # Whoever waited to refresh it has done so by now: what still differs is no change under way.
            async with self._lock:
                batches = await self._read_file(file_id)
                sentences += await self._threads.work(self._mend, file_id, batches)
        async with self._lock:
            strays = await self._threads.work(self._remove_strays)
        return [*sentences, f"the index held {strays} passages of no file"] if strays else sentences

    # Reading

    async def _read_all(self, count: int) -> None:
        matrix = FlatIndex(self.key.space.dimension, count)
        held: dict[str, list[int]] = {}
        async for batches in self._batches():
            await self._threads.work(_take, matrix, held, batches)
        self._files = await self._threads.work(pack_by_file, held)
        self.parts = FlatAndHnsw(matrix)

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
        """Take over a checkpoint, and what came and went since; False when there is none to be trusted."""
        graph = await self._threads.work(self._tools.checkpoints.read, self.key)
        if graph is None:
            return False
        packed: dict[str, bytes] = {}
        async for file_id, ids in self._tools.reader.load_ids(self.key.space.name, self.key.scope):
            packed[file_id] = packed.get(file_id, b"") + ids
        late = await self._threads.work(files_behind, graph, packed)
        parts = FlatAndHnsw(FlatIndex(self.key.space.dimension), graph)
        if not await self._is_genuine(parts, {one: packed[one] for one in packed.keys() - late}):
            log.warning("a checkpoint is not of this database", extra={"scope": self.key.scope.id})
            await self._threads.work(self._tools.checkpoints.remove, self.key.stem)
            return False
        self.parts = parts
        self._files = await self._threads.work(sort_packed, packed)
        await self._threads.work(self._forget_others, late)
        await self._catch_up(late)
        return True

    async def _is_genuine(self, parts: FlatAndHnsw, packed: Mapping[str, bytes]) -> bool:
        """Compare the newest vectors: a database that was restored gives the same ids once more."""
        for file_id in await self._threads.work(newest_files, packed, PROBED_FILES):
            batches = await self._read_file(file_id)
            if await self._threads.work(_differing, parts, batches):
                return False
        return True

    async def _catch_up(self, late: set[str]) -> None:
        if len(late) <= MAX_RELOADED_FILES:
            for file_id in late:
                await self._threads.work(self._replace, file_id, await self._read_file(file_id))
            return
        wanted: dict[str, list[VectorBatch]] = {}
        async for batches in self._batches():
            for batch in batches:
                if batch.file_id in late:
                    wanted.setdefault(batch.file_id, []).append(batch)
        for file_id in late:
            await self._threads.work(self._replace, file_id, wanted.get(file_id, []))

    # Writing: in a thread, with the lock

    def _forget_others(self, late: set[str]) -> None:
        for file_id in late:
            # A graph may have taken over a file in part.
            self._files[file_id] = b""
        self._changes += self._remove_strays()

    def _remove_strays(self) -> int:
        """Take out what is of no file; return how many passages."""
        strays = self.parts.ids - self._alive()
        self.parts.remove(strays)
        return len(strays)

    def _replace(self, file_id: str, batches: Sequence[VectorBatch]) -> None:
        """Make these the vectors of a file. They never change for one id."""
        ids, rows = unpack_batches(batches, self.key.space.dimension)
        old = set(unpack_ids(self._files.get(file_id, b"")))
        places = [place for place, one in enumerate(ids) if one not in self.parts]
        if places:
            self.parts.matrix.add([ids[place] for place in places], rows[places])
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

    # What is due

    def _due(self) -> Callable[[], Awaitable[None]] | None:
        matrix, graph, rules = self.parts.matrix, self.parts.graph, self._rules
        if graph is None:
            return self._build if len(matrix) >= rules.threshold else None
        if len(matrix) + len(graph) < rules.threshold // 2:
            return self._flatten
        if graph.waste > rules.waste or (len(matrix) >= rules.tail and graph.free < len(matrix)):
            return self._build
        if len(matrix) >= rules.tail:
            return self._absorb
        if self._changes >= rules.changes:
            return self.save
        return self._check_recall if self._is_recall_unknown(graph) else None

    def _is_recall_unknown(self, graph: HnswIndex) -> bool:
        checked, size, at = self._checked
        has_grown = len(graph) > (1 + self._rules.growth) * size
        return checked is not graph or has_grown or time.monotonic() - at >= self._rules.check

    async def _check_recall(self) -> None:
        """Compare what the graph finds with what there is."""
        graph = self.parts.graph
        if graph is not None:
            self._checked = graph, len(graph), time.monotonic()
            check = RecallCheck(graph, self._threads, self.key.scope.id)
            self.recall = await check.run(lambda: self.is_wanted)

    async def _build(self) -> None:
        """Make a graph of everything, in the place of the one there may be."""
        async with self._lock:
            waiting = await self._threads.work(self._all_ids)
        graph = HnswIndex(self.key.space.dimension, graph_capacity(len(waiting)))
        await self._fill(graph, waiting)
        self._changes = max(self._changes, self._rules.changes)

    async def _absorb(self) -> None:
        """Let the graph take over what is in the matrix."""
        graph = self.parts.graph
        if graph is not None:
            await self._fill(graph, sorted(self.parts.matrix.ids[: graph.free]))

    async def _fill(self, graph: HnswIndex, waiting: Sequence[int]) -> None:
        for start in range(0, len(waiting), COPY_BATCH_SIZE):
            async with self._lock:
                await self._threads.work(self.parts.copy, waiting[start : start + COPY_BATCH_SIZE], graph)
        async with self._lock:
            await self._threads.work(self._settle, graph)

    def _settle(self, graph: HnswIndex) -> None:
        """Let a graph answer, and the matrix hold the rest only."""
        alive = self._alive()
        graph.remove(set(graph.ids) - alive)
        rest = sorted(one for one in alive if one not in graph)
        matrix = FlatIndex(self.key.space.dimension, len(rest))
        self.parts.copy(rest, matrix)
        # A new object: whoever searches the former one misses nothing.
        self.parts = FlatAndHnsw(matrix, graph)

    async def _flatten(self) -> None:
        """Do without a graph."""
        async with self._lock:
            ids = await self._threads.work(self._all_ids)
            matrix = FlatIndex(self.key.space.dimension, len(ids))
            await self._threads.work(self.parts.copy, ids, matrix)
            self.parts = FlatAndHnsw(matrix)
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

    def _mend(self, file_id: str, batches: Sequence[VectorBatch]) -> Sequence[str]:
        ids, rows = unpack_batches(batches, self.key.space.dimension)
        missing = sum(one not in self.parts for one in ids)
        gone = len(set(unpack_ids(self._files.get(file_id, b""))).difference(ids))
        differing = self.parts.differing(ids, rows)
        # What has another vector is taken out first.
        self.parts.remove(ids)
        self._replace(file_id, batches)
        counts = {"were missing": missing, "were gone from the file": gone, "had other vectors": differing}
        return [f"{count} passages of file {file_id!r} {what}" for what, count in counts.items() if count]


def _take(matrix: FlatIndex, held: dict[str, list[int]], batches: Sequence[VectorBatch]) -> None:
    for batch in batches:
        ids, rows = unpack_batches([batch], matrix.dimension)
        places = [place for place, one in enumerate(ids) if one not in matrix]
        matrix.add([ids[place] for place in places], rows[places])
        held.setdefault(batch.file_id, []).extend(ids)


def _differing(parts: FlatAndHnsw, batches: Sequence[VectorBatch]) -> int:
    return parts.differing(*unpack_batches(batches, parts.matrix.dimension))
