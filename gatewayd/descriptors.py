"""File descriptors of the process: the open ones, and those reserved for the control socket."""

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
"""Minimum number of descriptors reserved for the control socket."""

CONTROL_FILES_DIVISOR: Final = 32
"""A 32nd of all descriptors is reserved for the control socket, if that is more than the minimum."""

COUNT_COST_FACTOR: Final = 100
"""Pause after a count, as a multiple of its duration: counting takes at most a hundredth of the time."""

MAX_COUNT_AGE_SECONDS: Final = 1.0
"""Maximum age of a count."""

DESCRIPTORS: Final = Path("/proc/self/fd")


def file_limit() -> int:
    """Return the maximum number of open descriptors of the process (RLIMIT_NOFILE)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def open_files() -> int:
    """Return the number of open descriptors of the process; 0 if it is not known.

    Kernels since 6.2 count them; for older ones the directory is listed, which takes a millisecond for some
    hundreds. There may be no /proc in a chroot(2).
    """
    try:
        # os.listdir makes no path objects; one of the entries is the descriptor of the listing itself.
        return DESCRIPTORS.stat().st_size or len(os.listdir(DESCRIPTORS)) - 1  # noqa: PTH208
    except FileNotFoundError:
        return 0
    except OSError as error:
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        # No descriptor is left for the listing.
        return file_limit()


class FileCount:
    """Number of open descriptors: counted when that is cheap, else estimated from those of the caller."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due = -math.inf
        self._others = 0

    def now(self, own: int) -> int:
        """Return the number of open descriptors; `own` of them are the caller's."""
        began = self._clock()
        if began >= self._due:
            self._others = open_files() - own
            took = self._clock() - began
            self._due = began + min(COUNT_COST_FACTOR * took, MAX_COUNT_AGE_SECONDS)
        return self._others + own


def reserved_control_files(limit: int) -> int:
    """Return the number of descriptors that are reserved for the control socket."""
    return max(MIN_CONTROL_FILES, limit // CONTROL_FILES_DIVISOR)


_COUNT: Final = FileCount()
_ASKED: Final = count()


def has_spare_files() -> bool:
    """Return whether a descriptor is free beside those reserved for the control socket."""
    limit = file_limit()
    return _COUNT.now(next(_ASKED)) < limit - reserved_control_files(limit)
