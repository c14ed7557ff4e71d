import asyncio
import math
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import (
    ExtractionResult,
    FileStatus,
    IngestJob,
    ScopeKind,
    SearchScope,
    TextChunk,
    VectorBatch,
    pack_ids,
    unpack_ids,
)
from gatewayd.knowledge.records import CollectionLink, StoredPassage
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import sqlite
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.search import passages
from gatewayd.storage.tables.documents import PassageRow
from tests.fakes.storage.passages import SPACE, Shelf, direction, document, extraction, open_shelf

FILE = SearchScope(ScopeKind.FILE, "f")
A, B = SearchScope(ScopeKind.COLLECTION, "a"), SearchScope(ScopeKind.COLLECTION, "b")


@pytest.fixture
async def shelf(database: Database) -> AsyncIterator[Shelf]:
    async with open_shelf(database) as opened:
        await opened.collect("a")
        yield opened


async def held(shelf: Shelf) -> list[int]:
    """Return the passages of the collection whose vectors can be found."""
    return [number async for _, ids in shelf.passages.load_ids(SPACE.name, A) for number in unpack_ids(ids)]


async def test_what_is_staged_is_not_found(shelf: Shelf) -> None:
    await shelf.upload("f", "a")
    await shelf.passages.stage("f", extraction("one apple", "two pears"))
    ids = await shelf.embed("f")
    assert await shelf.passages.is_staged("f")
    assert await shelf.passages.read(ids) == {}
    assert await shelf.passages.find_text("f") is None
    for scope in (A, FILE):
        assert await shelf.find(scope, "apple") == []
        assert await shelf.passages.count_vectors(SPACE.name, scope) == 0


async def test_publishing_makes_it_found_everywhere(shelf: Shelf) -> None:
    await shelf.collect("b")
    await shelf.upload("f", "a")
    await shelf.collections.link(CollectionLink("b", "f", "u"))
    assert sorted(await shelf.publish("f", "one apple", "two pears")) == ["a", "b"]
    assert not await shelf.passages.is_staged("f")
    assert await shelf.passages.find_text("f") == "one apple\ntwo pears"
    for scope in (A, B, FILE):
        assert await shelf.find(scope, "apples") == ["one apple"]
        assert list(await shelf.loaded(scope)) == ["one apple", "two pears"]


async def test_a_passage_is_read_as_it_was_staged(shelf: Shelf) -> None:
    await shelf.upload("f")
    text = "Intro\nalpha beta"
    chunks = (TextChunk(0, 0, 5), TextChunk(1, 6, 16, page=3, heading="Guide > Setup", columns=(0, 3)))
    await shelf.passages.stage("f", ExtractionResult(text, chunks))
    assert await shelf.passages.publish(document("f", status=FileStatus.COMPLETED)) == []
    [first, second] = sorted(hit.passage_id for hit in await shelf.words.search(FILE, "intro beta", 5))
    assert await shelf.passages.read([second, first, 10**12]) == {
        first: StoredPassage(first, "f", 0, "Intro", 0, None, None),
        second: StoredPassage(second, "f", 1, "Int\nalpha beta", 6, 3, "Guide > Setup"),
    }


async def test_the_old_form_is_found_until_the_new_one_is_published(shelf: Shelf) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", "old apple", "old pear")
    old = await held(shelf)
    await shelf.passages.stage("f", extraction("new plum"))
    await shelf.embed("f")
    assert await shelf.find(A, "apple plum") == ["old apple"]
    assert await held(shelf) == old
    found = await shelf.files.find("f")
    assert found is not None
    assert await shelf.passages.publish(replace(found, name="new.txt", updated_at=9)) == ["a"]
    for scope in (A, FILE):
        assert await shelf.find(scope, "apple pear plum") == ["new plum"]
        assert list(await shelf.loaded(scope)) == ["new plum"]
    assert await shelf.files.find("f") == replace(found, name="new.txt", updated_at=9)
    # Ids are never used again.
    assert min(await held(shelf)) > max(old)


async def test_staging_anew_drops_what_was_staged(shelf: Shelf) -> None:
    await shelf.upload("f")
    await shelf.passages.stage("f", extraction("one", "two"))
    await shelf.embed("f")
    await shelf.passages.stage("f", extraction("three"))
    assert [text for _, text in await shelf.passages.missing("f", SPACE.name, 9)] == ["three"]
    await shelf.passages.unstage("f")
    assert not await shelf.passages.is_staged("f")
    assert await shelf.passages.missing("f", SPACE.name, 9) == []


