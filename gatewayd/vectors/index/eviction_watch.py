"""Detector of scopes that evict each other from memory again and again."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gatewayd.vectors.index.checkpoints import CheckpointKey

log = logging.getLogger(__name__)

SOON_SECONDS: Final = 300.0
"""A scope that is loaded again within this time was evicted too early."""
REPEAT_SECONDS: Final = 600.0
"""The warning is logged at most once in this time, and `problem` returns it for as long."""
MAX_REMEMBERED_EVICTIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class _Eviction:
    """Eviction of a scope in favour of another one; sizes are in bytes."""

    size: int
    other: CheckpointKey
    other_size: int
    at: float


class ReloadWatch:
    """Counts scopes that are loaded again soon after their eviction for memory, and logs a warning."""

    def __init__(self, budget: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._budget = budget
        self._clock = clock
        self._evictions: OrderedDict[CheckpointKey, _Eviction] = OrderedDict()
        self._sentence = ""
        self._warned_at: float | None = None
        self.count = 0

    @property
    def problem(self) -> str | None:
        """The last logged sentence, for `REPEAT_SECONDS`; None afterwards."""
        return self._sentence if self._is_warned() else None

    def note_eviction(self, key: CheckpointKey, size: int, other: CheckpointKey, other_size: int) -> None:
        """Record the eviction of a scope in favour of another one."""
        self._evictions.pop(key, None)
        self._evictions[key] = _Eviction(size, other, other_size, self._clock())
        if len(self._evictions) > MAX_REMEMBERED_EVICTIONS:
            self._evictions.popitem(last=False)

    def note_load(self, key: CheckpointKey) -> None:
        """Record that a scope is loaded."""
        eviction = self._evictions.pop(key, None)
        if eviction is None or self._clock() - eviction.at > SOON_SECONDS:
            return
        self.count += 1
        if not self._is_warned():
            self._warned_at = self._clock()
            self._sentence = self._described(key, eviction)
            log.warning("%s", self._sentence)

    def _is_warned(self) -> bool:
        return self._warned_at is not None and self._clock() - self._warned_at < REPEAT_SECONDS

    def _described(self, key: CheckpointKey, eviction: _Eviction) -> str:
        needed = eviction.size + eviction.other_size
        return (
            f"the vectors of {_named(key)} ({_mebibytes(eviction.size)} MiB) and of {_named(eviction.other)} "
            f"({_mebibytes(eviction.other_size)} MiB) do not fit in vector_cache_size "
            f"({_mebibytes(self._budget)} MiB) together: searches load them again and again; "
            f"raise it to more than {_mebibytes(needed)} MiB"
        )


def _named(key: CheckpointKey) -> str:
    return f"{key.scope.kind} {key.scope.id}"


def _mebibytes(size: int) -> int:
    """Return a size in MiB, rounded up."""
    return -(-size // 2**20)
