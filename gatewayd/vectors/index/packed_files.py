"""Packed passage ids of files: sorting, and comparison with an index.

The functions are slow for large collections: call them in a thread.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence

from gatewayd.vectors.index.flat_index import pack_ids, unpack_ids
from gatewayd.vectors.index.hnsw_index import HnswIndex


def pack_by_file(held: Mapping[str, Iterable[int]]) -> dict[str, bytes]:
    """Pack the ids of passages of each file."""
    return {file_id: pack_ids(ids) for file_id, ids in held.items()}


def sort_packed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Sort the packed ids of each file."""
    return {file_id: pack_ids(unpack_ids(ids)) for file_id, ids in files.items()}


def newest_files(files: Mapping[str, bytes], count: int) -> Sequence[str]:
    """Return the `count` files with the newest passages."""
    return heapq.nlargest(count, files, key=lambda file_id: max(unpack_ids(files[file_id]), default=0))


def files_behind(graph: HnswIndex, files: Mapping[str, bytes]) -> set[str]:
    """Return the files of which a graph lacks passages."""
    return {file_id for file_id, ids in files.items() if any(one not in graph for one in unpack_ids(ids))}


def miscounted_files(files: Mapping[str, bytes], held: Mapping[str, Sequence[int]]) -> set[str]:
    """Return the files whose passages differ from those in `held`."""
    known = files.keys() | held.keys()
    return {file_id for file_id in known if files.get(file_id, b"") != pack_ids(held.get(file_id, ()))}
