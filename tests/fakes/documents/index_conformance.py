"""What every vector index must do, whatever keeps its vectors: `IndexConformance`, run over a harness.

A test module makes a class of it and gives it a fixture `harness`:

    class TestMyIndex(IndexConformance):
        @pytest.fixture
        async def harness(self) -> AsyncIterator[IndexHarness]: ...
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pytest

from gatewayd.ingest.interfaces import VectorIndex
from gatewayd.ingest.records import EmbeddingSpace, ScopeKind, SearchScope, VectorBatch

Rows = npt.NDArray[np.float32]

SPACE = EmbeddingSpace("test:plain", 8)
OTHER_SPACE = EmbeddingSpace("test:other", 4)
BATCH = 3
"""Rows in a batch of `MemoryPassages`: few, so that files have several."""


def collection(name: str) -> SearchScope:
    """Return the scope of a collection."""
    return SearchScope(ScopeKind.COLLECTION, name)


def single(name: str) -> SearchScope:
    """Return the scope of one file."""
    return SearchScope(ScopeKind.FILE, name)


def unit(rows: npt.ArrayLike) -> Rows:
    """Return rows, made as long as 1."""
    array = np.atleast_2d(np.asarray(rows, np.float64))
    return (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)


def random_rows(count: int, seed: int, dimension: int = SPACE.dimension) -> Rows:
    """Return so many different vectors of length 1."""
    return unit(np.random.default_rng(seed).standard_normal((count, dimension)))


def clustered_rows(count: int, seed: int, dimension: int, clusters: int = 500) -> Rows:
    """Return vectors that lie as those of texts do: in groups."""
    chance = np.random.default_rng(seed)
    # The groups are the same for every seed.
    centres = np.random.default_rng(1).standard_normal((clusters, dimension))
    return unit(centres[chance.integers(0, clusters, count)] + chance.standard_normal((count, dimension)))


def packed(rows: npt.ArrayLike) -> bytes:
    """Return vectors as they are sent and stored."""
    return np.asarray(rows, "<f4").tobytes()


class IndexHarness(Protocol):
    """An index over some database.

    What these methods change, they change in the database alone: the index learns of it by `refresh` and
    `forget`, which the tests call. Files and collections that are not there yet are made.
    """

    index: VectorIndex

    async def put(
        self, file_id: str, rows: Rows, collections: Sequence[str] = (), space: EmbeddingSpace = SPACE
    ) -> Sequence[int]:
        """Complete a file, or replace it, with a passage for each vector; return the ids of the passages.

        The ids are higher than all before, and in order. The file enters these collections, and stays in
        those it is in.
        """
        ...

    async def embed(self, file_id: str, rows: Rows, space: EmbeddingSpace) -> None:
        """Give the passages of a file vectors in another space."""
        ...

    async def unlink(self, file_id: str, collection_id: str) -> None:
        """Take a file out of a collection."""
        ...

    async def remove(self, file_id: str) -> None:
        """Delete a file with its links and vectors."""
        ...


@dataclass
class MemoryPassages:
    """The vectors of a database, in memory: what an index reads (`ingest.interfaces.VectorReader`)."""

    ids: dict[str, list[int]] = field(default_factory=dict)
    vectors: dict[tuple[str, str], Rows] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    last_id: int = 0
    calls: list[str] = field(default_factory=list)

    def put(
        self, file_id: str, rows: Rows, collections: Sequence[str] = (), space: EmbeddingSpace = SPACE
    ) -> list[int]:
        """Complete or replace a file; return the ids of its passages."""
        self.drop_vectors(file_id)
        self.ids[file_id] = list(range(self.last_id + 1, self.last_id + 1 + len(rows)))
        self.last_id += len(rows)
        self.vectors[space.name, file_id] = np.array(rows)
        for name in collections:
            if file_id not in self.members.setdefault(name, []):
                self.members[name].append(file_id)
        return self.ids[file_id]

    def drop_vectors(self, file_id: str) -> None:
        """Forget the vectors of a file in all spaces."""
        self.vectors = {key: rows for key, rows in self.vectors.items() if key[1] != file_id}

    def drop_file(self, file_id: str) -> None:
        """Forget a file."""
        self.drop_vectors(file_id)
        self.ids.pop(file_id, None)
        for files in self.members.values():
            if file_id in files:
                files.remove(file_id)

    def files(self, space: str, scope: SearchScope) -> list[str]:
        """Return the files of a scope that have vectors in a space, in the order of their passages."""
        names = [scope.id] if scope.kind is ScopeKind.FILE else self.members.get(scope.id, [])
        held = [name for name in names if (space, name) in self.vectors and self.ids[name]]
        return sorted(held, key=lambda name: self.ids[name])

    def truth(self, space: EmbeddingSpace, scope: SearchScope) -> dict[int, Rows]:
        """Return the vector of each passage in a scope."""
        return {
            passage_id: row
            for name in self.files(space.name, scope)
            for passage_id, row in zip(self.ids[name], self.vectors[space.name, name], strict=True)
        }

    def batches(self, space: str, file_id: str) -> list[VectorBatch]:
        """Return the vectors of a file."""
        ids, rows = np.array(self.ids[file_id], "<i8"), self.vectors[space, file_id]
        starts = range(0, len(ids), BATCH)
        return [
            VectorBatch(file_id, ids[at : at + BATCH].tobytes(), packed(rows[at : at + BATCH]))
            for at in starts
        ]

    async def load(self, space: str, scope: SearchScope) -> AsyncIterator[VectorBatch]:
        """Yield the vectors of a scope."""
        self.calls.append("load")
        for batch in [one for name in self.files(space, scope) for one in self.batches(space, name)]:
            yield batch

    async def load_file(self, space: str, scope: SearchScope, file_id: str) -> Sequence[VectorBatch]:
        """Return the vectors of one file in a scope."""
        self.calls.append("load_file")
        return self.batches(space, file_id) if file_id in self.files(space, scope) else []

    async def load_ids(self, space: str, scope: SearchScope) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the files and ids of a scope."""
        self.calls.append("load_ids")
        for batch in [one for name in self.files(space, scope) for one in self.batches(space, name)]:
            yield batch.file_id, batch.ids

    async def count_vectors(self, space: str, scope: SearchScope) -> int:
        """Return how many vectors a scope has."""
        self.calls.append("count_vectors")
        return sum(len(self.ids[name]) for name in self.files(space, scope))


