"""Recall check of an HNSW index against exact search; it raises ef_search if the recall is too low."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from gatewayd.vectors.index.flat_index import cosines
from gatewayd.vectors.index.hnsw_index import MAX_EF_SEARCH, HnswIndex
from gatewayd.vectors.index.threads import IndexThreads

log = logging.getLogger(__name__)

MIN_RECALL: Final = 0.95
NEAREST_COUNT: Final = 10
"""Number of nearest neighbours that a search has to find (the k of recall@k)."""
SAMPLE_SIZE: Final = 50
"""Number of vectors that serve as queries."""
SLICE_SIZE: Final = 512
"""Vectors that are compared with the sample at a time: some milliseconds."""
QUERIES_PER_STEP: Final = 5
"""Searches per step."""
PAUSE_SECONDS: Final = 0.05
"""Pause between two slices, for other work. A thread of lower priority would not help: it waits for a core
while it holds the interpreter lock, and the event loop waits with it.
"""
TOLERANCE: Final = 1e-5
"""Maximum difference of scores that count as equal: exact and HNSW search round differently."""


@dataclass(frozen=True, slots=True)
class GraphRecall:
    """Recall@10 (0 to 1) of searches with `ef_search` candidates."""

    recall: float
    ef_search: int


class NeighbourSample:
    """A sample of vectors as queries, with their exact neighbours, which are found slice by slice."""

    def __init__(self, graph: HnswIndex) -> None:
        self._graph = graph
        live = graph.labels(0, graph.count)
        chosen = np.random.default_rng().choice(live, min(SAMPLE_SIZE, len(live)), replace=False)
        self._sample, self._rows = graph.fetch(sorted(chosen.tolist()))
        self._best = np.full((len(self._sample), NEAREST_COUNT), -np.inf, np.float32)

    def __len__(self) -> int:
        return len(self._sample)

    def compare(self, start: int) -> None:
        """Compare the sample with the vectors of the slice at `start`."""
        labels, rows = self._graph.fetch(self._graph.labels(start, start + SLICE_SIZE))
        scores = cosines(rows, self._rows[:, np.newaxis])
        # The query itself does not count as its neighbour.
        scores[np.array(labels) == np.array(self._sample)[:, np.newaxis]] = -np.inf
        known = np.concatenate((self._best, scores), axis=1)
        self._best = np.partition(known, -NEAREST_COUNT, axis=1)[:, -NEAREST_COUNT:]

    def found(self, start: int, end: int) -> tuple[int, int]:
        """Return, for the queries in [start, end), how many neighbours a search finds, and of how many."""
        hits = wanted = 0
        for own, query, best in list(zip(self._sample, self._rows, self._best, strict=True))[start:end]:
            exact = best[np.isfinite(best)]
            wanted += len(exact)
            if len(exact):
                scores = [
                    score for label, score in self._graph.nearest(query, NEAREST_COUNT + 1) if label != own
                ]
                hits += sum(bool(score >= exact.min() - TOLERANCE) for score in scores[: len(exact)])
        return hits, wanted


class RecallCheck:
    """Measures and corrects the recall of the graph of a scope, in slices with pauses between them."""

    def __init__(self, graph: HnswIndex, threads: IndexThreads, scope_id: str) -> None:
        self._graph = graph
        self._threads = threads
        self._scope_id = scope_id

    async def run(self, is_wanted: Callable[[], bool]) -> GraphRecall | None:
        """Return the recall, after raising ef_search if it was too low; None if `is_wanted` turns false."""
        sample = await self._threads.work(NeighbourSample, self._graph)
        for start in range(0, self._graph.count, SLICE_SIZE):
            if not is_wanted():
                return None
            await self._threads.work(sample.compare, start)
            await asyncio.sleep(PAUSE_SECONDS)
        first = found = await self._measure(sample)
        while found.recall < MIN_RECALL and found.ef_search < min(MAX_EF_SEARCH, self._graph.count):
            if not is_wanted():
                return None
            self._graph.widen(2 * found.ef_search)
            found = await self._measure(sample)
        self._log(first, found)
        return found

    def _log(self, first: GraphRecall, found: GraphRecall) -> None:
        if first.recall < MIN_RECALL:
            before = {"recall_before": first.recall, "ef_search_before": first.ef_search}
            log.log(
                logging.INFO if found.recall >= MIN_RECALL else logging.WARNING,
                "recall@%d of a graph was too low: it is %.3f with ef_search %d",
                NEAREST_COUNT,
                found.recall,
                found.ef_search,
                extra={"scope": self._scope_id, "vectors": self._graph.count, **before},
            )

    async def _measure(self, sample: NeighbourSample) -> GraphRecall:
        hits = wanted = 0
        for start in range(0, len(sample), QUERIES_PER_STEP):
            more = await self._threads.work(sample.found, start, start + QUERIES_PER_STEP)
            hits, wanted = hits + more[0], wanted + more[1]
            await asyncio.sleep(PAUSE_SECONDS)
        return GraphRecall(hits / wanted if wanted else 1.0, self._graph.ef_search)
