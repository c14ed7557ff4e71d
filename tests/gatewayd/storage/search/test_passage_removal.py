import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import FileStatus, ScopeKind, SearchScope
from gatewayd.knowledge.records import CollectionLink
from gatewayd.storage.engine.database import Database
from gatewayd.storage.search import fts, passage_removal
from gatewayd.storage.tables.documents import REMOVED, CollectionRow, FileRow, PassageRow
from tests.fakes.storage.passages import Shelf, document, extraction, open_shelf
from tests.fakes.storage.word_tables import indexed_texts

A = SearchScope(ScopeKind.COLLECTION, "a")
FILE = SearchScope(ScopeKind.FILE, "f")
OLD = [f"old apple {number}" for number in range(5)]
NEW = [f"new apple {number}" for number in range(7)]
OTHER = ["other apple"]

on_sqlite = pytest.mark.parametrize("location", ["sqlite"], indirect=True)
Check = Callable[[], Awaitable[None]]


@pytest.fixture
async def shelf(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shelf]:
    """Yield a collection with a file that is large, and one that is not."""
    monkeypatch.setattr(passage_removal, "MAX_PART_ROWS", 2)
    async with open_shelf(database) as opened:
        await opened.collect("a")
        await opened.upload("f", "a")
        await opened.publish("f", *OLD)
        await opened.upload("g", "a")
        await opened.publish("g", *OTHER)
        yield opened


async def found(shelf: Shelf, scope: SearchScope = A) -> list[str]:
    return sorted(await shelf.find(scope, "apple", 50))


async def indexed(shelf: Shelf) -> list[str]:
    row = await CollectionRow.get(id="a")
    return sorted(await indexed_texts(shelf.database, row.number))


async def publish(shelf: Shelf) -> None:
    await passage_removal.prepare("f")
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))


async def leaves_nothing(shelf: Shelf, *texts: str) -> bool:
    """Tell whether these are all passages that there are, and their words all words."""
    passages = sorted([row.text for row in await PassageRow.all()])
    return (
        passages == sorted(texts) == await indexed(shelf) == await found(shelf)
        and not await FileRow.filter(status=REMOVED).exists()
    )


class KilledError(Exception):
    pass


async def killed_at_each_step(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], Awaitable[None]], check: Check
) -> int:
    """Run some work until it is done, each time with one transaction more before it ends; return how many
    the last one took: what the others did is kept."""
    plain = passage_removal.write_transaction
    for steps in range(50):
        left = steps

        @asynccontextmanager
        async def writing(what: str) -> AsyncIterator[Any]:
            nonlocal left
            if not left:
                raise KilledError
            left -= 1
            async with plain(what) as client:
                yield client

        monkeypatch.setattr(passage_removal, "write_transaction", writing)
        try:
            await work()
        except KilledError:
            await check()
        else:
            await check()
            return steps
        finally:
            monkeypatch.setattr(passage_removal, "write_transaction", plain)
    raise AssertionError("it never ended")


@on_sqlite
async def test_others_read_while_a_large_file_is_published_and_removed(database: Database) -> None:
    reads: list[int] = []

    async def read() -> None:
        while True:
            reads.append(await FileRow.filter().count())

    async def reads_during(work: Awaitable[Any]) -> int:
        reads.clear()
        reading = asyncio.create_task(read())
        await work
        reading.cancel()
        return len(reads)

    async with open_shelf(database) as shelf:
        await shelf.collect("a")
        await shelf.upload("f", "a")
        await shelf.passages.stage(
            "f", extraction(*(f"第{number}章介绍机器学习的方法" for number in range(2000)))
        )
        parts = 2000 // passage_removal.MAX_PART_ROWS
        assert await reads_during(shelf.passages.prepare("f")) >= parts - 1
        await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
        assert (await shelf.find(A, "第1999章"))[0] == "第1999章介绍机器学习的方法"
        await shelf.files.remove("f")
        assert await shelf.find(A, "第1999章") == []
        assert await reads_during(passage_removal.purge()) >= parts - 1
        assert await leaves_nothing(shelf)


