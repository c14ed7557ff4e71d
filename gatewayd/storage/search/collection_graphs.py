"""Tables of pgvector for large collections, each with the vectors of one collection and an HNSW index.

The HNSW index of a shared table would search the neighbours of a vector in all collections, and drop those of
other collections afterwards. A table per collection costs only the collection that it belongs to.

Triggers of the database keep the tables current, in the transaction that changes links, vectors or passages.
So no node needs to know of them: one of an earlier version maintains them, too. Another trigger lists the
files in `vector_backlog` whose vectors are not in the table of their space yet.

A transaction that links or copies shares a lock of the collection with others of its kind, and with the
creation of the table it does not. So each one sees the table, or has ended before the table is filled.

A transaction that copies the vectors of a file locks the file, for which a new link waits, and the links. One
that deletes never waits for another one that deletes the same rows, which could wait for it in turn.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import GatewayError
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.transactions import lock_key, write_transaction
from gatewayd.storage.tables.documents import SpaceRow

log = logging.getLogger(__name__)

FILL_PASSAGES: Final = 2_000
"""Approximate number of passages that one transaction copies into the table of a collection."""
EF_CONSTRUCTION: Final = 128
GRAPH_MEMORY_BYTES: Final = 512 << 20
"""Minimum memory of PostgreSQL for the build of an HNSW index, which is much slower with less."""
LOCK_MILLISECONDS: Final = 500
"""Less than the second after which PostgreSQL looks for deadlocks: preparations give up, never a writer."""
DROP_MILLISECONDS: Final = 300
"""How long the removal of a collection waits for those who use its tables: the build of an index takes
minutes, and a transaction that removes files may wait for the removal in turn."""
LOCK_CLASS: Final = 0x6777
LOCK_COUNT: Final = 256
"""Number of locks that the collections share: a transaction that links many would fill PostgreSQL's table."""

COLLECTION_LOCK: Final = f"{LOCK_CLASS}, hashtext({{collection}}) & {LOCK_COUNT - 1}"

TABLES: Final = """
CREATE TABLE vector_backlog (
    space_id BIGINT NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
    file_id VARCHAR(64) COLLATE "C" NOT NULL,
    PRIMARY KEY (space_id, file_id)
);
CREATE INDEX idx_vector_backlog_file ON vector_backlog (file_id);
CREATE TABLE collection_graphs (
    space_id BIGINT NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
    collection_id VARCHAR(64) COLLATE "C" NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    vectors TEXT NOT NULL,
    base TEXT NOT NULL,
    is_filled BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (space_id, collection_id)
);
CREATE INDEX idx_collection_graphs_collection ON collection_graphs (collection_id);
"""

