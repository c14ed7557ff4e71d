"""Round-robin scheduling of work by owner (or by any other hashable key, such as a size class)."""

import itertools
from collections import Counter
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

MAX_REMEMBERED_OWNERS: Final = 10_000


Owner = TypeVar("Owner", bound=Hashable)


class RoundRobin(Generic[Owner]):
    """Counts the active work of each owner, and remembers the order in which owners were scheduled last."""

    def __init__(self) -> None:
        self._active: Counter[Owner] = Counter()
        # Least recently scheduled first.
        self._scheduled: dict[Owner, int] = {}
        self._numbers = itertools.count(1)

    def active(self, owner: Owner) -> int:
        """Return the number of active items of an owner."""
        return self._active[owner]

    def priority(self, owner: Owner) -> tuple[int, int]:
        """Return the sort key of an owner: least active first, then least recently scheduled."""
        return self._active[owner], self._scheduled.get(owner, 0)

    def begin(self, owner: Owner) -> None:
        """Schedule an item of an owner."""
        self._active[owner] += 1
        self._scheduled.pop(owner, None)
        self._scheduled[owner] = next(self._numbers)
        if len(self._scheduled) > MAX_REMEMBERED_OWNERS:
            del self._scheduled[next(iter(self._scheduled))]

    def end(self, owner: Owner) -> None:
        """Finish an item of an owner."""
        self._active[owner] -= 1
        if not self._active[owner]:
            del self._active[owner]
