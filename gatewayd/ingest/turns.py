"""Shares out work evenly among those whom it is done for."""

import itertools
from collections import Counter
from typing import Final

MAX_REMEMBERED_OWNERS: Final = 10_000


class Turns:
    """Counts what is under way for each owner, and remembers how long ago the last turn of each was."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()
        # In the order of the turns.
        self._last: dict[str, int] = {}
        self._numbers = itertools.count(1)

    def under_way(self, owner: str) -> int:
        """Return how much is under way for an owner."""
        return self._under_way[owner]

    def rank(self, owner: str) -> tuple[int, int]:
        """Return what sorts owners: those with the least under way first, of these the one that has waited
        the longest for a turn."""
        return self._under_way[owner], self._last.get(owner, 0)

    def begin(self, owner: str) -> None:
        """Note a turn of an owner."""
        self._under_way[owner] += 1
        self._last.pop(owner, None)
        self._last[owner] = next(self._numbers)
        if len(self._last) > MAX_REMEMBERED_OWNERS:
            del self._last[next(iter(self._last))]

    def end(self, owner: str) -> None:
        """Note that what a turn began is over."""
        self._under_way[owner] -= 1
        if not self._under_way[owner]:
            del self._under_way[owner]