@on_sqlite
async def test_publishing_moves_no_words_of_a_prepared_file(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.passages.stage("f", extraction(*NEW))
    await shelf.passages.prepare("f")
    before = await indexed(shelf)
    assert before == sorted([*OLD, *NEW, *OTHER])
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    assert await indexed(shelf) == before
    assert await found(shelf) == sorted([*NEW, *OTHER])


@on_sqlite
async def test_a_search_has_the_old_text_or_the_new_one_whenever_the_process_is_killed(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sees_old() -> None:
        assert await found(shelf) == sorted([*OLD, *OTHER])
        assert await found(shelf, FILE) == sorted(OLD)

    async def sees_new() -> None:
        assert await found(shelf) == sorted([*NEW, *OTHER])
        assert await found(shelf, FILE) == sorted(NEW)

    await shelf.passages.stage("f", extraction(*NEW))
    await shelf.embed("f")
    assert await killed_at_each_step(monkeypatch, lambda: shelf.passages.prepare("f"), sees_old) == 4
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    assert await killed_at_each_step(monkeypatch, passage_removal.purge, sees_new) == 3
    assert await leaves_nothing(shelf, *NEW, *OTHER)
    assert sorted(await shelf.loaded(A)) == sorted([*NEW, *OTHER])


@on_sqlite
async def test_a_removed_file_is_found_no_more_whenever_the_process_is_killed(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sees_the_other() -> None:
        assert await found(shelf) == OTHER
        assert await shelf.passages.count(A) == 1

    assert await shelf.files.remove("f")
    assert not await shelf.files.remove("f")
    assert await killed_at_each_step(monkeypatch, passage_removal.purge, sees_the_other) == 3
    assert await leaves_nothing(shelf, *OTHER)


@on_sqlite
async def test_words_leave_a_collection_whenever_the_process_is_killed(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sees_the_other() -> None:
        assert await found(shelf) == OTHER
        assert await found(shelf, FILE) == OLD

    assert await shelf.collections.unlink("a", ["f"]) == ["f"]
    assert await killed_at_each_step(monkeypatch, passage_removal.purge, sees_the_other) == 4
    assert await indexed(shelf) == OTHER


@on_sqlite
async def test_what_comes_back_meanwhile_keeps_its_words(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def relink() -> None:
        await shelf.collections.link(CollectionLink("a", "f", "u"))

    async def sees_all() -> None:
        assert await found(shelf) == sorted([*OLD, *OTHER])

    await shelf.collections.unlink("a", ["f"])
    await relink()
    await killed_at_each_step(monkeypatch, passage_removal.purge, sees_all)
    assert await leaves_nothing(shelf, *OLD, *OTHER)
    plain = passage_removal._detach_part
    changes = iter([relink, lambda: shelf.collections.unlink("a", ["f"])])

    async def detach_part(*part: Any) -> None:
        await plain(*part)
        if change := next(changes, None):
            await change()

    # It is linked and taken out again, between two parts.
    monkeypatch.setattr(passage_removal, "_detach_part", detach_part)
    await shelf.collections.unlink("a", ["f"])
    await passage_removal.purge()
    assert await indexed(shelf) == OTHER
    assert not await FileRow.filter(status=REMOVED).exists()


@on_sqlite
@pytest.mark.parametrize("parts", [1, 3])
async def test_a_file_goes_while_it_is_prepared(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    await shelf.passages.stage("f", extraction(*NEW))
    plain = passage_removal.fts.add_staged
    left = parts

    async def add_staged(*part: Any) -> None:
        nonlocal left
        left -= 1
        await plain(*part)
        if not left:
            raise KilledError

    monkeypatch.setattr(passage_removal.fts, "add_staged", add_staged)
    with pytest.raises(KilledError):
        await passage_removal.prepare("f")
    await shelf.files.remove("f")
    monkeypatch.undo()
    await passage_removal.prepare("f")
    with pytest.raises(GatewayError) as caught:
        await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    assert caught.value.kind is ErrorKind.NOT_FOUND
    # Its id is used again before the rest is gone.
    await shelf.upload("f", "a")
    await shelf.publish("f", *NEW)
    assert await found(shelf) == sorted([*NEW, *OTHER])
    await passage_removal.purge()
    assert await leaves_nothing(shelf, *NEW, *OTHER)


@on_sqlite
async def test_prepared_words_go_with_the_staged_text(shelf: Shelf) -> None:
    await shelf.passages.stage("f", extraction(*NEW))
    await passage_removal.prepare("f")
    await shelf.passages.stage("f", extraction("plum", "pear", "fig"))
    await passage_removal.prepare("f")
    assert await found(shelf) == sorted([*OLD, *OTHER])
    await shelf.passages.unstage("f")
    await passage_removal.purge()
    assert await leaves_nothing(shelf, *OLD, *OTHER)


@on_sqlite
async def test_prepared_words_leave_with_the_file(shelf: Shelf) -> None:
    await shelf.passages.stage("f", extraction(*NEW))
    await passage_removal.prepare("f")
    await shelf.collections.unlink("a", ["f"])
    await shelf.files.remove("f")
    await passage_removal.purge()
    assert await leaves_nothing(shelf, *OTHER)


@on_sqlite
async def test_a_small_file_whose_words_are_to_leave_a_collection_takes_them_along(shelf: Shelf) -> None:
    # Together they are many.
    assert await shelf.collections.unlink("a", ["f", "g"]) == ["f", "g"]
    assert await shelf.files.remove("g")
    await shelf.files.remove("f")
    await passage_removal.purge()
    assert await leaves_nothing(shelf)


@on_sqlite
async def test_two_at_once_do_it_once(shelf: Shelf) -> None:
    await shelf.passages.stage("f", extraction(*NEW))
    await asyncio.gather(passage_removal.prepare("f"), passage_removal.prepare("f"))
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    await asyncio.gather(
        passage_removal.purge(), shelf.files.remove("f"), passage_removal.purge(), passage_removal.purge()
    )
    await passage_removal.purge()
    assert await leaves_nothing(shelf, *OTHER)


@on_sqlite
async def test_what_is_hidden_takes_no_place_among_the_best(shelf: Shelf) -> None:
    await shelf.passages.stage("f", extraction(*(["apple"] * 9)))
    await passage_removal.prepare("f")
    assert len(await shelf.find(A, "apple", 6)) == 6
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    await shelf.files.remove("f")
    assert await shelf.find(A, "apple", 1) == OTHER


@on_sqlite
async def test_a_removed_collection_has_nothing_to_purge(shelf: Shelf) -> None:
    await shelf.files.remove("f")
    await shelf.collections.remove("a")
    await passage_removal.purge()
    assert [row.text for row in await PassageRow.all()] == OTHER


@on_sqlite
async def test_a_marker_is_no_file(shelf: Shelf) -> None:
    await shelf.files.remove("f")
    marker = await FileRow.get(status=REMOVED)
    assert passage_removal.is_marker(marker.id)
    assert await shelf.files.find(marker.id) is None
    assert await shelf.files.find_many([marker.id, "g"]) == {"g": await shelf.files.find("g")}
    for which in ({}, {"orphaned": True}):
        files, count = await shelf.files.list(**which)  # type: ignore[arg-type]
        assert ([file.id for file in files], count) == (["g"], 1)
    assert [file_id async for file_id in shelf.files.ids()] == ["g"]


@on_sqlite
async def test_a_check_finds_nothing_wrong_with_what_is_stale(shelf: Shelf) -> None:
    await shelf.passages.stage("g", extraction(*NEW))
    await passage_removal.prepare("g")
    await shelf.collections.unlink("a", ["f"])
    assert await shelf.words.check(A) == []
    assert await indexed(shelf) == sorted([*NEW, *OTHER])


@on_sqlite
async def test_what_cannot_be_removed_holds_up_nothing_else_and_no_check(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    await shelf.collect("b")
    for name in ("h", "e"):
        await shelf.upload(name, "b")
        await shelf.publish(name, *OLD)
    await shelf.files.remove("f")
    await shelf.files.remove("h")
    row = await CollectionRow.get(id="b")
    await PassageRow._meta.db.execute_query(f"DROP TABLE {fts.table(row.number)}")
    with pytest.raises(GatewayError):
        await passage_removal.purge()
    # The words of the other collection are gone.
    assert await indexed(shelf) == OTHER
    assert await shelf.words.check(SearchScope(ScopeKind.COLLECTION, "b"))
    assert "cannot remove stale passages before a check" in caplog.text
    assert sorted(await indexed_texts(shelf.database, row.number)) == sorted(OLD)
    await passage_removal.purge()
    assert not await FileRow.filter(status=REMOVED).exists()


@on_sqlite
async def test_the_sweeper_goes_on_when_it_is_woken_and_after_a_failure(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(passage_removal, "RETRY_SECONDS", 0.0)
    sweeper = passage_removal.StaleSweeper()
    outcomes = iter([GatewayError(ErrorKind.UNAVAILABLE, "the database is away"), None, None])
    plain, purged = passage_removal.purge, asyncio.Event()

    async def purge() -> None:
        if error := next(outcomes):
            raise error
        await plain()
        purged.set()

    monkeypatch.setattr(passage_removal, "purge", purge)
    shelf.files._wake = sweeper.wake
    running = asyncio.create_task(sweeper.run())
    await purged.wait()
    assert "cannot remove stale passages now: the database is away" in caplog.text
    purged.clear()
    await shelf.files.remove("f")
    await purged.wait()
    assert await leaves_nothing(shelf, *OTHER)
    running.cancel()


async def test_every_engine_removes_all(shelf: Shelf) -> None:
    await shelf.passages.stage("f", extraction(*NEW))
    await publish(shelf)
    assert await found(shelf) == sorted([*NEW, *OTHER])
    await shelf.files.remove("f")
    assert await found(shelf) == OTHER
    await passage_removal.purge()
    assert [row.text for row in await PassageRow.all()] == OTHER
