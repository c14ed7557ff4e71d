from collections.abc import AsyncIterator

import pytest

from gatewayd.ingest.records import ScopeKind, SearchScope, VectorBatch, pack_ids, unpack_ids
from gatewayd.storage.engine.database import Database
from gatewayd.storage.search import vectors
from tests.fakes.storage.passages import SPACE, Shelf, direction, extraction, open_shelf

A = SearchScope(ScopeKind.COLLECTION, "a")


@pytest.fixture
async def shelf(database: Database) -> AsyncIterator[Shelf]:
    async with open_shelf(database) as opened:
        await opened.collect("a")
        yield opened


async def fill(shelf: Shelf, file_id: str, count: int, at_once: int) -> None:
    """Publish a file whose vectors come in several batches."""
    await shelf.upload(file_id, "a")
    await shelf.publish(file_id, *(f"{file_id} {number}" for number in range(count)), embed=False)
    while rows := await shelf.passages.missing(file_id, SPACE.name, at_once):
        batch = b"".join(direction(text) for _, text in rows)
        ids = pack_ids([number for number, _ in rows])
        await shelf.passages.add_vectors(SPACE.name, VectorBatch(file_id, ids, batch))


@pytest.mark.parametrize(("page_bytes", "page_batches"), [(1, 200), (100, 200), (1 << 20, 2), (1 << 20, 200)])
async def test_all_come_oldest_first_in_pages_of_any_size(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, page_bytes: int, page_batches: int
) -> None:
    monkeypatch.setattr(vectors, "PAGE_BYTES", page_bytes)
    monkeypatch.setattr(vectors, "PAGE_BATCHES", page_batches)
    for file_id in ("f", "g"):
        await fill(shelf, file_id, 7, 3)
    batches = [batch async for batch in shelf.passages.load(SPACE.name, A)]
    assert [batch.file_id for batch in batches] == ["f"] * 3 + ["g"] * 3
    ids = [number for batch in batches for number in unpack_ids(batch.ids)]
    assert ids == sorted(ids)
    assert len(ids) == 14
    assert [pair async for pair in shelf.passages.load_ids(SPACE.name, A)] == [
        (batch.file_id, batch.ids) for batch in batches
    ]
    assert await shelf.passages.load_file(SPACE.name, A, "g") == batches[3:]
    assert await shelf.passages.count_vectors(SPACE.name, A) == 14
    stored = await shelf.passages.read(ids)
    for batch in batches:
        texts = [stored[number].text for number in unpack_ids(batch.ids)]
        assert batch.vectors == b"".join(direction(text) for text in texts)


async def test_a_file_outside_of_the_scope_has_nothing(shelf: Shelf) -> None:
    await fill(shelf, "f", 2, 2)
    await shelf.collections.unlink("a", ["f"])
    assert await shelf.passages.load_file(SPACE.name, A, "f") == []
    assert await shelf.passages.count_vectors(SPACE.name, A) == 0
    alone = SearchScope(ScopeKind.FILE, "f")
    assert len(await shelf.passages.load_file(SPACE.name, alone, "f")) == 1
    assert await shelf.passages.load_file(SPACE.name, alone, "g") == []
    assert await shelf.passages.load_file("test:unknown", alone, "f") == []


async def test_passages_are_counted_with_vectors_or_without(shelf: Shelf) -> None:
    await fill(shelf, "f", 3, 2)
    await shelf.upload("g", "a")
    await shelf.publish("g", "one", "two", embed=False)
    await shelf.upload("h")
    await shelf.publish("h", "three")
    await shelf.upload("i", "a")
    await shelf.passages.stage("i", extraction("four"))
    assert await shelf.passages.count(A) == 5
    for file_id, count in (("f", 3), ("g", 2), ("h", 1), ("i", 0), ("x", 0)):
        assert await shelf.passages.count(SearchScope(ScopeKind.FILE, file_id)) == count


async def test_what_nothing_can_be_called_has_nothing(shelf: Shelf) -> None:
    for kind in ScopeKind:
        for name in ("", "a\0", "x" * 100):
            assert await shelf.passages.count(SearchScope(kind, name)) == 0
            assert await shelf.passages.count_vectors(SPACE.name, SearchScope(kind, name)) == 0
    assert await shelf.passages.count_vectors("x" * 300, A) == 0
    assert await shelf.passages.load_file(SPACE.name, A, "x" * 100) == []


async def test_a_file_that_goes_meanwhile_is_left_out(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "PAGE_BATCHES", 1)
    for file_id in ("f", "g", "h"):
        await fill(shelf, file_id, 2, 2)
    loading = shelf.passages.load(SPACE.name, A)
    found = [(await anext(loading)).file_id]
    await shelf.files.remove("g")
    await fill(shelf, "i", 2, 2)
    found += [batch.file_id async for batch in loading]
    assert found == ["f", "h"]