async def test_on_sqlite_others_write_while_a_large_text_is_staged(
    tmp_path: Path, migrated_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "STAGING_BATCH_SIZE", 2)
    async with Database.open(sqlite(tmp_path / "gatewayd.db")) as database, open_shelf(database) as shelf:
        others = iter(range(9))
        seen: list[int] = []
        plain = passages.write_transaction

        @asynccontextmanager
        async def writing(what: str) -> AsyncIterator[Any]:
            async with plain(what) as client:
                yield client
            if what == "keep the passages of the file":
                # Another task, which would wait for a transaction of this one.
                await asyncio.create_task(shelf.upload(f"other {next(others)}"))
                seen.append(await PassageRow.filter(file_id="f").count())
                assert not await shelf.passages.is_staged("f")

        await shelf.upload("f")
        monkeypatch.setattr(passages, "write_transaction", writing)
        await shelf.passages.stage("f", extraction(*(f"number {n}" for n in range(5))))
        assert seen == [2, 4, 5]
        assert await shelf.passages.is_staged("f")


async def test_a_text_that_was_staged_in_part_is_staged_anew(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "STAGING_BATCH_SIZE", 2)
    await shelf.upload("f", "a")
    await shelf.publish("f", "old apple")
    rows = passages._rows("f", extraction("one", "two", "three"))
    monkeypatch.setattr(passages, "_rows", lambda *_: [*rows[:2], (*rows[2][:2], None, *rows[2][3:])])
    with pytest.raises(GatewayError):
        await shelf.passages.stage("f", extraction("one", "two", "three"))
    assert not await shelf.passages.is_staged("f")
    assert await shelf.find(A, "apple one") == ["old apple"]
    monkeypatch.setattr(passages, "_rows", lambda *_: rows)
    await shelf.passages.stage("f", extraction("one", "two", "three"))
    found = await shelf.passages.missing("f", SPACE.name, 9)
    assert [text for _, text in found] == ["one", "two", "three"]


async def test_unstaging_keeps_what_is_published(shelf: Shelf) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", "apple")
    await shelf.passages.stage("f", extraction("plum"))
    await shelf.passages.unstage("f")
    assert await shelf.find(A, "apple plum") == ["apple"]
    assert list(await shelf.loaded(A)) == ["apple"]


async def test_passages_without_vectors_come_in_order(shelf: Shelf) -> None:
    await shelf.upload("f")
    await shelf.passages.stage("f", extraction(*(f"number {n}" for n in range(9))))
    first = await shelf.passages.missing("f", SPACE.name, 4)
    assert [text for _, text in first] == [f"number {n}" for n in range(4)]
    some = [first[2][0], first[0][0]]
    vectors = direction("two") + direction("nought")
    await shelf.passages.add_vectors(SPACE.name, VectorBatch("f", pack_ids(some), vectors))
    left = await shelf.passages.missing("f", SPACE.name, 3)
    assert [text for _, text in left] == ["number 1", "number 3", "number 4"]
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    loaded = await shelf.loaded(FILE)
    assert loaded == {
        "number 0": list(array("f", direction("nought"))),
        "number 2": list(array("f", direction("two"))),
    }


async def test_batches_in_order_leave_nothing_out(shelf: Shelf) -> None:
    texts = [f"number {n}" for n in range(7)]
    await shelf.upload("f")
    # What is published has vectors, too, and is not what is missing.
    await shelf.publish("f", *texts)
    await shelf.passages.stage("f", extraction(*texts))
    seen: list[str] = []
    while rows := await shelf.passages.missing("f", SPACE.name, 3):
        seen += [text for _, text in rows]
        numbers = pack_ids([number for number, _ in rows])
        batch = VectorBatch("f", numbers, direction("x") * len(rows))
        await shelf.passages.add_vectors(SPACE.name, batch)
        await shelf.passages.add_vectors(SPACE.name, batch)
    assert seen == texts
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    assert await shelf.passages.count_vectors(SPACE.name, FILE) == len(texts)
    assert await shelf.passages.missing("f", SPACE.name, 0) == []


