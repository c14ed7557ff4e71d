"""Memory gauge of a plugin process, and its priority for the OOM killer."""

import contextlib
import os
import resource
from pathlib import Path
from typing import Final

FULL_SHARE: Final = 0.9
"""Share of the memory beyond the usage after loading from which the memory counts as full."""
_DATA: Final = 5
"""Column of statm for data and stack, the memory that RLIMIT_DATA limits."""
OOM_SCORE_INCREASE: Final = 500
"""Increase of the OOM score, by which the kernel selects the process to end."""
MAX_OOM_SCORE: Final = 1000
_SCORE: Final = Path("/proc/self/oom_score_adj")


class MemoryGauge:
    """Measures whether the memory of this process is full."""

    def __init__(self) -> None:
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._base = 0

    def begin(self) -> None:
        """Record the current usage as the need of the plugin."""
        self._base = self._used()

    @property
    def is_full(self) -> bool:
        """Whether FULL_SHARE of the memory that was free after loading is in use."""
        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        return limit != resource.RLIM_INFINITY and self._used() > self._base + FULL_SHARE * (
            limit - self._base
        )

    def _used(self) -> int:
        return int(os.pread(self._statm, 200, 0).split()[_DATA]) * resource.getpagesize()


def raise_oom_score() -> None:
    """Make the OOM killer prefer this process to its parent."""
    with contextlib.suppress(PermissionError, FileNotFoundError):
        _SCORE.write_text(str(min(int(_SCORE.read_text()) + OOM_SCORE_INCREASE, MAX_OOM_SCORE)))
