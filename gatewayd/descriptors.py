"""File descriptors of the process: how many are open, and how many are kept for the control socket."""

import errno
import math
import os
import resource
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

MIN_CONTROL_FILES: Final = 64
"""Descriptors kept for the control socket at least."""

CONTROL_FILES_DIVISOR: Final = 32
"""The control socket has a 32nd of all descriptors, where that is more."""

COUNT_COST_FACTOR: Final = 100
"""Counting takes at most a hundredth of the time."""

MAX_COUNT_AGE_SECONDS: Final = 1.0
"""How long a count is kept at most."""

DESCRIPTORS: Final = Path("/proc/self/fd")


def file_limit() -> int:
    """Return how many descriptors the process may have open (RLIMIT_NOFILE)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def open_files() -> int:
    """Return how many descriptors the process has open; 0 where that is not told.

    The kernel counts since 6.2; before that the directory is listed, which takes a millisecond for some
    hundreds. A program in a folder of its own (chroot) may have no /proc.
    """
    try:
        # No paths are made of the names; one of them is the descriptor of the list.
        return DESCRIPTORS.stat().st_size or len(os.listdir(DESCRIPTORS)) - 1  # noqa: PTH208
    except FileNotFoundError:
        return 0
    except OSError as error:
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        # There is none left for the list.
        return file_limit()


class FileCount:
    """Counts open descriptors as often as it costs little, and between two counts those of the caller."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = -math.inf
        self._others = 0

    def now(self, own: int) -> int:
        """Return how many descriptors are open when the caller has `own`; few where that is not told."""
        began = self._clock()
        if began >= self._due:
            self._others = open_files() - own
            took = self._clock() - began
            self._due = began + min(COUNT_COST_FACTOR * took, MAX_COUNT_AGE_SECONDS)
        return self._others + own


def reserved_control_files(limit: int) -> int:
    """Return how many of the descriptors are kept for the control socket."""
    return max(MIN_CONTROL_FILES, limit // CONTROL_FILES_DIVISOR)


_COUNT: Final = FileCount()
_ASKED: Final = count()


def has_spare_files() -> bool:
    """Tell whether there is a descriptor beside those of the control socket for who asks."""
    limit = file_limit()
    return _COUNT.now(next(_ASKED)) < limit - reserved_control_files(limit)
