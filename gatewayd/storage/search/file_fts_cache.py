"""The words of single files, in memory: what a search in one file uses on SQLite."""

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
"""Of the texts of all files that are kept; an index takes about as many bytes."""
TABLE: Final = "words"

T = TypeVar("T")
Version = tuple[str, int]
"""A file and its highest passage id, which is another one when the file was published anew."""


class FileWordCache:
    """The words of the files searched last, each in a database of its own; a thread works with them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Version, sqlite3.Connection] = OrderedDict()
        self._sizes: dict[Version, int] = {}
        self._thread = ThreadPoolExecutor(1, "gatewayd-words")

    async def search(self, version: Version, match: str, limit: int) -> Sequence[SearchHit] | None:
        """Return the passages that match, best first; None when the file is not here."""
        return await self._run(lambda: self._search(version, match, limit))

    async def search_new(
        self, version: Version, texts: Sequence[Sequence[Any]], match: str, limit: int
    ) -> Sequence[SearchHit]:
        """Take in a file, given as the ids and texts of its passages, and search in it."""

        def work() -> Sequence[SearchHit]:
            self._put(version, texts)
            return self._search(version, match, limit) or ()

        return await self._run(work)

    async def close(self) -> None:
        """Drop everything."""
        await self._run(self._clear)
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _put(self, version: Version, texts: Sequence[Sequence[Any]]) -> None:
        if version in self._kept:
            return
        # It is closed by the same thread, unless that has ended.
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self._kept[version] = connection
        self._sizes[version] = sum(len(text) for _, text in texts)
        connection.execute(
            f"CREATE VIRTUAL TABLE {TABLE} USING fts5(text, content='', tokenize='{TOKENIZER}')"
        )
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {TABLE} (rowid, text) VALUES (?, ?)", texts)  # noqa: S608
        connection.execute("COMMIT")
        # The newest stays, however large it is: it is about to be searched.
        while len(self._kept) > MAX_FILES or (
            len(self._kept) > 1 and sum(self._sizes.values()) > MAX_CHARACTERS
        ):
            self._drop()

    def _search(self, version: Version, match: str, limit: int) -> Sequence[SearchHit] | None:
        connection = self._kept.get(version)
        if connection is None:
            return None
        self._kept.move_to_end(version)
        return [SearchHit(*row) for row in connection.execute(ranked_query(TABLE), (match, limit))]

    def _clear(self) -> None:
        while self._kept:
            self._drop()

    def _drop(self) -> None:
        version, connection = self._kept.popitem(last=False)
        del self._sizes[version]
        connection.close()
