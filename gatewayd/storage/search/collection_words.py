"""Tables of the words of large collections on PostgreSQL, with BM25 weights as `sparsevec` of pgvector.

A search of a large collection makes its table in the background, and text search answers it until then.
Triggers of the database delete the words of passages that leave the collection, and list in `word_backlog`
the files whose words are missing, also those that a node of an earlier version publishes. The next search
adds them: only this program splits texts into words.

The statistics of PostgreSQL, which ANALYZE brings up to date, tell how many passages have each key.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import SearchHit
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.readers import PoolReader
from gatewayd.storage.engine.transactions import lock_key, write_transaction
from gatewayd.storage.search.collection_graphs import (
    BEGIN_BUILD,
    COLLECTION_LOCK,
    DROP_MILLISECONDS,
    LOCK_COLLECTION,
    SELECT_ORPHANS,
    add_triggers,
    drop_orphans,
    wait_briefly,
)
from gatewayd.storage.search.fts import INDEXED
from gatewayd.storage.search.word_plan import LookUp, QueryWord, look_ups, query_weights
from gatewayd.storage.search.word_weights import (
    TIERS,
    WordCounter,
    passage_keys,
    sparse_vector,
    word_keys,
)
from gatewayd.storage.tables.documents import FileRow
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

MIN_PASSAGES: Final = 4_000
"""Number of passages from which on a collection gets a table of its words; it loses it below half of that."""
MAX_BACKLOG_FILES: Final = 4
MAX_BACKLOG_PASSAGES: Final = 1_000
"""Numbers of files and of their passages whose words a search adds itself; more are added in the background.
"""
RETRY_SECONDS: Final = 30.0
"""Pause after a failure in the background."""
SAMPLE_PASSAGES: Final = 500
"""Number of passages whose mean length is that of the collection."""
BATCH_PASSAGES: Final = 500
SPARE_HITS: Final = 16
"""Further hits, in the place of those that a concurrent change removes."""
KEY_STATISTICS: Final = 1_000
"""Statistics target of the keys: PostgreSQL keeps the frequencies of about ten times as many."""
MAX_COUNTED: Final = 1_000

TABLES: Final = """
CREATE TABLE IF NOT EXISTS collection_words (
    collection_id VARCHAR(64) COLLATE "C" PRIMARY KEY REFERENCES collections (id) ON DELETE CASCADE,
    words TEXT NOT NULL,
    average REAL NOT NULL,
    is_filled BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE TABLE IF NOT EXISTS word_backlog (
    collection_id VARCHAR(64) COLLATE "C" NOT NULL REFERENCES collection_words (collection_id)
        ON DELETE CASCADE,
    file_id VARCHAR(64) COLLATE "C" NOT NULL,
    PRIMARY KEY (collection_id, file_id)
);
CREATE INDEX IF NOT EXISTS idx_word_backlog_file ON word_backlog (file_id);
"""
FUNCTIONS: Final = f"""
CREATE OR REPLACE FUNCTION words_link_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({COLLECTION_LOCK.format(collection="NEW.collection_id")});
    INSERT INTO word_backlog (collection_id, file_id)
        SELECT collection_id, NEW.file_id FROM collection_words WHERE collection_id = NEW.collection_id
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION words_link_removed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    mine record;
BEGIN
    PERFORM pg_advisory_xact_lock_shared({COLLECTION_LOCK.format(collection="OLD.collection_id")});
    FOR mine IN SELECT words FROM collection_words WHERE collection_id = OLD.collection_id LOOP
        EXECUTE format('DELETE FROM %1$I WHERE passage_id IN (SELECT passage_id FROM %1$I WHERE file_id = $1'
            ' FOR UPDATE SKIP LOCKED)', mine.words) USING OLD.file_id;
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION words_text_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({COLLECTION_LOCK.format(collection="collection_id")})
        FROM collection_files WHERE file_id = NEW.file_id;
    INSERT INTO word_backlog (collection_id, file_id)
        SELECT w.collection_id, NEW.file_id FROM collection_words w JOIN collection_files l
            ON l.collection_id = w.collection_id WHERE l.file_id = NEW.file_id
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION words_text_removed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    mine record;
BEGIN
    FOR mine IN SELECT w.words FROM collection_words w JOIN collection_files l
        ON l.collection_id = w.collection_id WHERE l.file_id = OLD.file_id LOOP
        EXECUTE format('DELETE FROM %1$I WHERE passage_id IN (SELECT passage_id FROM %1$I WHERE file_id = $1'
            ' FOR UPDATE SKIP LOCKED)', mine.words) USING OLD.file_id;
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION words_file_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM word_backlog WHERE file_id = OLD.id;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION words_removed() RETURNS trigger LANGUAGE plpgsql
    SET lock_timeout = '{DROP_MILLISECONDS}ms' AS $$
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', OLD.words);
    RETURN NULL;
EXCEPTION WHEN lock_not_available THEN
    -- `drop_orphans` does it later.
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION words_found(statement text, wanted text, many int, collection text)
    RETURNS TABLE (number bigint, score float8) LANGUAGE plpgsql
    -- With a LIMIT the planner would scan the table.
    SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY EXECUTE statement USING wanted, many, collection;
END $$;
"""  # noqa: S608 - constants
TRIGGERS: Final = {
    "words_link_added": "AFTER INSERT ON collection_files FOR EACH ROW EXECUTE FUNCTION words_link_added()",
    "words_link_removed": "AFTER DELETE ON collection_files FOR EACH ROW "
    "EXECUTE FUNCTION words_link_removed()",
    "words_text_added": "AFTER INSERT ON file_texts FOR EACH ROW WHEN (NOT NEW.staged) "
    "EXECUTE FUNCTION words_text_added()",
    "words_text_published": "AFTER UPDATE OF staged ON file_texts FOR EACH ROW WHEN (NOT NEW.staged) "
    "EXECUTE FUNCTION words_text_added()",
    "words_text_removed": "AFTER DELETE ON file_texts FOR EACH ROW WHEN (NOT OLD.staged) "
    "EXECUTE FUNCTION words_text_removed()",
    # No foreign key: the creation of a table would wait for files that are locked.
    "words_file_removed": "AFTER DELETE ON files FOR EACH ROW EXECUTE FUNCTION words_file_removed()",
    "words_removed": "AFTER DELETE ON collection_words FOR EACH ROW EXECUTE FUNCTION words_removed()",
}
CREATE_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS {words} (passage_id BIGINT PRIMARY KEY, "
    'file_id VARCHAR(64) COLLATE "C" NOT NULL, keys INT[] NOT NULL, vec sparsevec NOT NULL); '
    f"ALTER TABLE {{words}} ALTER COLUMN keys SET STATISTICS {KEY_STATISTICS}; "
    "CREATE INDEX IF NOT EXISTS idx_{words}_file ON {words} (file_id)"
)
# A list of pending keys is slow for every search.
BUILD: Final = (
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON {words} USING gin (keys) WITH (fastupdate = off)"
)
INSERT_WORDS: Final = (
    "WITH made AS (INSERT INTO collection_words (collection_id, words, average) SELECT id, $2, $3 "
    "FROM collections WHERE id = $1 ON CONFLICT DO NOTHING RETURNING words) SELECT words FROM made"
)
ADD_BACKLOG: Final = (
    "INSERT INTO word_backlog (collection_id, file_id) SELECT collection_id, file_id FROM collection_files "
    "WHERE collection_id = $1 ON CONFLICT DO NOTHING"
)
SELECT_SAMPLE: Final = (
    f"SELECT {INDEXED} FROM collection_files l JOIN passages p ON p.file_id = l.file_id "  # noqa: S608
    "WHERE l.collection_id = $1 AND NOT p.staged LIMIT $2"
)
SELECT_STATE: Final = (
    "SELECT w.words, w.average, (SELECT COUNT(*) FROM (SELECT 1 FROM word_backlog b "
    "WHERE b.collection_id = $1 LIMIT $2) b), c.reltuples::float8, w.is_filled, "
    "(SELECT COALESCE(SUM(f.chunks), 0)::bigint FROM (SELECT file_id FROM word_backlog "
    "WHERE collection_id = $1 LIMIT $2) b JOIN files f ON f.id = b.file_id) "
    "FROM collection_words w JOIN pg_class c ON c.oid = to_regclass(w.words) WHERE w.collection_id = $1"
)
SELECT_BACKLOG: Final = "SELECT file_id FROM word_backlog WHERE collection_id = $1 ORDER BY file_id LIMIT $2"
LOCK_LINK: Final = "SELECT id FROM collection_files WHERE collection_id = $1 AND file_id = $2 FOR KEY SHARE"
DELETE_BACKLOG: Final = "DELETE FROM word_backlog WHERE collection_id = $1 AND file_id = $2"
SELECT_TEXTS: Final = (
    f"SELECT id, {INDEXED} FROM passages WHERE file_id = $1 AND NOT staged AND id > $2 ORDER BY id LIMIT $3"  # noqa: S608
)
# The share of the passages with each key, 0 for those without statistics.
SELECT_SHARES: Final = (
    "SELECT key, share FROM (SELECT UNNEST(most_common_elems::text::int[]) AS key, "
    "UNNEST(most_common_elem_freqs) AS share FROM pg_stats WHERE schemaname = current_schema() "
    "AND tablename = $1 AND attname = 'keys') known WHERE key = ANY($2::int[])"
)
# Keys are written into the statements, because the planner has statistics about them.
RUN: Final = "SELECT number, score FROM words_found($1, $2, $3, $4)"
COUNT_RARE: Final = (
    "SELECT {place}::bigint, COUNT(*)::float8 FROM (SELECT 1 FROM {words} "
    "WHERE keys && '{{{keys}}}'::int[] LIMIT {most}) rare"
)
SELECT_BEST: Final = (
    "WITH picked AS MATERIALIZED ({found}), best AS MATERIALIZED (SELECT w.passage_id, w.file_id, "
    "(w.vec <#> $1::sparsevec) AS distance FROM {words} w JOIN picked USING (passage_id) "
    "ORDER BY distance, w.passage_id LIMIT $2) "
    "SELECT b.passage_id, -b.distance FROM best b JOIN passages p ON p.id = b.passage_id AND NOT p.staged "
    "WHERE b.distance < 0 AND EXISTS (SELECT 1 FROM collection_files l WHERE l.collection_id = $3 "
    "AND l.file_id = b.file_id) ORDER BY b.distance, b.passage_id"
)
SET_FILLED: Final = "UPDATE collection_words SET is_filled = TRUE WHERE collection_id = $1"
SELECT_SIZE: Final = (
    "SELECT COALESCE(SUM(f.chunks), 0)::bigint FROM collection_files l JOIN files f ON f.id = l.file_id "
    "WHERE l.collection_id = $1"
)
DELETE_STRAYS: Final = (
    "WITH gone AS (DELETE FROM {words} w WHERE NOT EXISTS (SELECT 1 FROM passages p JOIN collection_files l "
    "ON l.file_id = p.file_id WHERE p.id = w.passage_id AND NOT p.staged AND l.collection_id = $1) "
    "RETURNING passage_id) SELECT passage_id FROM gone"
)
SELECT_DIFFERENT: Final = (
    "SELECT l.file_id FROM collection_files l WHERE l.collection_id = $1 AND "
    "(SELECT COUNT(*) FROM passages p WHERE p.file_id = l.file_id AND NOT p.staged) "
    "<> (SELECT COUNT(*) FROM {words} w WHERE w.file_id = l.file_id)"
)
ORPHANS: Final = SELECT_ORPHANS.format(
    pattern=r"collection_words_\d+", list="collection_words", column="words"
)
# The lock order of a publication.
LOCK_REMOVED: Final = "SELECT id FROM collections WHERE id = $1 FOR UPDATE"
DELETE_WORDS: Final = "DELETE FROM collection_words WHERE collection_id = $1"
# pgvector has the type from version 0.7 on.
IS_POSSIBLE: Final = "SELECT to_regtype('sparsevec') IS NOT NULL"
HAS_TABLES: Final = "SELECT to_regclass('word_backlog') IS NOT NULL"


@dataclass(frozen=True, slots=True)
class _WordTable:
    collection_id: str
    name: str
    average: float
    size: float


class CollectionWords:
    """Searches the words of large collections, and maintains their tables by tasks of `tasks`."""

    def __init__(self, reader: PoolReader, tasks: TaskRegistry, min_passages: int = MIN_PASSAGES) -> None:
        self._min_passages = min_passages
        self._reader = reader
        self._tasks = tasks
        self._counter = WordCounter()
        self._is_possible: bool | None = None
        self._has_tables = False
        self._is_installed = False
        self._working: set[str] = set()
        self._retry_at = 0.0

    async def search(self, collection_id: str, query: str, limit: int) -> Sequence[SearchHit] | None:
        """Return the best passages for a segmented query; None where text search has to answer it.

        That is without pgvector 0.7 or newer, and until the table of the collection is complete.
        """
        table = await self._complete_table(collection_id)
        if table is None:
            return None
        words = await asyncio.to_thread(self._counter.split, query)
        if not words:
            return []
        counted = await self._count(table, words)
        counted = [each for each in counted if each.total]
        if not counted:
            return []
        weights = query_weights(counted, table.size)
        found = [_found(table.name, each) for each in look_ups(counted, table.size)]
        statement = SELECT_BEST.format(found=" UNION ".join(found), words=table.name)
        values = [sparse_vector(weights), limit + SPARE_HITS, collection_id]
        rows = await self._reader.rows(RUN, statement, *values)
        return [SearchHit(row[0], float(row[1])) for row in rows[:limit]]

    async def check(self, collection_id: str) -> Sequence[str]:
        """Drop the table of a collection that became small, else repair it and return the differences.

        The words of files that were not added yet are added first and are no difference.
        """
        if not await self._state(collection_id, 1):
            return []
        if await self._size(collection_id) < self._min_passages // 2:
            async with write_transaction("drop the words of the collection") as client:
                await client.execute_query(LOCK_REMOVED, [collection_id])
                await client.execute_query(DELETE_WORDS, [collection_id])
            return []
        await self._make(collection_id)
        rows = await self._reader.rows(SELECT_STATE, collection_id, 1)
        return await self._repair(_table_of(collection_id, rows[0])) if rows else []

    async def _repair(self, table: _WordTable) -> Sequence[str]:
        async with write_transaction("check the words of the collection") as client:
            await client.lift_limits()
            _, strays = await client.execute_query(
                DELETE_STRAYS.format(words=table.name), [table.collection_id]
            )
            _, files = await client.execute_query(
                SELECT_DIFFERENT.format(words=table.name), [table.collection_id]
            )
        for [file_id] in files:
            await self._add_file(table, file_id)
        if not strays and not files:
            return []
        return [
            f"the words of collection {table.collection_id} differed: those of {len(files)} files, and "
            f"{len(strays)} passages that are not in it"
        ]

    async def _size(self, collection_id: str) -> int:
        [[size]] = await self._reader.rows(SELECT_SIZE, collection_id)
        return int(size)

    async def _complete_table(self, collection_id: str) -> _WordTable | None:
        """Return a complete table; start to make or to complete one that is not."""
        rows = await self._state(collection_id, MAX_BACKLOG_FILES + 1)
        if not rows and (not self._is_possible or await self._size(collection_id) < self._min_passages):
            return None
        is_ready = bool(rows) and _is_ready(rows[0])
        if not is_ready or not self._is_installed:
            self._start_work(collection_id)
        if not is_ready:
            return None
        table = _table_of(collection_id, rows[0])
        if rows[0][2]:
            try:
                for [file_id] in await self._reader.rows(SELECT_BACKLOG, collection_id, MAX_BACKLOG_FILES):
                    await self._add_file(table, file_id)
            except GatewayError as error:
                if error.kind is not ErrorKind.UNAVAILABLE:
                    raise
                # Somebody else works on the file.
                log.debug("text search answers: %s", error.full_message)
                return None
        return table

    async def _state(self, collection_id: str, most: int) -> Sequence[Sequence[Any]]:
        """Return the row of SELECT_STATE; none before the table is made."""
        if self._is_possible is None:
            [[self._is_possible]] = await self._reader.rows(IS_POSSIBLE)
        if self._is_possible and not self._has_tables:
            [[self._has_tables]] = await self._reader.rows(HAS_TABLES)
        return await self._reader.rows(SELECT_STATE, collection_id, most) if self._has_tables else []

    def _start_work(self, collection_id: str) -> None:
        if collection_id not in self._working and time.monotonic() >= self._retry_at:
            self._working.add(collection_id)
            self._tasks.spawn(f"words of collection {collection_id}", self._work(collection_id))

    async def _work(self, collection_id: str) -> None:
        try:
            await self._make(collection_id)
        except GatewayError as error:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            log.warning("cannot index the words of a collection: %s", error.full_message)
        finally:
            self._working.discard(collection_id)

    async def _make(self, collection_id: str) -> None:
        """Make the table of a collection, and add what is missing; several nodes may do so."""
        if not self._is_installed:
            await install()
            await drop_orphans(ORPHANS)
            self._is_installed = True
        if not await self._state(collection_id, 1):
            await self._create(collection_id)
        with translate_errors("list the files of the collection"):
            while rows := await self._state(collection_id, 1):
                table = _table_of(collection_id, rows[0])
                if not rows[0][2]:
                    break
                for [file_id] in await self._reader.rows(SELECT_BACKLOG, collection_id, BATCH_PASSAGES):
                    await self._add_file(table, file_id)
        if rows:
            if not rows[0][4]:
                await _build_index(rows[0][0])
            async with write_transaction("analyse the words of the collection") as client:
                await client.lift_limits()
                await client.execute_script(f"ANALYZE {rows[0][0]}")
                await client.execute_query(SET_FILLED, [collection_id])
        await drop_orphans(ORPHANS)

    async def _create(self, collection_id: str) -> None:
        with translate_errors("read passages of the collection"):
            sample = await self._reader.rows(SELECT_SAMPLE, collection_id, SAMPLE_PASSAGES)
        counted = await asyncio.to_thread(self._counter.count, [row[0] for row in sample])
        average = sum(each.length for each in counted) / max(len(counted), 1)
        lock = COLLECTION_LOCK.format(collection="$1")
        async with write_transaction("make the table of the collection's words") as client:
            # The lock order of a publication.
            await client.execute_query(LOCK_COLLECTION, [collection_id])
            await client.execute_query(f"SELECT pg_advisory_xact_lock({lock})", [collection_id])
            _, [[number]] = await client.execute_query(
                "SELECT MAX(number) FROM collections WHERE id = $1", [collection_id]
            )
            name = f"collection_words_{int(number or 0)}"
            _, rows = await client.execute_query(INSERT_WORDS, [collection_id, name, average])
            if rows:
                # One that `drop_orphans` has not dropped yet.
                await client.execute_script(f"DROP TABLE IF EXISTS {name}")
                await client.execute_script(CREATE_TABLE.format(words=name))
                await client.execute_query(ADD_BACKLOG, [collection_id])

    async def _add_file(self, table: _WordTable, file_id: str) -> None:
        """Add the words of a file, unless it is no longer in the collection."""
        place = [table.collection_id, file_id]
        async with write_transaction("add the words of the file") as client:
            await client.lift_limits()
            # Nobody publishes, links or removes the file meanwhile; who unlinks it sees the rows.
            if await FileRow.filter(id=file_id).select_for_update():
                _, links = await client.execute_query(LOCK_LINK, place)
                if links:
                    delete = f"DELETE FROM {table.name} WHERE file_id = $1"  # noqa: S608 - a number
                    await client.execute_query(delete, [file_id])
                    await self._copy(client, table, file_id)
            await client.execute_query(DELETE_BACKLOG, place)

    async def _copy(self, client: Any, table: _WordTable, file_id: str) -> None:
        last = 0
        insert = (
            f"INSERT INTO {table.name} (passage_id, file_id, keys, vec) "  # noqa: S608 - a number
            "SELECT id, $1, ('{' || keys || '}')::int[], vec::sparsevec "
            "FROM UNNEST($2::bigint[], $3::text[], $4::text[]) made (id, keys, vec) ON CONFLICT DO NOTHING"
        )
        while True:
            _, rows = await client.execute_query(SELECT_TEXTS, [file_id, last, BATCH_PASSAGES])
            if not rows:
                return
            made = await asyncio.to_thread(self._weigh, [row[1] for row in rows], table.average)
            keys, vectors = zip(*made, strict=True)
            await client.execute_query(insert, [file_id, [row[0] for row in rows], list(keys), list(vectors)])
            last = rows[-1][0]

    def _weigh(self, texts: Sequence[str], average: float) -> Sequence[tuple[str, str]]:
        """Return the keys and the vector of each text, both as text."""
        weighed = [each.weights(average) for each in self._counter.count(texts)]
        return [(",".join(map(str, passage_keys(each))), sparse_vector(each)) for each in weighed]

    async def _count(self, table: _WordTable, words: Sequence[int]) -> Sequence[QueryWord]:
        """Return the number of passages with each word: by the statistics, or counted for rare ones."""
        keys = [key for word in words for key in word_keys(word)]
        shares = {row[0]: row[1] for row in await self._reader.rows(SELECT_SHARES, table.name, keys)}
        passages = {
            word: [float(shares.get(key, 0.0)) * table.size for key in word_keys(word)] for word in words
        }
        rare = [word for word, each in passages.items() if sum(each) < MAX_COUNTED / 2]
        counts = [
            COUNT_RARE.format(place=place, words=table.name, keys=_keys(word_keys(word)), most=MAX_COUNTED)
            for place, word in enumerate(rare)
        ]
        rows = await self._reader.rows(RUN, " UNION ALL ".join(counts), "", 0, "") if counts else []
        for place, count in rows:
            passages[rare[place]] = [float(count), *[0.0] * len(TIERS)]
        return [QueryWord(word, each) for word, each in passages.items()]


async def install() -> None:
    """Create the tables, functions and triggers that do not exist, in one transaction.

    Raises unavailable when long writes are in the way.
    """
    async with write_transaction("prepare the words of collections") as client:
        await client.lift_limits()
        await client.execute_query("SELECT pg_advisory_xact_lock($1)", [lock_key("collection_words")])
        await wait_briefly(client)
        await client.execute_script(TABLES)
        await client.execute_script(FUNCTIONS)
        await add_triggers(client, TRIGGERS)


async def _build_index(words: str) -> None:
    """Build the index of the keys, which is faster over all than with each passage."""
    client: Any = FileRow._meta.db
    index = f"idx_{words}_keys"
    with translate_errors("build the index of the words"):
        await client.run_alone(
            BEGIN_BUILD.format(key=lock_key(index), graph=index), BUILD.format(index=index, words=words)
        )


def _table_of(collection_id: str, row: Sequence[Any]) -> _WordTable:
    """Return the table of a row of SELECT_STATE."""
    return _WordTable(collection_id, row[0], row[1], max(row[3], 0.0))


def _is_ready(row: Sequence[Any]) -> bool:
    """Whether a search can use the table of a row of SELECT_STATE, and add what is missing."""
    _, _, files, passages, is_filled, missing = row
    # A restored table has no statistics before it is analysed.
    is_analysed = passages >= 0
    is_short = files <= MAX_BACKLOG_FILES and missing <= MAX_BACKLOG_PASSAGES
    return bool(is_filled) and is_analysed and is_short


def _found(name: str, lookup: LookUp) -> str:
    """Return the query of a look-up."""
    conditions = " AND ".join(f"keys && '{{{_keys(group)}}}'::int[]" for group in lookup.groups)
    return f"(SELECT passage_id FROM {name} WHERE {conditions} LIMIT {lookup.limit})"  # noqa: S608 - numbers


def _keys(keys: Sequence[int]) -> str:
    return ",".join(map(str, keys))
