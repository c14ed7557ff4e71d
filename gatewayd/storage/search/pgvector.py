"""Vector index on PostgreSQL's extension pgvector.

Each space has its own table, created on first use, with the vectors of all published passages. A foreign key
deletes rows with their passages, and `refresh` copies new ones. A search first copies the vectors of its
scope that a killed process did not copy: `vector_backlog` lists their files.

Searches compare all vectors of a file or a small collection. A large collection has a table of its own with
an HNSW index (`collection_graphs`).
"""

import asyncio
import logging
import struct
import sys
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import EmbeddingSpace, ScopeKind, SearchHit, SearchScope, unpack_ids
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.search import collection_graphs
from gatewayd.storage.search.collection_graphs import CollectionGraph
from gatewayd.storage.search.embedding_spaces import vector_table
from gatewayd.storage.tables.documents import FileRow, SpaceRow, VectorBatchRow
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

MAX_EXACT_PASSAGES: Final = 8_000
"""Number of passages from which on a collection gets an HNSW index; it loses it below half of that."""
EXTENSION: Final = "vector"
PREPARE_ATTEMPTS: Final = 10
PREPARE_SECONDS: Final = 0.5
"""Pause between the attempts of a start to prepare the tables."""
RETRY_SECONDS: Final = 60.0
"""Pause between later attempts, while searches work without what is prepared."""
MAX_GRAPH_DIMENSIONS: Final = 4000
MIN_GRAPH_VERSION: Final = (0, 8)
EF_SEARCH_RANGE: Final = range(200, 1001)
SPARE_HITS: Final = 16
"""Further hits of an HNSW index, in the place of those that a concurrent change removes."""

SCOPE_FILES: Final = {
    ScopeKind.COLLECTION: "(SELECT file_id FROM collection_files WHERE collection_id = $1) s",
    ScopeKind.FILE: "(SELECT id AS file_id FROM files WHERE id = $1) s",
}
CREATE_TABLE: Final = (
    "SELECT pg_advisory_xact_lock(hashtext('{table}')); "
    "CREATE TABLE IF NOT EXISTS {table} ("
    "passage_id BIGINT PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE, "
    'file_id VARCHAR(64) COLLATE "C" NOT NULL, vector vector({dimension}) NOT NULL); '
    "CREATE INDEX IF NOT EXISTS idx_{table}_file ON {table} (file_id, passage_id)"
)
# For vectors of length 1 the inner product is the cosine; <#> is its negative.
# The OFFSET makes the planner scan the files of the scope only.
SELECT_EXACT: Final = (
    "SELECT v.passage_id, v.vector <#> $2::real[]::vector AS distance FROM {scope} CROSS JOIN LATERAL "
    "(SELECT passage_id, vector FROM {table} WHERE file_id = s.file_id OFFSET 0) v "
    "ORDER BY distance, v.passage_id LIMIT $3"
)
SELECT_BY_GRAPH: Final = "SELECT passage_id, distance FROM graph_nearest($1, $2, $3, $4::real[], $5, $6)"
SELECT_SIMILARITIES: Final = (
    "SELECT v.passage_id, v.vector <#> $2::real[]::vector FROM {table} v JOIN {scope} "
    "ON s.file_id = v.file_id WHERE v.passage_id = ANY($3::bigint[])"
)
SELECT_SIZE: Final = "SELECT COALESCE(SUM(f.chunks), 0)::bigint FROM {scope} JOIN files f ON f.id = s.file_id"
# The files whose vectors are missing, whether the HNSW index is complete, and the number of the collection.
# The OFFSET and the scalar subquery make the planner begin with the backlog, which is short.
SELECT_STATE: Final = (
    "SELECT ARRAY(SELECT b.file_id FROM (SELECT file_id FROM vector_backlog WHERE space_id = $2 OFFSET 0) b"
    " WHERE (SELECT TRUE FROM {scope} WHERE s.file_id = b.file_id)),"
    " (SELECT g.is_filled AND i.indisvalid FROM collection_graphs g JOIN pg_index i"
    " ON i.indexrelid = to_regclass('idx_' || g.vectors || '_graph')"
    " WHERE g.space_id = $2 AND g.collection_id = $1),"
    " (SELECT number FROM collections WHERE id = $1)"
)
SELECT_GRAPHS: Final = (
    "SELECT c.id, c.number FROM collection_graphs g JOIN collections c ON c.id = g.collection_id "
    "WHERE g.space_id = $1 AND g.collection_id = $2 AND g.is_filled"
)
DELETE_BACKLOG: Final = "DELETE FROM vector_backlog WHERE space_id = $1 AND file_id = $2"
FLOAT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class _Table:
    space_id: int
    name: str
    dimension: int
    is_watched: bool
    """Whether `vector_backlog` lists the files whose vectors are missing."""

    def graph(self, collection_id: str, number: int) -> CollectionGraph:
        return CollectionGraph(self.space_id, collection_id, number, self.name, self.dimension)


