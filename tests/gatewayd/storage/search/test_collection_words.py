"""The words of large collections: current in every order of events, and gone with what they belong to."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg
import pytest
from tortoise.connection import get_connection

from gatewayd.ingest.records import FileStatus, ScopeKind, SearchScope
from gatewayd.knowledge.records import CollectionLink
from gatewayd.storage.engine.database import Database
from gatewayd.storage.search import collection_graphs, collection_words
from gatewayd.storage.search.collection_words import CollectionWords
from gatewayd.storage.search.lexical import MAX_QUERY_CHARACTERS, PostgresLexical, open_lexical
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.passages import Shelf, document, extraction, open_shelf
from tests.fakes.storage.postgres import Postgres

pytestmark = pytest.mark.parametrize("location", ["postgres"], indirect=True)

A = SearchScope(ScopeKind.COLLECTION, "a")
FILE = SearchScope(ScopeKind.FILE, "f")
TEXTS = ("red apple", "green apple apple", "yellow pear", "blue plum", "red plum and pear")


@pytest.fixture
async def tasks() -> AsyncIterator[TaskRegistry]:
    opened = TaskRegistry()
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def _retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_words, "RETRY_SECONDS", 0.0)


@pytest.fixture
async def shelf(database: Database) -> AsyncIterator[Shelf]:
    await run("CREATE EXTENSION vector")
    async with open_shelf(database) as opened:
        await opened.collect("a")
        yield opened


@pytest.fixture
async def words(shelf: Shelf, tasks: TaskRegistry) -> PostgresLexical:
    reader: Any = shelf.reader
    return PostgresLexical(reader, CollectionWords(reader, tasks, min_passages=4))


async def run(query: str) -> list[tuple[object, ...]]:
    _, rows = await get_connection("postgresql").execute_query(query)
    return [tuple(row) for row in rows]


async def made(words: PostgresLexical, tasks: TaskRegistry) -> str:
    """Search until the table of the collection is there, and return its name."""
    await words.search(A, "apple", 3)
    while tasks.list():
        await asyncio.sleep(0.01)
    [(name, is_filled)] = await run("SELECT words, is_filled FROM collection_words")
    assert is_filled
    return str(name)


async def found(shelf: Shelf, words: PostgresLexical, query: str, limit: int = 10) -> Sequence[str]:
    """Return what a search finds, and check that the table has exactly what is in the collection."""
    hits = await words.search(A, query, limit)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    [[is_prepared]] = await run("SELECT to_regclass('collection_words') IS NOT NULL")
    for (name,) in await run("SELECT words FROM collection_words") if is_prepared else ():
        stored = await run(f"SELECT passage_id FROM {name} ORDER BY 1")
        assert stored == await run(
            "SELECT p.id FROM passages p JOIN collection_files l USING (file_id) "
            "WHERE l.collection_id = 'a' AND NOT p.staged ORDER BY 1"
        )
    return await shelf.texts([hit.passage_id for hit in hits])


async def test_a_large_collection_is_ranked_by_bm25(
    shelf: Shelf, words: PostgresLexical, tasks: TaskRegistry
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *TEXTS[:3])
    await found(shelf, words, "apple")
    assert await run("SELECT to_regclass('collection_words')") == [(None,)]
    await shelf.upload("g", "a")
    await shelf.publish("g", *TEXTS[3:], "ไทยภาษา", "e\u0301te\u0301 naïve مرحبا", "x " * 1000, "", "...")
    before = await found(shelf, words, "apple")
    assert sorted(before) == sorted(TEXTS[:2])
    await made(words, tasks)
    # By now words of every script are found by the stems of the embedded profile.
    assert await found(shelf, words, "apples") == [TEXTS[1], TEXTS[0]]
    assert (await found(shelf, words, "pears and a red plum"))[0] == TEXTS[4]
    assert await found(shelf, words, "ภาษา") == ["ไทยภาษา"]
    assert await found(shelf, words, "naive") == await found(shelf, words, "مرحبا") != []
    assert await found(shelf, words, "ete X") != []
    # A single character of a script without blanks is a prefix, which text search finds.
    assert await found(shelf, words, "ษ") == ["ไทยภาษา"]
    for nothing in ("", "...", "\x00", "absent"):
        assert await found(shelf, words, nothing) == []
    assert await found(shelf, words, "apple", 0) == []
    assert await found(shelf, words, "apple", 1) == [TEXTS[1]]
    many = " ".join(f"w{n}" for n in range(10_000))
    assert len(many) > MAX_QUERY_CHARACTERS
    assert await found(shelf, words, f"apple {many}") is not None
    # Whoever may read the collection alone sees what is linked at the time of the search.
    await run("DELETE FROM collection_files WHERE file_id = 'f'")
    assert await found(shelf, words, "apple") == []


async def test_the_words_follow_every_change(
    shelf: Shelf, words: PostgresLexical, tasks: TaskRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *TEXTS)
    name = await made(words, tasks)
    # Published before it is linked, and linked before it is published: by a node of any version.
    await shelf.upload("g")
    await shelf.publish("g", "quince")
    await shelf.collections.link(CollectionLink("a", "g", "u"))
    await shelf.upload("h", "a")
    await shelf.publish("h", "quince tart")
    assert await found(shelf, words, "quince") == ["quince", "quince tart"]
    assert await run("SELECT * FROM word_backlog") == []
    # Replaced by another text, taken out, and removed.
    await shelf.passages.stage("h", extraction("medlar"))
    assert await found(shelf, words, "medlar quince") == ["quince", "quince tart"]
    await shelf.passages.publish(document("h", status=FileStatus.COMPLETED, chunks=1))
    await shelf.collections.unlink("a", ["g"])
    assert await found(shelf, words, "medlar quince") == ["medlar"]
    await shelf.files.remove("h")
    assert await found(shelf, words, "medlar quince") == []
    # More files than a search adds by itself: text search answers, and a task adds them.
    monkeypatch.setattr(collection_words, "MAX_BACKLOG_FILES", 0)
    await shelf.upload("i", "a")
    await shelf.publish("i", "sorb")
    assert await shelf.texts([hit.passage_id for hit in await words.search(A, "sorb", 3)]) == ["sorb"]
    while tasks.list():
        await asyncio.sleep(0.01)
    assert await found(shelf, words, "sorb") == ["sorb"]
    await shelf.collections.remove("a")
    assert await run(f"SELECT to_regclass('{name}')") == [(None,)]
    assert await run("SELECT * FROM collection_words") == []
    # A node that made it for a collection that is gone by now makes no table.
    reader: Any = shelf.reader
    await CollectionWords(reader, tasks)._make("a")
    assert await run(f"SELECT to_regclass('{name}')") == [(None,)]


async def test_a_collection_changes_while_several_nodes_add_its_words(
    shelf: Shelf, words: PostgresLexical, tasks: TaskRegistry
) -> None:
    reader: Any = shelf.reader
    other = PostgresLexical(reader, CollectionWords(reader, tasks, min_passages=4))
    for name in ("f", "g", "h"):
        await shelf.upload(name, "a")
        await shelf.publish(name, *TEXTS)
    dice = random.Random(3)

    async def write(first: str) -> None:
        for number in range(5):
            name = f"{first}{number}"
            await shelf.upload(name)
            await asyncio.gather(
                shelf.collections.link(CollectionLink("a", name, "u")), shelf.publish(name, f"quince {name}")
            )
            if dice.random() < 0.5:
                await asyncio.gather(shelf.collections.unlink("a", [name]), shelf.files.remove(name))

    async def search() -> None:
        for each in (words, other) * 4:
            assert len(await each.search(A, "apple", 5)) >= 4

    await asyncio.gather(write("x"), search(), write("y"), shelf.collections.unlink("a", ["h"]))
    await made(words, tasks)
    await made(other, tasks)
    assert await words.search(A, "quince", 20) == await other.search(A, "quince", 20)
    assert all("quince" in text for text in await found(shelf, words, "quince", 20))


async def test_a_check_repairs_the_words(
    shelf: Shelf, words: PostgresLexical, tasks: TaskRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *TEXTS)
    assert await words.check(A) == await words.check(FILE) == []
    with monkeypatch.context() as killed:
        killed.setattr(collection_words, "SELECT_TEXTS", "SELECT 1/0")
        await words.search(A, "apple", 3)
        while tasks.list():
            await asyncio.sleep(0.01)
    assert await run("SELECT is_filled FROM collection_words") == [(False,)]
    name = await made(words, tasks)
    assert await words.check(A) == []
    await run(f"DELETE FROM {name} WHERE passage_id = (SELECT MIN(passage_id) FROM {name})")
    await run(f"INSERT INTO {name} SELECT 1000000, 'gone', keys, vec FROM {name} LIMIT 1")
    assert await words.check(A) == [
        "the words of collection a differed: those of 1 files, and 1 passages that are not in it"
    ]
    assert await words.check(A) == []
    assert await found(shelf, words, "apple") == [TEXTS[1], TEXTS[0]]
    # A collection that became small loses its table at the next check.
    reader: Any = shelf.reader
    assert await CollectionWords(reader, tasks, min_passages=100).check("a") == []
    assert await run(f"SELECT to_regclass('{name}')") == [(None,)]


async def test_searches_go_on_while_the_words_cannot_be_prepared(
    shelf: Shelf,
    words: PostgresLexical,
    tasks: TaskRegistry,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collection_graphs, "LOCK_MILLISECONDS", 10)
    await shelf.upload("f", "a")
    await shelf.publish("f", *TEXTS)
    [[database]] = await run("SELECT current_database()")
    apart = await asyncpg.connect(postgres.server.get_uri(str(database)))
    try:
        async with apart.transaction():
            await apart.execute("DELETE FROM collection_files WHERE id < 0")
            assert len(await words.search(A, "apple", 3)) == 2
            while tasks.list():
                await asyncio.sleep(0.01)
            assert len(await words.search(A, "apple", 3)) == 2
            while tasks.list():
                await asyncio.sleep(0.01)
            assert await run("SELECT to_regclass('collection_words')") == [(None,)]
        await made(words, tasks)
        # A search neither adds the words of a large file, nor waits for somebody who has locked a small one.
        await shelf.upload("g", "a")
        await shelf.publish("g", *TEXTS)
        async with apart.transaction():
            await apart.execute("SELECT 1 FROM files WHERE id = 'g' FOR UPDATE")
            with monkeypatch.context() as large:
                large.setattr(collection_words, "MAX_BACKLOG_PASSAGES", 4)
                assert len(await asyncio.wait_for(words.search(A, "apple", 9), 4)) == 4
    finally:
        await apart.close()
    while tasks.list():
        await asyncio.sleep(0.01)
    assert len(await found(shelf, words, "apple")) == 4
    assert await run("SELECT * FROM word_backlog") == []


async def test_a_restored_table_is_analysed_before_it_is_searched(
    shelf: Shelf, words: PostgresLexical, tasks: TaskRegistry
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *TEXTS)
    name = await made(words, tasks)
    await run(f"CREATE TABLE copied AS TABLE {name}")
    await run(f"DROP TABLE {name}")
    await run(f"ALTER TABLE copied RENAME TO {name}")
    assert len(await words.search(A, "apple", 3)) == 2
    await made(words, tasks)
    [[passages]] = await run(f"SELECT reltuples::int FROM pg_class WHERE relname = '{name}'")
    assert passages == len(TEXTS)


async def test_without_pgvector_text_search_answers(database: Database, tasks: TaskRegistry) -> None:
    async with open_shelf(database) as shelf:
        await shelf.collect("a")
        await shelf.upload("f", "a")
        await shelf.publish("f", *TEXTS)
        reader: Any = shelf.reader
        async with open_lexical(reader, tasks) as lexical:
            assert len(await lexical.search(A, "apple", 3)) == 2
        assert await CollectionWords(reader, tasks, min_passages=4).search("a", "apple", 3) is None
        assert await CollectionWords(reader, tasks).check("a") == []
        assert not tasks.list()
