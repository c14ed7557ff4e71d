"""Full-text search of passages.

On SQLite a collection has its own FTS5 table, and a single file gets one in memory when it is searched. On
PostgreSQL the words are a column of the passages.
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
from gatewayd.storage.search.collection_words import CollectionWords
from gatewayd.storage.search.file_fts_cache import FileWordCache
from gatewayd.storage.search.ranks import PassageRanking, match_any
from gatewayd.storage.search.term_selection import MAX_MATCHED_PASSAGES, TermPlan
from gatewayd.storage.tables.documents import CollectionRow, FileRow
from gatewayd.tasks import TaskRegistry
from gatewayd.text import replace_presentation_forms

log = logging.getLogger(__name__)

MAX_QUERY_CHARACTERS: Final = 10_000
MAX_TERMS: Final = 32
MIN_WEIGHED_PASSAGES: Final = 300
# FTS5 treats the same characters as separators.
TERM_PATTERN: Final = re.compile(r"[^\W_]+")
SPACED_TERM_PATTERN: Final = re.compile(r"[^\s\x00]+")

SELECT_NEWEST: Final = "SELECT MAX(id) FROM passages WHERE file_id = $1 AND NOT staged"
SELECT_TEXTS: Final = f"SELECT id, {fts.INDEXED} FROM passages WHERE file_id = $1 AND NOT staged ORDER BY id"  # noqa: S608

# The stems of a text without stop words, with the share of all passages that contains each (0 if unknown).
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
# PostgreSQL's rank ignores how rare a word is. So the best passages by rank are ranked again, with each word
# weighted by its rareness among them.
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
# The OFFSET makes the planner scan the passages of the scope only.
SCOPE_PASSAGES: Final = (
    "{files} CROSS JOIN LATERAL "
    "(SELECT id, words FROM passages WHERE file_id = f.file_id AND NOT staged OFFSET 0) p"
)
# Scans passages with certain words in all scopes, up to the limit $7.
WORD_PASSAGES: Final = (
    "(SELECT id, words FROM passages WHERE words @@ $6::tsquery AND NOT staged "
    "AND EXISTS (SELECT 1 FROM {files} WHERE f.file_id = passages.file_id) LIMIT $7) p"
)
SCOPE_FILES: Final = {
    ScopeKind.COLLECTION: "(SELECT file_id FROM collection_files WHERE collection_id = {}) f",
    ScopeKind.FILE: "(SELECT id AS file_id FROM files WHERE id = {}) f",
}


@asynccontextmanager
async def open_lexical(
    reader: SqliteReader | PoolReader, tasks: TaskRegistry | None = None
) -> AsyncIterator[LexicalIndex]:
    """Yield the lexical index of the reader's database, and close it.

    With `tasks`, which make them, large collections on PostgreSQL have tables of their words.
    """
    if isinstance(reader, PoolReader):
        yield PostgresLexical(reader, None if tasks is None else CollectionWords(reader, tasks))
        return
    files = FileWordCache()
    try:
        yield SqliteLexical(reader, files)
    finally:
        await files.close()


def split_terms(query: str, pattern: re.Pattern[str] = TERM_PATTERN) -> list[str]:
    """Return the distinct words of a text, only the longest MAX_TERMS of more."""
    found = list(dict.fromkeys(word.lower() for word in pattern.findall(query[:MAX_QUERY_CHARACTERS])))
    return sorted(found, key=len, reverse=True)[:MAX_TERMS] if len(found) > MAX_TERMS else found


def _segmented_query(query: str) -> SegmentedQuery:
    """Return the segmented query, with plain letters in addition to Arabic presentation forms.

    A query copied from a document may contain presentation forms, which the extracted text does not.
    """
    text = query[:MAX_QUERY_CHARACTERS]
    plain = replace_presentation_forms(text)
    return segment_query(text if plain == text else f"{plain} {text}")


class SqliteLexical:
    """Implements `ingest.interfaces.LexicalIndex` with FTS5."""

    def __init__(self, reader: SqliteReader, files: FileWordCache) -> None:
        self._reader = reader
        self._files = files
        self._ranking = PassageRanking()

    async def search(self, scope: SearchScope, query: str, limit: int) -> Sequence[SearchHit]:
        """Return the passages that match any word of a text, best first."""
        segmented = _segmented_query(query)
        wanted = [*split_terms(segmented.text), *segmented.phrases]
        if not wanted or limit < 1 or not fits_columns(FileRow, id=scope.id):
            return []
        with translate_errors("search words"):
            if scope.kind is ScopeKind.FILE:
                return await self._search_file(scope.id, match_any(wanted), limit)
            return await self._reader.run(lambda reading: self._search(reading, scope.id, wanted, limit))

    async def check(self, scope: SearchScope) -> Sequence[str]:
        """Compare the words of a collection with its passages, repair them, and return the differences."""
        if scope.kind is ScopeKind.FILE or not fits_columns(CollectionRow, id=scope.id):
            return []
        try:
            await passage_removal.purge()
        except GatewayError as error:
            # The damage that the check repairs may be the cause.
            log.warning("cannot remove stale passages before a check: %s", error.full_message)
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
        # The file may have been published again or removed between the two queries.
        version = file_id, max((number for number, _ in texts), default=0)
        return await self._files.search_new(version, texts, match, limit)


class PostgresLexical:
    """Implements `ingest.interfaces.LexicalIndex`: with BM25 for large collections, else with text search."""

    def __init__(self, reader: PoolReader, words: CollectionWords | None = None) -> None:
        self._reader = reader
        self._words = words

    async def search(self, scope: SearchScope, query: str, limit: int) -> Sequence[SearchHit]:
        """Return the passages that match any word of a text, best first."""
        segmented = _segmented_query(query)
        text = " ".join(split_terms(segmented.text, SPACED_TERM_PATTERN)).encode(errors="replace").decode()
        if not text or limit < 1 or not fits_columns(FileRow, id=scope.id):
            return []
        with translate_errors("search words"):
            found_by_weight = await self._search_weights(scope, segmented, limit)
            if found_by_weight is not None:
                return found_by_weight
            stems = (await self._reader.rows(SELECT_STEMS, text))[:MAX_TERMS]
            if not stems:
                return []
            query = SELECT_SIZES.format(files=SCOPE_FILES[scope.kind].format("$1"))
            [[size, total]] = await self._reader.rows(query, scope.id)
            shares = {_stem_query(stem): share for stem, share in stems}
            phrases = (
                await self._reader.rows(SELECT_PHRASES, list(segmented.phrases)) if segmented.phrases else []
            )
            shares |= {f"({phrase})": 0.0 for [phrase] in phrases if phrase}
            wanted = TermPlan(shares, size, total)
            found: list[SearchHit] = []
            for rare in wanted.steps():
                found = _append_hits(found, await self._search(scope, wanted.words, limit, rare))
                if len(found) >= limit or not rare:
                    break
        return found[:limit]

    async def _search_weights(
        self, scope: SearchScope, segmented: SegmentedQuery, limit: int
    ) -> Sequence[SearchHit] | None:
        """Return the best passages of a large collection; None where text search has to find them."""
        terms = split_terms(segmented.text)
        # A single character is searched as a prefix.
        if self._words is None or scope.kind is ScopeKind.FILE or any(is_letter(term) for term in terms):
            return None
        return await self._words.search(scope.id, " ".join(terms), limit)

    async def _search(
        self, scope: SearchScope, wanted: Sequence[str], limit: int, rare: str = ""
    ) -> Sequence[SearchHit]:
        """Return the best passages among those that match `rare`, or among all when it is empty."""
        source = (WORD_PASSAGES if rare else SCOPE_PASSAGES).format(
            files=SCOPE_FILES[scope.kind].format("$2")
        )
        values = [" | ".join(wanted), scope.id, limit, max(limit, MIN_WEIGHED_PASSAGES), wanted]
        rows = await self._reader.rows(
            SELECT_MATCHING.format(source=source), *values, *([rare, MAX_MATCHED_PASSAGES] if rare else [])
        )
        return [SearchHit(*row) for row in rows]

    async def check(self, scope: SearchScope) -> Sequence[str]:
        """Compare the words of a large collection, repair them, and return the differences."""
        if self._words is None or scope.kind is ScopeKind.FILE or not fits_columns(FileRow, id=scope.id):
            return []
        with translate_errors("check the words of the collection"):
            return await self._words.check(scope.id)


def _stem_query(stem: str) -> str:
    """Return the tsquery of a single stem."""
    escaped = stem.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}':*" if is_letter(stem) else f"'{escaped}'"


def _append_hits(found: Sequence[SearchHit], more: Sequence[SearchHit]) -> list[SearchHit]:
    """Return hits followed by more hits, whose scores are scaled below those of the first ones."""
    known = {hit.passage_id for hit in found}
    least = min((hit.score for hit in found), default=0.0)
    most = max((hit.score for hit in more), default=0.0)
    scale = least / most if found and most > least else 1.0
    return [
        *found,
        *(SearchHit(hit.passage_id, hit.score * scale) for hit in more if hit.passage_id not in known),
    ]
