"""SQLite engine: one connection with durable commits.

One connection means one writer: an asyncio lock makes each transaction wait for the previous one. Commits are
synced to disk in the connection's thread.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import aiosqlite
from tortoise.backends.sqlite.client import SqliteClient, SqliteTransactionWrapper
from tortoise.migrations.schema_editor import SqliteSchemaEditor

from gatewayd.errors import ErrorKind, GatewayError, system_reason
from gatewayd.fsync import sync_to_disk
from gatewayd.storage.engine.lock import FileLock
from gatewayd.storage.engine.transactions import RolledBackError, run_savepoint, run_transaction
from gatewayd.time_slices import LoopPacer

ROW_BATCH_SIZE = 500
CACHED_STATEMENTS = 128
"""Statements that the sqlite3 module caches, each with the values of its last run."""

COLUMNS = """
SELECT tables.name AS "table", columns.name AS "column"
FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
"""


class SlicedRows(SqliteClient):
    """Client that converts many rows to dictionaries without blocking the event loop."""

    async def execute_query_dict(self, query: str, values: list[Any] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a statement."""
        _, rows = await self.execute_query(query, values)
        if len(rows) <= ROW_BATCH_SIZE:
            return list(map(dict, rows))
        pace = LoopPacer()
        found: list[dict[str, Any]] = []
        for start in range(0, len(rows), ROW_BATCH_SIZE):
            found += map(dict, rows[start : start + ROW_BATCH_SIZE])
            await pace.turn()
        return found


class SqliteEngine(SlicedRows):
    """The connection to the file; `options` are pragmas in the order of their execution."""

    def __init__(self, file_path: str, **options: Any) -> None:
        super().__init__(file_path, **options)
        self._path = Path(file_path)
        self._claim = FileLock.of_database(self._path)

    @property
    def connections(self) -> tuple[int, int] | None:
        """None: there is no pool."""
        return None

    async def claim(self, *, shared: bool) -> None:
        """Lock the file against other daemons, including those with another state directory."""
        if shared:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                "cannot share a SQLite database between processes: use PostgreSQL",
                param="database_url",
            )
        await asyncio.to_thread(self._claim.acquire)

    async def keep_claim(self) -> None:
        """Do nothing: the lock lasts as long as the process."""

    async def release(self) -> None:
        """Release the claim."""
        self._claim.release()

    async def create_connection(self, with_db: bool) -> None:
        """Open the file once, with the pragmas for durability."""
        if self._connection:
            return
        # SQLite gives its log files the mode of the database.
        await asyncio.to_thread(_create, self._path)
        connection = await aiosqlite.connect(self.filename, isolation_level=None)
        opened = False
        try:
            connection.row_factory = sqlite3.Row
            for pragma, value in self.pragmas.items():
                await connection.execute_fetchall(f"PRAGMA {pragma}={value}")
            opened = True
        finally:
            if not opened:
                await connection.close()
        self._connection = connection
        await self._post_connect()

    async def forget(self) -> None:
        """Free the values in the statement cache, which can be large, by running other statements."""
        for number in range(CACHED_STATEMENTS):
            await self.execute_query_dict(f"SELECT {number}")
        await self.execute_query_dict("PRAGMA shrink_memory")

    def schema_editor(self, transaction: Any, *, collect_sql: bool = False) -> SqliteSchemaEditor:
        """Return the schema editor for migrations."""
        return SqliteSchemaEditor(transaction, atomic=True, collect_sql=collect_sql)

    async def columns(self) -> list[dict[str, str]]:
        """Return the `table` and `column` of every column in the database."""
        rows: list[dict[str, str]] = await self.execute_query_dict(COLUMNS)
        return rows

    async def reserve(self) -> NoReturn:
        """Raise not_configured: a file has one writer."""
        raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot open a second connection: SQLite has one writer")

    async def exclude(self, transaction: Any, name: str) -> None:
        """Do nothing: a transaction of the only connection excludes every other."""

    async def snapshot(self, label: str) -> Path | None:
        """Copy the database to `<file>.<label>`, replacing an older copy."""
        target = self._path.with_name(f"{self._path.name}.{label}")
        part = target.with_name(f"{target.name}.part")
        await asyncio.to_thread(_recreate, part)
        await self.execute_query("VACUUM INTO ?", [str(part)])
        await asyncio.to_thread(_replace_synced, part, target)
        return target

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[Any]:
        """Run a block that changes the schema, in one transaction.

        SQLite changes a column by recreating the table, and dropping the old table must not cascade. So
        foreign keys are disabled, which is possible only outside of the transaction, and checked before the
        commit.
        """
        await self.execute_query("PRAGMA foreign_keys=OFF")
        try:
            async with self._in_transaction() as transaction:
                yield transaction
                if await transaction.execute_query_dict("PRAGMA foreign_key_check"):
                    raise GatewayError(ErrorKind.INTERNAL, "cannot migrate: a foreign key would be violated")
        finally:
            await self.execute_query("PRAGMA foreign_keys=ON")

    @asynccontextmanager
    async def _in_transaction(self) -> AsyncIterator[Any]:  # type: ignore[override]
        async with self._lock:
            await self.create_connection(with_db=True)
            async with run_transaction(SqliteTransaction(self)) as transaction:
                yield transaction


class SqliteTransaction(SlicedRows, SqliteTransactionWrapper):
    """A transaction on the connection. After its end it passes later statements to the engine.

    Such statements come from tasks that were started inside the transaction and outlive it.
    """

    def __init__(self, engine: SqliteEngine) -> None:
        super().__init__(engine)
        self.finished_savepoint = ""

    async def begin(self) -> None:
        """Acquire the write lock at the start: an upgrade later in the transaction cannot wait for it."""
        await self._connection.execute_fetchall("BEGIN IMMEDIATE")

    @property
    def is_rolled_back(self) -> bool:
        """Whether SQLite has rolled back by itself, for example because the disk is full."""
        return not self._finalized and not self._connection.in_transaction

    async def commit(self) -> None:
        """Commit; raise when SQLite has already rolled back."""
        if self.is_rolled_back:
            raise RolledBackError
        await super().commit()

    async def rollback(self) -> None:
        """Roll back."""
        self._finalized = True
        await self._connection.rollback()

    def acquire_connection(self) -> Any:
        """Return the context manager of one statement.

        Raises after a rollback by SQLite, when the statement would be committed alone.
        """
        if self.is_rolled_back:
            raise RolledBackError
        return self._parent.acquire_connection() if self._finalized else super().acquire_connection()

    async def execute_script(self, query: str) -> None:
        """Run statements one by one, because sqlite3's `executescript` would first commit the transaction."""
        statement = ""
        for piece in query.split(";"):
            statement += f"{piece};"
            if sqlite3.complete_statement(statement):
                await self.execute_query(statement)
                statement = ""

    def _in_transaction(self) -> Any:
        return self._parent._in_transaction() if self._finalized else run_savepoint(self)


def _create(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        reason = system_reason(error)
        raise GatewayError(ErrorKind.NOT_CONFIGURED, f"cannot use {path}: {reason}") from error


def _recreate(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _replace_synced(part: Path, target: Path) -> None:
    sync_to_disk(part)
    part.replace(target)
    sync_to_disk(target.parent)


client_class = SqliteEngine
"""Name under which the ORM finds the class."""
