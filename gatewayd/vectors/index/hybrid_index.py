"""Flat index with an optional HNSW index beside it, searched as one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gatewayd.vectors.index.flat_index import FlatIndex, Rows, Scored, sort_by_score
from gatewayd.vectors.index.hnsw_index import HnswIndex


@dataclass(frozen=True, slots=True)
class FlatAndHnsw:
    """The indexes that one search reads. Both may hold a passage while it moves to the HNSW index."""

    flat: FlatIndex
    graph: HnswIndex | None = None

    def __contains__(self, passage_id: int) -> bool:
        return passage_id in self.flat or (self.graph is not None and passage_id in self.graph)

    @property
    def ids(self) -> set[int]:
        """The ids of all passages."""
        return {*self.flat.ids, *(self.graph.ids if self.graph else ())}

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return self.flat.size + (self.graph.size if self.graph else 0)

    def remove(self, ids: Iterable[int]) -> None:
        """Remove passages; no later search finds them."""
        gone = list(ids)
        self.flat.remove(gone)
        if self.graph is not None:
            self.graph.remove(gone)

    def search(self, query: Rows, limit: int) -> Scored:
        """Return the passages most similar to a vector of length 1, best first."""
        found = dict(self.flat.search(query, limit))
        if self.graph is not None:
            found.update(self.graph.search(query, limit))
        return sort_by_score(found.items())[: max(limit, 0)]

    def similarities(self, query: Rows, ids: Sequence[int]) -> Scored:
        """Return the cosines of the passages that the indexes hold, in any order."""
        found = dict(self.flat.similarities(query, ids))
        if self.graph is not None:
            found.update(self.graph.similarities(query, [one for one in ids if one not in found]))
        return list(found.items())

    def copy(self, ids: Sequence[int], target: HnswIndex | FlatIndex) -> None:
        """Copy the passages that `target` lacks. The caller holds the write lock."""
        for part in (self.flat, self.graph):
            if part is not None and part is not target:
                chosen = [one for one in ids if one in part and one not in target]
                if chosen:
                    target.add(chosen, part.rows(chosen))

    def differing(self, ids: Sequence[int], rows: Rows) -> int:
        """Return how many of the held passages have another vector. The caller holds the write lock."""
        count = 0
        for part in (self.flat, self.graph):
            if part is not None:
                places = [place for place, one in enumerate(ids) if one in part]
                mine = part.rows([ids[place] for place in places])
                count += int(np.any(mine != rows[places], axis=1).sum())
        return count