FUNCTIONS: Final = f"""
CREATE OR REPLACE FUNCTION graph_batch_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO vector_backlog (space_id, file_id)
        SELECT DISTINCT space_id, file_id FROM changed WHERE NOT staged ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION graph_link_added() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    graph record;
BEGIN
    PERFORM pg_advisory_xact_lock_shared({COLLECTION_LOCK.format(collection="NEW.collection_id")});
    FOR graph IN SELECT vectors, base FROM collection_graphs WHERE collection_id = NEW.collection_id LOOP
        EXECUTE format('INSERT INTO %I (passage_id, file_id, vector) SELECT passage_id, file_id, vector'
            ' FROM %I WHERE file_id = $1 ON CONFLICT DO NOTHING', graph.vectors, graph.base)
            USING NEW.file_id;
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION graph_link_removed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    graph record;
BEGIN
    PERFORM pg_advisory_xact_lock_shared({COLLECTION_LOCK.format(collection="OLD.collection_id")});
    FOR graph IN SELECT vectors FROM collection_graphs WHERE collection_id = OLD.collection_id LOOP
        EXECUTE format('DELETE FROM %1$I WHERE passage_id IN (SELECT passage_id FROM %1$I WHERE file_id = $1'
            ' FOR UPDATE SKIP LOCKED)', graph.vectors) USING OLD.file_id;
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION graph_vectors_added() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    graph record;
BEGIN
    PERFORM pg_advisory_xact_lock_shared({COLLECTION_LOCK.format(collection="l.collection_id")})
        FROM (SELECT DISTINCT collection_id FROM collection_files
            WHERE file_id IN (SELECT file_id FROM changed)) l;
    -- A removal of the link sees the rows, or they are not added.
    PERFORM 1 FROM collection_files WHERE file_id IN (SELECT file_id FROM changed) ORDER BY id FOR KEY SHARE;
    FOR graph IN SELECT g.vectors, g.collection_id FROM collection_graphs g
        WHERE g.space_id = TG_ARGV[0]::bigint AND EXISTS (SELECT 1 FROM collection_files l
            WHERE l.collection_id = g.collection_id AND l.file_id IN (SELECT file_id FROM changed)) LOOP
        EXECUTE format('INSERT INTO %I (passage_id, file_id, vector)'
            ' SELECT passage_id, file_id, vector FROM changed WHERE file_id IN'
            ' (SELECT file_id FROM collection_files WHERE collection_id = $1 AND file_id IN'
            ' (SELECT file_id FROM changed)) ON CONFLICT DO NOTHING', graph.vectors)
            USING graph.collection_id;
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION graph_vectors_removed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    graph record;
BEGIN
    FOR graph IN SELECT g.vectors FROM collection_graphs g
        WHERE g.space_id = TG_ARGV[0]::bigint AND EXISTS (SELECT 1 FROM collection_files l
            WHERE l.collection_id = g.collection_id AND l.file_id IN (SELECT file_id FROM changed)) LOOP
        EXECUTE format('DELETE FROM %1$I WHERE passage_id IN (SELECT passage_id FROM %1$I'
            ' WHERE passage_id IN (SELECT passage_id FROM changed) FOR UPDATE SKIP LOCKED)', graph.vectors);
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION graph_file_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM vector_backlog WHERE file_id = OLD.id;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION graph_removed() RETURNS trigger LANGUAGE plpgsql
    SET lock_timeout = '{DROP_MILLISECONDS}ms' AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', OLD.vectors);
    RETURN NULL;
EXCEPTION WHEN lock_not_available THEN
    -- `drop_orphans` does it later.
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION graph_nearest(vectors text, base text, collection text, wanted real[], many int,
    width int) RETURNS TABLE (passage_id bigint, distance float8) LANGUAGE plpgsql
    -- Makes the planner use the HNSW index.
    SET enable_seqscan = off SET enable_sort = off AS $$
BEGIN
    -- As a clause of the function, only a superuser could set what the library has not declared yet.
    PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true);
    PERFORM set_config('hnsw.ef_search', width::text, true);
    -- Similarities are those of an exact search: the index has halves.
    RETURN QUERY EXECUTE format('WITH near AS MATERIALIZED ('
        'SELECT g.passage_id, g.file_id FROM %I g ORDER BY g.vector <#> $1::vector::halfvec LIMIT $2)'
        ' SELECT v.passage_id, v.vector <#> $1::vector AS distance FROM near JOIN %I v USING (passage_id)'
        ' WHERE EXISTS (SELECT 1 FROM collection_files l WHERE l.collection_id = $3'
        ' AND l.file_id = near.file_id) ORDER BY distance, v.passage_id', vectors, base)
        USING wanted, many, collection;
END $$;
"""  # noqa: S608 - constants
# Name of a trigger, and what makes it.
TRIGGERS: Final = {
    "graph_batch_added": "AFTER INSERT ON vector_batches REFERENCING NEW TABLE AS changed "
    "FOR EACH STATEMENT EXECUTE FUNCTION graph_batch_changed()",
    "graph_batch_published": "AFTER UPDATE ON vector_batches REFERENCING NEW TABLE AS changed "
    "FOR EACH STATEMENT EXECUTE FUNCTION graph_batch_changed()",
    # After the check of the foreign keys, which waits for those who copy vectors of the file.
    "graph_link_added": "AFTER INSERT ON collection_files FOR EACH ROW EXECUTE FUNCTION graph_link_added()",
    "graph_link_removed": "AFTER DELETE ON collection_files FOR EACH ROW "
    "EXECUTE FUNCTION graph_link_removed()",
    # No foreign key: the first start of this version would wait for files that are locked.
    "graph_file_removed": "AFTER DELETE ON files FOR EACH ROW EXECUTE FUNCTION graph_file_removed()",
    "graph_removed": "AFTER DELETE ON collection_graphs FOR EACH ROW EXECUTE FUNCTION graph_removed()",
}
TABLE_TRIGGERS: Final = {
    "graph_vectors_added": "AFTER INSERT ON {table} REFERENCING NEW TABLE AS changed "
    "FOR EACH STATEMENT EXECUTE FUNCTION graph_vectors_added({space})",
    "graph_vectors_removed": "AFTER DELETE ON {table} REFERENCING OLD TABLE AS changed "
    "FOR EACH STATEMENT EXECUTE FUNCTION graph_vectors_removed({space})",
}
IS_INSTALLED: Final = "SELECT to_regclass('collection_graphs') IS NOT NULL"
SELECT_TRIGGERS: Final = (
    "SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND t.tgname = ANY($1::text[]) "
    "AND ($2 = '' OR c.relname = $2)"
)
SELECT_VECTOR_TABLES: Final = (
    "SELECT s.id, to_regclass('space_vectors_' || s.id)::text FROM embedding_spaces s "
    "WHERE to_regclass('space_vectors_' || s.id) IS NOT NULL ORDER BY s.id"
)
# Files without vectors in the table of the space, before there were triggers.
ADD_BACKLOG: Final = (
    "INSERT INTO vector_backlog (space_id, file_id) SELECT b.space_id, b.file_id FROM "
    "(SELECT space_id, file_id, SUM(LENGTH(ids)) / 8 AS needed FROM vector_batches "
    "WHERE NOT staged {space} GROUP BY space_id, file_id) b {present} ON CONFLICT DO NOTHING"
)
PRESENT: Final = "WHERE b.needed <> (SELECT COUNT(*) FROM {table} v WHERE v.file_id = b.file_id)"