async def test_a_vector_is_kept_once_and_not_for_what_is_gone(shelf: Shelf) -> None:
    await shelf.upload("f")
    await shelf.publish("f", "apple", embed=False)
    [(number, _)] = await shelf.passages.missing("f", SPACE.name, 9)
    batch = VectorBatch("f", pack_ids([number, number + 1000]), direction("x") + direction("y"))
    await shelf.passages.add_vectors(SPACE.name, batch)
    again = VectorBatch("f", pack_ids([number]), direction("z"))
    await shelf.passages.add_vectors(SPACE.name, again)
    await shelf.passages.add_vectors(SPACE.name, replace(again, file_id="gone"))
    assert await shelf.passages.count_vectors(SPACE.name, FILE) == 1
    assert await shelf.loaded(FILE) == {"apple": list(array("f", direction("x")))}


async def test_vectors_of_another_shape_or_space_are_refused(shelf: Shelf) -> None:
    await shelf.upload("f")
    await shelf.passages.stage("f", extraction("apple"))
    [(number, _)] = await shelf.passages.missing("f", SPACE.name, 9)
    with pytest.raises(GatewayError, match="of dimension 4") as caught:
        await shelf.passages.add_vectors(SPACE.name, VectorBatch("f", pack_ids([number]), b"\0" * 12))
    assert caught.value.kind is ErrorKind.INTERNAL
    with pytest.raises(GatewayError) as caught:
        await shelf.passages.add_vectors("test:other", VectorBatch("f", pack_ids([number]), direction("x")))
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_file_that_is_gone_is_neither_staged_nor_published(shelf: Shelf) -> None:
    with pytest.raises(GatewayError) as caught:
        await shelf.passages.stage("gone", extraction("apple"))
    assert caught.value.kind is ErrorKind.CONFLICT
    with pytest.raises(GatewayError) as caught:
        await shelf.passages.publish(document("gone"))
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_nothing_is_published_when_the_transaction_fails(shelf: Shelf) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", "old apple")
    await shelf.passages.stage("f", extraction("new plum"))

    async def fail() -> None:
        async with shelf.database.transaction():
            await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await shelf.find(A, "apple plum") == ["old apple"]
    assert await shelf.passages.is_staged("f")
    assert await shelf.words.check(A) == []


async def test_publishing_ends_the_job(shelf: Shelf) -> None:
    jobs = TortoiseJobs()
    await shelf.upload("f")
    await jobs.put(IngestJob("f"))
    await shelf.publish("f", "apple")
    assert await jobs.find("f") is None


async def test_publishing_twice_changes_nothing(shelf: Shelf) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", "apple")
    before = await held(shelf)
    assert await shelf.passages.publish(document("f", status=FileStatus.COMPLETED)) == ["a"]
    assert await held(shelf) == before
    assert await shelf.find(A, "apple") == ["apple"]


async def test_a_file_takes_over_the_place_of_an_older_one(shelf: Shelf) -> None:
    await shelf.collect("b")
    await shelf.upload("old", "a", path="guide/one.md")
    await shelf.collections.link(CollectionLink("b", "old", "u", "", "guide/one.md"))
    await shelf.publish("old", "old apple")
    await shelf.upload("other", "a", path="guide/two.md")
    await shelf.publish("other", "other apple")
    await shelf.upload("new", "a", path="guide/one.md")
    assert set(await shelf.find(A, "apple")) == {"old apple", "other apple"}
    assert await shelf.passages.find_replaced("new") == [("a", "old")]
    assert await shelf.publish("new", "new apple") == ["a"]
    assert await shelf.passages.find_replaced("new") == []
    assert set(await shelf.find(A, "apple")) == {"new apple", "other apple"}
    assert set(await shelf.loaded(A)) == {"new apple", "other apple"}
    assert await shelf.find(B, "apple") == ["old apple"]
    links = [await shelf.collections.find_links(name, ["old"]) for name in ("a", "b")]
    assert [list(each) for each in links] == [[], ["old"]]


async def test_files_without_a_place_replace_nothing(shelf: Shelf) -> None:
    for file_id in ("one", "two"):
        await shelf.upload(file_id, "a")
        await shelf.publish(file_id, f"{file_id} apple")
    assert set(await shelf.find(A, "apple")) == {"one apple", "two apple"}


async def test_a_newer_upload_that_waits_is_not_replaced_by_an_older_one(shelf: Shelf) -> None:
    await shelf.upload("old", "a", path="one.md")
    await shelf.upload("new", "a", path="one.md")
    await shelf.publish("old", "old apple")
    assert await shelf.publish("new", "new apple") == ["a"]
    assert await shelf.find(A, "apple") == ["new apple"]


