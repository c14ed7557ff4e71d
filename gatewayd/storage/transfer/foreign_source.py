"""Databases of other programs, which are read and never written: one state of a SQLite file or a server.

A SQLite file may be in use, with a write-ahead log or without.
"""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.transfer.postgres_tables import PREFETCHED_ROWS, connect_directly
from gatewayd.storage.transfer.sqlite_files import BUSY_SECONDS, connect

PRIMARY_CODE: Final = 0xFF
LOGS: Final = ("-wal", "-journal")
READ: Final = "read the database to import"
COLUMNS: Final = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = ANY (current_schemas(false))
"""


class ForeignSqlite:
    """Implements `imports.interfaces.ForeignDatabase` for a file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        self._columns = {
            name: frozenset(row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})"))
            for (name,) in names
        }

    @property
    def columns(self) -> Mapping[str, frozenset[str]]:
        """The names of the columns by table."""
        return self._columns

    async def rows(
        self, table: str, *, where: Mapping[str, str] | None = None, order_by: Sequence[str] = ()
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the rows of a table by column, of which one is in memory."""
        if table not in self._columns:
            return
        query = _query(table, where or {}, [each for each in order_by if each in self._columns[table]], "?")
        with translate_errors(READ):
            cursor = self._connection.execute(query, list((where or {}).values()))
            names = [each[0] for each in cursor.description]
        while True:
            with translate_errors(READ):
                row = cursor.fetchone()
            if row is None:
                return
            yield dict(zip(names, row, strict=True))

    async def count(self, table: str) -> int:
        """Return the number of rows, 0 for an absent table."""
        if table not in self._columns:
            return 0
        with translate_errors(READ):
            [number] = self._connection.execute(f"SELECT COUNT(*) FROM {_quoted(table)}").fetchone()  # noqa: S608
        return int(number)


class ForeignPostgres:
    """Implements `imports.interfaces.ForeignDatabase` for a server, on one connection."""

    def __init__(self, connection: Any, columns: Mapping[str, frozenset[str]]) -> None:
        self._connection = connection
        self._columns = columns

    @property
    def columns(self) -> Mapping[str, frozenset[str]]:
        """The names of the columns by table."""
        return self._columns

    async def rows(
        self, table: str, *, where: Mapping[str, str] | None = None, order_by: Sequence[str] = ()
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the rows of a table by column, of which only a few are in memory."""
        if table not in self._columns:
            return
        query = _query(table, where or {}, [each for each in order_by if each in self._columns[table]], "$")
        async for record in self._connection.cursor(query, *(where or {}).values(), prefetch=PREFETCHED_ROWS):
            yield dict(record)

    async def count(self, table: str) -> int:
        """Return the number of rows, 0 for an absent table."""
        if table not in self._columns:
            return 0
        return int(await self._connection.fetchval(f"SELECT COUNT(*) FROM {_quoted(table)}"))  # noqa: S608


@contextmanager
def open_foreign_file(path: Path) -> Iterator[ForeignSqlite]:
    """Open one state of a SQLite file, which others may go on writing to; closed at the end of the block.

    Raises not_found without the file, and the errors of `translate_errors` for one that is no database.
    """
    with contextlib.ExitStack() as stack:
        with translate_errors(f"read the database {path}"):
            connection = stack.enter_context(contextlib.closing(_connect(path)))
            source = ForeignSqlite(connection)
        yield source


@asynccontextmanager
async def open_foreign_server(location: DatabaseLocation) -> AsyncIterator[ForeignPostgres]:
    """Open one state of a PostgreSQL database; closed at the end of the block.

    Raises not_configured without the library of PostgreSQL, and GatewayError for failures of the server.
    """
    async with (
        connect_directly(location, partial(_failure, location)) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        columns: dict[str, set[str]] = {}
        for table, column in await connection.fetch(COLUMNS):
            columns.setdefault(table, set()).add(column)
        yield ForeignPostgres(connection, {table: frozenset(names) for table, names in columns.items()})


def _failure(location: DatabaseLocation, error: Exception) -> GatewayError:
    """Return the failure for an error of the driver."""
    code = getattr(error, "sqlstate", None)
    reason = f"SQLSTATE {code}" if code else "the connection was lost"
    return GatewayError(
        ErrorKind.UNAVAILABLE, f"cannot {READ} at {location.address}: {reason}", param="database"
    )


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file and choose the state that is read.

    A file without a log, in a directory that may not be written, is read as one that does not change.
    """
    connection = connect(path)
    try:
        _begin(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & PRIMARY_CODE not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise
        if any(path.with_name(f"{path.name}{suffix}").exists() for suffix in LOGS):
            raise _unreadable(path) from None
    except sqlite3.Error:
        connection.close()
        raise
    else:
        return connection
    address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    _begin(connection)
    return connection


def _begin(connection: sqlite3.Connection) -> None:
    # Texts of other programs need not be UTF-8.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.execute("BEGIN")
    # The first read chooses the state.
    connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()


def _unreadable(path: Path) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_CONFIGURED,
        f"cannot read the database {path}: it has a log, for which its directory must be writable; "
        "copy the files of the database together to another directory",
        param="database",
    )


def _query(table: str, where: Mapping[str, str], order_by: Sequence[str], mark: str) -> str:
    """Return the query of a table; `mark` is that of the database's parameters."""
    conditions = [
        f"{_quoted(name)} = {mark if mark == '?' else f'{mark}{number}'}"
        for number, name in enumerate(where, 1)
    ]
    query = f"SELECT * FROM {_quoted(table)}"  # noqa: S608 - names of the schema
    if conditions:
        query += f" WHERE {' AND '.join(conditions)}"
    return f"{query} ORDER BY {', '.join(map(_quoted, order_by))}" if order_by else query


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
