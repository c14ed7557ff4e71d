"""Finding passages by their words.

On SQLite a collection has a table of words of its own, and a single file gets one in memory when it is
searched. On PostgreSQL the words are a column of the passages.
"""

import logging
import re
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from gatewayd.errors import GatewayError
from gatewayd.ingest.interfaces import LexicalIndex
from gatewayd.ingest.records import ScopeKind, SearchHit, SearchScope
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.readers import PoolReader, SqliteReader
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.search import fts, passage_removal
from gatewayd.storage.search.bigrams import SegmentedQuery, is_letter, segment_query
from gatewayd.storage.search.file_fts_cache import FileWordCache
from gatewayd.storage.search.ranks import PassageRanking, match_any
from gatewayd.storage.search.term_selection import MAX_MATCHED_PASSAGES, TermPlan
from gatewayd.storage.tables.documents import (
    CollectionRow,
    FileRow,
)
from gatewayd.text import replace_presentation_forms

log = logging.getLogger(__name__)

MAX_QUERY_CHARACTERS: Final = 10_000
MAX_TERMS: Final = 32
MIN_WEIGHED_PASSAGES: Final = 300
# What is not a word is a separator, to FTS5 as well.
TERM_PATTERN: Final = re.compile(r"[^\W_]+")
SPACED_TERM_PATTERN: Final = re.compile(r"[^\s\x00]+")

SELECT_NEWEST: Final = "SELECT MAX(id) FROM passages WHERE file_id = $1 AND NOT staged"
SELECT_TEXTS: Final = f"SELECT id, {fts.INDEXED} FROM passages WHERE file_id = $1 AND NOT staged ORDER BY id"  # noqa: S608

# The words of a text as they are searched: stems, without those that are everywhere; and which share of all
# passages has each, 0 where that is not known.
SELECT_STEMS: Final = (
    "SELECT word, COALESCE(share, 0)::float8 "
    "FROM UNNEST(tsvector_to_array(to_tsvector('english', $1))) AS word LEFT JOIN "
    "(SELECT UNNEST(most_common_elems::text::text[]) AS word, UNNEST(most_common_elem_freqs) AS share "
    "FROM pg_stats WHERE schemaname = current_schema() AND tablename = 'passages' AND attname = 'words')"
    " AS known USING (word) ORDER BY word"
)
SELECT_PHRASES: Final = "SELECT phraseto_tsquery('english', phrase)::text FROM UNNEST($1::text[]) AS phrase"
SELECT_SIZES: Final = (
    "SELECT (SELECT COALESCE(SUM(chunks), 0)::bigint FROM files JOIN {files} ON f.file_id = files.id), "
    "(SELECT GREATEST(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass('passages'))"
)
# The best ones by the share of a passage that the words are; PostgreSQL knows no rare and frequent words, so
# the best of these are those whose words few of them have.
SELECT_MATCHING: Final = (
    "WITH found AS MATERIALIZED (SELECT p.id, p.words FROM {source} "
    "WHERE p.words @@ $1::tsquery ORDER BY ts_rank(p.words, $1::tsquery, 1) DESC, p.id LIMIT $4), "
    "ranks AS MATERIALIZED (SELECT found.id, word, ts_rank(found.words, word::tsquery, 1) AS rank "
    "FROM found CROSS JOIN UNNEST($5::text[]) AS word WHERE found.words @@ word::tsquery), "
    "weights AS (SELECT word, LN(1 + ((SELECT COUNT(*) FROM found) - COUNT(*) + 0.5) / (COUNT(*) + 0.5)) "
    "AS weight FROM ranks GROUP BY word) "
    "SELECT id, SUM(rank * weight)::float8 AS score FROM ranks JOIN weights USING (word) "
    "GROUP BY id ORDER BY score DESC, id LIMIT $3"
)
# The OFFSET makes the planner look at the passages of the scope and at no others, however many there are.
SCOPE_PASSAGES: Final = (
    "{files} CROSS JOIN LATERAL "
    "(SELECT id, words FROM passages WHERE file_id = f.file_id AND NOT staged OFFSET 0) p"
)
# Here it looks at the passages with certain words, whosever they are, and at no more than are worth it.
WORD_PASSAGES: Final = (
    "(SELECT id, words FROM passages WHERE words @@ $6::tsquery AND NOT staged "
    "AND EXISTS (SELECT 1 FROM {files} WHERE f.file_id = passages.file_id) LIMIT $7) p"
)
SCOPE_FILES: Final = {
    ScopeKind.COLLECTION: "(SELECT file_id FROM collection_files WHERE collection_id = {}) f",
    ScopeKind.FILE: "(SELECT id AS file_id FROM files WHERE id = {}) f",
}


@asynccontextmanager
async def open_lexical(reader: SqliteReader | PoolReader) -> AsyncIterator[LexicalIndex]:
    """Yield the lexical index of the database that the reader reads, and close it."""
    if isinstance(reader, PoolReader):
        yield PostgresLexical(reader)
        return
    files = FileWordCache()
    try:
        yield SqliteLexical(reader, files)
    finally:
        await files.close()


def split_terms(query: str, pattern: re.Pattern[str] = TERM_PATTERN) -> list[str]:
    """Return the different words of a text, the longest ones when there are too many."""
    found = list(dict.fromkeys(word.lower() for word in pattern.findall(query[:MAX_QUERY_CHARACTERS])))
    return sorted(found, key=len, reverse=True)[:MAX_TERMS] if len(found) > MAX_TERMS else found


