"""Choice of the passages that a lexical search of a large collection scores; pure functions.

Scoring every passage with a frequent word is slow. So a search looks up all passages with a rare word, those
in which a frequent word weighs most, and those with several frequent words. The numbers are bounded, whatever
the size of the collection.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from gatewayd.storage.search.word_weights import rareness, word_keys

RARE_PASSAGES: Final = 1_500
"""Approximate number of passages that are looked up by their rare words."""
TOP_PASSAGES: Final = 300
"""Approximate number of passages in which a frequent word weighs most."""
COMMON_PASSAGES: Final = 1_000
"""Maximum number of passages with several frequent words, for each look-up of such words."""
MAX_FREQUENT: Final = 4
"""Number of frequent words of which every two are looked up together."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """Passages with a key of each group, up to a limit."""

    groups: Sequence[Sequence[int]]
    limit: int


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query and the number of passages with each of its keys, lowest tier first."""

    word: int
    passages: Sequence[float]

    @property
    def total(self) -> float:
        """Number of passages with the word."""
        return sum(self.passages)

    def top(self, most: float) -> Sequence[int]:
        """Return the keys of the highest tiers that have about this number of passages, at least one."""
        keys = word_keys(self.word)
        sum_, place = 0.0, len(keys)
        while place > 0 and sum_ < most:
            place -= 1
            sum_ += self.passages[place]
        return keys[place:]


def query_weights(words: Sequence[QueryWord], size: float) -> Mapping[int, float]:
    """Return the weight of each word of a query among so many passages."""
    return {each.word: rareness(size, each.total) for each in words}


def look_ups(words: Sequence[QueryWord], size: float) -> Iterator[LookUp]:
    """Yield what is looked up for a query in a collection of so many passages."""
    left = float(RARE_PASSAGES)
    rare: list[int] = []
    frequent: list[QueryWord] = []
    for each in sorted(words, key=lambda one: (one.total, one.word)):
        if frequent or each.total > left:
            frequent.append(each)
        else:
            rare += word_keys(each.word)
            left -= each.total
    if rare:
        yield LookUp([rare], 2 * RARE_PASSAGES)
    for each in frequent:
        yield LookUp([each.top(TOP_PASSAGES)], 2 * TOP_PASSAGES)
    rarest = frequent[:MAX_FREQUENT]
    for count in range(2, len(rarest) + 1):
        for some in combinations(rarest, count):
            yield _common(some, size)


def _common(words: Sequence[QueryWord], size: float) -> LookUp:
    """Return the look-up of passages with all of some words, of the higher tiers if these are many."""
    expected = math.prod(each.total / max(size, 1.0) for each in words) * size
    share = min((COMMON_PASSAGES / expected) ** (1 / len(words)), 1.0) if expected else 1.0
    return LookUp([each.top(share * each.total) for each in words], COMMON_PASSAGES)
