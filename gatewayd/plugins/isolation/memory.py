"""How much of the memory that a process may write to is in use, as the process itself sees it."""

import contextlib
import os
import resource
from pathlib import Path
from typing import Final

FULL_SHARE: Final = 0.9
"""The part of its memory, beyond what the plugin took to load, with which a process counts as full."""
_DATA: Final = 5
"""The column of statm for data and stack, which is what RLIMIT_DATA bounds."""
OOM_SCORE_INCREASE: Final = 500
"""What is added to the score by which the kernel chooses what to end when the machine has no memory left."""
MAX_OOM_SCORE: Final = 1000
_SCORE: Final = Path("/proc/self/oom_score_adj")


class MemoryGauge:
    """Tells whether the memory of this process is full."""

    def __init__(self) -> None:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._base = 0

    def begin(self) -> None:
        """Take what is in use now as what the plugin needs, however much that is."""
        self._base = self._used()

    @property
    def is_full(self) -> bool:
        """Whether most of what was free at the beginning is in use."""
        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        return limit != resource.RLIM_INFINITY and self._used() > self._base + FULL_SHARE * (
            limit - self._base
        )

    def _used(self) -> int:
        return int(os.pread(self._statm, 200, 0).split()[_DATA]) * resource.getpagesize()


def raise_oom_score() -> None:
    """Have the kernel end this process before the one that started it when the machine has no memory left."""
    with contextlib.suppress(PermissionError, FileNotFoundError):
        _SCORE.write_text(str(min(int(_SCORE.read_text()) + OOM_SCORE_INCREASE, MAX_OOM_SCORE)))
