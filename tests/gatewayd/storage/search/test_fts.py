from collections.abc import AsyncIterator

import pytest
from tortoise.connection import get_connection

from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.search import fts
from gatewayd.storage.tables.documents import CollectionRow
from tests.fakes.storage.passages import Shelf, open_shelf
from tests.fakes.storage.word_tables import indexed_texts

A = SearchScope(ScopeKind.COLLECTION, "a")


@pytest.fixture
async def shelf(database: Database) -> AsyncIterator[Shelf]:
    async with open_shelf(database) as opened:
        await opened.collect("a")
        await opened.upload("f", "a")
        await opened.publish("f", "apple pie", "pear tree")
        await opened.upload("g", "a")
        await opened.publish("g", "apple tree")
        yield opened


async def number() -> int:
    row = await CollectionRow.get(id="a")
    return int(row.number)


async def test_words_are_added_and_taken_once(shelf: Shelf) -> None:
    n = await number()
    async with write_transaction("add words") as client:
        await fts.add(client, n, "f")
        await fts.add(client, n, "f")
    assert await shelf.find(A, "pie") == ["apple pie"]
    if client.capabilities.dialect != "sqlite":
        return
    for _ in range(2):
        async with write_transaction("take words") as client:
            await fts.remove(client, n, "f")
    assert await shelf.find(A, "pie apple") == ["apple tree"]
    assert await indexed_texts(shelf.database, n) == ["apple tree"]


async def test_words_come_back_when_a_part_fails(shelf: Shelf) -> None:
    n = await number()

    async def fail() -> None:
        async with write_transaction("take words") as client:
            await fts.remove(client, n, "g")
            raise ZeroDivisionError

    async with write_transaction("work") as client:
        with pytest.raises(ZeroDivisionError):
            await fail()
        await fts.add(client, n, "f")
    assert set(await shelf.find(A, "apple")) == {"apple pie", "apple tree"}
    assert await shelf.words.check(A) == []


async def test_tables_come_and_go(shelf: Shelf) -> None:
    async with write_transaction("make words") as client:
        await fts.create(client, 77)
        await fts.drop(client, 77)
        await fts.drop(client, 77)
        await fts.create(client, 77)


async def test_no_other_table_can_be_named() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        fts.table("1; DROP TABLE users")  # type: ignore[arg-type]


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_what_is_missing_is_mended(shelf: Shelf) -> None:
    n = await number()
    async with write_transaction("take words") as client:
        await fts.remove(client, n, "f")
    assert await shelf.words.check(A) == ["collection a lacked the words of 1 files"]
    assert await shelf.words.check(A) == []
    assert set(await shelf.find(A, "apple")) == {"apple pie", "apple tree"}


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_what_does_not_belong_is_mended(shelf: Shelf) -> None:
    await get_connection("sqlite").execute_query("DELETE FROM collection_files WHERE file_id = 'f'")
    assert await shelf.words.check(A) == [
        "collection a had 2 passages that are not in it; its words were rebuilt"
    ]
    assert await shelf.find(A, "apple") == ["apple tree"]
    assert await shelf.words.check(A) == []


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_a_lost_table_is_made_anew(shelf: Shelf) -> None:
    await get_connection("sqlite").execute_query(f"DROP TABLE {fts.table(await number())}")
    assert await shelf.words.check(A) == ["collection a had no table of words; its words were rebuilt"]
    assert set(await shelf.find(A, "apple")) == {"apple pie", "apple tree"}


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_a_text_without_such_scripts_is_indexed_as_it_is(shelf: Shelf) -> None:
    run = shelf.database.engine.execute_query_dict
    await run(f"CREATE VIRTUAL TABLE plain USING fts5(text, tokenize='{fts.TOKENIZER}')")
    for file_id in ("f", "g"):
        await run(
            "INSERT INTO plain (rowid, text) SELECT id, text FROM passages WHERE file_id = ?1 ORDER BY id",
            [file_id],
        )
    query = "SELECT id, block FROM {}_data ORDER BY id"
    assert await run(query.format(fts.table(await number()))) == await run(query.format("plain"))


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_segmented_words_are_taken_out_whole(shelf: Shelf) -> None:
    await shelf.upload("h", "a")
    await shelf.publish("h", "本章介绍 apple 机器学习", "本章介绍")
    await shelf.publish("h", "机器翻译")
    assert await indexed_texts(shelf.database, await number()) == [
        "apple pie",
        "pear tree",
        "apple tree",
        "机器翻译",
    ]
