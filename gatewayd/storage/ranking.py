"""The best passages of a table of words on SQLite, without a look at every passage that has a frequent word.

FTS5 ranks each passage that matches, which takes long where a word is in a hundred thousand of them. But a
word in more than half of the passages counts for nothing, and the best ones have a rare word, too. So the
passages with a rare word are ranked: by their rare words, and where they have frequent ones by all.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from gatewayd.ingest.records import Hit
from gatewayd.storage.words import matching

RANKED: Final = 3_000
"""Passages that are ranked for a query, about."""
KNOWN: Final = 4_096
"""Frequent words whose counts are remembered."""
DRIFT: Final = 0.1
"""The growth of a table after which its counts are taken anew."""


def any_of(words: Sequence[str]) -> str:
    """Return what matches any of the words; none of them has a quote."""
    return " OR ".join(f'"{word}"' for word in words)


class Ranking:
    """Ranks passages in the thread of one connection."""

    def __init__(self, ranked: int = RANKED) -> None:
        self._ranked = ranked
        # (table, word) -> the size of the table at the time, and in how many of its passages the word was.
        self._frequent: dict[tuple[str, str], tuple[int, int]] = {}

    def search(self, reading: sqlite3.Connection, name: str, words: Sequence[str], limit: int) -> list[Hit]:
        """Return the best passages of a table that have any of the words."""
        rare, frequent = self._divide(reading, name, words, limit)
        if not rare:
            return []
        query = matching(name)
        found = dict(reading.execute(query, (any_of(rare), limit)))
        if frequent:
            # Their scores are whole here, of both kinds of words.
            found.update(reading.execute(query, (f"({any_of(rare)}) AND ({any_of(frequent)})", limit)))
        best = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return [Hit(passage_id, score) for passage_id, score in best]

    def _divide(
        self, reading: sqlite3.Connection, name: str, words: Sequence[str], limit: int
    ) -> tuple[list[str], list[str]]:
        """Return the words that a passage must have one of, and those that count beside them."""
        [[size]] = reading.execute(f"SELECT COUNT(*) FROM {name}_docsize")  # noqa: S608 - a number
        if size <= self._ranked // 2:
            return list(words), []
        counts = sorted((self._count(reading, name, word, size), word) for word in words)
        present = [(count, word) for count, word in counts if count]
        taken = _enough([count for count, _ in present], self._ranked, limit)
        rare = [word for _, word in present[:taken]]
        return rare, [word for count, word in present[taken:] if count <= size // 2]

    def _count(self, reading: sqlite3.Connection, name: str, word: str, size: int) -> int:
        """Return in how many passages a word is, or one more than half of them when it is in more."""
        then, known = self._frequent.get((name, word), (0, 0))
        if then and abs(size - then) <= DRIFT * then:
            return known
        query = f"SELECT COUNT(*) FROM (SELECT 1 FROM {name} WHERE {name} MATCH ?1 LIMIT ?2)"  # noqa: S608
        [[count]] = reading.execute(query, (any_of([word]), size // 2 + 1))
        if count > self._ranked // 2:
            while len(self._frequent) >= KNOWN:
                del self._frequent[next(iter(self._frequent))]
            self._frequent[name, word] = size, int(count)
        return int(count)


def _enough(counts: Sequence[int], most: int, least: int) -> int:
    """Return how many of the rarest words to take: passages up to `most`, but not less than `least`."""
    total = 0
    for taken, count in enumerate(counts):
        if total >= least and total + count > most:
            return taken
        total += count
    return len(counts)
