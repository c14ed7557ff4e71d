"""Order of full-text look-ups on PostgreSQL: the rarest words first.

Scanning every passage of a large collection is slow, and so is ranking all passages with a frequent word. The
frequency of words comes from PostgreSQL's statistics.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MAX_SCANNED_PASSAGES: Final = 4_000
"""Maximum number of passages of a scope that is scanned completely."""
MAX_MATCHED_PASSAGES: Final = 3_000
"""Maximum number of passages with certain words that one step scans."""
FEW_PASSAGES: Final = 1_000
MANY_PASSAGES: Final = 20_000
UNKNOWN_SHARE: Final = 0.002
"""Assumed share of passages for a word without statistics: it is rare, or there are no statistics yet."""


@dataclass(frozen=True, slots=True)
class TermPlan:
    """The words of a query, each as its tsquery, with their shares of all passages (0 if unknown).

    `size` is the number of passages in the scope, `total` the number of all; both are estimates.
    """

    shares: Mapping[str, float]
    size: int
    total: int

    @property
    def words(self) -> Sequence[str]:
        """The words as tsqueries."""
        return list(self.shares)

    @property
    def _all(self) -> int:
        # PostgreSQL updates its estimate of the total only now and then.
        return max(self.total, self.size)

    def steps(self) -> Iterator[str]:
        """Yield the tsqueries to look up one after the other; "" means a scan of the whole scope."""
        if self.size > MAX_SCANNED_PASSAGES:
            seen = set()
            for words, is_all in self._parts():
                if not self._is_worth_it(words, is_all=is_all):
                    break
                step = (" & " if is_all else " | ").join(words)
                if step not in seen:
                    seen.add(step)
                    yield step
            else:
                return
        yield ""

    def _parts(self) -> Iterator[tuple[Sequence[str], bool]]:
        """Yield the words of each step, and whether a passage must contain all of them."""
        ordered = sorted(self.shares, key=lambda word: (self._share(word), word))
        few = self._rarest(ordered, FEW_PASSAGES)
        if few:
            yield few, False
        else:
            yield ordered, True
        yield self._rarest(ordered, MANY_PASSAGES) or ordered[:1], False
        yield ordered, False

    def _rarest(self, ordered: Sequence[str], most: int) -> Sequence[str]:
        expected = 0.0
        for place, word in enumerate(ordered):
            expected += self._share(word) * self._all
            if expected > most:
                return ordered[:place]
        return ordered

    def _is_worth_it(self, words: Sequence[str], *, is_all: bool) -> bool:
        """Return whether the step scans fewer passages than the scope has."""
        shares = [self._share(word) for word in words]
        expected = self._all * (math.prod(shares) if is_all else sum(shares))
        return min(expected, MAX_MATCHED_PASSAGES * self._all / self.size) <= self.size

    def _share(self, word: str) -> float:
        return self.shares[word] or UNKNOWN_SHARE
