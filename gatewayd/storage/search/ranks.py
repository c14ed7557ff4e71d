"""Ranking of passages on SQLite without scoring every passage that contains a frequent word.

FTS5 scores each passage that matches, which is slow for a word in a hundred thousand passages. But a word in
more than half of the passages has no weight, and the best passages also contain a rare word. So the passages
with a rare word are ranked: by their rare words, and by all words where they also contain frequent ones. If
these are too few, passages with the two rarest frequent words follow, then those with one.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from gatewayd.ingest.records import SearchHit
from gatewayd.storage.search.bigrams import is_letter
from gatewayd.storage.search.fts import IS_VISIBLE, ranked_query

MAX_RANKED_PASSAGES: Final = 1_500
"""Approximate maximum number of passages that are scored for a query."""
MAX_KNOWN_WORDS: Final = 4_096
"""Maximum number of frequent words with cached counts."""
MAX_SIZE_DRIFT: Final = 0.1
"""Relative change of a table's size after which its cached counts are stale."""


def match_any(words: Sequence[str]) -> str:
    """Return the FTS5 query that matches any of the words or phrases, which must contain no quotes.

    A single character of a script without blanks is searched as a prefix.
    """
    return " OR ".join(f'"{word}"*' if is_letter(word) else f'"{word}"' for word in words)


class PassageRanking:
    """Ranks passages; used only in the thread of one connection."""

    def __init__(self, ranked: int = MAX_RANKED_PASSAGES) -> None:
        self._ranked = ranked
        # (table, word) -> the size of the table at the time of the count, and the number of passages with the
        # word.
        self._frequent: dict[tuple[str, str], tuple[int, int]] = {}

    def search(
        self,
        reading: sqlite3.Connection,
        name: str,
        words: Sequence[str],
        limit: int,
        collection_id: str | None = None,
    ) -> list[SearchHit]:
        """Return the best passages of a table that contain any of the words.

        With a `collection_id` only the visible passages of that collection.
        """
        split = self._split_by_frequency(reading, name, words, limit)
        found = _ranked(reading, ranked_query(name), split, limit)
        # Invisible hits are rare, so the slower query for visible ones runs only if there are any.
        if collection_id is not None and _has_invisible(reading, found, collection_id):
            found = _ranked(reading, ranked_query(name, visible=True), split, limit, collection_id)
        best = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return [SearchHit(passage_id, score) for passage_id, score in best]

    def _split_by_frequency(
        self, reading: sqlite3.Connection, name: str, words: Sequence[str], limit: int
    ) -> tuple[list[str], list[str]]:
        """Return the rare words, whose passages can all be ranked, and the frequent words, rarest first.

        Words in more than half of the passages are left out if there are others.
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
        """Return the number of passages with a word, at most one more than half of all passages."""
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
    reading: sqlite3.Connection, query: str, split: tuple[list[str], list[str]], limit: int, *values: str
) -> dict[int, float]:
    """Return the scores of the candidates for the best passages of a query."""
    rare, frequent = split
    found: dict[int, float] = {}
    if rare:
        found = dict(reading.execute(query, (match_any(rare), limit, *values)))
    if rare and frequent:
        # These scores include both kinds of words.
        found.update(
            reading.execute(query, (f"({match_any(rare)}) AND ({match_any(frequent)})", limit, *values))
        )
    for most in (2, 1):
        if len(found) < limit and len(frequent) >= most:
            match = " AND ".join(match_any([word]) for word in frequent[:most])
            found = {**dict(reading.execute(query, (match, limit, *values))), **found}
    return found


def _has_invisible(reading: sqlite3.Connection, found: Iterable[int], collection_id: str) -> bool:
    """Return whether any of some passages is invisible in a collection."""
    numbers = ", ".join(f"({number})" for number in found)
    if not numbers:
        return False
    visible = IS_VISIBLE.format(id="found.column1")
    query = f"SELECT 1 FROM (VALUES {numbers}) found WHERE NOT {visible} LIMIT 1"  # noqa: S608 - numbers
    return reading.execute(query.replace("?3", "?1"), (collection_id,)).fetchone() is not None
