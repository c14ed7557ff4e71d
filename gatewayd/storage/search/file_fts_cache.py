"""Cache of full-text indexes of single files in memory, for the search in one file on SQLite."""

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from gatewayd.ingest.records import SearchHit
from gatewayd.storage.search.fts import TOKENIZER, ranked_query

MAX_FILES: Final = 32
MAX_CHARACTERS: Final = 64 * 1024 * 1024
"""Maximum total length of the cached files' texts; an index needs about one byte per character."""
TABLE: Final = "words"

T = TypeVar("T")
Version = tuple[str, int]
"""A file id and its highest passage id, which changes when the file is published again."""


class FileWordCache:
    """The FTS5 indexes of the files searched last, each in its own database; one thread uses them."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[Version, sqlite3.Connection] = OrderedDict()
        self._sizes: dict[Version, int] = {}
        self._thread = ThreadPoolExecutor(1, "gatewayd-words")

    async def search(self, version: Version, match: str, limit: int) -> Sequence[SearchHit] | None:
        """Return the passages that match, best first; None when the file is not cached."""
        return await self._run(lambda: self._search(version, match, limit))

    async def search_new(
        self, version: Version, texts: Sequence[Sequence[Any]], match: str, limit: int
    ) -> Sequence[SearchHit]:
        """Index a file, passed as ids and texts of its passages, and search in it."""

        def work() -> Sequence[SearchHit]:
            self._put(version, texts)
            return self._search(version, match, limit) or ()

        return await self._run(work)

    async def close(self) -> None:
        """Drop all indexes and end the thread."""
        await self._run(self._clear)
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _put(self, version: Version, texts: Sequence[Sequence[Any]]) -> None:
        if version in self._indexes:
            return
        # The same thread closes the connection.
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self._indexes[version] = connection
        self._sizes[version] = sum(len(text) for _, text in texts)
        connection.execute(
            f"CREATE VIRTUAL TABLE {TABLE} USING fts5(text, content='', tokenize='{TOKENIZER}')"
        )
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {TABLE} (rowid, text) VALUES (?, ?)", texts)  # noqa: S608
        connection.execute("COMMIT")
        # The newest index stays, whatever its size, because it is searched next.
        while len(self._indexes) > MAX_FILES or (
            len(self._indexes) > 1 and sum(self._sizes.values()) > MAX_CHARACTERS
        ):
            self._drop()

    def _search(self, version: Version, match: str, limit: int) -> Sequence[SearchHit] | None:
        connection = self._indexes.get(version)
        if connection is None:
            return None
        self._indexes.move_to_end(version)
        return [SearchHit(*row) for row in connection.execute(ranked_query(TABLE), (match, limit))]

    def _clear(self) -> None:
        while self._indexes:
            self._drop()

    def _drop(self) -> None:
        version, connection = self._indexes.popitem(last=False)
        del self._sizes[version]
        connection.close()
