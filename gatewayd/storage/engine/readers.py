"""Bulk reads that keep nobody waiting: on SQLite through a second connection, in a thread of its own.

What a reader sees is committed; a change that is not committed yet is invisible to it on SQLite.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from tortoise.connection import get_connection

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.statements import SqlStatement

BUSY_MILLISECONDS = 5000
T = TypeVar("T")


class QueryReader(Protocol):
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
        self._file: os.stat_result | None = None
        self._thread = ThreadPoolExecutor(1, "gatewayd-reader")

    async def rows(self, query: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Return all rows of one query."""
        return await self.run(
            lambda connection: connection.execute(query.replace("$", "?"), values).fetchall()
        )

    async def ping(self) -> None:
        """Return when the file can be read; unavailable when another file, or none, has its name."""
        with translate_errors("reach the database"):
            await self.run(self._check)

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

    def _check(self, connection: sqlite3.Connection) -> None:
        connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        try:
            found = self._path.stat()
        except FileNotFoundError:
            found = None
        if found is None or self._file is None or not os.path.samestat(found, self._file):
            # What is written now is lost with the process.
            raise GatewayError(
                ErrorKind.UNAVAILABLE, "cannot reach the database: its file was moved or deleted"
            )

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            address = f"file:{quote(str(self._path.resolve()))}?mode=ro"
            connection = sqlite3.connect(address, uri=True, isolation_level=None)
            connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
            self._file = self._path.stat()
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


async def read_column(reader: QueryReader | None, statement: SqlStatement, query: str) -> Sequence[Any]:
    """Return the only column of a query with the parameters of a statement; None reads as the task does."""
    if reader is None:
        return [value for row in await statement.run(query) for value in row.values()]
    return [row[0] for row in await reader.rows(query, *statement.values)]


@asynccontextmanager
async def open_reader(location: DatabaseLocation) -> AsyncIterator[SqliteReader | PoolReader]:
    """Yield the reader of a database that is open, and close it."""
    if location.path is None:
        yield PoolReader(location.connection)
        return
    reader = SqliteReader(location.path)
    try:
        yield reader
    finally:
        with translate_errors("close the reader"):
            await reader.close()


@asynccontextmanager
async def open_ping(database: Database) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Yield what returns when a database that is open answers, and raises as `Database.ping` does.

    It raises internal as long as the database is known to be damaged. On SQLite it has a connection of its
    own, which waits for no change and for no bulk read.
    """
    async with open_reader(database.location) as reader:
        answer = reader.ping if isinstance(reader, SqliteReader) else database.ping

        async def ping() -> None:
            await answer()
            database.damage.refuse()

        yield ping
