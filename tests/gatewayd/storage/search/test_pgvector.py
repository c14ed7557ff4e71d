import asyncio
import random
from array import array
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from tortoise.connection import get_connection

from gatewayd.ingest.records import EmbeddingSpace, FileStatus, ScopeKind, SearchScope, VectorBatch, pack_ids
from gatewayd.knowledge.records import CollectionLink
from gatewayd.storage.engine.database import Database
from gatewayd.storage.search.pgvector import PgVectorIndex, open_pgvector
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.index_conformance import BATCH, IndexConformance, IndexHarness, Rows
from tests.fakes.documents.index_conformance import SPACE as PLAIN
from tests.fakes.storage.passages import SPACE, Shelf, direction, document, extraction, open_shelf

A = SearchScope(ScopeKind.COLLECTION, "a")
FILE = SearchScope(ScopeKind.FILE, "f")


@pytest.fixture
async def tasks() -> AsyncIterator[TaskRegistry]:
    opened = TaskRegistry()
    yield opened
    await opened.close()


@pytest.fixture
async def shelf(database: Database) -> AsyncIterator[Shelf]:
    async with open_shelf(database) as opened:
        await opened.collect("a")
        yield opened


@pytest.fixture
async def index(shelf: Shelf, tasks: TaskRegistry) -> PgVectorIndex:
    found = await open_pgvector(shelf.database, tasks)
    assert found is not None
    return found


async def run(query: str) -> list[tuple[object, ...]]:
    _, rows = await get_connection("postgresql").execute_query(query)
    return [tuple(row) for row in rows]


async def nearest(shelf: Shelf, index: PgVectorIndex, scope: SearchScope, text: str) -> dict[str, float]:
    hits = await index.search(SPACE, scope, direction(text), 10)
    texts = await shelf.texts([hit.passage_id for hit in hits])
    return dict(zip(texts, [hit.score for hit in hits], strict=True))


def cosine(one: str, two: str) -> float:
    pairs = zip(array("f", direction(one)), array("f", direction(two)), strict=True)
    return sum(left * right for left, right in pairs)


