"""Vectors in a navigable graph: a search visits some hundred of them, whatever their number.

hnswlib keeps the vectors, too. What it cannot bear is kept from it here: resizing (a full graph is replaced
by a larger one), equal vectors (more than a few dozen of them make an island that a search does not leave),
and more answers asked for than there are.
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
"""None without the extra: then nothing here is called."""

HNSW_M: Final = 16
EF_CONSTRUCTION: Final = 100
"""How many candidates a new vector's neighbours are chosen from (ef_construction)."""
MIN_EF_SEARCH: Final = 512
"""How many candidates a search follows at least: a millisecond, and few are missed in a graph of 40,000."""
MAX_EF_SEARCH: Final = 16_384
VECTORS_PER_CANDIDATE: Final = 90
"""With one candidate for so many vectors a search finds as much in a large graph as in a small one."""
BATCH_SIZE: Final = 128
"""Rows that are read at once: reading holds the interpreter's lock."""
MIN_CAPACITY: Final = 64
BYTES_PER_LINK_LIST: Final = 2 * HNSW_M * 4 + 64


class HnswIndex:
    """Passages by their vectors. One thread may write while others search.

    A label stands for one vector and for all passages that have it; labels are never used again.
    """

    def __init__(self, dimension: int, room: int) -> None:
        self.dimension = dimension
        self.room = room
        self._index = hnswlib.Index("ip", dimension)
        self._index.init_index(room, M=HNSW_M, ef_construction=EF_CONSTRUCTION)
        self._label_of: dict[int, int] = {}
        self._label_by_digest: dict[bytes, int] = {}
        self._first: Ids = np.full(room, NO_OWNER, np.int64)
        self._others: dict[int, tuple[int, ...]] = {}
        self._next = 0
        self._live = 0
        self._min_ef_search = MIN_EF_SEARCH
        self.ef_search = 0
        self._follow_size()

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
        """How many more vectors it can take."""
        return self.room - self._next

    @property
    def count(self) -> int:
        """How many vectors it has, with those that were removed."""
        return self._next

    @property
    def waste(self) -> float:
        """Which part of its vectors was removed, 0 to 1."""
        return 1 - self._live / self._next if self._next else 0.0

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        vectors = self._next * (4 * self.dimension + BYTES_PER_LINK_LIST)
        return vectors + self.room * 70 + 3 * len(self) * BYTES_PER_ENTRY

    def add(self, ids: Sequence[int], rows: Rows) -> None:
        """Insert passages that are not in; at most `free` of them."""
        labels: list[int] = []
        chosen: list[int] = []
        for number, passage_id in enumerate(ids):
            digest = vector_digest(rows[number].tobytes())
            label = self._label_by_digest.get(digest, NO_OWNER)
            if label == NO_OWNER or self._first[label] == NO_OWNER:
                label = self._next
                # In this order: a search reads them the other way round.
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
            self._follow_size()

    def remove(self, ids: Iterable[int]) -> None:
        """Take passages out; ids that are not in are fine. No later search finds them."""
        for passage_id in ids:
            label = self._label_of.pop(passage_id, None)
            if label is None:
                continue
            left = tuple(other for other in self._standing(label) if other != passage_id)
            if left:
                self._first[label] = left[0]
                self._others[label] = left[1:]
                continue
            self._others.pop(label, None)
            self._first[label] = NO_OWNER
            self._index.mark_deleted(label)
            self._live -= 1

    def rows(self, ids: Sequence[int]) -> Rows:
        """Return the vectors of ids that are all in; only while nobody writes."""
        _, rows = self.fetch([self._label_of[passage_id] for passage_id in ids])
        return rows

    def search(self, query: Rows, limit: int) -> Scored:
        """Return about the `limit` passages most similar to a vector of length 1."""
        found: Scored = []
        for label, score in self.nearest(query, limit):
            found += ((passage_id, score) for passage_id in self._standing(label))
            if len(found) >= limit:
                break
        return sort_by_score(found[:limit])

    def similarities(self, query: Rows, ids: Iterable[int]) -> Scored:
        """Return the cosines of those of the ids that are in, in any order."""
        label_of = {one: label for one in ids if (label := self._label_of.get(one)) is not None}
        labels, rows = self.fetch(list(label_of.values()))
        scores = dict(zip(labels, cosines(rows, query).tolist(), strict=True))
        return [(one, scores[label]) for one, label in label_of.items() if label in scores]

    def widen(self, ef_search: int) -> None:
        """Have searches follow so many candidates, whatever the size; at most MAX_EF_SEARCH."""
        self._min_ef_search = min(ef_search, MAX_EF_SEARCH)
        self._follow_size()

    def labels(self, start: int, end: int) -> list[int]:
        """Return the labels from one number up to another that stand for passages."""
        found: list[int] = (
            np.flatnonzero(self._first[start : min(end, self._next)] != NO_OWNER) + start
        ).tolist()
        return found

    def snapshot(self) -> GraphSnapshot:
        """Return a copy of everything, to be written to a file; only while nobody writes."""
        ids = np.fromiter(self._label_of.keys(), np.int64, len(self))
        labels = np.fromiter(self._label_of.values(), np.int64, len(self))
        return GraphSnapshot(self._index.__getstate__()[0], ids, labels)

    @classmethod
    def restored(cls, path: Path, dimension: int, passages: tuple[Ids, Ids]) -> Self:
        """Return the graph of a file; `passages` are the ids and labels of its snapshot.

        Raises ValueError or RuntimeError when they do not fit each other.
        """
        stored = StoredVectors(path, dimension)
        graph = cls(dimension, 0)
        graph.room = graph_capacity(stored.count)
        graph._index = hnswlib.Index("ip", dimension)
        graph._index.load_index(str(path), graph.room)
        graph._first = np.full(graph.room, NO_OWNER, np.int64)
        graph._next = stored.count
        graph._place(*passages, stored)
        graph.ef_search = 0
        graph._follow_size()
        return graph

    def _place(self, ids: Ids, labels: Ids, stored: StoredVectors) -> None:
        used, where = np.unique(labels, return_index=True)
        if not np.array_equal(used, stored.live):
            raise ValueError("the passages of a graph are not those of its vectors")
        self._first[used] = ids[where]
        self._live = len(used)
        self._label_of = dict(zip(ids.tolist(), labels.tolist(), strict=True))
        self._label_by_digest = stored.digests(used.tolist())
        for row in np.setdiff1d(np.arange(len(ids)), where).tolist():
            label = int(labels[row])
            self._others[label] = (*self._others.get(label, ()), int(ids[row]))

    def nearest(self, query: Rows, limit: int) -> list[tuple[int, float]]:
        """Return about the `limit` labels whose vectors are most similar to a vector of length 1."""
        # A search fails when it meets a vector that is being added, or finds fewer than it was asked for. One
        # for all there are misses some when others come meanwhile.
        for _ in range(2):
            first_new = self._next
            count = min(limit, self._live)
            if count <= 0:
                return []
            with contextlib.suppress(RuntimeError):
                labels, distances = self._index.knn_query(query, count, num_threads=1)
                if count == limit or first_new == self._next:
                    return list(zip(labels[0].tolist(), (1 - distances[0]).tolist(), strict=True))
        log.warning(
            "a graph of vectors had to be searched in full", extra={"asked": limit, "live": self._live}
        )
        labels, rows = self.fetch(self.labels(0, self._next))
        return sort_by_score(zip(labels, cosines(rows, query).tolist(), strict=True))[:limit]

    def fetch(self, labels: list[int]) -> tuple[list[int], Rows]:
        """Return the vectors of labels, without those that are not there (any more, or yet)."""
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

    def _follow_size(self) -> None:
        ef_search = max(self._min_ef_search, min(self._next // VECTORS_PER_CANDIDATE, MAX_EF_SEARCH))
        if ef_search != self.ef_search:
            self._index.set_ef(ef_search)
            self.ef_search = ef_search

    def _standing(self, label: int) -> tuple[int, ...]:
        first = int(self._first[label])
        return () if first == NO_OWNER else (first, *self._others.get(label, ()))


def graph_capacity(count: int) -> int:
    """Return how large a graph of so many vectors is made: it grows by being built anew."""
    return max(2 * count, MIN_CAPACITY)
