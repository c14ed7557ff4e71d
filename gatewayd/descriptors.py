"""File descriptors of the process: how many are open, and how many are kept for the control socket."""

import resource
from pathlib import Path
from typing import Final

MIN_CONTROL_FILES: Final = 64
"""Descriptors kept for the control socket at least."""

CONTROL_PART: Final = 32
"""The control socket has a 32nd of all descriptors, where that is more."""

DESCRIPTORS: Final = Path("/proc/self/fd")


def file_limit() -> int:
    """Return how many descriptors the process may have open (RLIMIT_NOFILE)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def open_files() -> int:
    """Return how many descriptors the process has open; 0 where that is not told.

    The kernel counts since 6.2. A program in a folder of its own (chroot) may have no /proc.
    """
    try:
        return DESCRIPTORS.stat().st_size
    except FileNotFoundError:
        return 0


def control_files(limit: int) -> int:
    """Return how many of the descriptors are kept for the control socket."""
    return max(MIN_CONTROL_FILES, limit // CONTROL_PART)


def has_spare_files() -> bool:
    """Tell whether there is a descriptor beside those of the control socket."""
    limit = file_limit()
    return open_files() < limit - control_files(limit)
