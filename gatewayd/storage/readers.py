"""Bulk reads that keep nobody waiting: on SQLite through a second connection, in a thread of its own.

What a reader sees is committed; a change that is not committed yet is invisible to it on SQLite.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from tortoise.connection import get_connection

from gatewayd.storage.failures import translated
from gatewayd.storage.location import Location

BUSY_MILLISECONDS = 5000
T = TypeVar("T")


class Reader(Protocol):
    """Runs queries that only read; parameters are called $1, $2 and so on, columns go by position."""

    is_sqlite: bool

    async def rows(self, query: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Return all rows of one query."""
        ...


class SqliteReader:
    """A read-only connection to the file, opened with the first query."""

    is_sqlite = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, "gatewayd-reader")

    async def rows(self, query: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Return all rows of one query."""
        return await self.run(
            lambda connection: connection.execute(query.replace("$", "?"), values).fetchall()
        )

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call a function with the connection, in its thread; all it reads is of one moment."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    async def close(self) -> None:
        """Let queries end, and close the connection."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._opened()
        connection.execute("BEGIN")
        try:
            return work(connection)
        finally:
            connection.rollback()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            address = f"file:{quote(str(self._path.resolve()))}?mode=ro"
            connection = sqlite3.connect(address, uri=True, isolation_level=None)
            connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
            self._connection = connection
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class PoolReader:
    """PostgreSQL's own pool, or the transaction that the task is in."""

    is_sqlite = False

    def __init__(self, connection_name: str) -> None:
        self._name = connection_name

    async def rows(self, query: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Return all rows of one query."""
        client: Any = get_connection(self._name)
        rows: Sequence[Sequence[Any]]
        _, rows = await client.execute_query(query, list(values))
        return rows


@asynccontextmanager
async def open_reader(location: Location) -> AsyncIterator[SqliteReader | PoolReader]:
    """Yield the reader of a database that is open, and close it."""
    if location.path is None:
        yield PoolReader(location.connection)
        return
    reader = SqliteReader(location.path)
    try:
        yield reader
    finally:
        with translated("close the reader"):
            await reader.close()
