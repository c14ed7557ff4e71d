"""A matrix and a graph, searched as one."""

import numpy as np

from gatewayd.vectors.index.flat_index import FlatIndex
from gatewayd.vectors.index.hnsw_index import HnswIndex
from gatewayd.vectors.index.hybrid_index import FlatAndHnsw
from tests.fakes.documents.index_conformance import assert_best, random_rows

ROWS = random_rows(30, 1)


def both() -> FlatAndHnsw:
    """Return parts that share the passages 10 to 14."""
    matrix, graph = FlatIndex(8), HnswIndex(8, 40)
    graph.add(range(15), ROWS[:15])
    matrix.add(range(10, 30), ROWS[10:])
    return FlatAndHnsw(matrix, graph)


def test_an_answer_has_each_passage_once() -> None:
    truth = dict(enumerate(ROWS))
    for query in random_rows(5, 2):
        for limit in (1, 12, 30, 99):
            assert_best(both().search(query, limit), truth, query, limit)
    assert both().search(ROWS[0], 0) == []
    assert both().ids == set(range(30))


def test_similarities_come_from_both() -> None:
    answer = both().similarities(ROWS[0], [3, 12, 25, 99])
    assert sorted(one for one, _ in answer) == [3, 12, 25]
    assert FlatAndHnsw(FlatIndex(8)).similarities(ROWS[0], [3]) == []


def test_removed_from_both() -> None:
    parts = both()
    parts.remove(iter([3, 12, 25]))
    assert not {3, 12, 25} & {one for one, _ in parts.search(ROWS[12], 99)}
    assert 12 not in parts
    assert 13 in parts


def test_copies_are_of_what_is_here_and_not_there() -> None:
    parts, target = both(), FlatIndex(8)
    target.add([4], ROWS[4:5])
    parts.copy([4, 5, 12, 25, 99], target)
    assert sorted(target.ids) == [4, 5, 12, 25]
    assert np.array_equal(target.rows([5, 12, 25]), ROWS[[5, 12, 25]])


def test_a_graph_takes_over_what_its_matrix_has() -> None:
    parts = both()
    graph = parts.graph
    assert graph is not None
    parts.copy(range(30), graph)
    assert sorted(graph.ids) == list(range(30))


def test_differing_vectors_are_counted() -> None:
    ids = list(range(30))
    assert both().differing(ids, ROWS) == 0
    changed = ROWS.copy()
    changed[[3, 25]] *= -1
    assert both().differing(ids, changed) == 2
    assert both().differing([99], ROWS[:1]) == 0
