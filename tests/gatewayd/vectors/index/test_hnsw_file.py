"""The file of a graph."""

import struct
from pathlib import Path

import numpy as np
import pytest

from gatewayd.vectors.index.hnsw_file import StoredVectors, vector_digest
from gatewayd.vectors.index.hnsw_index import HnswIndex
from tests.fakes.documents.index_conformance import random_rows


def stored(tmp_path: Path, count: int, *, removed: int = 0) -> Path:
    graph = HnswIndex(8, count + 5)
    graph.add(range(count), random_rows(count, 1) if count else np.empty((0, 8), np.float32))
    graph.remove(range(removed))
    path = tmp_path / "mine"
    path.write_bytes(b"".join(graph.snapshot().pieces()))
    graph._index.save_index(str(tmp_path / "theirs"))
    return path


@pytest.mark.parametrize("count", [0, 1, 500])
def test_it_is_what_the_library_writes(tmp_path: Path, count: int) -> None:
    path = stored(tmp_path, count, removed=count // 3)
    assert path.read_bytes() == (tmp_path / "theirs").read_bytes()


def test_what_is_in_it(tmp_path: Path) -> None:
    content = StoredVectors(stored(tmp_path, 100, removed=10), 8)
    assert content.count == 100
    assert content.live.tolist() == list(range(10, 100))
    rows = random_rows(100, 1)
    assert content.digests([99, 12]) == {
        vector_digest(rows[99].tobytes()): 99,
        vector_digest(rows[12].tobytes()): 12,
    }
    assert content.digests([]) == {}


def test_an_empty_one(tmp_path: Path) -> None:
    content = StoredVectors(stored(tmp_path, 0), 8)
    assert content.count == 0
    assert content.live.tolist() == []


def test_another_dimension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dimension"):
        StoredVectors(stored(tmp_path, 10), 9)


@pytest.mark.parametrize("size", [0, 50, 500])
def test_a_short_one_is_refused(tmp_path: Path, size: int) -> None:
    path = stored(tmp_path, 10)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError):
        StoredVectors(path, 8)


def test_labels_with_gaps_are_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, 10)
    content = bytearray(path.read_bytes())
    width = 4 + 4 * 32 + 4 * 8 + 8
    struct.pack_into("<Q", content, 96 + 4 * width - 8, 77)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="gaps"):
        StoredVectors(path, 8)
