"""SQLite files as a whole: a consistent copy while others write, their tables, and a check of a copy.

Every function blocks; they are called in processes without an event loop to disturb.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.location import APP
from gatewayd.storage.engine.migrate import HISTORY
from gatewayd.storage.transfer.row_sums import RowSummer, TableSum, ValueKind, is_content

STEP_PAGES: Final = 1024
"""Pages that one step of the online backup copies; 4 MiB."""

BUSY_SECONDS: Final = 30.0
MAX_PROBLEMS: Final = 20


class SqliteSnapshot:
    """One state of a database: what was committed when it was opened. Writers go on meanwhile."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def blob_keys(self) -> frozenset[str]:
        """Return the keys of the bytes of all uploaded files."""
        if "files" not in tables(self._connection):
            return frozenset()
        # An older schema has no keys.
        columns = {row[1] for row in self._connection.execute("PRAGMA table_info(files)")}
        key = "COALESCE(NULLIF(blob, ''), id)" if "blob" in columns else "id"
        return frozenset(row[0] for row in self._connection.execute(f"SELECT {key} FROM files"))  # noqa: S608

    def write(self, target: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Copy the state to a new file, in steps, and sync it to disk; it has no second file beside it."""
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with contextlib.closing(sqlite3.connect(target)) as copy:
            self._connection.backup(
                copy, pages=STEP_PAGES, progress=lambda _, left, total: progress(total - left, total)
            )
            copy.execute("PRAGMA journal_mode=DELETE")
        sync_to_disk(target)


@contextlib.contextmanager
def open_snapshot(path: Path) -> Iterator[SqliteSnapshot]:
    """Open a snapshot of a database that others may use; raises the errors of `translate_errors`."""
    with translate_errors("copy the database"), contextlib.closing(connect(path)) as connection:
        connection.execute("BEGIN")
        # The first read chooses the state.
        connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        yield SqliteSnapshot(connection)


def connect(path: Path, mode: str = "ro") -> sqlite3.Connection:
    """Open an existing file; `mode` is `ro` or `rw`."""
    if not path.is_file():
        raise GatewayError(ErrorKind.NOT_FOUND, f"cannot open the database {path}: there is no such file")
    address = f"file:{quote(str(path.resolve()))}?mode={mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS)


def end_log(path: Path) -> None:
    """Put the log of a file that nobody uses into the file, and remove it."""
    with translate_errors("close the database"), contextlib.closing(connect(path, "rw")) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def tables(connection: sqlite3.Connection) -> Mapping[str, Sequence[str]]:
    """Return the columns of each table with contents, in the order of their names."""
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    return {
        name: sorted(row[1] for row in connection.execute(f'PRAGMA table_info("{name}")'))
        for (name,) in names.fetchall()
        if is_content(name)
    }


def in_order(connection: sqlite3.Connection) -> Sequence[str]:
    """Return the tables so that each comes after those that its foreign keys name."""
    needs = {
        name: {row[2] for row in connection.execute(f'PRAGMA foreign_key_list("{name}")')} - {name}
        for name in tables(connection)
    }
    found: list[str] = []
    while needs:
        ready = sorted(name for name, others in needs.items() if others.isdisjoint(needs))
        if not ready:
            raise GatewayError(ErrorKind.INTERNAL, "cannot order the tables: foreign keys form a circle")
        found += ready
        for name in ready:
            del needs[name]
    return found


@contextlib.contextmanager
def without_triggers(connection: sqlite3.Connection) -> Iterator[None]:
    """Drop the triggers that guard the tables, and make them again at the end of the block."""
    found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in found:
        connection.execute(f'DROP TRIGGER "{name}"')
    yield
    for _, statement in found:
        connection.execute(statement)


def sequences(connection: sqlite3.Connection) -> Mapping[str, int]:
    """Return the last number that each counting table gave to a row."""
    known = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").fetchone()
    rows = connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall() if known else []
    return {name: number for name, number in rows if is_content(name)}


def rows_of(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield the rows of a table, of which only a few are in memory."""
    chosen = ", ".join(f'"{column}"' for column in columns)
    yield from connection.execute(f'SELECT {chosen} FROM "{table}"')  # noqa: S608 - names of the schema


def table_sums(path: Path) -> Mapping[str, TableSum]:
    """Return the sum of each table of a file."""
    with translate_errors("read the database"), contextlib.closing(connect(path)) as connection:
        connection.execute("BEGIN")
        found = {}
        for table, columns in tables(connection).items():
            summer = RowSummer([ValueKind.PLAIN] * len(columns))
            for row in rows_of(connection, table, columns):
                summer.add(row)
            found[table] = summer.total()
    return found


def applied_migrations(path: Path) -> Sequence[str]:
    """Return the names of the migrations that made the schema of a file, in order."""
    query = f"SELECT name FROM {HISTORY} WHERE app = ? ORDER BY id"  # noqa: S608 - a constant
    with translate_errors("read the schema"), contextlib.closing(connect(path)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (HISTORY,)).fetchone() is None:
            return []
        return [row[0] for row in connection.execute(query, (APP,))]


def find_damage(path: Path) -> Sequence[str]:
    """Return a sentence for each damage of a file: of its pages, or a reference that leads nowhere."""
    with translate_errors("check the database"), contextlib.closing(connect(path)) as connection:
        found = [row[0] for row in connection.execute(f"PRAGMA quick_check({MAX_PROBLEMS})")]
        problems = [] if found == ["ok"] else [" ".join(str(text).split()) for text in found]
        strays = connection.execute("PRAGMA foreign_key_check").fetchmany(MAX_PROBLEMS)
    return [*problems, *(f"a row of {row[0]} refers to a missing row of {row[2]}" for row in strays)]
