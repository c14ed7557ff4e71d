"""The tables of large collections: current in every order of events, and gone with what they belong to."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg
import pytest
from tortoise.connection import get_connection

from gatewayd.errors import GatewayError
from gatewayd.ingest.records import EmbeddingSpace, FileStatus, ScopeKind, SearchScope
from gatewayd.knowledge.records import CollectionLink
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.transactions import lock_key
from gatewayd.storage.search import collection_graphs, pgvector
from gatewayd.storage.search.collection_graphs import CollectionGraph
from gatewayd.storage.search.pgvector import PgVectorIndex, open_pgvector
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.passages import SPACE, Shelf, direction, document, extraction, open_shelf
from tests.fakes.storage.postgres import Postgres

pytestmark = pytest.mark.parametrize("location", ["postgres"], indirect=True)

A = SearchScope(ScopeKind.COLLECTION, "a")
B = SearchScope(ScopeKind.COLLECTION, "b")
OTHER = EmbeddingSpace("test:other", 3)


@pytest.fixture
async def tasks() -> AsyncIterator[TaskRegistry]:
    opened = TaskRegistry()
    yield opened
    await opened.close()


@pytest.fixture
async def shelf(database: Database) -> AsyncIterator[Shelf]:
    async with open_shelf(database) as opened:
        for name in ("a", "b"):
            await opened.collect(name)
        yield opened


@pytest.fixture
async def index(shelf: Shelf, tasks: TaskRegistry) -> PgVectorIndex:
    assert await open_pgvector(shelf.database, tasks) is not None
    return PgVectorIndex(tasks, exact_up_to=4)


@pytest.fixture
async def apart(shelf: Shelf, postgres: Postgres) -> AsyncIterator[Any]:
    """A session that is none of the pool."""
    [[database]] = await run("SELECT current_database()")
    session = await asyncpg.connect(postgres.server.get_uri(str(database)))
    yield session
    await session.close()


async def run(query: str) -> list[tuple[object, ...]]:
    _, rows = await get_connection("postgresql").execute_query(query)
    return [tuple(row) for row in rows]


async def tables() -> list[str]:
    rows = await run("SELECT tablename FROM pg_tables WHERE tablename ~ '^(collection|space)_vectors'")
    return sorted(str(row[0]) for row in rows)


async def built(index: PgVectorIndex, tasks: TaskRegistry, *scopes: SearchScope) -> None:
    """Search until the graphs of the scopes are there."""
    for scope in scopes:
        await index.search(SPACE, scope, direction("x"), 3)
    while tasks.list():
        await asyncio.sleep(0.01)


async def texts_of(shelf: Shelf, index: PgVectorIndex, scope: SearchScope) -> Sequence[str]:
    """Return what a search by the graph finds, and check that the table has nothing else."""
    hits = await index.search(SPACE, scope, direction("x"), 3)
    found = await shelf.texts([hit.passage_id for hit in hits])
    for (name,) in await run(
        "SELECT g.vectors FROM collection_graphs g JOIN embedding_spaces s ON s.id = g.space_id "
        f"WHERE collection_id = '{scope.id}' AND name = '{SPACE.name}'"
    ):
        stored = {row[0] for row in await run(f"SELECT passage_id FROM {name}")}
        linked = await run(
            "SELECT p.id FROM passages p JOIN collection_files l USING (file_id) "
            f"WHERE l.collection_id = '{scope.id}' AND NOT p.staged"
        )
        assert stored == {row[0] for row in linked}
    return sorted(found)


async def graph_of(scope: SearchScope) -> CollectionGraph:
    [(number,)] = await run(f"SELECT number FROM collections WHERE id = '{scope.id}'")
    [(space,)] = await run(f"SELECT id FROM embedding_spaces WHERE name = '{SPACE.name}'")
    assert isinstance(number, int)
    assert isinstance(space, int)
    return CollectionGraph(space, scope.id, number, f"space_vectors_{space}", SPACE.dimension)


async def test_each_large_collection_has_a_graph_of_its_own(
    shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *(f"f {n}" for n in range(6)))
    await shelf.upload("g", "b")
    await shelf.publish("g", "g 1", "g 2")
    for scope, file_id in ((A, "f"), (B, "g")):
        await index.refresh(scope, file_id)
    await built(index, tasks, A, B)
    graph = await graph_of(A)
    # The small collection has no table, and no index serves both.
    assert await tables() == [graph.vectors, graph.base]
    assert len(await run("SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")) == 1
    exact = await PgVectorIndex(tasks).search(SPACE, A, direction("f 3"), 3)
    assert await index.search(SPACE, A, direction("f 3"), 3) == exact
    # Whoever may read the collection alone sees what is linked at the time of the search.
    await run("DELETE FROM collection_files WHERE file_id = 'f'")
    assert await index.search(SPACE, A, direction("f 3"), 3) == []


async def test_the_table_follows_every_change(
    shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *(f"f {n}" for n in range(6)))
    await built(index, tasks, A)
    assert len(await texts_of(shelf, index, A)) == 3
    # Another file, published before it is linked, and one that is linked first.
    await shelf.upload("g")
    await shelf.publish("g", "x")
    await index.refresh(SearchScope(ScopeKind.FILE, "g"), "g")
    await shelf.collections.link(CollectionLink("a", "g", "u"))
    assert "x" in await texts_of(shelf, index, A)
    await shelf.upload("h", "a")
    await shelf.publish("h", "x", "x")
    # The process that published it was killed before it copied: the next search does.
    assert await texts_of(shelf, index, A) == ["x", "x", "x"]
    assert await run("SELECT * FROM vector_backlog") == []
    # A file that is removed before anybody copied its vectors.
    await shelf.upload("i", "a")
    await shelf.publish("i", "x")
    await shelf.files.remove("i")
    assert await run("SELECT * FROM vector_backlog") == []
    # Replaced by another text, taken out, and removed.
    await shelf.passages.stage("h", extraction("new"))
    await shelf.embed("h")
    assert await texts_of(shelf, index, A) == ["x", "x", "x"]
    await shelf.passages.publish(document("h", status=FileStatus.COMPLETED, chunks=1))
    await shelf.collections.unlink("a", ["g"])
    assert "x" not in await texts_of(shelf, index, A)
    await shelf.files.remove("f")
    assert await texts_of(shelf, index, A) == ["new"]


async def test_tables_go_with_their_collection_and_their_space(
    shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry
) -> None:
    await shelf.upload("f", "a")
    await shelf.collections.link(CollectionLink("b", "f", "u"))
    await shelf.publish("f", *(f"f {n}" for n in range(6)))
    await built(index, tasks, A, B)
    await shelf.spaces.add(OTHER)
    await shelf.embed("f", OTHER)
    await index.search(OTHER, A, direction("x", 3), 3)
    while tasks.list():
        await asyncio.sleep(0.01)
    assert len(await tables()) == 5
    await shelf.collections.remove("a")
    assert len(await tables()) == 3
    assert await run("SELECT collection_id FROM collection_graphs") == [("b",)]
    # A node that built for a collection that is gone by now makes no table.
    await CollectionGraph(1, "a", 1, "space_vectors_1", 4).build(get_connection("postgresql"))
    assert len(await tables()) == 3
    await shelf.spaces.remove(SPACE.name)
    assert [name[:14] for name in await tables()] == ["space_vectors_"]
    assert await run("SELECT * FROM collection_graphs") == []
    # A collection that became small loses its graph at the next check.
    await shelf.spaces.add(SPACE)
    await shelf.embed("f")
    await built(index, tasks, B)
    assert len(await tables()) == 3
    assert await index.check(SPACE, B) == []
    assert len(await tables()) == 3
    assert await PgVectorIndex(tasks, exact_up_to=100).check(SPACE, B) == []
    assert len(await tables()) == 2


async def test_a_collection_grows_while_several_nodes_build_its_graph(
    shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection_graphs, "FILL_PASSAGES", 1)
    other = PgVectorIndex(tasks, exact_up_to=4)
    for name in ("f", "g", "h"):
        await shelf.upload(name, "a")
        await shelf.publish(name, *(f"{name} {n}" for n in range(6)))
        await index.refresh(A, name)
    dice = random.Random(5)
    names = itertools.count()

    async def write() -> None:
        for _ in range(6):
            name = f"w{next(names)}"
            await shelf.upload(name)
            await shelf.publish(name, name)
            link = CollectionLink("a", name, "u")
            steps = [shelf.collections.link(link), index.refresh(A, name)]
            dice.shuffle(steps)
            await asyncio.gather(*steps)
            if dice.random() < 0.5:
                await asyncio.gather(shelf.collections.unlink("a", [name]), shelf.files.remove(name))

    async def search() -> None:
        for each in (index, other) * 4:
            assert len(await each.search(SPACE, A, direction("x"), 5)) == 5

    await asyncio.gather(write(), search(), write(), shelf.collections.unlink("a", ["h"]))
    await built(index, tasks, A)
    await built(other, tasks, A)
    await texts_of(shelf, index, A)
    assert await run("SELECT is_filled FROM collection_graphs") == [(True,)]
    assert await index.check(SPACE, A) == []


async def test_a_build_that_was_killed_is_done_again(
    shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *(f"f {n}" for n in range(6)))
    await index.refresh(A, "f")
    graph = await graph_of(A)
    with monkeypatch.context() as killed:
        killed.setattr(collection_graphs, "SELECT_LINKED", "SELECT 1/0")
        await built(index, tasks, A)
    assert await run("SELECT is_filled FROM collection_graphs") == [(False,)]
    assert len(await index.search(SPACE, A, direction("x"), 10)) == 6
    await built(index, tasks, A)
    # What a killed CREATE INDEX CONCURRENTLY leaves.
    await run(f"UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = '{graph.index}'::regclass")
    assert len(await texts_of(shelf, index, A)) == 3
    await built(index, tasks, A)
    valid = f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{graph.index}'::regclass"
    assert await run(valid) == [(True,)]
    # One node builds at a time.
    client = get_connection("postgresql")
    held = await client.take_connection()  # type: ignore[attr-defined]
    await held.execute(f"SELECT pg_advisory_lock({lock_key(graph.index)})")
    with pytest.raises(GatewayError, match="cannot build the HNSW index"):
        await graph.build(client)
    await client.return_connection(held)  # type: ignore[attr-defined]


async def test_a_start_during_a_long_write_searches_without_graphs_and_prepares_later(
    shelf: Shelf, tasks: TaskRegistry, apart: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "PREPARE_SECONDS", 0.0)
    monkeypatch.setattr(pgvector, "PREPARE_ATTEMPTS", 2)
    monkeypatch.setattr(pgvector, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(collection_graphs, "LOCK_MILLISECONDS", 10)
    await shelf.upload("f", "a")
    async with apart.transaction():
        await apart.execute("DELETE FROM collection_files WHERE id < 0")
        index = await open_pgvector(shelf.database, tasks)
        assert index is not None
        assert len(tasks.list()) == 1
    await shelf.publish("f", "x", "y")
    await index.refresh(A, "f")
    while tasks.list():
        await asyncio.sleep(0.01)
    assert len(await index.search(SPACE, A, direction("x"), 3)) == 2
    await shelf.upload("g", "a")
    await shelf.publish("g", "x")
    assert await run("SELECT file_id FROM vector_backlog") == [("g",)]
    assert len(await index.search(SPACE, A, direction("x"), 3)) == 3
    assert await index.check(SPACE, A) == []


async def test_an_index_that_nothing_prepared_finds_what_a_refresh_or_a_check_copied(
    shelf: Shelf, tasks: TaskRegistry
) -> None:
    await run("CREATE EXTENSION vector")
    index = PgVectorIndex(tasks, exact_up_to=1, is_prepared=False)
    for file_id in ("f", "g"):
        await shelf.upload(file_id, "a")
        await shelf.publish(file_id, "x", "y")
    await index.refresh(A, "f")
    assert len(await index.search(SPACE, A, direction("x"), 9)) == 2
    assert len(await index.check(SPACE, A)) == 1
    assert len(await index.search(SPACE, A, direction("x"), 9)) == 4
    assert await run("SELECT to_regclass('vector_backlog')") == [(None,)]


async def test_a_role_that_is_no_superuser_prepares_the_graphs(shelf: Shelf, apart: Any) -> None:
    await run("CREATE EXTENSION vector")
    await run("CREATE ROLE ordinary")
    await run("GRANT ALL ON SCHEMA public TO ordinary")
    await apart.execute("SET ROLE ordinary")
    try:
        # In a session that has not loaded the library.
        await apart.execute(collection_graphs.FUNCTIONS)
    finally:
        await apart.execute("RESET ROLE; DROP OWNED BY ordinary CASCADE; DROP ROLE ordinary")


async def test_a_collection_is_removed_while_its_table_is_in_use(
    shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry, apart: Any
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *(f"f {n}" for n in range(6)))
    await built(index, tasks, A)
    async with apart.transaction():
        # As the build of an index does, and a removal of the file, which waits for the links in turn.
        await apart.execute("DELETE FROM passages WHERE file_id = 'f'")
        removal = asyncio.create_task(shelf.collections.remove("a"))
        while not await run("SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert not removal.done()
            await asyncio.sleep(0.01)
        await apart.execute("DELETE FROM files WHERE id = 'f'")
        await removal
        assert len(await tables()) == 2
    await index.prepare()
    assert [name[:14] for name in await tables()] == ["space_vectors_"]
    assert await shelf.collections.find("a") is None


async def test_a_check_repairs_the_table(shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *(f"f {n}" for n in range(6)))
    await built(index, tasks, A)
    graph = await graph_of(A)
    await run(f"DELETE FROM {graph.vectors} WHERE passage_id = (SELECT MIN(passage_id) FROM {graph.base})")
    await run(
        f"UPDATE {graph.vectors} SET vector = '[0,0,0,1]'"
        f" WHERE passage_id = (SELECT MAX(passage_id) FROM {graph.base})"
    )
    await run(f"INSERT INTO {graph.vectors} VALUES (1000000, 'gone', '[0,0,0,1]')")
    # The search is one of this table.
    assert len(await index.search(SPACE, A, direction("f 3"), 5)) == 5
    [(first,)] = await run(f"SELECT MIN(passage_id) FROM {graph.base}")
    assert first not in {hit.passage_id for hit in await index.search(SPACE, A, direction("f 0"), 5)}
    assert await index.check(SPACE, A) == [
        "the HNSW index of collection a differed: 1 passages were missing, 2 were wrong"
    ]
    assert await index.check(SPACE, A) == []
    assert len(await texts_of(shelf, index, A)) == 3


async def test_vectors_of_an_earlier_version_are_taken_over(
    shelf: Shelf, index: PgVectorIndex, tasks: TaskRegistry
) -> None:
    await shelf.upload("f", "a")
    await shelf.publish("f", *(f"f {n}" for n in range(6)))
    await index.refresh(A, "f")
    await shelf.upload("g", "a")
    await shelf.publish("g", "x")
    graph = await graph_of(A)
    # The earlier version: one table with one graph, no triggers; g was not copied when it was killed.
    for name, table in [
        *((name, graph.base) for name in collection_graphs.TABLE_TRIGGERS),
        *((name, made.split(" ON ")[1].split(" ")[0]) for name, made in collection_graphs.TRIGGERS.items()),
    ]:
        await run(f"DROP TRIGGER {name} ON {table}")
    await run("DROP TABLE collection_graphs, vector_backlog")
    await run(f"CREATE INDEX idx_{graph.base}_graph ON {graph.base} USING hnsw (vector vector_ip_ops)")
    await shelf.spaces.add(OTHER)
    await shelf.embed("f", OTHER)
    assert await open_pgvector(shelf.database, tasks) is not None
    assert await run(
        "SELECT s.name, file_id FROM vector_backlog JOIN embedding_spaces s ON s.id = space_id"
    ) == [
        (SPACE.name, "g"),
        (OTHER.name, "f"),
    ]
    renewed = PgVectorIndex(tasks, exact_up_to=4)
    await built(renewed, tasks, A)
    assert "x" in await texts_of(shelf, renewed, A)
    assert await run(f"SELECT to_regclass('idx_{graph.base}_graph')") == [(None,)]
    # A node of the earlier version unlinks, and removes passages.
    await run("DELETE FROM collection_files WHERE file_id = 'g'")
    await run("DELETE FROM passages WHERE number = 0")
    await texts_of(shelf, renewed, A)