def _asked(query: str) -> SegmentedQuery:
    """Return a query as its words are looked for, with plain letters beside presentation forms.

    A query that is copied from a document may have such forms, and the text that was read of it has not.
    """
    asked = query[:MAX_QUERY_CHARACTERS]
    plain = replace_presentation_forms(asked)
    return segment_query(asked if plain == asked else f"{plain} {asked}")


class SqliteLexical:
    """Implements `ingest.interfaces.LexicalIndex` with FTS5."""

    def __init__(self, reader: SqliteReader, files: FileWordCache) -> None:
        self._reader = reader
        self._files = files
        self._ranking = PassageRanking()

    async def search(self, scope: SearchScope, query: str, limit: int) -> Sequence[SearchHit]:
        """Return the passages that match any word of a text, best first."""
        asked = _asked(query)
        wanted = [*split_terms(asked.text), *asked.phrases]
        if not wanted or limit < 1 or not fits_columns(FileRow, id=scope.id):
            return []
        with translate_errors("search words"):
            if scope.kind is ScopeKind.FILE:
                return await self._search_file(scope.id, match_any(wanted), limit)
            return await self._reader.run(lambda reading: self._search(reading, scope.id, wanted, limit))

    async def check(self, scope: SearchScope) -> Sequence[str]:
        """Compare the words of a collection with its passages, mend, and return what differed."""
        if scope.kind is ScopeKind.FILE or not fits_columns(CollectionRow, id=scope.id):
            return []
        try:
            await passage_removal.purge()
        except GatewayError as error:
            # What is to be mended may be why.
            log.warning("stale passages cannot be removed before a check: %s", error.full_message)
        async with write_transaction("check the words of the collection") as client:
            row = await CollectionRow.get_or_none(id=scope.id)
            return [] if row is None else await fts.rebuild_if_different(client, row.id, row.number)

    def _search(
        self, reading: sqlite3.Connection, collection_id: str, wanted: Sequence[str], limit: int
    ) -> Sequence[SearchHit]:
        row = reading.execute("SELECT number FROM collections WHERE id = ?1", (collection_id,)).fetchone()
        return (
            []
            if row is None
            else self._ranking.search(reading, fts.table(row[0]), wanted, limit, collection_id)
        )

    async def _search_file(self, file_id: str, match: str, limit: int) -> Sequence[SearchHit]:
        [[newest]] = await self._reader.rows(SELECT_NEWEST, file_id)
        if newest is None:
            return []
        found = await self._files.search((file_id, newest), match, limit)
        if found is not None:
            return found
        texts = await self._reader.rows(SELECT_TEXTS, file_id)
        # Between the two queries it may have been published anew, or removed.
        version = file_id, max((number for number, _ in texts), default=0)
        return await self._files.search_new(version, texts, match, limit)


class PostgresLexical:
    """Implements `ingest.interfaces.LexicalIndex` with text search."""

    def __init__(self, reader: PoolReader) -> None:
        self._reader = reader

    async def search(self, scope: SearchScope, query: str, limit: int) -> Sequence[SearchHit]:
        """Return the passages that match any word of a text, best first."""
        asked = _asked(query)
        text = " ".join(split_terms(asked.text, SPACED_TERM_PATTERN)).encode(errors="replace").decode()
        if not text or limit < 1 or not fits_columns(FileRow, id=scope.id):
            return []
        with translate_errors("search words"):
            stems = (await self._reader.rows(SELECT_STEMS, text))[:MAX_TERMS]
            if not stems:
                return []
            query = SELECT_SIZES.format(files=SCOPE_FILES[scope.kind].format("$1"))
            [[size, total]] = await self._reader.rows(query, scope.id)
            shares = {_quoted(stem): share for stem, share in stems}
            phrases = await self._reader.rows(SELECT_PHRASES, list(asked.phrases)) if asked.phrases else []
            shares |= {f"({phrase})": 0.0 for [phrase] in phrases if phrase}
            wanted = TermPlan(shares, size, total)
            found: list[SearchHit] = []
            for rare in wanted.steps():
                found = _continued(found, await self._search(scope, wanted.words, limit, rare))
                if len(found) >= limit or not rare:
                    break
        return found[:limit]

    async def _search(
        self, scope: SearchScope, wanted: Sequence[str], limit: int, rare: str = ""
    ) -> Sequence[SearchHit]:
        """Return the best passages of those that match `rare`, of all when that is empty."""
        source = (WORD_PASSAGES if rare else SCOPE_PASSAGES).format(
            files=SCOPE_FILES[scope.kind].format("$2")
        )
        values = [" | ".join(wanted), scope.id, limit, max(limit, MIN_WEIGHED_PASSAGES), wanted]
        rows = await self._reader.rows(
            SELECT_MATCHING.format(source=source), *values, *([rare, MAX_MATCHED_PASSAGES] if rare else [])
        )
        return [SearchHit(*row) for row in rows]

    async def check(self, scope: SearchScope) -> Sequence[str]:
        """Return nothing: the column is made by the database from the text beside it."""
        return []


def _quoted(stem: str) -> str:
    """Return a stem as the query that it alone is."""
    escaped = stem.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}':*" if is_letter(stem) else f"'{escaped}'"


def _continued(found: Sequence[SearchHit], more: Sequence[SearchHit]) -> list[SearchHit]:
    """Return what was found with more behind it, whose scores are made smaller than those before."""
    known = {hit.passage_id for hit in found}
    least = min((hit.score for hit in found), default=0.0)
    most = max((hit.score for hit in more), default=0.0)
    scale = least / most if found and most > least else 1.0
    return [
        *found,
        *(SearchHit(hit.passage_id, hit.score * scale) for hit in more if hit.passage_id not in known),
    ]