class PgVectorIndex:
    """Implements `ingest.interfaces.VectorIndex`; created by `open_pgvector`.

    Collections of `exact_up_to` passages or more use an HNSW index, which a task of `tasks` builds. Before it
    `is_prepared` every search compares all vectors, and only `refresh` and `check` copy missing ones.
    """

    def __init__(
        self,
        tasks: TaskRegistry,
        *,
        has_graphs: bool = True,
        exact_up_to: int = MAX_EXACT_PASSAGES,
        is_prepared: bool = True,
    ) -> None:
        self._tasks = tasks
        self._has_graphs = has_graphs
        self._exact_up_to = exact_up_to
        self._is_prepared = is_prepared
        self._created: set[int] = set()
        self._building: set[str] = set()

    async def prepare(self) -> None:
        """Create the triggers that keep the tables current.

        While long writes or missing rights prevent it, a task of `tasks` tries again.
        """
        for attempt in range(1, PREPARE_ATTEMPTS + 1):
            try:
                await self._prepare()
            except GatewayError as error:
                if error.kind is ErrorKind.UNAVAILABLE and attempt < PREPARE_ATTEMPTS:
                    await asyncio.sleep(PREPARE_SECONDS)
                    continue
                log.warning("searching without HNSW indexes for now: %s", error.full_message)
                self._tasks.spawn("preparation of HNSW indexes", self._prepare_later())
            return

    async def _prepare_later(self) -> None:
        while not self._is_prepared:
            await asyncio.sleep(RETRY_SECONDS)
            try:
                await self._prepare()
            except GatewayError as error:
                log.info("still searching without HNSW indexes: %s", error.full_message)

    async def _prepare(self) -> None:
        await collection_graphs.install()
        await collection_graphs.drop_orphans(collection_graphs.GRAPH_ORPHANS)
        self._is_prepared = True
        # Their triggers are missing, if they were created meanwhile.
        self._created.clear()

    async def search(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, limit: int
    ) -> Sequence[SearchHit]:
        """Return the passages most similar to a vector of length 1, best first."""
        if limit < 1 or not fits_columns(FileRow, id=scope.id):
            return []
        with translate_errors("search vectors"):
            table = await self._table(space)
            if table is None:
                return []
            wanted = _floats(vector)
            graph = await self._complete_scope(table, scope)
            if graph is not None:
                found = await _search_graph(graph, wanted, limit)
                if len(found) == limit:
                    return found
            rows = await _rows(_format_query(SELECT_EXACT, table, scope), [scope.id, wanted, limit])
        return [_hit(row) for row in rows]

    async def similarities(
        self, space: EmbeddingSpace, scope: SearchScope, vector: bytes, passage_ids: Sequence[int]
    ) -> Mapping[int, float]:
        """Return the cosines of the passages that are in the scope and have a vector in the space."""
        if not passage_ids or not fits_columns(FileRow, id=scope.id):
            return {}
        with translate_errors("compare vectors"):
            table = await self._table(space)
            if table is None:
                return {}
            await self._complete_scope(table, scope)
            values = [scope.id, _floats(vector), list(passage_ids)]
            rows = await _rows(_format_query(SELECT_SIMILARITIES, table, scope), values)
        return {hit.passage_id: hit.score for hit in map(_hit, rows)}

    async def refresh(self, scope: SearchScope, file_id: str) -> None:
        """Copy the missing vectors of a file to the tables of all spaces."""
        if not fits_columns(FileRow, id=file_id):
            return
        with translate_errors("read the embedding spaces"):
            spaces = await SpaceRow.all().order_by("id")
            query = "SELECT space_id FROM vector_backlog WHERE file_id = $1"
            rows = await _rows(query, [file_id]) if self._is_prepared else [[row.id] for row in spaces]
        behind = {row[0] for row in rows}
        for row in spaces:
            table = await self._ensure_table(row)
            if row.id in behind:
                await _copy_missing(table, file_id)

    async def forget(self, scope: SearchScope) -> None:
        """Do nothing: rows are deleted with their passages, and the table of a collection with it."""

    async def check(self, space: EmbeddingSpace, scope: SearchScope) -> Sequence[str]:
        """Compare the rows with the batches, repair them, and return a sentence for each file that differed.

        Vectors that were not copied yet are copied first and are no difference. The HNSW index of a
        collection that became small is dropped.
        """
        with translate_errors("read the embedding spaces"):
            table = await self._table(space)
        if table is None or not fits_columns(FileRow, id=scope.id):
            return []
        await self._complete_scope(table, scope)
        with translate_errors("list the files of the scope"):
            files = await _rows(f"SELECT s.file_id FROM {SCOPE_FILES[scope.kind]}", [scope.id])  # noqa: S608
        checked = [await _check_file(table, row[0]) for row in files]
        checked += [await self._check_graph(table, scope)]
        return [sentence for sentence in checked if sentence]

    async def _check_graph(self, table: _Table, scope: SearchScope) -> str | None:
        if scope.kind is ScopeKind.FILE or not table.is_watched:
            return None
        with translate_errors("look for the HNSW index of the collection"):
            rows = await _rows(SELECT_GRAPHS, [table.space_id, scope.id])
        if not rows:
            return None
        graph = table.graph(*rows[0])
        if await _size(table, scope) < self._exact_up_to // 2:
            await graph.remove()
            return None
        return await graph.check()

    async def _table(self, space: EmbeddingSpace) -> _Table | None:
        """Return the table of a space, created if necessary; None for an unknown space."""
        row = await SpaceRow.get_or_none(name=space.name) if fits_columns(SpaceRow, name=space.name) else None
        return None if row is None else await self._ensure_table(row)

    async def _ensure_table(self, row: SpaceRow) -> _Table:
        table = _Table(row.id, vector_table(row.id), row.dimension, self._is_prepared)
        if row.id not in self._created:
            async with write_transaction("make the table of vectors") as client:
                await client.execute_script(CREATE_TABLE.format(table=table.name, dimension=table.dimension))
                if table.is_watched:
                    await collection_graphs.wait_briefly(client)
                    await collection_graphs.watch_table(client, table.name, row.id)
            if table.is_watched is self._is_prepared:
                self._created.add(row.id)
        return table

    async def _complete_scope(self, table: _Table, scope: SearchScope) -> CollectionGraph | None:
        """Copy the missing vectors; return the graph of a large collection, None before it is built."""
        if not table.is_watched:
            return None
        with translate_errors("compare the vectors"):
            query = _format_query(SELECT_STATE, table, scope)
            [[behind, is_built, number]] = await _rows(query, [scope.id, table.space_id])
        for file_id in behind:
            await _copy_missing(table, file_id)
        is_possible = self._has_graphs and table.dimension <= MAX_GRAPH_DIMENSIONS
        if scope.kind is ScopeKind.FILE or number is None or not is_possible:
            return None
        graph = table.graph(scope.id, number)
        if is_built:
            return graph
        if graph.index not in self._building and await _size(table, scope) >= self._exact_up_to:
            self._building.add(graph.index)
            self._tasks.spawn(f"graph of {graph.vectors}", self._build(graph))
        return None

    async def _build(self, graph: CollectionGraph) -> None:
        try:
            await graph.build(SpaceRow._meta.db)
            await collection_graphs.drop_orphans(collection_graphs.GRAPH_ORPHANS)
        except GatewayError as error:
            log.warning("cannot build the HNSW index: %s", error.full_message)
        finally:
            self._building.discard(graph.index)


