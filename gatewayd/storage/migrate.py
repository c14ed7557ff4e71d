"""Bringing a database to this version's schema, all or nothing.

A SQLite database is migrated as a copy that takes the place of the file when it is whole; the file as it was
is kept beside it. On PostgreSQL everything happens in one transaction. So no crash leaves a half-migrated
schema, and one that is found (by another tool, by hand) is refused.
"""

import os
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from tortoise.backends.base.client import TransactionalDBClient
from tortoise.connection import get_connection
from tortoise.migrations.executor import MigrationExecutor
from tortoise.migrations.schema_editor import AsyncpgSchemaEditor, BaseSchemaEditor, SqliteSchemaEditor
from tortoise.transactions import in_transaction

from gatewayd.errors import GatewayError, Kind
from gatewayd.storage.database import Database
from gatewayd.storage.failures import translated
from gatewayd.storage.location import APP, Location, sqlite

COMMAND: Final = "gatewayd --migrate"
TABLES: Final = {
    True: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    False: "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()",
}
HISTORY: Final = "tortoise_migrations"


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """What is applied, in order, what this version knows, and which tables there are."""

    applied: Sequence[str]
    known: Sequence[str]
    tables: frozenset[str]

    @property
    def is_fresh(self) -> bool:
        """Whether the database is empty."""
        return not self.tables

    @property
    def pending(self) -> Sequence[str]:
        """What this version knows and the database lacks."""
        return [name for name in self.known if name not in self.applied]


async def read_status(database: Database) -> MigrationStatus:
    """Return the state of the schema; reads two tables and imports no migration."""
    async with translated("read the schema"):
        client = get_connection(database.location.connection)
        _, rows = await client.execute_query(TABLES[database.location.is_sqlite])
        tables = frozenset(row["name"] for row in rows)
        applied: list[str] = []
        if HISTORY in tables:
            query = f"SELECT name FROM {HISTORY} WHERE app = '{APP}' ORDER BY id"  # noqa: S608 - constants
            _, rows = await client.execute_query(query)
            applied = [row["name"] for row in rows]
    return MigrationStatus(applied, known_migrations(), tables)


def known_migrations() -> Sequence[str]:
    """Return the names of the migrations that this version ships, in order."""
    folder = files("gatewayd.storage.migrations")
    return sorted(
        item.name[:-3] for item in folder.iterdir() if item.name[:1].isdigit() and item.name.endswith(".py")
    )


def check(status: MigrationStatus) -> None:
    """Raise not_configured, saying what to do, unless the schema is this version's."""
    unknown = [name for name in status.applied if name not in status.known]
    if unknown:
        raise GatewayError(
            Kind.NOT_CONFIGURED,
            f"cannot use the database: its schema is newer than this version ({unknown[-1]} is not known); "
            "install the version that made it, or restore a backup",
            code="schema_newer",
        )
    if list(status.applied) != list(status.known[: len(status.applied)]) or (
        status.tables and not status.applied
    ):
        raise GatewayError(
            Kind.NOT_CONFIGURED,
            "cannot use the database: its schema is half migrated or not gatewayd's; restore a backup, "
            f"or remove it and run {COMMAND}",
            code="schema_broken",
        )
    if status.pending:
        raise GatewayError(
            Kind.NOT_CONFIGURED,
            f"cannot use the database: its schema lacks {', '.join(status.pending)}; run {COMMAND}",
            code="schema_older",
        )


async def migrate(location: Location) -> Sequence[str]:
    """Apply what is pending and return the names; raises like `check` when that cannot be."""
    if location.path is not None:
        return await _migrate_copy(location.path)
    async with Database.open(location) as database:
        return await migrate_open(database)


async def migrate_open(database: Database) -> Sequence[str]:
    """Apply what is pending to an open database, in place, and return the names."""
    async with database.exclusive("gatewayd migrations"):
        return await _apply(database)


async def _migrate_copy(path: Path) -> Sequence[str]:
    copy = path.with_name(f"{path.name}.migrating")
    _begin_copy(path, copy)
    async with Database.open(sqlite(copy)) as database:
        done = await _apply(database)
    _take_place(path, copy, done)
    return done


async def _apply(database: Database) -> Sequence[str]:
    status = await read_status(database)
    try:
        check(status)
    except GatewayError as error:
        if error.code != "schema_older" and not status.is_fresh:
            raise
    pending = list(status.pending)
    apps = database.location.config()["apps"]
    async with translated("migrate the database"), in_transaction() as connection:
        executor = MigrationExecutor(connection, apps)
        # Asked for a history that is not there yet, PostgreSQL would give up the whole transaction.
        await executor.recorder.ensure_schema(_editor(connection))
        await executor.migrate()
    return pending


def _editor(connection: TransactionalDBClient) -> BaseSchemaEditor:
    if connection.capabilities.dialect == "sqlite":
        return SqliteSchemaEditor(connection, atomic=False)
    return AsyncpgSchemaEditor(connection, atomic=False)


def _begin_copy(path: Path, copy: Path) -> None:
    _remove(copy)
    if path.exists():
        _snapshot(path, copy)


def _take_place(path: Path, copy: Path, done: Sequence[str]) -> None:
    copy.chmod(0o600)
    if done and path.exists():
        path.replace(path.with_name(f"{path.name}.before-{done[0]}"))
    copy.replace(path)
    _sync_folder(path.parent)


def _snapshot(path: Path, copy: Path) -> None:
    """Write a consistent copy, and leave the original without a write-ahead log that could outlive it."""
    try:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("VACUUM INTO ?", (str(copy),))
            connection.execute("PRAGMA journal_mode = DELETE")
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise GatewayError(Kind.UNAVAILABLE, f"cannot copy the database before migrating: {error}") from error


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