CREATE_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS {vectors} (passage_id BIGINT PRIMARY KEY, "
    'file_id VARCHAR(64) COLLATE "C" NOT NULL, vector halfvec({dimension}) NOT NULL); '
    "CREATE INDEX IF NOT EXISTS idx_{vectors}_file ON {vectors} (file_id)"
)
LOCK_COLLECTION: Final = "SELECT id FROM collections WHERE id = $1 FOR KEY SHARE"
INSERT_GRAPH: Final = (
    "WITH made AS (INSERT INTO collection_graphs (space_id, collection_id, vectors, base) "
    "SELECT $1, id, $3, $4 FROM collections WHERE id = $2 ON CONFLICT DO NOTHING RETURNING vectors) "
    "SELECT vectors FROM made"
)
SELECT_ORPHANS: Final = (
    "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename ~ '^{pattern}$' "
    "AND NOT EXISTS (SELECT 1 FROM {list} WHERE {column} = tablename)"
)
GRAPH_ORPHANS: Final = SELECT_ORPHANS.format(
    pattern=r"collection_vectors_\d+_\d+", list="collection_graphs", column="vectors"
)
SELECT_LINKED: Final = (
    "SELECT l.file_id, GREATEST(f.chunks, 1) FROM collection_files l JOIN files f ON f.id = l.file_id "
    "WHERE l.collection_id = $1 ORDER BY l.file_id"
)
FILL: Final = (
    "INSERT INTO {vectors} (passage_id, file_id, vector) SELECT v.passage_id, v.file_id, v.vector "
    "FROM {base} v WHERE v.file_id IN (SELECT file_id FROM collection_files "
    "WHERE collection_id = $1 AND file_id = ANY($2::text[])) ON CONFLICT DO NOTHING"
)
SET_FILLED: Final = "UPDATE collection_graphs SET is_filled = TRUE WHERE space_id = $1 AND collection_id = $2"
DELETE_GRAPH: Final = "DELETE FROM collection_graphs WHERE space_id = $1 AND collection_id = $2"
SELECT_STRAYS: Final = (
    "SELECT g.passage_id FROM {vectors} g WHERE NOT EXISTS (SELECT 1 FROM {base} v JOIN collection_files l "
    "ON l.file_id = v.file_id AND l.collection_id = $1 "
    "WHERE v.passage_id = g.passage_id AND v.vector::halfvec = g.vector)"
)
DELETE_STRAYS: Final = "DELETE FROM {vectors} WHERE passage_id = ANY($1::bigint[])"
COUNT_MISSING: Final = (
    "SELECT COUNT(*) FROM collection_files l JOIN {base} v ON v.file_id = l.file_id WHERE "
    "l.collection_id = $1 AND NOT EXISTS (SELECT 1 FROM {vectors} g WHERE g.passage_id = v.passage_id)"
)
# A session that waited for the lock would keep the index of the other one from being ready.
BEGIN_BUILD: Final = (
    "DO $$ BEGIN IF NOT pg_try_advisory_lock({key}) THEN RAISE EXCEPTION 'another node builds the index'; "
    "END IF; IF EXISTS (SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('{graph}') AND NOT indisvalid) "
    "THEN DROP INDEX {graph}; END IF; END $$"
)
BUILD: Final = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS {graph} ON {vectors} USING hnsw (vector halfvec_ip_ops) "
    f"WITH (ef_construction = {EF_CONSTRUCTION})"
)
SET_GRAPH_MEMORY: Final = (
    f"SELECT set_config('maintenance_work_mem', GREATEST({GRAPH_MEMORY_BYTES}, "
    "pg_size_bytes(current_setting('maintenance_work_mem'))) / 1024 || 'kB', false)"
)
DROP_FORMER_GRAPH: Final = "DROP INDEX CONCURRENTLY IF EXISTS idx_{base}_graph"
"""Drops the index over the vectors of all collections, which earlier versions built."""