async def open_pgvector(database: Database, tasks: TaskRegistry) -> PgVectorIndex | None:
    """Return the index of a PostgreSQL database; None where pgvector is not installed or not permitted."""
    if database.location.is_sqlite:
        return None
    try:
        async with write_transaction("use pgvector") as client:
            await client.execute_script(f"CREATE EXTENSION IF NOT EXISTS {EXTENSION}")
        with translate_errors("use pgvector"):
            [[version]] = await _rows("SELECT extversion FROM pg_extension WHERE extname = $1", [EXTENSION])
    except GatewayError as error:
        log.info("not using pgvector: %s", error.full_message)
        return None
    numbers = tuple(int(number) for number in version.split(".")[:2])
    index = PgVectorIndex(tasks, has_graphs=numbers >= MIN_GRAPH_VERSION, is_prepared=False)
    await index.prepare()
    return index


def _format_query(query: str, table: _Table, scope: SearchScope) -> str:
    return query.format(table=table.name, scope=SCOPE_FILES[scope.kind])


async def _search_graph(graph: CollectionGraph, wanted: Sequence[float], limit: int) -> Sequence[SearchHit]:
    many = limit + SPARE_HITS
    width = min(max(4 * many, EF_SEARCH_RANGE.start), EF_SEARCH_RANGE.stop - 1)
    values = [graph.vectors, graph.base, graph.collection_id, wanted, many, width]
    return [_hit(row) for row in await _rows(SELECT_BY_GRAPH, values)][:limit]


