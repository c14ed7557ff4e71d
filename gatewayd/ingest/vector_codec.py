"""Passage ids as bytes, as a `records.VectorBatch` holds them."""

import sys
from array import array
from collections.abc import Sequence
from typing import Final

ID_BYTES: Final = 8


def pack_ids(ids: Sequence[int]) -> bytes:
    """Return ids as little-endian int64."""
    numbers = array("q", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def unpack_ids(ids: bytes) -> Sequence[int]:
    """Return ids that were packed."""
    numbers = array("q")
    numbers.frombytes(ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
