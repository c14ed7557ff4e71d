"""Copies of a whole database from SQLite to PostgreSQL and back, compared table by table.

Tables and columns come from the databases themselves. Words of collections and vectors of pgvector are made
again. A target that is not complete cannot be mistaken for one: PostgreSQL has a table that says so, a file
of SQLite gets its name at the end.
"""

import contextlib
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.location import DatabaseLocation, sqlite
from gatewayd.storage.engine.migrate import apply_migrations, check, known_migrations, read_status
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.search import fts
from gatewayd.storage.transfer import sqlite_files
from gatewayd.storage.transfer.postgres_tables import PostgresTables, open_tables, to_postgres, to_sqlite
from gatewayd.storage.transfer.row_sums import RowSummer, TableSum, ValueKind, differences

BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 4 << 20
"""A batch ends after this many rows, or when its texts and bytes are this long."""

log = logging.getLogger(__name__)

Progress = Callable[[str], None]


@dataclass(slots=True)
class RowBatch:
    """Rows that are written together."""

    write: Callable[[Sequence[Sequence[Any]]], Awaitable[None]]
    rows: list[Sequence[Any]] = field(default_factory=list)
    size: int = 0

    async def add(self, row: Sequence[Any]) -> None:
        """Add a row; a full batch is written."""
        self.rows.append(row)
        self.size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(self.rows) >= BATCH_ROWS or self.size >= BATCH_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Write what is there."""
        if self.rows:
            await self.write(self.rows)
        self.rows, self.size = [], 0


async def fill_postgres(
    source: Path, location: DatabaseLocation, *, replace: bool, progress: Progress
) -> Mapping[str, TableSum]:
    """Copy a SQLite file into PostgreSQL and return the sums of its tables.

    The caller owns the database. Raises conflict if it has tables, unless they are remains of an interrupted
    copy or `replace` is set.
    """
    names = _known(sqlite_files.applied_migrations(source), source)
    async with open_tables(location) as tables:
        if await tables.names() and not replace and not await tables.is_incomplete():
            raise GatewayError(
                ErrorKind.CONFLICT, f"cannot copy into the database {location.address}: it is not empty"
            )
        await tables.restart()
        async with Database.open(location) as database:
            await apply_migrations(database, names)
        await tables.read_schema()
        await tables.empty()
        with contextlib.closing(sqlite_files.connect(source)) as connection:
            connection.execute("BEGIN")
            sums = await _pour(connection, tables, progress)
        progress("comparing the copy")
        _compare(sums, await _sums_of(tables))
        await tables.mark_complete()
    return sums


async def fill_sqlite(
    location: DatabaseLocation,
    target: Path,
    *,
    progress: Progress,
    on_snapshot: Callable[[frozenset[str]], None] = lambda keys: None,
) -> Mapping[str, TableSum]:
    """Copy a PostgreSQL database, which others may use, to a new file, and return the sums of its tables.

    `on_snapshot` gets the keys of the bytes of the uploaded files of the state that is copied. Raises
    conflict if there is a file, and not_configured for a database that is only half filled.
    """
    part = _new_part(target)
    async with Database.open(location) as database:
        status = await read_status(database)
    if status.is_incomplete:
        check(status)
    names = _known(status.applied, location.address)
    async with Database.open(sqlite(part)) as database:
        await apply_migrations(database, names)
    async with open_tables(location) as tables:
        await tables.begin_snapshot()
        on_snapshot(await tables.blob_keys())
        with contextlib.closing(sqlite_files.connect(part, "rw")) as connection, _sqlite_errors():
            connection.execute("PRAGMA foreign_keys=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("BEGIN IMMEDIATE")
            with sqlite_files.without_triggers(connection):
                sums = await _draw(tables, connection, progress)
            connection.execute("COMMIT")
    progress("making the words of the collections")
    await index_words(part)
    _close_file(part)
    part.replace(target)
    sync_to_disk(target.parent)
    return sums


def _new_part(target: Path) -> Path:
    """Return the path of a file that is not complete; what a killed copy left there is removed."""
    if target.exists():
        raise GatewayError(ErrorKind.CONFLICT, f"cannot copy the database to {target}: there is a file")
    part = target.with_name(f"{target.name}.part")
    for leftover in target.parent.glob(f"{part.name}*"):
        leftover.unlink()
    return part


async def index_words(path: Path) -> None:
    """Make the words of all collections of a SQLite file."""
    async with Database.open(sqlite(path)) as database:
        rows = await database.engine.execute_query_dict("SELECT id, number FROM collections")
        for row in rows:
            async with write_transaction("index the words") as client:
                await fts.rebuild_if_different(client, row["id"], row["number"])


async def _pour(
    connection: sqlite3.Connection, tables: PostgresTables, progress: Progress
) -> Mapping[str, TableSum]:
    """Copy the rows of SQLite to empty tables of PostgreSQL."""
    here = sqlite_files.tables(connection)
    _same_columns(here, tables.columns)
    sums = {}
    for table in sqlite_files.in_order(connection):
        progress(f"copying {table}")
        kinds = tables.columns[table]
        columns, kind_list = list(kinds), list(kinds.values())
        summer = RowSummer(kind_list)

        async def write(
            rows: Sequence[Sequence[Any]], table: str = table, columns: Sequence[str] = columns
        ) -> None:
            await tables.insert(table, columns, rows)

        batch = RowBatch(write)
        for row in sqlite_files.rows_of(connection, table, columns):
            summer.add(row)
            await batch.add(tuple(map(to_postgres, row, kind_list)))
        await batch.flush()
        sums[table] = summer.total()
    await tables.set_last_numbers(_numbers(connection, tables))
    return sums


async def _draw(
    tables: PostgresTables, connection: sqlite3.Connection, progress: Progress
) -> Mapping[str, TableSum]:
    """Copy the rows of PostgreSQL to empty tables of SQLite, and compare them."""
    here = sqlite_files.tables(connection)
    _same_columns(here, tables.columns)
    read, written = {}, {}
    for table, kinds in tables.columns.items():
        progress(f"copying {table}")
        columns, kind_list = list(kinds), list(kinds.values())
        connection.execute(f'DELETE FROM "{table}"')  # noqa: S608 - a name of the schema
        marks = ", ".join("?" * len(columns))
        chosen = ", ".join(f'"{column}"' for column in columns)
        insert = f'INSERT INTO "{table}" ({chosen}) VALUES ({marks})'  # noqa: S608
        summer = RowSummer(kind_list)
        async for row in tables.rows(table, columns):
            summer.add(row)
            connection.execute(insert, tuple(map(to_sqlite, row, kind_list)))
        read[table] = summer.total()
        again = RowSummer(kind_list)
        for row in sqlite_files.rows_of(connection, table, columns):
            again.add(row)
        written[table] = again.total()
    _compare(read, written)
    for table, number in (await tables.last_numbers()).items():
        connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (number, table))
    return read


async def _sums_of(tables: PostgresTables) -> Mapping[str, TableSum]:
    await tables.begin_snapshot()
    sums = {}
    for table, kinds in tables.columns.items():
        summer = RowSummer(list(kinds.values()))
        async for row in tables.rows(table, list(kinds)):
            summer.add(row)
        sums[table] = summer.total()
    await tables.end_snapshot()
    return sums


def _numbers(connection: sqlite3.Connection, tables: PostgresTables) -> Mapping[str, int]:
    """Return the number after which each sequence goes on: no number is given twice."""
    given = sqlite_files.sequences(connection)
    found = {}
    for table in tables.sequences:
        highest = connection.execute(f'SELECT MAX(rowid) FROM "{table}"').fetchone()[0]  # noqa: S608
        found[table] = max(highest or 0, given.get(table, 0))
    return found


def _known(applied: Sequence[str], where: Path | str) -> Sequence[str]:
    """Return the migrations of a schema; not_configured unless this version can make the same one."""
    known = known_migrations()
    if not applied or list(applied) != list(known[: len(applied)]):
        unknown = [name for name in applied if name not in known]
        reason = f"its schema is newer ({unknown[-1]} is not known)" if unknown else "its schema is not ours"
        raise GatewayError(ErrorKind.NOT_CONFIGURED, f"cannot copy the database {where}: {reason}")
    return applied


def _same_columns(here: Mapping[str, Sequence[str]], there: Mapping[str, Mapping[str, ValueKind]]) -> None:
    """Raise internal unless both databases have the same tables and columns."""
    for table in sorted(here.keys() | there.keys()):
        if sorted(here.get(table, ())) != sorted(there.get(table, ())):
            raise GatewayError(
                ErrorKind.INTERNAL, f"cannot copy the database: the table {table} differs between the two"
            )


def _compare(first: Mapping[str, TableSum], second: Mapping[str, TableSum]) -> None:
    found = differences(first, second)
    if found:
        raise GatewayError(ErrorKind.INTERNAL, f"cannot trust the copy: {found[0]}")


def _close_file(path: Path) -> None:
    """Check a file that is complete, put its log into it, and sync it to disk."""
    with contextlib.closing(sqlite_files.connect(path, "rw")) as connection, _sqlite_errors():
        if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            raise GatewayError(ErrorKind.INTERNAL, "cannot trust the copy: a row refers to a missing one")
        connection.execute("PRAGMA journal_mode=DELETE")
    sync_to_disk(path)


def _sqlite_errors() -> contextlib.AbstractContextManager[None]:
    return translate_errors("copy the database")
