"""Size classes of files, which keep small files from waiting for large ones."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class SizeClass(IntEnum):
    """Size class of a file, by its bytes and its number of passages."""

    SMALL = 0
    MIDDLE = 1
    LARGE = 2


@dataclass(frozen=True, slots=True)
class ClassLimit:
    """Maximum bytes and passages of a file in a class."""

    size: SizeClass
    max_bytes: int
    max_passages: int


CLASS_LIMITS: Final = (
    ClassLimit(SizeClass.SMALL, 32 << 10, 32),
    ClassLimit(SizeClass.MIDDLE, 1 << 20, 1024),
)
"""Limits, smallest class first; a file above all of them is LARGE."""


@dataclass(frozen=True, slots=True)
class QueueKey:
    """Key of fair scheduling: round robin over size classes, and inside a class over owners."""

    owner: str
    size: SizeClass


OTHER_WORK: Final = QueueKey("", SizeClass.MIDDLE)
"""Key of work that belongs to no file."""
REINDEX: Final = QueueKey("", SizeClass.LARGE)
"""Key of a reindex, for files of any size and owner."""


def size_class_of(size: int, passages: int) -> SizeClass:
    """Return the class of a file by its bytes and passages (0 before the extraction)."""
    for limit in CLASS_LIMITS:
        if size <= limit.max_bytes and passages <= limit.max_passages:
            return limit.size
    return SizeClass.LARGE
