"""The tables of a PostgreSQL database on one connection of its own, without the ORM's limits of time."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra, find_library, missing_extra_error
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.migrate import INCOMPLETE
from gatewayd.storage.transfer.row_sums import ValueKind, is_content

PREFETCHED_ROWS: Final = 20
"""Rows that are in memory at once: a message or a kept reply may have 4 Mi characters."""
POOL_OPTIONS: Final = frozenset({"minsize", "maxsize", "server_settings"})

COLUMNS: Final = """
SELECT c.table_name, c.column_name, c.data_type,
    pg_get_serial_sequence(quote_ident(c.table_name), c.column_name) AS sequence
FROM information_schema.columns c JOIN information_schema.tables t
    ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'
ORDER BY c.table_name, c.column_name
"""
NAMES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
FUNCTIONS: Final = """
SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""
KINDS: Final = {"boolean": ValueKind.TRUTH, "jsonb": ValueKind.JSON}


class PostgresTables:
    """One connection. `columns` has each table with contents, its columns by name, and their kinds."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.columns: Mapping[str, Mapping[str, ValueKind]] = {}
        self.sequences: Mapping[str, str] = {}
        """The sequence of each table whose rows are counted."""

    async def read_schema(self) -> None:
        """Read `columns` and `sequences`."""
        columns: dict[str, dict[str, ValueKind]] = {}
        sequences: dict[str, str] = {}
        for table, column, data_type, sequence in await self._connection.fetch(COLUMNS):
            if is_content(table):
                columns.setdefault(table, {})[column] = KINDS.get(data_type, ValueKind.PLAIN)
                if sequence is not None:
                    sequences[table] = sequence
        self.columns, self.sequences = columns, sequences

    async def names(self) -> Sequence[str]:
        """Return the names of all tables, derived ones too."""
        return [row[0] for row in await self._connection.fetch(NAMES)]

    async def begin_snapshot(self) -> None:
        """Read one state from now on: what is committed at this moment."""
        await self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await self._connection.fetchval("SELECT 1 FROM pg_class LIMIT 1")

    async def end_snapshot(self) -> None:
        """End the transaction of `begin_snapshot`."""
        await self._connection.execute("COMMIT")

    async def blob_keys(self) -> frozenset[str]:
        """Return the keys of the bytes of all uploaded files."""
        if "files" not in self.columns:
            return frozenset()
        # An older schema has no keys.
        key = "COALESCE(NULLIF(blob, ''), id)" if "blob" in self.columns["files"] else "id"
        return frozenset(row[0] for row in await self._connection.fetch(f"SELECT {key} FROM files"))  # noqa: S608

    async def rows(self, table: str, columns: Sequence[str]) -> AsyncIterator[Sequence[Any]]:
        """Yield the rows of a table in a snapshot, of which only a few are in memory."""
        chosen = ", ".join(f'"{column}"' for column in columns)
        query = f'SELECT {chosen} FROM "{table}"'  # noqa: S608 - names of the schema
        async for record in self._connection.cursor(query, prefetch=PREFETCHED_ROWS):
            yield tuple(record)

    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows."""
        await self._connection.copy_records_to_table(table, records=rows, columns=columns)

    async def last_numbers(self) -> Mapping[str, int]:
        """Return the last number that each sequence gave, by its table; 0 if it gave none."""
        return {
            table: await self._connection.fetchval(
                f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"  # noqa: S608
            )
            for table, sequence in self.sequences.items()
        }

    async def set_last_numbers(self, numbers: Mapping[str, int]) -> None:
        """Let each sequence go on after a number."""
        for table, number in numbers.items():
            if number and table in self.sequences:
                await self._connection.execute(
                    "SELECT setval($1::regclass, $2)", self.sequences[table], number
                )

    async def is_incomplete(self) -> bool:
        """Whether a copy into this database has begun and did not end."""
        return INCOMPLETE in await self.names()

    async def mark_complete(self) -> None:
        """Guard the tables, let the server learn what it has, and take the mark away."""
        await self.switch_triggers("ENABLE")
        await self._connection.execute("ANALYZE")
        await self._connection.execute(f"DROP TABLE {INCOMPLETE}")

    async def restart(self) -> None:
        """Drop tables and functions, and say there that a copy has begun: no daemon starts on it."""
        names = await self.names()
        async with self._connection.transaction():
            if names:
                listed = ", ".join(f'"{name}"' for name in names)
                await self._connection.execute(f"DROP TABLE {listed} CASCADE")
            for (function,) in await self._connection.fetch(FUNCTIONS):
                await self._connection.execute(f"DROP FUNCTION {function} CASCADE")
            await self._connection.execute(f"CREATE TABLE {INCOMPLETE} (begun TIMESTAMPTZ DEFAULT now())")

    async def empty(self) -> None:
        """Remove all rows that migrations made, those of tables that only grow too."""
        await self.switch_triggers("DISABLE")
        for name in self.columns:
            await self._connection.execute(f'TRUNCATE "{name}" CASCADE')

    async def switch_triggers(self, word: str) -> None:
        """`DISABLE` or `ENABLE` the triggers that guard the tables."""
        for name in self.columns:
            await self._connection.execute(f'ALTER TABLE "{name}" {word} TRIGGER USER')


@asynccontextmanager
async def open_tables(location: DatabaseLocation) -> AsyncIterator[PostgresTables]:
    """Connect, and read the schema; raises the errors of `connect_directly`."""
    async with connect_directly(location, _failure) as connection:
        tables = PostgresTables(connection)
        await tables.read_schema()
        yield tables


@asynccontextmanager
async def connect_directly(
    location: DatabaseLocation, failure: Callable[[Exception], GatewayError]
) -> AsyncIterator[Any]:
    """Connect without the ORM; closed at the end of the block, whose errors of the server become `failure`.

    Raises not_configured without the library of PostgreSQL, and GatewayError for every failure of the server.
    """
    driver = find_library(PackageExtra.POSTGRES)
    if driver is None:
        raise missing_extra_error("cannot use PostgreSQL", PackageExtra.POSTGRES)
    options = {name: value for name, value in location.credentials.items() if name not in POOL_OPTIONS}
    try:
        with translate_errors("reach the database"):
            connection = await driver.connect(**options)
        try:
            yield connection
        finally:
            await connection.close()
    except (driver.PostgresError, driver.InterfaceError, driver.InternalClientError, OSError) as error:
        raise failure(error) from error


def _failure(error: Exception) -> GatewayError:
    """Return the failure for an error of the driver, without the values that it may name."""
    state = getattr(error, "sqlstate", None)
    table = getattr(error, "table_name", None)
    where = f" in the table {table}" if table else ""
    if isinstance(error, OSError):
        return GatewayError(ErrorKind.UNAVAILABLE, "cannot go on: the connection to the database was lost")
    return GatewayError(
        ErrorKind.INTERNAL, f"cannot copy the database: PostgreSQL refused a value{where} (SQLSTATE {state})"
    )


def to_postgres(value: Any, kind: ValueKind) -> Any:
    """Return a value of SQLite as PostgreSQL takes it."""
    return bool(value) if kind is ValueKind.TRUTH and value is not None else value


def to_sqlite(value: Any, kind: ValueKind) -> Any:
    """Return a value of PostgreSQL as the stores write it to SQLite; JSON is compact there."""
    if value is None or kind is ValueKind.PLAIN:
        return value
    return int(value) if kind is ValueKind.TRUTH else orjson.dumps(orjson.loads(value)).decode()