async def _size(table: _Table, scope: SearchScope) -> int:
    """Return the number of passages of a scope."""
    [[size]] = await _rows(_format_query(SELECT_SIZE, table, scope), [scope.id])
    return int(size)


async def _rows(query: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
    client: Any = SpaceRow._meta.db
    rows: Sequence[Sequence[Any]]
    _, rows = await client.execute_query(query, list(values))
    return rows


def _floats(vector: bytes) -> list[float]:
    return _array(vector).tolist()


def _array(vectors: bytes) -> "array[float]":
    numbers = array("f")
    numbers.frombytes(vectors)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _hit(row: Sequence[Any]) -> SearchHit:
    # A rounding error can make the cosine exceed 1.
    return SearchHit(row[0], min(max(-float(row[1]), -1.0), 1.0))


async def _copy_missing(table: _Table, file_id: str) -> None:
    """Copy the vectors of a file that are not in the table yet."""
    async with _locked_file(file_id) as client:
        if client is None:
            return
        present = {row[0] for row in await _stored_vectors(client, table, file_id)}
        async for batch in _batches(table, file_id):
            lacking = {
                number: row for number, row in _unpack_batch(table, batch).items() if number not in present
            }
            if lacking:
                await _copy(client, table, file_id, lacking)
        if table.is_watched:
            await client.execute_query(DELETE_BACKLOG, [table.space_id, file_id])


async def _check_file(table: _Table, file_id: str) -> str | None:
    """Repair the rows of a file; return a sentence about the differences, None without any."""
    lacking, wrong = 0, []
    async with _locked_file(file_id) as client:
        if client is None:
            return None
        present = {row[0]: bytes(row[1]) for row in await _stored_vectors(client, table, file_id)}
        async for batch in _batches(table, file_id):
            for number, vector in _unpack_batch(table, batch).items():
                stored = present.pop(number, None)
                lacking += stored is None
                wrong += [number] if stored not in {None, vector} else []
        wrong += present
        if wrong:
            delete = f"DELETE FROM {table.name} WHERE passage_id = ANY($1::bigint[])"  # noqa: S608
            await client.execute_query(delete, [wrong])
    if not lacking and not wrong:
        return None
    await _copy_missing(table, file_id)
    return f"the vectors of file {file_id} differed: {lacking} were missing, {len(wrong)} were wrong"


@asynccontextmanager
async def _locked_file(file_id: str) -> AsyncIterator[Any]:
    """Begin a transaction that locks a file against publication, removal and copies; yield None without
    it."""
    async with write_transaction("copy vectors to their table") as client:
        await client.lift_limits()
        yield client if await FileRow.filter(id=file_id).select_for_update() else None


async def _stored_vectors(client: Any, table: _Table, file_id: str) -> Sequence[Sequence[Any]]:
    """Return (passage id, vector) of a file from the table; vectors in pgvector's binary format."""
    query = f"SELECT passage_id, vector_send(vector) FROM {table.name} WHERE file_id = $1"  # noqa: S608
    rows: Sequence[Sequence[Any]]
    _, rows = await client.execute_query(query, [file_id])
    return rows


async def _batches(table: _Table, file_id: str) -> AsyncIterator[VectorBatchRow]:
    """Yield the published batches of a file, with one in memory at a time."""
    published = VectorBatchRow.filter(file_id=file_id, space_id=table.space_id, staged=False)
    numbers: Sequence[Any] = await published.order_by("id").values_list("id", flat=True)
    for number in numbers:
        yield await VectorBatchRow.get(id=number)


def _unpack_batch(table: _Table, batch: VectorBatchRow) -> dict[int, bytes]:
    """Return the vectors of a batch by passage id, in pgvector's binary format."""
    numbers = _array(batch.vectors)
    if sys.byteorder == "little":
        numbers.byteswap()
    rows, width = numbers.tobytes(), FLOAT_BYTES * table.dimension
    head = struct.pack(">hh", table.dimension, 0)
    return {number: head + rows[at * width :][:width] for at, number in enumerate(unpack_ids(batch.ids))}


async def _copy(client: Any, table: _Table, file_id: str, vectors: Mapping[int, bytes]) -> None:
    """Insert vectors with binary COPY, where a row is its number of values, then a length and bytes each."""
    name = file_id.encode()
    middle = struct.pack(f">i{len(name)}s", len(name), name)
    parts = [b"PGCOPY\n\xff\r\n\x00", bytes(8)]
    for number, vector in vectors.items():
        parts += [struct.pack(">hiq", 3, 8, number), middle, struct.pack(">i", len(vector)), vector]
    rows = b"".join([*parts, struct.pack(">h", -1)])
    await client.copy_rows(table.name, ["passage_id", "file_id", "vector"], rows)
