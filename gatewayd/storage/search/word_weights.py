"""BM25 weights of words, with the words and the parameters of the embedded profile.

FTS5 splits texts into words, whichever database has the passages, so both find the same words. A word is a
number: the index of a `sparsevec` of pgvector, whose inner product with the words of a query is the score.

A passage has a key for each of its words, which tells how much the word weighs in it: a search for a frequent
word looks up the passages in which it weighs most.
"""

import hashlib
import math
import sqlite3
import threading
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.storage.search.fts import TOKENIZER

K1: Final = 1.2
B: Final = 0.75
"""The parameters of BM25, which are those of FTS5."""
MIN_IDF: Final = 1e-6
WORD_BITS: Final = 28
DIMENSIONS: Final = 1 << WORD_BITS
"""Number of different words. Of 500,000 words of a collection, one in 500 shares its number with another."""
TIERS: Final = (0.8, 0.95, 1.05, 1.2, 1.35, 1.5, 1.7)
"""Limits of the weights of a word, of which each of the eight tiers has its own key."""
KEY_OFFSET: Final = 1 << 31
MAX_WORDS: Final = 16_000
"""Maximum number of words of a `sparsevec`; a passage of more keeps those that it has most often."""


@dataclass(frozen=True, slots=True)
class WordCounts:
    """The words of a passage by number, how often each occurs, and the number of all."""

    counts: Mapping[int, int]
    length: int

    def weights(self, average: float) -> Mapping[int, float]:
        """Return the BM25 weight of each word, without its rareness; `average` is the length of passages."""
        norm = K1 * (1 - B + B * self.length / max(average, 1.0))
        return {word: count * (K1 + 1) / (count + norm) for word, count in self.counts.items()}


class WordCounter:
    """Counts the words of texts. Each thread has its own tokenizer."""

    def __init__(self) -> None:
        self._local = threading.local()

    def count(self, texts: Sequence[str]) -> Sequence[WordCounts]:
        """Return the words of each text."""
        connection = self._connection()
        connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", enumerate(texts))
        try:
            found: list[dict[int, int]] = [{} for _ in texts]
            for number, term, count in connection.execute(
                "SELECT doc, term, COUNT(*) FROM found GROUP BY doc, term"
            ):
                word = word_number(term)
                found[number][word] = found[number].get(word, 0) + count
        finally:
            connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
        return [_limited(counts) for counts in found]

    def split(self, text: str) -> Sequence[int]:
        """Return the different words of a query."""
        [counted] = self.count([text])
        return sorted(counted.counts)

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(":memory:", isolation_level=None)
            connection.execute(
                f"CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='{TOKENIZER}')"
            )
            connection.execute("CREATE VIRTUAL TABLE found USING fts5vocab(words, 'instance')")
            self._local.connection = connection
        return connection


def word_number(term: str) -> int:
    """Return the number of a word, from 1 on."""
    hashed = hashlib.blake2b(term.encode(errors="replace"), digest_size=4).digest()
    return int.from_bytes(hashed, "big") % (DIMENSIONS - 1) + 1


def word_key(word: int, tier: int) -> int:
    """Return the key of a word in a tier, a signed number of 32 bits."""
    return (word << 3 | tier) - KEY_OFFSET


def word_keys(word: int) -> Sequence[int]:
    """Return the keys of a word in all tiers, lowest tier first."""
    return [word_key(word, tier) for tier in range(len(TIERS) + 1)]


def passage_keys(weights: Mapping[int, float]) -> Sequence[int]:
    """Return the keys of the words of a passage, ascending."""
    return sorted(word_key(word, bisect(TIERS, weight)) for word, weight in weights.items())


def rareness(passages: float, with_word: float) -> float:
    """Return the weight of a word in a query, as FTS5 does."""
    return max(math.log((max(passages - with_word, 0) + 0.5) / (with_word + 0.5)), MIN_IDF)


def sparse_vector(weights: Mapping[int, float]) -> str:
    """Return weights as the text of a `sparsevec`."""
    values = ",".join(f"{word}:{weight:.4g}" for word, weight in sorted(weights.items()))
    return f"{{{values}}}/{DIMENSIONS}"


def _limited(counts: Mapping[int, int]) -> WordCounts:
    length = sum(counts.values())
    if len(counts) > MAX_WORDS:
        counts = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_WORDS])
    return WordCounts(counts, length)
