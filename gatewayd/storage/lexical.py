"""Finding passages by their words.

On SQLite a collection has a table of words of its own, and a single file gets one in memory when it is
searched. On PostgreSQL the words are a column of the passages.
"""

import re
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from gatewayd.ingest.interfaces import LexicalIndex
from gatewayd.ingest.records import Hit, Scope, ScopeKind
from gatewayd.storage import words
from gatewayd.storage.failures import translated
from gatewayd.storage.fields import fits
from gatewayd.storage.filewords import FileWords
from gatewayd.storage.ranking import Ranking, any_of
from gatewayd.storage.readers import PoolReader, SqliteReader
from gatewayd.storage.rows import CollectionRow, FileRow
from gatewayd.storage.transactions import writing

LONGEST_QUERY: Final = 10_000
MOST_TERMS: Final = 32
WEIGHED: Final = 300
# What is not a word is a separator, to FTS5 as well.
TERM: Final = re.compile(r"[^\W_]+")
SPACED: Final = re.compile(r"[^\s\x00]+")

NEWEST: Final = "SELECT MAX(id) FROM passages WHERE file_id = $1 AND NOT staged"
TEXTS: Final = "SELECT id, text FROM passages WHERE file_id = $1 AND NOT staged ORDER BY id"

# The words of a text as they are searched: stems, without those that are everywhere.
STEMS: Final = "SELECT tsvector_to_array(to_tsvector('english', $1))"
# The best ones by the share of a passage that the words are; PostgreSQL knows no rare and frequent words, so
# the best of these are those whose words few of them have. The OFFSET makes the planner look at the passages
# of the scope and at no others, however many there are.
MATCHING: Final = (
    "WITH found AS MATERIALIZED (SELECT p.id, p.words FROM {files} CROSS JOIN LATERAL "
    "(SELECT id, words FROM passages WHERE file_id = f.file_id AND NOT staged OFFSET 0) p "
    "WHERE p.words @@ $1::tsquery ORDER BY ts_rank(p.words, $1::tsquery, 1) DESC, p.id LIMIT $4), "
    "ranks AS MATERIALIZED (SELECT found.id, word, ts_rank(found.words, word::tsquery, 1) AS rank "
    "FROM found CROSS JOIN UNNEST($5::text[]) AS word WHERE found.words @@ word::tsquery), "
    "weights AS (SELECT word, LN(1 + ((SELECT COUNT(*) FROM found) - COUNT(*) + 0.5) / (COUNT(*) + 0.5)) "
    "AS weight FROM ranks GROUP BY word) "
    "SELECT id, SUM(rank * weight)::float8 AS score FROM ranks JOIN weights USING (word) "
    "GROUP BY id ORDER BY score DESC, id LIMIT $3"
)
FILES: Final = {
    ScopeKind.COLLECTION: "(SELECT file_id FROM collection_files WHERE collection_id = $2) f",
    ScopeKind.FILE: "(SELECT id AS file_id FROM files WHERE id = $2) f",
}


@asynccontextmanager
async def open_lexical(reader: SqliteReader | PoolReader) -> AsyncIterator[LexicalIndex]:
    """Yield the lexical index of the database that the reader reads, and close it."""
    if isinstance(reader, PoolReader):
        yield PostgresLexical(reader)
        return
    files = FileWords()
    try:
        yield SqliteLexical(reader, files)
    finally:
        await files.close()


def terms(query: str, pattern: re.Pattern[str] = TERM) -> list[str]:
    """Return the different words of a text, the longest ones when there are too many."""
    found = list(dict.fromkeys(word.lower() for word in pattern.findall(query[:LONGEST_QUERY])))
    return sorted(found, key=len, reverse=True)[:MOST_TERMS] if len(found) > MOST_TERMS else found


class SqliteLexical:
    """Implements `ingest.interfaces.LexicalIndex` with FTS5."""

    def __init__(self, reader: SqliteReader, files: FileWords) -> None:
        self._reader = reader
        self._files = files
        self._ranking = Ranking()

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Hit]:
        """Return the passages that match any word of a text, best first."""
        wanted = terms(query)
        if not wanted or limit < 1 or not fits(FileRow, id=scope.id):
            return []
        with translated("search words"):
            if scope.kind is ScopeKind.FILE:
                return await self._search_file(scope.id, any_of(wanted), limit)
            return await self._reader.run(lambda reading: self._search(reading, scope.id, wanted, limit))

    async def check(self, scope: Scope) -> Sequence[str]:
        """Compare the words of a collection with its passages, mend, and return what differed."""
        if scope.kind is ScopeKind.FILE or not fits(CollectionRow, id=scope.id):
            return []
        async with writing("check the words of the collection") as client:
            row = await CollectionRow.get_or_none(id=scope.id)
            return [] if row is None else await words.mend(client, row.id, row.number)

    def _search(
        self, reading: sqlite3.Connection, collection_id: str, wanted: Sequence[str], limit: int
    ) -> Sequence[Hit]:
        row = reading.execute("SELECT number FROM collections WHERE id = ?1", (collection_id,)).fetchone()
        return [] if row is None else self._ranking.search(reading, words.table(row[0]), wanted, limit)

    async def _search_file(self, file_id: str, match: str, limit: int) -> Sequence[Hit]:
        [[newest]] = await self._reader.rows(NEWEST, file_id)
        if newest is None:
            return []
        found = await self._files.search((file_id, newest), match, limit)
        if found is not None:
            return found
        texts = await self._reader.rows(TEXTS, file_id)
        # Between the two queries it may have been published anew, or removed.
        version = file_id, max((number for number, _ in texts), default=0)
        return await self._files.search_new(version, texts, match, limit)


class PostgresLexical:
    """Implements `ingest.interfaces.LexicalIndex` with text search."""

    def __init__(self, reader: PoolReader) -> None:
        self._reader = reader

    async def search(self, scope: Scope, query: str, limit: int) -> Sequence[Hit]:
        """Return the passages that match any word of a text, best first."""
        text = " ".join(terms(query, SPACED)).encode(errors="replace").decode()
        if not text or limit < 1 or not fits(FileRow, id=scope.id):
            return []
        with translated("search words"):
            [[stems]] = await self._reader.rows(STEMS, text)
            if not stems:
                return []
            terms_wanted = [_quoted(stem) for stem in stems[:MOST_TERMS]]
            best = max(limit, WEIGHED)
            query = MATCHING.format(files=FILES[scope.kind])
            values = " | ".join(terms_wanted), scope.id, limit, best, terms_wanted
            return [Hit(*row) for row in await self._reader.rows(query, *values)]

    async def check(self, scope: Scope) -> Sequence[str]:
        """Return nothing: the column is made by the database from the text beside it."""
        return []


def _quoted(stem: str) -> str:
    """Return a stem as the query that it alone is."""
    escaped = stem.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