@dataclass(frozen=True, slots=True)
class CollectionGraph:
    """The table of a collection's vectors in a space; `base` is the table of all vectors of the space."""

    space_id: int
    collection_id: str
    number: int
    base: str
    dimension: int

    @property
    def vectors(self) -> str:
        """Name of the table."""
        return f"collection_vectors_{int(self.space_id)}_{int(self.number)}"

    @property
    def index(self) -> str:
        """Name of the HNSW index."""
        return f"idx_{self.vectors}_graph"

    async def build(self, client: Any) -> None:
        """Create, fill and index the table; each step may be repeated, and done by several nodes.

        Raises the errors of the database, also when another node builds the index.
        """
        if not await self._create():
            return
        with translate_errors("list the files of the collection"):
            _, rows = await client.execute_query(SELECT_LINKED, [self.collection_id])
        for files in _batches(rows):
            await self._fill(files)
        names = {"vectors": self.vectors, "graph": self.index, "base": self.base}
        with translate_errors("build the HNSW index"):
            await client.run_alone(
                BEGIN_BUILD.format(key=lock_key(self.index), **names),
                SET_GRAPH_MEMORY,
                BUILD.format(**names),
                DROP_FORMER_GRAPH.format(**names),
            )
        await self._finish()

    async def _finish(self) -> None:
        """Remove rows that were copied while another transaction deleted them, and release the table."""
        async with write_transaction("wait for changes of the collection") as client:
            await client.lift_limits()
            await client.execute_script(
                f"SET LOCAL lock_timeout = 0; LOCK TABLE {self.vectors} IN SHARE MODE"
            )
        await self.check()
        async with write_transaction("note that the vectors are complete") as client:
            await client.execute_query(SET_FILLED, [self.space_id, self.collection_id])

    async def remove(self) -> None:
        """Drop the table."""
        async with write_transaction("drop the vectors of the collection") as client:
            await client.execute_query(DELETE_GRAPH, [self.space_id, self.collection_id])

    async def check(self) -> str | None:
        """Repair the rows of a complete table; return a sentence about the differences, None without any."""
        names = {"vectors": self.vectors, "base": self.base}
        async with write_transaction("check the vectors of the collection") as client:
            await client.lift_limits()
            _, strays = await client.execute_query(SELECT_STRAYS.format(**names), [self.collection_id])
            _, [[missing]] = await client.execute_query(COUNT_MISSING.format(**names), [self.collection_id])
            if strays:
                await client.execute_query(DELETE_STRAYS.format(**names), [[row[0] for row in strays]])
            _, files = await client.execute_query(SELECT_LINKED, [self.collection_id])
        if not strays and not missing:
            return None
        for batch in _batches(files):
            await self._fill(batch)
        return (
            f"the HNSW index of collection {self.collection_id} differed: {missing} passages were missing, "
            f"{len(strays)} were wrong"
        )

    async def _create(self) -> bool:
        """Create the empty table, from which moment on triggers fill it; False without the collection."""
        lock = COLLECTION_LOCK.format(collection="$1")
        async with write_transaction("make the table of the collection's vectors") as client:
            # The lock order of a publication.
            await client.execute_query(LOCK_COLLECTION, [self.collection_id])
            await client.execute_query(f"SELECT pg_advisory_xact_lock({lock})", [self.collection_id])
            values = [self.space_id, self.collection_id, self.vectors, self.base]
            _, added = await client.execute_query(INSERT_GRAPH, values)
            if added:
                # One that `drop_orphans` has not dropped yet.
                await client.execute_script(f"DROP TABLE IF EXISTS {self.vectors}")
            _, rows = await client.execute_query(
                "SELECT 1 FROM collection_graphs WHERE space_id = $1 AND collection_id = $2", values[:2]
            )
            if rows:
                await client.execute_script(
                    CREATE_TABLE.format(vectors=self.vectors, dimension=self.dimension)
                )
            return bool(rows)

    async def _fill(self, file_ids: Sequence[str]) -> None:
        async with write_transaction("copy the vectors of the collection") as client:
            await client.lift_limits()
            fill = FILL.format(vectors=self.vectors, base=self.base)
            await client.execute_query(fill, [self.collection_id, file_ids])