class ShelfHarness:
    """The index over a real database."""

    def __init__(self, shelf: Shelf, index: PgVectorIndex) -> None:
        self.index = index
        self._shelf = shelf

    async def put(
        self, file_id: str, rows: Rows, collections: Sequence[str] = (), space: EmbeddingSpace = PLAIN
    ) -> Sequence[int]:
        shelf = self._shelf
        if await shelf.files.find(file_id) is None:
            await shelf.upload(file_id)
        for name in collections:
            if await shelf.collections.find(name) is None:
                await shelf.collect(name)
            await shelf.collections.link(CollectionLink(name, file_id, "u"))
        await shelf.passages.stage(file_id, extraction(*(f"text {number}" for number in range(len(rows)))))
        ids = [number for number, _ in await shelf.passages.missing(file_id, PLAIN.name, len(rows))]
        await self._add(file_id, ids, rows, space)
        await shelf.passages.publish(document(file_id, status=FileStatus.COMPLETED, chunks=len(rows)))
        return ids

    async def embed(self, file_id: str, rows: Rows, space: EmbeddingSpace) -> None:
        await self._shelf.spaces.add(space)
        missing = await self._shelf.passages.missing(file_id, space.name, len(rows))
        await self._add(file_id, [number for number, _ in missing], rows, space)

    async def unlink(self, file_id: str, collection_id: str) -> None:
        await self._shelf.collections.unlink(collection_id, [file_id])

    async def remove(self, file_id: str) -> None:
        await self._shelf.files.remove(file_id)

    async def _add(self, file_id: str, ids: Sequence[int], rows: Rows, space: EmbeddingSpace) -> None:
        await self._shelf.spaces.add(space)
        for at in range(0, len(ids), BATCH):
            vectors = rows[at : at + BATCH].astype("<f4").tobytes()
            batch = VectorBatch(file_id, pack_ids(ids[at : at + BATCH]), vectors)
            await self._shelf.passages.add_vectors(space.name, batch)


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
class TestExact(IndexConformance):
    @pytest.fixture
    async def harness(self, shelf: Shelf, index: PgVectorIndex) -> IndexHarness:
        return ShelfHarness(shelf, index)


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
class TestGraph(IndexConformance):
    """With a graph as soon as it is built, which goes on while the tests do."""

    @pytest.fixture
    async def harness(self, shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry) -> IndexHarness:
        return ShelfHarness(shelf, PgVectorIndex(tasks, exact_up_to=1))


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_sqlite_has_no_pgvector(database: Database, tasks: TaskRegistry) -> None:
    assert await open_pgvector(database, tasks) is None


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_a_server_without_it_has_none(
    database: Database, tasks: TaskRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.storage.search.pgvector.EXTENSION", "no_such_extension")
    assert await open_pgvector(database, tasks) is None


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_vectors_come_with_a_refresh(shelf: Shelf, index: PgVectorIndex) -> None:
    await shelf.upload("f", "a")
    assert await nearest(shelf, index, A, "apple") == {}
    await shelf.publish("f", "apple", "pear", "plum")
    for _ in range(2):
        await index.refresh(FILE, "f")
        await index.refresh(A, "f")
    for scope in (A, FILE):
        found = await nearest(shelf, index, scope, "apple")
        assert found == pytest.approx({text: cosine(text, "apple") for text in ("apple", "pear", "plum")})
        assert list(found) == sorted(found, key=lambda text: -cosine(text, "apple"))
        assert all(-1 <= score <= 1 for score in found.values())


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_the_first_search_finds_what_nobody_brought(shelf: Shelf, index: PgVectorIndex) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", "apple")
    assert list(await nearest(shelf, index, A, "apple")) == ["apple"]
    [hit] = await index.search(SPACE, A, direction("apple"), 5)
    assert await index.similarities(SPACE, FILE, direction("pear"), [hit.passage_id, 10**9]) == {
        hit.passage_id: pytest.approx(cosine("apple", "pear"))
    }
    assert (
        await index.similarities(
            SPACE, SearchScope(ScopeKind.COLLECTION, "b"), direction("pear"), [hit.passage_id]
        )
        == {}
    )
    assert await index.search(SPACE, A, direction("apple"), 0) == []
    assert await index.search(EmbeddingSpace("test:unknown", 4), A, direction("apple"), 5) == []


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_the_old_form_is_found_until_the_new_one_is_published(
    shelf: Shelf, index: PgVectorIndex
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", "apple")
    await index.refresh(A, "f")
    await shelf.passages.stage("f", extraction("plum"))
    await shelf.embed("f")
    await index.refresh(A, "f")
    assert list(await nearest(shelf, index, A, "plum")) == ["apple"]
    await shelf.passages.publish(document("f", status=FileStatus.COMPLETED))
    await index.refresh(A, "f")
    assert list(await nearest(shelf, index, A, "plum")) == ["plum"]
    await shelf.collections.unlink("a", ["f"])
    await index.refresh(A, "f")
    assert await nearest(shelf, index, A, "plum") == {}
    assert list(await nearest(shelf, index, FILE, "plum")) == ["plum"]
    await shelf.files.remove("f")
    await index.refresh(FILE, "f")
    assert await nearest(shelf, index, FILE, "plum") == {}


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_a_check_mends_what_differs(shelf: Shelf, index: PgVectorIndex) -> None:
    for file_id in ("f", "g"):
        await shelf.upload(file_id, "a")
        await shelf.publish(file_id, f"{file_id} apple", f"{file_id} pear", f"{file_id} plum")
        await index.refresh(A, file_id)
    assert await index.check(SPACE, A) == []
    before = await nearest(shelf, index, A, "apple")
    [(table,)] = await run("SELECT 'space_vectors_' || id FROM embedding_spaces")
    await run(f"DELETE FROM {table} WHERE passage_id = (SELECT MIN(passage_id) FROM {table})")
    await run(f"UPDATE {table} SET vector = '[0,0,0,1]' WHERE file_id = 'g'")
    assert await index.check(SPACE, A) == [
        "the vectors of file f differed: 1 were missing, 0 were wrong",
        "the vectors of file g differed: 0 were missing, 3 were wrong",
    ]
    assert await index.check(SPACE, A) == []
    assert await nearest(shelf, index, A, "apple") == before


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_a_space_is_removed_with_its_table(shelf: Shelf, index: PgVectorIndex) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", "apple")
    await index.refresh(A, "f")
    await shelf.spaces.remove(SPACE.name)
    assert await run("SELECT tablename FROM pg_tables WHERE tablename LIKE 'space_vectors%'") == []
    await shelf.spaces.add(SPACE)
    assert await nearest(shelf, index, A, "apple") == {}
    await shelf.embed("f")
    await index.refresh(A, "f")
    assert list(await nearest(shelf, index, A, "apple")) == ["apple"]


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_many_refreshes_at_once_bring_a_vector_once(shelf: Shelf, index: PgVectorIndex) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *(f"apple {n}" for n in range(50)))
    await asyncio.gather(
        *(index.refresh(A, "f") for _ in range(4)), index.search(SPACE, A, direction("x"), 5)
    )
    assert await index.check(SPACE, A) == []
    assert len(await index.search(SPACE, A, direction("x"), 100)) == 50


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_a_big_scope_is_searched_by_a_graph(shelf: Shelf, tasks: TaskRegistry) -> None:
    assert await open_pgvector(shelf.database, tasks) is not None
    index = PgVectorIndex(tasks, exact_up_to=500)
    space = EmbeddingSpace("test:wide", 16)
    await shelf.spaces.add(space)
    dice = random.Random(1)
    texts = [f"{dice.random()} apple" for _ in range(600)]
    for file_id, mine in (("f", texts[:300]), ("g", texts[300:]), ("h", texts[:100])):
        await shelf.upload(file_id, "a" if file_id != "h" else None)
        await shelf.publish(file_id, *mine, embed=False)
        ids = [number for number, _ in await shelf.passages.missing(file_id, space.name, 1000)]
        vectors = b"".join(_random(dice, 16) for _ in ids)
        await shelf.passages.add_vectors(space.name, VectorBatch(file_id, pack_ids(ids), vectors))
    wanted = [_random(dice, 16) for _ in range(20)]
    exact = [await index.search(space, A, vector, 10) for vector in wanted]
    while tasks.list():
        await asyncio.sleep(0.01)
    assert len(await run("SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")) == 1
    by_graph = [await index.search(space, A, vector, 10) for vector in wanted]
    plan = await run("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE '%graph'")
    assert len(plan) == 1
    alike = sum(len({*one} & {*two}) for one, two in zip(exact, by_graph, strict=True))
    assert alike >= 0.95 * 200
    assert all(found == sorted(found, key=lambda hit: -hit.score) for found in by_graph)
    # More than there are: the graph alone could not tell that it has found all.
    assert len(await index.search(space, A, wanted[0], 1000)) == 600
    assert len(await index.search(space, replace(A, id="b"), wanted[0], 1000)) == 0


def _random(dice: random.Random, dimension: int) -> bytes:
    numbers = [dice.gauss(0, 1) for _ in range(dimension)]
    length = sum(number * number for number in numbers) ** 0.5
    return array("f", [number / length for number in numbers]).tobytes()
