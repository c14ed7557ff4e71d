"""The size classes of files: small files do not wait for large ones."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class SizeClass(IntEnum):
    """How large a file is, by its bytes and the number of its passages."""

    SMALL = 0
    MIDDLE = 1
    LARGE = 2


@dataclass(frozen=True, slots=True)
class ClassLimit:
    """The most bytes and passages of a file of a class."""

    size: SizeClass
    max_bytes: int
    max_passages: int


CLASS_LIMITS: Final = (
    ClassLimit(SizeClass.SMALL, 32 << 10, 32),
    ClassLimit(SizeClass.MIDDLE, 1 << 20, 1024),
)
"""Smallest class first; a file over all of them is large."""


@dataclass(frozen=True, slots=True)
class QueueKey:
    """What the order of work depends on: size classes take turns, and inside a class the owners."""

    owner: str
    size: SizeClass


OTHER_WORK: Final = QueueKey("", SizeClass.MIDDLE)
"""The key of work for no file."""
REINDEX: Final = QueueKey("", SizeClass.LARGE)
"""The key of a reindex, whatever files it is at."""


def size_class_of(size: int, passages: int) -> SizeClass:
    """Return the class of a file with so many bytes and passages; before it is read it has none."""
    for limit in CLASS_LIMITS:
        if size <= limit.max_bytes and passages <= limit.max_passages:
            return limit.size
    return SizeClass.LARGE
