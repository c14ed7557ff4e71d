"""In which order passages are looked up by their words on PostgreSQL, the rarest words first.

To look at every passage of a large collection takes long, and so does ranking all those that have a frequent
word. How frequent a word is, PostgreSQL's own statistics tell.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MAX_SCANNED_PASSAGES: Final = 4_000
"""Passages of a scope that are all looked at."""
MAX_MATCHED_PASSAGES: Final = 3_000
"""Passages with certain words that are looked at."""
FEW_PASSAGES: Final = 1_000
MANY_PASSAGES: Final = 20_000
UNKNOWN_SHARE: Final = 0.002
"""The share of passages that a word may have of which nothing is known: it is rare, or there are no
statistics yet."""


@dataclass(frozen=True, slots=True)
class TermPlan:
    """Words, each as the query for itself, with the share of all passages that has it, 0 if not known.

    `size` is the number of passages in the scope, `total` that of all; both are estimates.
    """

    shares: Mapping[str, float]
    size: int
    total: int

    @property
    def words(self) -> Sequence[str]:
        """The words."""
        return list(self.shares)

    @property
    def _all(self) -> int:
        # PostgreSQL counts now and then only.
        return max(self.total, self.size)

    def steps(self) -> Iterator[str]:
        """Yield what to look up, until enough was found; an empty text is to look at all of the scope."""
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
        """Yield the words to look up, and whether a passage must have all of them."""
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
        """Tell whether fewer passages are looked at than there are in the scope."""
        shares = [self._share(word) for word in words]
        expected = self._all * (math.prod(shares) if is_all else sum(shares))
        return min(expected, MAX_MATCHED_PASSAGES * self._all / self.size) <= self.size

    def _share(self, word: str) -> float:
        return self.shares[word] or UNKNOWN_SHARE
