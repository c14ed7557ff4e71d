import math
import sqlite3

import pytest

from gatewayd.storage.search.fts import TOKENIZER, ranked_query
from gatewayd.storage.search.word_weights import (
    DIMENSIONS,
    MAX_WORDS,
    WordCounter,
    passage_keys,
    rareness,
    sparse_vector,
    word_key,
    word_keys,
    word_number,
)

TEXTS = [
    "Foxes jumped over the café; a fox is running.",
    "The runner ran. Ran again, and a naïve fox with him",
    "مرحبا بالعالم 123 ünder_score",
    "คน ไท ทย ย hello Hello HELLO",
    "na\u0308iv e\u0301te\u0301 plain words without any of the others here",
    "",
]


def test_weights_are_those_of_the_embedded_profile() -> None:
    """FTS5 itself ranks the texts by the same scores."""
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='{TOKENIZER}')")
    database.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", enumerate(TEXTS, 1))
    counter = WordCounter()
    counted = counter.count(TEXTS)
    average = sum(each.length for each in counted) / len(TEXTS)
    weights = [each.weights(average) for each in counted]
    for query in ("fox running", "runner naive", "hello ete", "مرحبا 123", "under score", "ทย"):
        words = counter.split(query)
        idf = {word: rareness(len(TEXTS), sum(word in each for each in weights)) for word in words}
        scores = {
            number: sum(idf[word] * each[word] for word in words if word in each)
            for number, each in enumerate(weights, 1)
            if any(word in each for word in words)
        }
        match = " OR ".join(f'"{word}"' for word in query.split())
        ranked = dict(database.execute(ranked_query("words"), (match, 10)))
        assert scores == pytest.approx(ranked, rel=1e-4)
        assert scores


def test_a_passage_of_one_word_and_one_of_many() -> None:
    counter = WordCounter()
    [same, many, nothing] = counter.count(
        ["word " * 100_000, " ".join(f"w{n}" for n in range(MAX_WORDS + 500)) + " twice twice", "?!\x00"]
    )
    assert (len(same.counts), same.length) == (1, 100_000)
    assert len(many.counts) == MAX_WORDS
    assert word_number("twice") in many.counts
    assert many.length == MAX_WORDS + 502
    assert (nothing.counts, nothing.length) == ({}, 0)
    assert nothing.weights(0.0) == {}
    assert sparse_vector({}) == f"{{}}/{DIMENSIONS}"
    # Nothing is left of earlier texts.
    assert counter.count(["word"])[0].length == 1


def test_keys_tell_how_much_a_word_weighs() -> None:
    keys = word_keys(7)
    assert keys == sorted(set(keys))
    assert passage_keys({7: 0.1, 8: 9.0}) == [keys[0], word_keys(8)[-1]]
    assert passage_keys({7: 1.0}) == [word_key(7, 2)]
    bounds = (word_keys(1)[0], word_keys(DIMENSIONS - 1)[-1])
    assert -(2**31) <= bounds[0] < bounds[1] < 2**31
    assert sparse_vector({9: 1.23456, 2: 1.0}) == f"{{2:1,9:1.235}}/{DIMENSIONS}"
    assert rareness(10, 8) == 1e-6
    assert rareness(1000, 1) == pytest.approx(math.log(999.5 / 1.5))
