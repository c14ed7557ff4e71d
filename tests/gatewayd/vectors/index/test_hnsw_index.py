"""Search in a graph."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hnswlib
import numpy as np
import pytest

from gatewayd.vectors.index import hnsw_index as module
from gatewayd.vectors.index.hnsw_index import HnswIndex, graph_capacity
from tests.fakes.documents.index_conformance import (
    Rows,
    assert_best,
    clustered_rows,
    nearest,
    random_rows,
    unit,
)


def filled(rows: Rows, first: int = 0, room: int = 0) -> HnswIndex:
    graph = HnswIndex(rows.shape[1], room or graph_capacity(len(rows)))
    graph.add(range(first, first + len(rows)), rows)
    return graph


def test_the_best_are_found() -> None:
    rows = random_rows(300, 1)
    graph = filled(rows, 1000)
    truth = dict(zip(range(1000, 1300), rows, strict=True))
    for query in random_rows(20, 2):
        assert_best(graph.search(query, 10), truth, query, 10)
    assert graph.search(rows[0], 0) == []
    assert len(graph.search(rows[0], 5000)) == 300


def test_an_empty_one_finds_nothing() -> None:
    graph = HnswIndex(8, 10)
    assert graph.search(random_rows(1, 1)[0], 5) == []
    assert graph.rows([]).shape == (0, 8)
    assert graph.waste == 0
    graph.add([], np.empty((0, 8), np.float32))
    assert len(graph) == 0


def test_removed_ones_are_gone() -> None:
    rows = random_rows(100, 3)
    graph = filled(rows)
    graph.remove([*range(40), 5000])
    assert {one for one, _ in graph.search(rows[3], 100)} == set(range(40, 100))
    assert graph.waste == pytest.approx(0.4)
    assert graph.similarities(rows[0], [3, 50]) == [(50, pytest.approx(float(rows[50] @ rows[0]), abs=1e-6))]
    assert 3 not in graph
    graph.remove(range(100))
    assert graph.search(rows[0], 5) == []
    assert len(graph) == 0


def test_one_that_was_removed_can_come_back() -> None:
    rows = random_rows(20, 4)
    graph = filled(rows)
    for _ in range(3):
        graph.remove([7])
        graph.add([7], rows[7:8])
    assert graph.search(rows[7], 1) == [(7, pytest.approx(1, abs=1e-6))]
    assert sorted(graph.ids) == list(range(20))
    assert graph.free == 64 - 23


def test_equal_vectors_are_no_island() -> None:
    rows = clustered_rows(3000, 5, 32, 50)
    chance = np.random.default_rng(6)
    same = chance.choice(3000, 1200, replace=False)
    rows[same] = rows[7]
    graph = filled(rows)
    assert graph.free > 4000
    hits = good = 0
    for query in clustered_rows(100, 8, 32, 50):
        best = nearest(dict(enumerate(rows)), query, 10)
        good += sum(score >= best[-1] - 1e-5 for _, score in graph.search(query, 10))
        hits += 10
    assert good / hits > 0.97
    assert {one for one, _ in graph.search(rows[7], 1201)} == {*same.tolist(), 7}


def test_of_equal_vectors_each_can_go() -> None:
    row = random_rows(1, 9)
    graph = filled(np.concatenate([np.repeat(row, 4, axis=0), random_rows(5, 10)]))
    for gone, left in ((0, {1, 2, 3}), (2, {1, 3}), (3, {1})):
        graph.remove([gone])
        assert {one for one, score in graph.search(row[0], 9) if score > 0.999} == left
        assert dict(graph.similarities(row[0], range(4))).keys() == left
    graph.remove([1])
    assert all(score < 0.999 for _, score in graph.search(row[0], 9))
    graph.add([2], row)
    assert graph.search(row[0], 1) == [(2, pytest.approx(1, abs=1e-6))]


def test_rows_come_back_as_they_were() -> None:
    rows = random_rows(300, 11)
    graph = filled(rows)
    assert np.array_equal(graph.rows([299, 5, *range(200)]), rows[[299, 5, *range(200)]])
    with pytest.raises(KeyError):
        graph.rows([300])


class Failing:
    """A library whose searches fail some times."""

    def __init__(self, inner: Any, failures: int) -> None:
        self.inner = inner
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def knn_query(self, *given: Any, **also: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("Cannot return the results in a contiguous 2D array")
        return self.inner.knn_query(*given, **also)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_failed_search_is_made_again_and_then_in_full(
    failures: int, caplog: pytest.LogCaptureFixture
) -> None:
    rows = random_rows(300, 12)
    graph = filled(rows)
    graph.remove([4])
    graph._index = Failing(graph._index, failures)
    truth = {one: row for one, row in enumerate(rows) if one != 4}
    assert_best(graph.search(rows[3], 10), truth, rows[3], 10)
    assert ("comparing all vectors" in caplog.text) is (failures == 2)


def test_who_asks_for_all_misses_none_when_others_come_meanwhile() -> None:
    rows = random_rows(5, 21)
    graph = filled(rows)

    class Adding(Failing):
        def knn_query(self, *given: Any, **also: Any) -> Any:
            if self.failures:
                self.failures -= 1
                graph.add([50, 51], unit([rows[0] + 0.01 * rows[1], rows[0] + 0.01 * rows[2]]))
            return self.inner.knn_query(*given, **also)

    graph._index = Adding(graph._index, 1)
    assert {one for one, _ in graph.search(rows[0], 10)} >= set(range(5))


def test_it_survives_a_file(tmp_path: Path) -> None:
    rows = random_rows(200, 13)
    rows[50:60] = rows[3]
    graph = filled(rows, 1000)
    graph.remove([1003, 1051, *range(1100, 1120)])
    snapshot = graph.snapshot()
    path = tmp_path / "graph"
    path.write_bytes(b"".join(snapshot.pieces()))
    again = HnswIndex.restored(path, 8, (snapshot.ids, snapshot.labels))
    assert sorted(again.ids) == sorted(graph.ids)
    assert again.waste == graph.waste
    for query in (rows[3], *random_rows(10, 14)):
        assert again.search(query, 30) == graph.search(query, 30)
    # It goes on as before: equal vectors are known, others find room.
    free = again.free
    again.add([5000], rows[3:4])
    assert again.free == free
    again.add([5001], random_rows(1, 15))
    assert again.free == free - 1
    assert len([one for one, score in again.search(rows[3], 20) if score > 0.999]) == 10


@pytest.mark.parametrize("change", ["short", "foreign", "removed"])
def test_passages_that_are_not_of_the_file_are_refused(tmp_path: Path, change: str) -> None:
    graph = filled(random_rows(20, 16))
    graph.remove([3])
    snapshot = graph.snapshot()
    path = tmp_path / "graph"
    path.write_bytes(b"".join(snapshot.pieces()))
    ids, labels = snapshot.ids.copy(), snapshot.labels.copy()
    if change == "short":
        ids, labels = ids[1:], labels[1:]
    else:
        labels[0] = 25 if change == "foreign" else 3
    with pytest.raises(ValueError, match="do not match the labels"):
        HnswIndex.restored(path, 8, (ids, labels))


def test_the_library_mistakes_that_are_kept_from_it() -> None:
    """Facts about hnswlib that the module relies on."""
    rows = random_rows(10, 17)
    index = hnswlib.Index("ip", 8)
    index.init_index(10)
    index.add_items(rows, np.arange(10))
    with pytest.raises(RuntimeError, match="contiguous"):
        index.knn_query(rows[0], 11)
    index.mark_deleted(3)
    with pytest.raises(RuntimeError, match="not found"):
        index.get_items([1, 3])
    with pytest.raises(RuntimeError, match="exceeds"):
        index.add_items(rows[:1], np.array([10]))


@pytest.fixture
def writer() -> Iterator[list[threading.Thread]]:
    threads: list[threading.Thread] = []
    yield threads
    for thread in threads:
        thread.join()


def test_searches_go_on_while_one_thread_writes(writer: list[threading.Thread]) -> None:
    rows = clustered_rows(6000, 18, 16, 50)
    graph = filled(rows[:1000], room=6000)
    problems: list[BaseException] = []

    def write() -> None:
        try:
            for start in range(1000, 6000, 100):
                graph.add(range(start, start + 100), rows[start : start + 100])
                graph.remove(range(start - 1000, start - 950))
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=write)
    writer.append(thread)
    thread.start()
    count = 0
    while thread.is_alive():
        query = rows[count % 6000]
        for passage_id, score in graph.search(query, 10):
            assert score == pytest.approx(float(rows[passage_id] @ query), abs=1e-5)
        count += 1
    assert problems == []
    assert count > 10
    gone = {one for start in range(1000, 6000, 100) for one in range(start - 1000, start - 950)}
    assert set(graph.ids) == set(range(6000)) - gone


def test_a_good_recall() -> None:
    rows = clustered_rows(5000, 19, 64)
    graph = filled(rows)
    queries = clustered_rows(100, 20, 64)
    best = np.sort(queries @ rows.T, axis=1)[:, -10]
    good = [
        score >= least - 1e-5
        for query, least in zip(queries, best, strict=True)
        for _, score in graph.search(query, 10)
    ]
    assert sum(good) / 1000 >= 0.97


def test_searches_follow_more_candidates_in_a_larger_graph(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "MIN_EF_SEARCH", 10)
    monkeypatch.setattr(module, "MAX_EF_SEARCH", 40)
    rows = random_rows(1800, 22)
    graph = filled(rows)
    assert (graph.ef_search, graph._index.ef) == (20, 20)
    graph.add(range(1800, 2700), random_rows(900, 23))
    assert graph.ef_search == 30
    path = tmp_path / "graph"
    snapshot = graph.snapshot()
    path.write_bytes(b"".join(snapshot.pieces()))
    again = HnswIndex.restored(path, graph.dimension, (snapshot.ids, snapshot.labels))
    assert (again.ef_search, again._index.ef) == (30, 30)
    graph.widen(35)
    assert (graph.ef_search, graph._index.ef) == (35, 35)
    graph.widen(1000)
    assert (graph.ef_search, graph._index.ef) == (40, 40)


def test_the_labels_of_passages_are_told() -> None:
    graph = filled(random_rows(20, 24))
    graph.remove([3, 12])
    assert graph.labels(2, 6) == [2, 4, 5]
    assert graph.labels(10, 100) == [10, 11, *range(13, 20)]
    assert graph.count == 20


def test_room_grows_with_the_count() -> None:
    assert graph_capacity(0) == module.MIN_CAPACITY
    assert graph_capacity(50_000) == 100_000
    assert HnswIndex(8, 10).size < filled(unit(np.eye(8)), room=10).size
