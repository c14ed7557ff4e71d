"""Tests for gatewayd.vectors.index.packed_files."""

from gatewayd.vectors.index.flat_index import pack_ids
from gatewayd.vectors.index.hnsw_index import HnswIndex
from gatewayd.vectors.index.packed_files import (
    files_behind,
    miscounted_files,
    newest_files,
    pack_by_file,
    sort_packed,
)
from tests.fakes.documents.index_conformance import random_rows

HELD = {"a": [3, 1], "b": [7], "c": []}
FILES = {name: pack_ids(ids) for name, ids in HELD.items()}


def test_the_passages_of_files_are_packed_in_order() -> None:
    assert pack_by_file(HELD) == FILES
    assert sort_packed({"a": pack_ids([3]) + pack_ids([1]), "b": FILES["b"], "c": b""}) == FILES


def test_the_newest_files_have_the_highest_ids() -> None:
    assert newest_files(FILES, 2) == ["b", "a"]


def test_a_file_is_behind_when_a_graph_lacks_a_passage_of_it() -> None:
    graph = HnswIndex(8, 10)
    graph.add([1, 7], random_rows(2, 1))
    assert files_behind(graph, FILES) == {"a"}


def test_a_file_is_miscounted_when_passages_are_missing_or_too_many() -> None:
    assert miscounted_files(FILES, {"a": [1, 3], "b": [7]}) == set()
    assert miscounted_files(FILES, {"a": [1], "b": [7, 8], "d": [9]}) == {"a", "b", "d"}
