"""HNSW index: approximate search in a navigable small-world graph, over hnswlib.

hnswlib stores the vectors too. This module works around its limits: an index is never resized (a larger one
replaces a full one), equal vectors share one label (more than a few dozen equal vectors form an island that a
search does not leave), and a query never asks for more results than the index holds.
"""

import contextlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Self

import numpy as np

from gatewayd.extras import PackageExtra, find_library
from gatewayd.vectors.index.flat_index import (
    BYTES_PER_ENTRY,
    NO_OWNER,
    Ids,
    Rows,
    Scored,
    cosines,
    sort_by_score,
)
from gatewayd.vectors.index.hnsw_file import GraphSnapshot, StoredVectors, vector_digest

log = logging.getLogger(__name__)
hnswlib = find_library(PackageExtra.GRAPH)
"""The module hnswlib, None without the extra `graph`; then no HNSW index is made."""

HNSW_M: Final = 16
"""Number of links of a vector on each level above 0 (m); twice as many on level 0."""
EF_CONSTRUCTION: Final = 100
"""Number of candidates from which the neighbours of a new vector are chosen (ef_construction)."""
MIN_EF_SEARCH: Final = 512
"""Minimum number of candidates of a search (ef_search): about 1 ms, with few misses among 40,000 vectors."""
MAX_EF_SEARCH: Final = 16_384
VECTORS_PER_CANDIDATE: Final = 90
"""Vectors per candidate of a search: this ratio keeps the recall of large graphs that of small ones."""
BATCH_SIZE: Final = 128
"""Vectors that are read at a time: reading holds the interpreter lock."""
MIN_CAPACITY: Final = 64
BYTES_PER_LINK_LIST: Final = 2 * HNSW_M * 4 + 64


