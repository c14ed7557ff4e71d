"""Bringing a database to this version's schema: each migration in one transaction, by one process at a time.

A SQLite database is copied first. A crash rolls back, so an interrupted run is simply run again. A schema
that is half migrated all the same (by another tool, by hand) is refused.
"""

import importlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from tortoise.migrations.migration import Migration
from tortoise.migrations.recorder import MigrationRecorder
from tortoise.migrations.schema_generator.state import State
from tortoise.migrations.schema_generator.state_apps import StateApps

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.location import APP, MIGRATIONS, DatabaseLocation

COMMAND: Final = "gatewayd --migrate"
HISTORY: Final = "tortoise_migrations"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """What is applied and what this version knows, both in order.

    `tables` are all tables there are. `missing` are the columns (`users.email`) that the applied migrations
    should have made and that are not there; it is only filled when nothing is pending.
    """

    applied: Sequence[str]
    known: Sequence[str]
    tables: frozenset[str]
    missing: Sequence[str] = ()

    @property
    def is_fresh(self) -> bool:
        """Whether the database is empty."""
        return not self.tables

    @property
    def pending(self) -> Sequence[str]:
        """What this version knows and the database lacks."""
        return [name for name in self.known if name not in self.applied]


async def read_status(database: Database, package: str = MIGRATIONS) -> MigrationStatus:
    """Return the state of the schema; reads two tables and imports no migration."""
    with translate_errors("read the schema"):
        columns = {(row["table"], row["column"]) for row in await database.engine.columns()}
        applied = await _applied(database.engine) if (HISTORY, "name") in columns else []
    known = known_migrations(package)
    missing = database.expected_columns() - columns if set(known) <= set(applied) else frozenset()
    return MigrationStatus(
        applied=applied,
        known=known,
        tables=frozenset(table for table, _ in columns),
        missing=sorted(f"{table}.{column}" for table, column in missing),
    )


def known_migrations(package: str = MIGRATIONS) -> Sequence[str]:
    """Return the names of the migrations that this version ships, in order."""
    return sorted(
        item.name[:-3]
        for item in files(package).iterdir()
        if item.name[:1].isdigit() and item.name.endswith(".py")
    )


def check(status: MigrationStatus) -> None:
    """Raise not_configured, saying what to do, unless the schema is this version's."""
    unknown = [name for name in status.applied if name not in status.known]
    if unknown:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot use the database: its schema is newer than this version ({unknown[-1]} is not known); "
            "install the version that made it, or restore a backup",
            code="schema_newer",
        )
    broken = ", ".join(status.missing[:3])
    if not broken and (status.tables and not status.applied):
        broken = "it has tables that no migration made"
    if broken or list(status.applied) != list(status.known[: len(status.applied)]):
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot use the database: its schema is half migrated or not gatewayd's ({broken or 'a gap'}); "
            f"restore a backup, or remove it, and run {COMMAND}",
            code="schema_broken",
        )
    if status.pending:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot use the database: its schema lacks {', '.join(status.pending)}; run {COMMAND}",
            code="schema_older",
        )


async def migrate(location: DatabaseLocation) -> Sequence[str]:
    """Apply what is pending and return the names; raises like `check` when that cannot be.

    Conflict when a daemon works on the database.
    """
    async with Database.open(location) as database:
        await database.own()
        return await migrate_open(database)


async def migrate_open(database: Database, package: str = MIGRATIONS) -> Sequence[str]:
    """Apply what is pending to an open database and return the names.

    A SQLite file that is not fresh is first copied to `<file>.before-<migration>`.
    """
    status = await read_status(database, package)
    if status.is_fresh:
        pending = list(status.known)
    else:
        _check_migratable(status)
        pending = list(status.pending)
    if pending and not status.is_fresh:
        with translate_errors("copy the database before migrating"):
            copy = await database.engine.snapshot(f"before-{pending[0]}")
        if copy is not None:
            log.info("copied the database before migrating", extra={"path": str(copy)})
    past = _Past(package, database.engine.connection_name)
    return [name for name in pending if await _apply(database, past, name)]


def _check_migratable(status: MigrationStatus) -> None:
    try:
        check(status)
    except GatewayError as error:
        if error.code != "schema_older":
            raise


class _Past:
    """What the applied migrations have made of the models: worked out once for all that follow."""

    def __init__(self, package: str, connection: str) -> None:
        self._package = package
        self._state = State(models={}, apps=StateApps(default_connections={APP: connection}))
        self._known: set[str] = set()

    async def add(self, name: str, editor: Any = None) -> None:
        """Take one more migration into account; with an editor it also changes the schema."""
        if name in self._known:
            return
        migration: type[Migration] = importlib.import_module(f"{self._package}.{name}").Migration
        await migration(name, APP).apply(self._state, dry_run=editor is None, schema_editor=editor)
        self._known.add(name)


async def _apply(database: Database, past: _Past, name: str) -> bool:
    """Apply one migration and record it, all or nothing; False when another process was faster."""
    with translate_errors("migrate the database"):
        async with database.engine.migrating() as transaction:
            await database.engine.exclude(transaction, "gatewayd migrations")
            editor = database.engine.schema_editor(transaction)
            recorder = MigrationRecorder(transaction)
            await recorder.ensure_schema(editor)
            before = await _applied(transaction)
            if name in before:
                return False
            for earlier in before:
                await past.add(earlier)
            await past.add(name, editor)
            await recorder.record_applied(APP, name)
    log.info("migrated", extra={"migration": name})
    return True


async def _applied(client: Any) -> list[str]:
    query = f"SELECT name FROM {HISTORY} WHERE app = '{APP}' ORDER BY id"  # noqa: S608 - constants
    return [row["name"] for row in await client.execute_query_dict(query)]
