"""Flat index: exact search that compares the query with every vector; fast up to tens of thousands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import VectorBatch

Ids = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]
Scored = list[tuple[int, float]]
"""Passage ids with cosines, best first."""

NO_OWNER = -1
"""The id of a removed row."""
BYTES_PER_ENTRY = 100
"""Approximate memory of one entry of a dictionary with integer keys."""
GROWTH_FACTOR = 1.5


@dataclass(slots=True)
class _State:
    """The data that one search reads. Rows from `count` on are unused; a row never moves."""

    rows: Rows
    owners: Ids
    row_of: dict[int, int]
    count: int = 0


class FlatIndex:
    """Vectors of one dimension, each with a passage id. One thread may write while others search."""

    def __init__(self, dimension: int, room: int = 0) -> None:
        self.dimension = dimension
        self._state = self._allocate(room)

    def __len__(self) -> int:
        return len(self._state.row_of)

    def __contains__(self, passage_id: int) -> bool:
        return passage_id in self._state.row_of

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return self._state.rows.nbytes + self._state.owners.nbytes + len(self) * BYTES_PER_ENTRY

    @property
    def ids(self) -> list[int]:
        """The ids of all rows, oldest first."""
        return list(self._state.row_of)

    def add(self, ids: Sequence[int], new: Rows) -> None:
        """Append vectors. The index must not hold their ids yet."""
        state = self._state
        if state.count + len(ids) > len(state.rows):
            state = self._reallocated(len(self) + len(ids))
        start, end = state.count, state.count + len(ids)
        state.rows[start:end] = new
        state.owners[start:end] = ids
        state.row_of.update(zip(ids, range(start, end), strict=True))
        state.count = end
        self._state = state

    def remove(self, ids: Iterable[int]) -> None:
        """Remove vectors; unknown ids are ignored. No later search finds them."""
        state = self._state
        for passage_id in ids:
            row = state.row_of.pop(passage_id, None)
            if row is not None:
                state.owners[row] = NO_OWNER
        if state.count > 2 * len(state.row_of):
            self._state = self._reallocated(len(state.row_of))

    def rows(self, ids: Sequence[int]) -> Rows:
        """Return the vectors of ids. The index must hold all of them."""
        state = self._state
        return state.rows[[state.row_of[passage_id] for passage_id in ids]]

    def search(self, query: Rows, limit: int) -> Scored:
        """Return the `limit` passages most similar to a vector of length 1."""
        state = self._state
        count = state.count
        if not count or limit <= 0:
            return []
        scores = cosines(state.rows[:count], query)
        scores[state.owners[:count] == NO_OWNER] = -np.inf
        best = np.argpartition(scores, -limit)[-limit:] if limit < count else np.arange(count)
        found = zip(state.owners[best].tolist(), scores[best].tolist(), strict=True)
        # A row may be removed after its score is computed.
        return sort_by_score((passage_id, score) for passage_id, score in found if passage_id != NO_OWNER)

    def similarities(self, query: Rows, ids: Iterable[int]) -> Scored:
        """Return the cosines of the ids that the index holds, in any order."""
        state = self._state
        held = [(one, row) for one in ids if (row := state.row_of.get(one)) is not None]
        scores = cosines(state.rows[[row for _, row in held]], query) if held else np.empty(0)
        return [(one, score) for (one, _), score in zip(held, scores.tolist(), strict=True)]

    def _reallocated(self, needed: int) -> _State:
        state = self._state
        bigger = self._allocate(int(needed * GROWTH_FACTOR))
        bigger.count = len(state.row_of)
        kept = list(state.row_of.values())
        bigger.rows[: bigger.count] = state.rows[kept]
        bigger.owners[: bigger.count] = state.owners[kept]
        bigger.row_of = {passage_id: row for row, passage_id in enumerate(state.row_of)}
        return bigger

    def _allocate(self, room: int) -> _State:
        rows = np.empty((room, self.dimension), np.float32)
        return _State(rows, np.full(room, NO_OWNER, np.int64), {})


def cosines(rows: Rows, query: Rows) -> Rows:
    """Return the products of rows with a vector.

    It does not use `@`: BLAS spreads each product over all cores, which spin ten times as long as the work
    takes, and the slowest searches then wait for a busy core.
    """
    products: Rows = np.vecdot(rows, query)
    return products


def sort_by_score(found: Iterable[tuple[int, float]]) -> Scored:
    """Return ids with their scores, best first; equal scores in the order of the ids."""
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def check_query(vector: bytes, dimension: int) -> Rows:
    """Return the query vector as floats; raise internal if it does not have this dimension."""
    if len(vector) != 4 * dimension:
        message = f"cannot search: the vector has {len(vector)} bytes, expected {dimension} float32 numbers"
        raise GatewayError(ErrorKind.INTERNAL, message)
    return np.frombuffer(vector, "<f4").astype(np.float32, copy=False)


def unpack_batches(batches: Sequence[VectorBatch], dimension: int) -> tuple[list[int], Rows]:
    """Return the ids and rows of batches; raise internal if their sizes do not match the dimension."""
    ids: list[int] = []
    for batch in batches:
        own = unpack_ids(batch.ids)
        if len(batch.ids) % 8 or len(batch.vectors) != 4 * dimension * len(own):
            message = (
                f"cannot read the vectors of file {batch.file_id!r}: {len(batch.vectors)} bytes do not match"
            )
            raise GatewayError(
                ErrorKind.INTERNAL, f"{message} {len(own)} ids with {dimension} float32 numbers each"
            )
        ids += own
    rows = np.frombuffer(b"".join(batch.vectors for batch in batches), "<f4")
    return ids, rows.astype(np.float32, copy=False).reshape(len(ids), dimension)


def unpack_ids(packed: bytes) -> list[int]:
    """Return the ids of a batch."""
    ids: list[int] = np.frombuffer(packed[: len(packed) // 8 * 8], "<i8").tolist()
    return ids


def pack_ids(ids: Iterable[int]) -> bytes:
    """Return the ids in ascending order as packed little-endian int64."""
    return np.array(sorted(ids), "<i8").tobytes()
