"""The best passages of a table of words on SQLite, without a look at every passage that has a frequent word.

FTS5 ranks each passage that matches, which takes long where a word is in a hundred thousand of them. But a
word in more than half of the passages counts for nothing, and the best ones have a rare word, too. So the
passages with a rare word are ranked: by their rare words, and where they have frequent ones by all. Where
there are too few of them, those with the two rarest of the frequent words come next, then those with one.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from gatewayd.ingest.records import SearchHit
from gatewayd.storage.search.bigrams import is_letter
from gatewayd.storage.search.fts import IS_VISIBLE, ranked_query

MAX_RANKED_PASSAGES: Final = 1_500
"""Passages that are ranked for a query, about."""
MAX_KNOWN_WORDS: Final = 4_096
"""Frequent words whose counts are remembered."""
MAX_SIZE_DRIFT: Final = 0.1
"""The growth of a table after which its counts are taken anew."""


def match_any(words: Sequence[str]) -> str:
    """Return what matches any of the words or phrases; none of them has a quote.

    A character that is no word by itself matches the words that begin with it.
    """
    return " OR ".join(f'"{word}"*' if is_letter(word) else f'"{word}"' for word in words)


class PassageRanking:
    """Ranks passages in the thread of one connection."""

    def __init__(self, ranked: int = MAX_RANKED_PASSAGES) -> None:
        self._ranked = ranked
        # (table, word) -> the size of the table at the time, and in how many of its passages the word was.
        self._frequent: dict[tuple[str, str], tuple[int, int]] = {}

    def search(
        self,
        reading: sqlite3.Connection,
        name: str,
        words: Sequence[str],
        limit: int,
        collection_id: str | None = None,
    ) -> list[SearchHit]:
        """Return the best passages of a table that have any of the words; with the id of its collection only
        those that a search may find."""
        divided = self._divide(reading, name, words, limit)
        found = _ranked(reading, ranked_query(name), divided, limit)
        # Hardly ever are there words of others, and their passages take none of the places.
        if collection_id is not None and _has_others(reading, found, collection_id):
            found = _ranked(reading, ranked_query(name, visible=True), divided, limit, collection_id)
        best = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return [SearchHit(passage_id, score) for passage_id, score in best]

    def _divide(
        self, reading: sqlite3.Connection, name: str, words: Sequence[str], limit: int
    ) -> tuple[list[str], list[str]]:
        """Return the words whose passages can all be ranked, and the frequent ones, the rarest of them first.

        Those in more than half of the passages are left out where there are others.
        """
        [[size]] = reading.execute(f"SELECT COUNT(*) FROM {name}_docsize")  # noqa: S608 - a number
        if size <= self._ranked // 2:
            return list(words), []
        counts = sorted((self._count(reading, name, word, size), word) for word in words)
        rare: list[str] = []
        frequent: list[str] = []
        left = max(self._ranked, limit)
        for count, word in counts:
            if frequent or count > left:
                frequent += [word] if count <= size // 2 or not (rare or frequent) else []
            elif count:
                rare.append(word)
                left -= count
        return rare, frequent

    def _count(self, reading: sqlite3.Connection, name: str, word: str, size: int) -> int:
        """Return in how many passages a word is, or one more than half of them when it is in more."""
        then, known = self._frequent.get((name, word), (0, 0))
        if then and abs(size - then) <= MAX_SIZE_DRIFT * then:
            return known
        query = f"SELECT COUNT(*) FROM (SELECT 1 FROM {name} WHERE {name} MATCH ?1 LIMIT ?2)"  # noqa: S608
        [[count]] = reading.execute(query, (match_any([word]), size // 2 + 1))
        if count > self._ranked // 2:
            while len(self._frequent) >= MAX_KNOWN_WORDS:
                del self._frequent[next(iter(self._frequent))]
            self._frequent[name, word] = size, int(count)
        return int(count)


def _ranked(
    reading: sqlite3.Connection, query: str, divided: tuple[list[str], list[str]], limit: int, *values: str
) -> dict[int, float]:
    """Return the scores of the passages of a query that may be among the best."""
    rare, frequent = divided
    found: dict[int, float] = {}
    if rare:
        found = dict(reading.execute(query, (match_any(rare), limit, *values)))
    if rare and frequent:
        # Their scores are whole here, of both kinds of words.
        found.update(
            reading.execute(query, (f"({match_any(rare)}) AND ({match_any(frequent)})", limit, *values))
        )
    for most in (2, 1):
        if len(found) < limit and len(frequent) >= most:
            match = " AND ".join(match_any([word]) for word in frequent[:most])
            found = {**dict(reading.execute(query, (match, limit, *values))), **found}
    return found


def _has_others(reading: sqlite3.Connection, found: Iterable[int], collection_id: str) -> bool:
    """Tell whether any of some passages is none that a search may find in a collection."""
    numbers = ", ".join(f"({number})" for number in found)
    if not numbers:
        return False
    visible = IS_VISIBLE.format(id="found.column1")
    query = f"SELECT 1 FROM (VALUES {numbers}) found WHERE NOT {visible} LIMIT 1"  # noqa: S608 - numbers
    return reading.execute(query.replace("?3", "?1"), (collection_id,)).fetchone() is not None
