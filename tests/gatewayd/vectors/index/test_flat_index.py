"""Exact search in memory."""

import numpy as np
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import VectorBatch
from gatewayd.vectors.index.flat_index import FlatIndex, check_query, pack_ids, unpack_batches, unpack_ids
from tests.fakes.documents.index_conformance import assert_best, packed, random_rows


def test_the_best_rows_are_found() -> None:
    rows = random_rows(50, 1)
    matrix = FlatIndex(8, 10)
    matrix.add(range(100, 130), rows[:30])
    matrix.add(range(130, 150), rows[30:])
    truth = dict(zip(range(100, 150), rows, strict=True))
    for query in random_rows(10, 2):
        for limit in (1, 7, 50, 80):
            assert_best(matrix.search(query, limit), truth, query, limit)
    assert matrix.search(rows[0], 0) == []
    assert matrix.ids == list(range(100, 150))


def test_removed_rows_are_not_found_and_their_room_is_given_back() -> None:
    rows = random_rows(100, 3)
    matrix = FlatIndex(8)
    matrix.add(range(100), rows)
    full = matrix.size
    matrix.remove([*range(20), 1000])
    assert len(matrix) == 80
    assert {one for one, _ in matrix.search(rows[5], 100)} == set(range(20, 100))
    matrix.remove(range(20, 90))
    assert matrix.size < full / 4
    truth = {one: rows[one] for one in range(90, 100)}
    assert_best(matrix.search(rows[95], 5), truth, rows[95], 5)
    matrix.remove(range(100))
    assert matrix.search(rows[0], 5) == []
    matrix.add([7], rows[7:8])
    assert matrix.search(rows[7], 5) == [(7, pytest.approx(1, abs=1e-6))]


def test_an_id_may_come_back_with_another_row() -> None:
    rows = random_rows(4, 4)
    matrix = FlatIndex(8)
    matrix.add([1, 2, 3], rows[:3])
    matrix.remove([2])
    matrix.add([2], rows[3:])
    assert matrix.search(rows[3], 1) == [(2, pytest.approx(1, abs=1e-6))]
    assert np.array_equal(matrix.rows([2, 1]), rows[[3, 0]])
    assert 2 in matrix
    assert 4 not in matrix


def test_similarities_of_those_that_are_in() -> None:
    rows = random_rows(3, 5)
    matrix = FlatIndex(8)
    assert matrix.similarities(rows[0], [1]) == []
    matrix.add([1, 2, 3], rows)
    matrix.remove([3])
    assert dict(matrix.similarities(rows[0], [2, 3, 9])) == {
        2: pytest.approx(float(rows[1] @ rows[0]), abs=1e-6)
    }


def test_a_search_that_began_before_a_change_sees_one_state() -> None:
    rows = random_rows(40, 6)
    matrix = FlatIndex(8)
    matrix.add(range(20), rows[:20])
    state = matrix._state
    matrix.add(range(20, 40), rows[20:])
    # The rows moved to a larger place: who still reads the former one reads what was there.
    assert matrix._state is not state
    assert np.array_equal(state.rows[:20], rows[:20])
    assert state.count == 20


@pytest.mark.parametrize("size", [0, 4, 31, 36])
def test_a_query_of_another_dimension_is_refused(size: int) -> None:
    with pytest.raises(GatewayError, match="cannot search") as caught:
        check_query(bytes(size), 8)
    assert caught.value.kind is ErrorKind.INTERNAL


def test_batches_become_rows() -> None:
    rows = random_rows(3, 7)
    batches = [
        VectorBatch("f", np.array([5, 6], "<i8").tobytes(), packed(rows[:2])),
        VectorBatch("f", np.array([9], "<i8").tobytes(), packed(rows[2:])),
    ]
    ids, unpacked = unpack_batches(batches, 8)
    assert ids == [5, 6, 9]
    assert np.array_equal(unpacked, rows)
    assert unpack_batches([], 8)[1].shape == (0, 8)


@pytest.mark.parametrize(("ids", "vectors"), [(8, 28), (8, 64), (7, 32), (16, 32), (9, 32)])
def test_batches_that_do_not_fit_are_refused(ids: int, vectors: int) -> None:
    with pytest.raises(GatewayError, match="file 'f7'") as caught:
        unpack_batches([VectorBatch("f7", bytes(ids), bytes(vectors))], 8)
    assert caught.value.kind is ErrorKind.INTERNAL


def test_packed_ids_are_in_order() -> None:
    assert unpack_ids(pack_ids([9, 1, 1 << 40])) == [1, 9, 1 << 40]
    assert unpack_ids(b"") == []
