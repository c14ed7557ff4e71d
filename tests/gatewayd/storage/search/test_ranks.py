import random
import sqlite3
from collections.abc import Iterator

import pytest

from gatewayd.ingest.records import SearchHit
from gatewayd.storage.search.fts import TOKENIZER, ranked_query
from gatewayd.storage.search.ranks import PassageRanking, match_any

SIZE = 600
# How many passages in a thousand have each word.
SHARES = {"the": 990, "of": 600, "file": 450, "open": 300, "socket": 40, "zebra": 10}


@pytest.fixture
def reading() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE VIRTUAL TABLE words USING fts5(text, tokenize='{TOKENIZER}')")
    fill(connection, SIZE)
    yield connection
    connection.close()


def fill(connection: sqlite3.Connection, size: int, seed: int = 4) -> None:
    chance = random.Random(seed)
    for _ in range(size):
        words = [word for word, share in SHARES.items() if chance.randrange(1000) < share]
        words += chance.choices(["alpha", "beta", "gamma", "delta"], k=chance.randrange(2, 30))
        connection.execute("INSERT INTO words (text) VALUES (?1)", (" ".join(words),))


def in_full(reading: sqlite3.Connection, words: list[str], limit: int) -> list[SearchHit]:
    return [SearchHit(*row) for row in reading.execute(ranked_query("words"), (match_any(words), limit))]


def looked_at(reading: sqlite3.Connection, ranking: PassageRanking, words: list[str]) -> list[str]:
    queries: list[str] = []
    reading.set_trace_callback(queries.append)
    ranking.search(reading, "words", words, 10)
    reading.set_trace_callback(None)
    return queries


@pytest.mark.parametrize("words", [["the"], ["zebra", "the", "of"], ["open", "file", "the"], ["unknown"]])
def test_a_small_table_is_ranked_in_full(reading: sqlite3.Connection, words: list[str]) -> None:
    assert PassageRanking(2 * SIZE).search(reading, "words", words, 20) == in_full(reading, words, 20)


def test_words_of_more_than_half_count_for_nothing(reading: sqlite3.Connection) -> None:
    found = PassageRanking(100).search(reading, "words", ["the", "of", "socket"], 10)
    assert [hit.passage_id for hit in found] == [hit.passage_id for hit in in_full(reading, ["socket"], 10)]


def test_passages_with_a_rare_word_are_ranked_by_all_words(reading: sqlite3.Connection) -> None:
    words = ["file", "open", "socket", "the"]
    found = PassageRanking(100).search(reading, "words", words, 10)
    wanted = in_full(reading, words, 10)
    assert [hit.passage_id for hit in found] == [hit.passage_id for hit in wanted]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in wanted], rel=1e-4)
    alone = in_full(reading, ["socket"], 10)
    assert {hit.passage_id for hit in found} != {hit.passage_id for hit in alone}


def test_passages_without_a_frequent_word_are_found(reading: sqlite3.Connection) -> None:
    number = reading.execute("INSERT INTO words (text) VALUES ('unicorn')").lastrowid
    found = PassageRanking(50).search(reading, "words", ["unicorn", "socket", "open", "the"], 100)
    assert number in {hit.passage_id for hit in found}


def test_enough_words_are_taken_for_the_limit(reading: sqlite3.Connection) -> None:
    with_zebra = len(in_full(reading, ["zebra"], SIZE))
    assert 0 < with_zebra < 10
    found = PassageRanking(1).search(reading, "words", ["zebra", "socket"], 10)
    assert len(found) == 10
    assert found == in_full(reading, ["zebra", "socket"], 10)


def test_frequent_words_alone_are_searched(reading: sqlite3.Connection) -> None:
    found = PassageRanking(10).search(reading, "words", ["the", "of"], 10)
    assert len(found) == 10
    assert PassageRanking(10).search(reading, "words", ["unknown", "words"], 10) == []


def test_counts_of_frequent_words_are_taken_again_when_the_table_has_grown(
    reading: sqlite3.Connection,
) -> None:
    ranking = PassageRanking(100)
    words = ["open", "socket"]
    first = [query for query in looked_at(reading, ranking, words) if "LIMIT 301" in query]
    assert len(first) == 2
    # The rare one is counted each time: that takes no time.
    assert len([query for query in looked_at(reading, ranking, words) if "LIMIT 301" in query]) == 1
    fill(reading, SIZE // 2)
    assert len([query for query in looked_at(reading, ranking, words) if "LIMIT 451" in query]) == 2


def test_passages_with_two_frequent_words_come_before_those_with_one(reading: sqlite3.Connection) -> None:
    both = {hit.passage_id for hit in in_full(reading, ["open"], SIZE)}
    both &= {hit.passage_id for hit in in_full(reading, ["file"], SIZE)}
    found = PassageRanking(20).search(reading, "words", ["file", "open", "the"], 20)
    assert len(found) == 20
    assert {hit.passage_id for hit in found} <= both
    everything = PassageRanking(20).search(reading, "words", ["file", "open", "the"], len(both) + 20)
    assert len(everything) == len(both) + 20