async def test_an_older_upload_that_waits_is_replaced_by_a_newer_one(shelf: Shelf) -> None:
    await shelf.upload("old", "a", path="one.md")
    await shelf.upload("new", "a", path="one.md")
    await shelf.publish("new", "new apple")
    assert await shelf.publish("old", "old apple") == []
    assert await shelf.find(A, "apple") == ["new apple"]


async def test_a_twin_has_all_its_vectors(shelf: Shelf) -> None:
    await shelf.upload("f")
    await shelf.publish("f", "apple", "pear", embed=False)
    found = await shelf.files.find("f")
    assert found is not None
    assert found.text_hash is not None
    assert await shelf.passages.find_twin(found.text_hash, SPACE.name) is None
    await shelf.embed("f")
    assert await shelf.passages.find_twin(found.text_hash, SPACE.name) == "f"
    assert await shelf.passages.find_twin("other", SPACE.name) is None
    assert await shelf.passages.find_twin(found.text_hash, "test:other") is None


async def test_vectors_are_copied_from_a_twin(shelf: Shelf) -> None:
    await shelf.upload("f")
    await shelf.publish("f", "apple", "pear")
    await shelf.upload("g")
    await shelf.passages.stage("g", extraction("apple", "pear"))
    assert await shelf.passages.copy_vectors("f", "g", SPACE.name)
    assert await shelf.passages.missing("g", SPACE.name, 9) == []
    await shelf.passages.publish(document("g", status=FileStatus.COMPLETED))
    assert await shelf.loaded(SearchScope(ScopeKind.FILE, "g")) == await shelf.loaded(FILE)


@pytest.mark.parametrize(
    "texts", [("apple",), ("apple", "pear", "plum"), ("apples", "pea"), ("pear", "apple")]
)
async def test_vectors_of_other_passages_are_not_copied(shelf: Shelf, texts: tuple[str, ...]) -> None:
    await shelf.upload("f")
    await shelf.publish("f", "apple", "pear")
    await shelf.upload("g")
    await shelf.passages.stage("g", extraction(*texts))
    assert not await shelf.passages.copy_vectors("f", "g", SPACE.name)
    assert not await shelf.passages.copy_vectors("gone", "g", SPACE.name)
    assert len(await shelf.passages.missing("g", SPACE.name, 9)) == len(texts)


async def test_a_twin_that_lacks_a_vector_is_not_copied(shelf: Shelf) -> None:
    await shelf.upload("f")
    await shelf.publish("f", "apple", "pear", embed=False)
    [(number, _), _] = await shelf.passages.missing("f", SPACE.name, 9)
    await shelf.passages.add_vectors(SPACE.name, VectorBatch("f", pack_ids([number]), direction("x")))
    await shelf.upload("g")
    await shelf.passages.stage("g", extraction("apple", "pear"))
    assert not await shelf.passages.copy_vectors("f", "g", SPACE.name)
    assert len(await shelf.passages.missing("g", SPACE.name, 9)) == 2


async def test_removing_a_file_removes_all_of_it(shelf: Shelf) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", "apple")
    await shelf.upload("g", "a")
    await shelf.publish("g", "apple tree")
    await shelf.files.remove("f")
    assert await shelf.find(A, "apple") == ["apple tree"]
    assert await shelf.find(FILE, "apple") == []
    assert list(await shelf.loaded(A)) == ["apple tree"]
    assert await shelf.passages.find_text("f") is None
    assert await shelf.words.check(A) == []


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
async def test_a_text_that_cannot_be_kept_is_refused(shelf: Shelf, text: str) -> None:
    await shelf.upload("f")
    with pytest.raises(GatewayError) as caught:
        await shelf.passages.stage("f", extraction(text))
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert not await shelf.passages.is_staged("f")


async def test_ids_that_nothing_can_have_are_nowhere(shelf: Shelf) -> None:
    for strange in ("x" * 65, "a\0", ""):
        assert await shelf.passages.find_text(strange) is None
        assert not await shelf.passages.is_staged(strange)
        assert await shelf.passages.missing(strange, SPACE.name, 5) == []
        assert await shelf.passages.find_twin(strange, SPACE.name) is None
        assert await shelf.passages.find_replaced(strange) == []
        await shelf.passages.unstage(strange)
        await shelf.passages.add_vectors(SPACE.name, VectorBatch(strange, b"", b""))


def test_the_vectors_of_these_tests_have_the_length_one() -> None:
    assert math.isclose(math.hypot(*array("f", direction("apple"))), 1, rel_tol=1e-6)
