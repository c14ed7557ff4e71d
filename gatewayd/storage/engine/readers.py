"""Readers for long queries: on SQLite a second connection in its own thread, so that writers do not wait.

On SQLite a reader sees committed changes only.
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
    """Runs read-only queries; parameters are $1, $2 and so on, columns are by position."""

    is_sqlite: bool

    async def rows(self, query: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Return all rows of one query."""
        ...


class SqliteReader:
    """A read-only connection to the file, opened by the first query."""

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
        """Return when the file can be read; unavailable when it was replaced or deleted."""
        with translate_errors("reach the database"):
            await self.run(self._check)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call a function with the connection, in its thread; all its reads see one snapshot."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    async def close(self) -> None:
        """Wait for running queries and close the connection."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._open()
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
            # Writes to a deleted file are lost at the end of the process.
            raise GatewayError(
                ErrorKind.UNAVAILABLE, "cannot reach the database: its file was moved or deleted"
            )

    def _open(self) -> sqlite3.Connection:
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
    """Reads through PostgreSQL's pool, or through the transaction of the current task."""

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
    """Return the only column of a query with the parameters of a statement.

    Without a reader the query runs on the connection of the current task.
    """
    if reader is None:
        return [value for row in await statement.run(query) for value in row.values()]
    return [row[0] for row in await reader.rows(query, *statement.values)]


@asynccontextmanager
async def open_reader(location: DatabaseLocation) -> AsyncIterator[SqliteReader | PoolReader]:
    """Yield the reader of an open database, and close it."""
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
    """Yield a health check of an open database, which raises the errors of `Database.ping`.

    It raises internal while the database is known to be damaged. On SQLite it has its own connection, which
    does not wait for writers or long queries.
    """
    async with open_reader(database.location) as reader:
        answer = reader.ping if isinstance(reader, SqliteReader) else database.ping

        async def ping() -> None:
            await answer()
            database.damage.refuse()

        yield ping
