"""Writer and reader of the hnswlib index file format.

hnswlib holds the interpreter lock while it saves a file, which would stop the daemon for half a second per
100,000 vectors. A copy of its state takes a sixth of that; another thread then writes the copy.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gatewayd.vectors.index.flat_index import Ids

HEADER_STRUCT: Final = struct.Struct("<QQQQQQiIQQQdQ")
"""The fields of `HEADER_KEYS`, in their order."""
HEADER_KEYS: Final = (
    "offset_level0",
    "max_elements",
    "cur_element_count",
    "size_data_per_element",
    "label_offset",
    "offset_data",
    "max_level",
    "enterpoint_node",
    "max_M",
    "max_M0",
    "M",
    "mult",
    "ef_construction",
)
DELETED_FLAG_OFFSET: Final = 2
"""Offset of the byte of an element whose lowest bit marks it as deleted."""
SIZE_STRUCT: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """Consistent copy of a graph: the state of hnswlib, and the label of each passage id."""

    state: Mapping[str, Any]
    ids: Ids
    labels: Ids

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the content of the file."""
        state = self.state
        yield HEADER_STRUCT.pack(*(state[key] for key in HEADER_KEYS))
        yield memoryview(state["data_level0"]).cast("B")
        links = memoryview(state["link_lists"]).cast("B")
        levels = state["element_levels"][: state["cur_element_count"]].tolist()
        lists: list[bytes | memoryview] = []
        start = 0
        for size in (level * state["size_links_per_element"] for level in levels):
            lists += (SIZE_STRUCT.pack(size), links[start : start + size])
            start += size
        yield b"".join(lists)


class StoredVectors:
    """Memory-mapped elements of a file; ValueError if it is not an HNSW file of this dimension."""

    def __init__(self, path: Path, dimension: int) -> None:
        with path.open("rb") as file:
            head = file.read(HEADER_STRUCT.size)
        if len(head) < HEADER_STRUCT.size:
            raise ValueError("the HNSW file is too short")
        values = dict(zip(HEADER_KEYS, HEADER_STRUCT.unpack(head), strict=True))
        self.count = int(values["cur_element_count"])
        width, at, vector = (
            int(values[key]) for key in ("size_data_per_element", "label_offset", "offset_data")
        )
        if at + 8 != width or vector + 4 * dimension != at:
            raise ValueError("the vectors of the HNSW file have a different dimension")
        shape = (self.count, width)
        elements = (
            np.memmap(path, np.uint8, "r", HEADER_STRUCT.size, shape)
            if self.count
            else np.empty(shape, np.uint8)
        )
        labels = np.ascontiguousarray(elements[:, at:]).view("<u8").ravel().astype(np.int64)
        if not np.array_equal(np.sort(labels), np.arange(self.count)):
            raise ValueError("the labels of the HNSW file have gaps")
        self._element_of = np.argsort(labels)
        self._bytes: memoryview = elements.reshape(-1).data
        self._width, self._vector, self._length = width, vector, 4 * dimension
        self.live = np.sort(labels[elements[:, DELETED_FLAG_OFFSET] & 1 == 0])
        """The labels that are not marked as deleted, in ascending order."""

    def digests(self, labels: Sequence[int]) -> dict[bytes, int]:
        """Return the labels, keyed by the digest of their vectors."""
        starts = (self._element_of[labels] * self._width + self._vector).tolist() if labels else []
        return {
            vector_digest(self._bytes[at : at + self._length]): one
            for at, one in zip(starts, labels, strict=True)
        }


def vector_digest(row: bytes | memoryview) -> bytes:
    """Return a 16-byte BLAKE2b digest by which equal vectors are found."""
    return hashlib.blake2b(row, digest_size=16).digest()