class HnswIndex:
    """HNSW index of passages. One thread may write while others search.

    A label stands for one vector and for all passages with that vector. A label is never reused.
    """

    def __init__(self, dimension: int, capacity: int) -> None:
        self.dimension = dimension
        self.capacity = capacity
        self._index = hnswlib.Index("ip", dimension)
        self._index.init_index(capacity, M=HNSW_M, ef_construction=EF_CONSTRUCTION)
        self._label_of: dict[int, int] = {}
        self._label_by_digest: dict[bytes, int] = {}
        # The passages of each label: the first one in an array, further ones in a dictionary.
        self._first: Ids = np.full(capacity, NO_OWNER, np.int64)
        self._others: dict[int, tuple[int, ...]] = {}
        self._next = 0
        self._live = 0
        self._min_ef_search = MIN_EF_SEARCH
        self.ef_search = 0
        self._update_ef_search()

    def __len__(self) -> int:
        return len(self._label_of)

    def __contains__(self, passage_id: int) -> bool:
        return passage_id in self._label_of

    @property
    def ids(self) -> list[int]:
        """The ids of all passages."""
        return list(self._label_of)

    @property
    def free(self) -> int:
        """Number of vectors that can still be added."""
        return self.capacity - self._next

    @property
    def count(self) -> int:
        """Number of vectors, with the removed ones."""
        return self._next

    @property
    def waste(self) -> float:
        """Fraction of removed vectors, 0 to 1."""
        return 1 - self._live / self._next if self._next else 0.0

    @property
    def size(self) -> int:
        """Approximate bytes of memory."""
        vectors = self._next * (4 * self.dimension + BYTES_PER_LINK_LIST)
        return vectors + self.capacity * 70 + 3 * len(self) * BYTES_PER_ENTRY

    def add(self, ids: Sequence[int], rows: Rows) -> None:
        """Insert at most `free` passages. The index must not hold their ids yet."""
        labels: list[int] = []
        chosen: list[int] = []
        for number, passage_id in enumerate(ids):
            digest = vector_digest(rows[number].tobytes())
            label = self._label_by_digest.get(digest, NO_OWNER)
            if label == NO_OWNER or self._first[label] == NO_OWNER:
                label = self._next
                # A search reads these fields in the opposite order.
                self._live += 1
                self._next += 1
                self._first[label] = passage_id
                self._label_by_digest[digest] = label
                labels.append(label)
                chosen.append(number)
            else:
                self._others[label] = (*self._others.get(label, ()), passage_id)
            self._label_of[passage_id] = label
        if labels:
            self._index.add_items(rows[chosen], np.array(labels), num_threads=1)
            self._update_ef_search()

    def remove(self, ids: Iterable[int]) -> None:
        """Remove passages; unknown ids are ignored. No later search finds them."""
        for passage_id in ids:
            label = self._label_of.pop(passage_id, None)
            if label is None:
                continue
            left = tuple(other for other in self._passages_of(label) if other != passage_id)
            if left:
                self._first[label] = left[0]
                self._others[label] = left[1:]
                continue
            self._others.pop(label, None)
            self._first[label] = NO_OWNER
            self._index.mark_deleted(label)
            self._live -= 1

    def rows(self, ids: Sequence[int]) -> Rows:
        """Return the vectors of ids. The index must hold all of them; the caller holds the write lock."""
        _, rows = self.fetch([self._label_of[passage_id] for passage_id in ids])
        return rows

    def search(self, query: Rows, limit: int) -> Scored:
        """Return about the `limit` passages most similar to a vector of length 1."""
        found: Scored = []
        for label, score in self.nearest(query, limit):
            found += ((passage_id, score) for passage_id in self._passages_of(label))
            if len(found) >= limit:
                break
        return sort_by_score(found[:limit])

    def similarities(self, query: Rows, ids: Iterable[int]) -> Scored:
        """Return the cosines of the ids that the index holds, in any order."""
        label_of = {one: label for one in ids if (label := self._label_of.get(one)) is not None}
        labels, rows = self.fetch(list(label_of.values()))
        scores = dict(zip(labels, cosines(rows, query).tolist(), strict=True))
        return [(one, scores[label]) for one, label in label_of.items() if label in scores]

    def widen(self, ef_search: int) -> None:
        """Raise the minimum ef_search of later searches; at most MAX_EF_SEARCH."""
        self._min_ef_search = min(ef_search, MAX_EF_SEARCH)
        self._update_ef_search()

    def labels(self, start: int, end: int) -> list[int]:
        """Return the labels in [start, end) that stand for passages."""
        found: list[int] = (
            np.flatnonzero(self._first[start : min(end, self._next)] != NO_OWNER) + start
        ).tolist()
        return found

    def snapshot(self) -> GraphSnapshot:
        """Return a copy of the whole index for a file. The caller holds the write lock."""
        ids = np.fromiter(self._label_of.keys(), np.int64, len(self))
        labels = np.fromiter(self._label_of.values(), np.int64, len(self))
        return GraphSnapshot(self._index.__getstate__()[0], ids, labels)

    @classmethod
    def restored(cls, path: Path, dimension: int, passages: tuple[Ids, Ids]) -> Self:
        """Return the index of a file; `passages` are the ids and labels of its snapshot.

        Raises ValueError or RuntimeError if the passages do not match the file.
        """
        stored = StoredVectors(path, dimension)
        graph = cls(dimension, 0)
        graph.capacity = graph_capacity(stored.count)
        graph._index = hnswlib.Index("ip", dimension)
        graph._index.load_index(str(path), graph.capacity)
        graph._first = np.full(graph.capacity, NO_OWNER, np.int64)
        graph._next = stored.count
        graph._restore_labels(*passages, stored)
        graph.ef_search = 0
        graph._update_ef_search()
        return graph

    def _restore_labels(self, ids: Ids, labels: Ids, stored: StoredVectors) -> None:
        used, where = np.unique(labels, return_index=True)
        if not np.array_equal(used, stored.live):
            raise ValueError("the passages of the header do not match the labels of the HNSW file")
        self._first[used] = ids[where]
        self._live = len(used)
        self._label_of = dict(zip(ids.tolist(), labels.tolist(), strict=True))
        self._label_by_digest = stored.digests(used.tolist())
        for row in np.setdiff1d(np.arange(len(ids)), where).tolist():
            label = int(labels[row])
            self._others[label] = (*self._others.get(label, ()), int(ids[row]))

    def nearest(self, query: Rows, limit: int) -> list[tuple[int, float]]:
        """Return about the `limit` labels whose vectors are most similar to a vector of length 1."""
        # A query raises RuntimeError if it meets a vector that is being added, or if it finds fewer results
        # than it asks for. A query for all vectors misses some if others are added meanwhile.
        for _ in range(2):
            first_new = self._next
            count = min(limit, self._live)
            if count <= 0:
                return []
            with contextlib.suppress(RuntimeError):
                labels, distances = self._index.knn_query(query, count, num_threads=1)
                if count == limit or first_new == self._next:
                    return list(zip(labels[0].tolist(), (1 - distances[0]).tolist(), strict=True))
        log.warning("an HNSW query failed, comparing all vectors", extra={"limit": limit, "live": self._live})
        labels, rows = self.fetch(self.labels(0, self._next))
        return sort_by_score(zip(labels, cosines(rows, query).tolist(), strict=True))[:limit]

    def fetch(self, labels: list[int]) -> tuple[list[int], Rows]:
        """Return the labels that the index holds, with their vectors; other labels are left out."""
        held: list[int] = []
        rows = [np.empty((0, self.dimension), np.float32)]
        pieces = [labels[at : at + BATCH_SIZE] for at in range(0, len(labels), BATCH_SIZE)]
        while pieces:
            piece = pieces.pop(0)
            try:
                rows.append(self._index.get_items(piece))
            except RuntimeError:
                if len(piece) > 1:
                    pieces[:0] = [[label] for label in piece]
            else:
                held += piece
        return held, np.concatenate(rows)

    def _update_ef_search(self) -> None:
        ef_search = max(self._min_ef_search, min(self._next // VECTORS_PER_CANDIDATE, MAX_EF_SEARCH))
        if ef_search != self.ef_search:
            self._index.set_ef(ef_search)
            self.ef_search = ef_search

    def _passages_of(self, label: int) -> tuple[int, ...]:
        first = int(self._first[label])
        return () if first == NO_OWNER else (first, *self._others.get(label, ()))


def graph_capacity(count: int) -> int:
    """Return the capacity of a new index for `count` vectors; it grows by a rebuild only."""
    return max(2 * count, MIN_CAPACITY)