@dataclass
class MemoryHarness:
    """An index over `MemoryPassages`."""

    index: VectorIndex
    passages: MemoryPassages

    async def put(
        self, file_id: str, rows: Rows, collections: Sequence[str] = (), space: EmbeddingSpace = SPACE
    ) -> Sequence[int]:
        """Complete or replace a file."""
        return self.passages.put(file_id, rows, collections, space)

    async def embed(self, file_id: str, rows: Rows, space: EmbeddingSpace) -> None:
        """Give the passages of a file vectors in another space."""
        assert len(rows) == len(self.passages.ids[file_id])
        self.passages.vectors[space.name, file_id] = np.array(rows)

    async def unlink(self, file_id: str, collection_id: str) -> None:
        """Take a file out of a collection."""
        self.passages.members[collection_id].remove(file_id)

    async def remove(self, file_id: str) -> None:
        """Delete a file."""
        self.passages.drop_file(file_id)


async def found(
    index: VectorIndex, scope: SearchScope, row: Rows, limit: int = 10, space: EmbeddingSpace = SPACE
) -> list[tuple[int, float]]:
    """Return what a search finds: ids and scores."""
    hits = await index.search(space, scope, packed(row), limit)
    return [(hit.passage_id, hit.score) for hit in hits]


async def found_ids(index: VectorIndex, scope: SearchScope, row: Rows, limit: int = 10) -> list[int]:
    """Return the ids that a search finds."""
    return [passage_id for passage_id, _ in await found(index, scope, row, limit)]


def nearest(truth: Mapping[int, Rows], row: Rows, limit: int) -> list[float]:
    """Return the best cosines that there are."""
    return sorted((float(one @ row) for one in truth.values()), reverse=True)[:limit]


def assert_best(
    hits: Collection[tuple[int, float]], truth: Mapping[int, Rows], row: Rows, limit: int
) -> None:
    """Check that an answer is the right one; passages that are equally near may stand for each other."""
    ids = [passage_id for passage_id, _ in hits]
    scores = [score for _, score in hits]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= truth.keys()
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([float(truth[one] @ row) for one in ids], abs=1e-5)
    assert scores == pytest.approx(nearest(truth, row, limit), abs=1e-5)