async def install() -> None:
    """Create the tables, functions and triggers that do not exist, in one transaction.

    Raises unavailable when long writes are in the way.
    """
    async with write_transaction("prepare the HNSW indexes of collections") as client:
        await client.lift_limits()
        await client.execute_query("SELECT pg_advisory_xact_lock($1)", [lock_key("collection_graphs")])
        await wait_briefly(client)
        _, [[is_installed]] = await client.execute_query(IS_INSTALLED, [])
        if not is_installed:
            await client.execute_script(TABLES)
        await client.execute_script(FUNCTIONS)
        await add_triggers(client, TRIGGERS)
        _, tables = await client.execute_query(SELECT_VECTOR_TABLES, [])
        for space_id, table in tables:
            await watch_table(client, table, space_id)
        if not is_installed:
            # The triggers wait for writers, so nothing is published from here on.
            await _add_backlog(client)


async def drop_orphans(query: str) -> None:
    """Drop the tables that a query returns; those in use stay for the next time.

    They are of collections or spaces that were removed while somebody used them.
    """
    client: Any = SpaceRow._meta.db
    with translate_errors("look for tables of removed collections"):
        _, rows = await client.execute_query(query, [])
    for [name] in rows:
        try:
            async with write_transaction("drop the table of a removed collection") as client:
                await wait_briefly(client)
                await client.execute_script(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
                # Since then it may have been made again.
                _, left = await client.execute_query(f"{query} AND tablename = $1", [name])
                if left:
                    await client.execute_script(f"DROP TABLE {name}")
        except GatewayError as error:
            log.debug("a table stays for now: %s", error.full_message)


async def wait_briefly(client: Any) -> None:
    """Let a transaction wait for a table only as long as no writer that waits for it in turn is in danger."""
    await client.execute_script(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")


async def watch_table(client: Any, table: str, space_id: int) -> None:
    """Create the triggers of a space's table that do not exist."""
    triggers = {name: made.format(table=table, space=space_id) for name, made in TABLE_TRIGGERS.items()}
    await add_triggers(client, triggers, table)


async def add_triggers(client: Any, triggers: dict[str, str], table: str = "") -> None:
    """Create the triggers that do not exist, passed by name; `table` is the only one with these names."""
    _, rows = await client.execute_query(SELECT_TRIGGERS, [list(triggers), table])
    present = {row[0] for row in rows}
    for name, made in triggers.items():
        if name not in present:
            await client.execute_script(f"CREATE TRIGGER {name} {made}")


async def _add_backlog(client: Any) -> None:
    _, rows = await client.execute_query(SELECT_VECTOR_TABLES, [])
    tables = {row[0]: row[1] for row in rows}
    for space_id, table in tables.items():
        present = PRESENT.format(table=table)
        space = f"AND space_id = {int(space_id)}"
        await client.execute_script(ADD_BACKLOG.format(space=space, present=present))
    others = ", ".join(str(int(space_id)) for space_id in tables)
    space = f"AND space_id NOT IN ({others})" if others else ""
    await client.execute_script(ADD_BACKLOG.format(space=space, present=""))


def _batches(files: Sequence[Sequence[Any]]) -> Sequence[Sequence[str]]:
    """Split files, passed with their numbers of passages, into batches of about FILL_PASSAGES."""
    batches: list[list[str]] = []
    left = 0
    for file_id, passages in files:
        if left <= 0:
            batches.append([])
            left = FILL_PASSAGES
        batches[-1].append(file_id)
        left -= passages
    return batches
