"""The file of a graph: the one that hnswlib reads, written without its help.

hnswlib holds the interpreter's lock while it writes, which would stop the daemon for half a second per
hundred thousand vectors. A copy of its state takes a sixth of that, and is written at leisure.
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
"""offset of level 0, room, count, bytes per element, offsets of label and vector, levels, entry point, most
links above and on level 0, links, level factor, candidates."""
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
"""Where an element says that it was removed, in its lowest bit."""
SIZE_STRUCT: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """A graph as it was at one moment: the state of hnswlib, and which label each passage has."""

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
    """The elements in a file, mapped; ValueError when it is no file of a graph of this dimension."""

    def __init__(self, path: Path, dimension: int) -> None:
        with path.open("rb") as file:
            head = file.read(HEADER_STRUCT.size)
        if len(head) < HEADER_STRUCT.size:
            raise ValueError("the file of a graph is too short")
        values = dict(zip(HEADER_KEYS, HEADER_STRUCT.unpack(head), strict=True))
        self.count = int(values["cur_element_count"])
        width, at, vector = (
            int(values[key]) for key in ("size_data_per_element", "label_offset", "offset_data")
        )
        if at + 8 != width or vector + 4 * dimension != at:
            raise ValueError("the vectors of a graph have another dimension")
        shape = (self.count, width)
        elements = (
            np.memmap(path, np.uint8, "r", HEADER_STRUCT.size, shape)
            if self.count
            else np.empty(shape, np.uint8)
        )
        labels = np.ascontiguousarray(elements[:, at:]).view("<u8").ravel().astype(np.int64)
        if not np.array_equal(np.sort(labels), np.arange(self.count)):
            raise ValueError("the labels of a graph have gaps")
        self._element_of = np.argsort(labels)
        self._bytes: memoryview = elements.reshape(-1).data
        self._width, self._vector, self._length = width, vector, 4 * dimension
        self.live = np.sort(labels[elements[:, DELETED_FLAG_OFFSET] & 1 == 0])
        """The labels that were not removed, in order."""

    def digests(self, labels: Sequence[int]) -> dict[bytes, int]:
        """Return the labels by the digest of their vectors."""
        starts = (self._element_of[labels] * self._width + self._vector).tolist() if labels else []
        return {
            vector_digest(self._bytes[at : at + self._length]): one
            for at, one in zip(starts, labels, strict=True)
        }


def vector_digest(row: bytes | memoryview) -> bytes:
    """Return what tells one vector from another."""
    return hashlib.blake2b(row, digest_size=16).digest()