class IndexConformance:
    """The tests; `harness` comes from the class that inherits them, and is empty."""

    async def test_nothing_is_found_where_nothing_is(self, harness: IndexHarness) -> None:
        query = random_rows(1, 1)[0]
        for scope in (collection("c"), single("f")):
            assert await found(harness.index, scope, query) == []
            assert await harness.index.similarities(SPACE, scope, packed(query), [1, 2]) == {}
            await harness.index.refresh(scope, "f")
            await harness.index.forget(scope)
            assert await harness.index.check(SPACE, scope) == []

    async def test_the_nearest_come_first_with_their_cosines(self, harness: IndexHarness) -> None:
        rows = random_rows(40, 2)
        ids = [*await harness.put("f1", rows[:25], ["c"]), *await harness.put("f2", rows[25:], ["c"])]
        truth = dict(zip(ids, rows, strict=True))
        for query in random_rows(5, 3):
            assert_best(await found(harness.index, collection("c"), query, 7), truth, query, 7)
        (best, score), *_ = await found(harness.index, collection("c"), rows[30])
        assert best == ids[30]
        assert score == pytest.approx(1, abs=1e-5)
        opposite = await found(harness.index, collection("c"), -rows[30], 40)
        assert opposite[-1] == (ids[30], pytest.approx(-1, abs=1e-5))

    async def test_a_limit_over_the_count_gives_all(self, harness: IndexHarness) -> None:
        ids = await harness.put("f1", random_rows(5, 4), ["c"])
        query = random_rows(1, 5)[0]
        assert sorted(await found_ids(harness.index, collection("c"), query, 1000)) == sorted(ids)
        assert len(await found(harness.index, collection("c"), query, 1)) == 1
        assert await found(harness.index, collection("c"), query, 0) == []

    async def test_a_scope_holds_its_own_files_only(self, harness: IndexHarness) -> None:
        one = await harness.put("f1", random_rows(4, 6), ["c1"])
        two = await harness.put("f2", random_rows(4, 7), ["c2"])
        both = await harness.put("f3", random_rows(4, 8), ["c1", "c2"])
        query = random_rows(1, 9)[0]
        index = harness.index
        assert sorted(await found_ids(index, collection("c1"), query, 50)) == sorted([*one, *both])
        assert sorted(await found_ids(index, collection("c2"), query, 50)) == sorted([*two, *both])
        assert sorted(await found_ids(index, single("f3"), query, 50)) == sorted(both)
        # A collection and a file of the same id are two scopes.
        assert await found_ids(index, single("c1"), query, 50) == []

    async def test_spaces_are_apart(self, harness: IndexHarness) -> None:
        ids = await harness.put("f1", random_rows(4, 10), ["c"])
        other = random_rows(4, 11, OTHER_SPACE.dimension)
        await harness.embed("f1", other, OTHER_SPACE)
        (best, score), *rest = await found(harness.index, collection("c"), other[2], 10, OTHER_SPACE)
        assert best == ids[2]
        assert score == pytest.approx(1, abs=1e-5)
        assert len(rest) == 3
        assert len(await found(harness.index, collection("c"), random_rows(1, 12)[0])) == 4

    async def test_what_is_new_is_found_after_a_refresh(self, harness: IndexHarness) -> None:
        rows = random_rows(12, 13)
        await harness.put("f1", rows[:6], ["c"])
        assert len(await found(harness.index, collection("c"), rows[0], 50)) == 6
        new = await harness.put("f2", rows[6:], ["c"])
        await harness.index.refresh(collection("c"), "f2")
        assert (await found_ids(harness.index, collection("c"), rows[8], 1)) == [new[2]]
        assert len(await found(harness.index, collection("c"), rows[0], 50)) == 12

    async def test_a_replaced_file_is_found_in_its_new_form_only(self, harness: IndexHarness) -> None:
        rows = random_rows(14, 14)
        old = await harness.put("f1", rows[:6], ["c"])
        assert len(await found(harness.index, collection("c"), rows[0], 50)) == 6
        assert len(await found(harness.index, single("f1"), rows[0], 50)) == 6
        new = await harness.put("f1", rows[6:])
        for scope in (collection("c"), single("f1")):
            await harness.index.refresh(scope, "f1")
            ids = await found_ids(harness.index, scope, rows[0], 50)
            assert sorted(ids) == sorted(new)
            assert await harness.index.similarities(SPACE, scope, packed(rows[0]), old) == {}

    async def test_what_was_taken_out_is_gone(self, harness: IndexHarness) -> None:
        rows = random_rows(12, 15)
        kept = await harness.put("f1", rows[:6], ["c", "d"])
        gone = await harness.put("f2", rows[6:], ["c", "d"])
        for name in ("c", "d"):
            assert len(await found(harness.index, collection(name), rows[0], 50)) == 12
        await harness.unlink("f2", "c")
        await harness.index.refresh(collection("c"), "f2")
        assert sorted(await found_ids(harness.index, collection("c"), rows[8], 50)) == sorted(kept)
        assert await harness.index.similarities(SPACE, collection("c"), packed(rows[8]), gone) == {}
        assert len(await found(harness.index, collection("d"), rows[0], 50)) == 12
        await harness.remove("f2")
        await harness.index.refresh(collection("d"), "f2")
        assert sorted(await found_ids(harness.index, collection("d"), rows[8], 50)) == sorted(kept)

    async def test_what_was_taken_out_can_come_back(self, harness: IndexHarness) -> None:
        rows = random_rows(8, 16)
        await harness.put("f1", rows[:4], ["c"])
        await harness.put("f2", rows[4:], ["c"])
        assert len(await found(harness.index, collection("c"), rows[0], 50)) == 8
        await harness.unlink("f2", "c")
        await harness.index.refresh(collection("c"), "f2")
        back = await harness.put("f2", rows[4:], ["c"])
        await harness.index.refresh(collection("c"), "f2")
        assert await found_ids(harness.index, collection("c"), rows[5], 1) == [back[1]]
        assert len(await found(harness.index, collection("c"), rows[0], 50)) == 8

    async def test_refreshing_twice_changes_nothing(self, harness: IndexHarness) -> None:
        rows = random_rows(6, 17)
        await harness.put("f1", rows, ["c"])
        before = await found_ids(harness.index, collection("c"), rows[0], 50)
        for _ in range(3):
            await harness.index.refresh(collection("c"), "f1")
        await harness.index.refresh(collection("c"), "nobody")
        assert await found_ids(harness.index, collection("c"), rows[0], 50) == before

    async def test_similarities_of_those_that_are_in(self, harness: IndexHarness) -> None:
        rows = random_rows(10, 18)
        ids = await harness.put("f1", rows[:7], ["c"])
        others = await harness.put("f2", rows[7:], ["d"])
        asked = [ids[5], ids[0], *others, ids[-1] + 1_000_000]
        answer = await harness.index.similarities(SPACE, collection("c"), packed(rows[1]), asked)
        assert set(answer) == {ids[5], ids[0]}
        assert answer[ids[5]] == pytest.approx(float(rows[5] @ rows[1]), abs=1e-5)
        assert await harness.index.similarities(SPACE, collection("c"), packed(rows[1]), []) == {}

    async def test_equal_vectors_are_all_found(self, harness: IndexHarness) -> None:
        row = random_rows(1, 19)
        same = await harness.put("f1", np.repeat(row, 60, axis=0), ["c"])
        await harness.put("f2", random_rows(20, 20), ["c"])
        assert sorted(await found_ids(harness.index, collection("c"), row[0], 60)) == sorted(same)
        assert len(await found(harness.index, collection("c"), -row[0], 80)) == 80

    async def test_a_forgotten_scope_is_read_again(self, harness: IndexHarness) -> None:
        rows = random_rows(6, 21)
        await harness.put("f1", rows, ["c"])
        assert len(await found(harness.index, collection("c"), rows[0], 50)) == 6
        await harness.remove("f1")
        await harness.index.forget(collection("c"))
        assert await found(harness.index, collection("c"), rows[0], 50) == []
        await harness.put("f2", rows[:2], ["c"])
        await harness.index.forget(collection("c"))
        assert len(await found(harness.index, collection("c"), rows[0], 50)) == 2

    async def test_a_check_of_what_is_right_says_nothing(self, harness: IndexHarness) -> None:
        rows = random_rows(6, 22)
        await harness.put("f1", rows, ["c"])
        assert await harness.index.check(SPACE, collection("c")) == []
        assert len(await found(harness.index, collection("c"), rows[0], 50)) == 6
        assert await harness.index.check(SPACE, collection("c")) == []

    async def test_any_id_is_good(self, harness: IndexHarness) -> None:
        rows = random_rows(3, 23)
        for name in ("../x", "a b", "\u00e5'\"%_*", "x" * 64):
            ids = await harness.put(name, rows, [name])
            assert sorted(await found_ids(harness.index, collection(name), rows[0], 9)) == sorted(ids)
            assert sorted(await found_ids(harness.index, single(name), rows[0], 9)) == sorted(ids)
            await harness.index.forget(collection(name))
