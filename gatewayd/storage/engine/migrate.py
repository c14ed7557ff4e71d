"""Migration of a database to this version's schema: one transaction per migration, one process at a time.

An empty database gets the script of `initial_schema` in the place of the migrations that it holds.
A SQLite database is copied first. A crash rolls back, so an interrupted run can be repeated. A schema that is
only half migrated (by another tool or by hand) is refused.
"""

import importlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar, Final

from tortoise.migrations.migration import Migration
from tortoise.migrations.recorder import MigrationRecorder
from tortoise.models import Model

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.member import CONTRACTING
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.initial_schema import InitialSchema, read_initial_schema
from gatewayd.storage.engine.location import APP, MIGRATIONS, DatabaseLocation
from gatewayd.storage.engine.migration_state import MigrationState

COMMAND: Final = "gatewayctl database migrate"
HISTORY: Final = "tortoise_migrations"
INCOMPLETE: Final = "gatewayd_incomplete"
"""A table that stands in a database while another is copied into it."""

LIVING_NODES: Final = (
    "SELECT name, migration FROM nodes WHERE until > (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
)

NOT_SQL: Final = "-- this is done by Python code"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """The applied migrations and those that this version ships, both in order.

    `tables` contains all tables of the database. `missing` contains the columns (`users.email`) that the
    applied migrations should have created; it is filled only when nothing is pending.
    """

    applied: Sequence[str]
    known: Sequence[str]
    tables: frozenset[str]
    missing: Sequence[str] = ()

    @property
    def is_fresh(self) -> bool:
        """Whether the database is empty."""
        return not self.tables - {INCOMPLETE}

    @property
    def is_incomplete(self) -> bool:
        """Whether a copy into this database has begun and did not end."""
        return INCOMPLETE in self.tables

    @property
    def pending(self) -> Sequence[str]:
        """The shipped migrations that are not applied."""
        return [name for name in self.known if name not in self.applied]


async def read_status(database: Database, package: str = MIGRATIONS) -> MigrationStatus:
    """Return the status of the schema; reads two tables and imports no migration."""
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
    """Raise not_configured, with the remedy, unless the schema is that of this version."""
    if status.is_incomplete:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            "cannot use the database: a copy into it was interrupted; repeat the command that made it, "
            "gatewayctl database copy or gatewayctl backup restore",
            code="database_incomplete",
        )
    unknown = [name for name in status.applied if name not in status.known]
    if unknown:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot use the database: its schema is newer than this version ({unknown[-1]} is not known); "
            "install the version that made it, or run gatewayctl database rollback, which returns to the "
            "copy from before its migrations",
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


async def migrate(location: DatabaseLocation, *, shared: bool = False) -> Sequence[str]:
    """Apply the pending migrations and return their names; raises the errors of `check`.

    Raises conflict while a daemon uses the database; with `shared`, while a daemon alone does. Nodes of a
    cluster may work on while the schema is expanded. It contracts only once every living node is of a
    version that knows the contracting migration; until then this raises conflict.
    """
    async with Database.open(location) as database:
        await database.own(shared=shared)
        if shared:
            await refuse_contraction(database, await read_status(database))
        return await migrate_open(database)


async def refuse_contraction(database: Database, status: MigrationStatus) -> None:
    """Raise conflict if a pending migration takes away what a living node of an earlier version needs."""
    contracting = [name for name in status.pending if name.endswith(CONTRACTING)]
    if not contracting or "nodes" not in status.tables:
        return
    with translate_errors("look for nodes"):
        rows = await database.engine.execute_query_dict(LIVING_NODES)
    old = sorted(row["name"] for row in rows if row["migration"] < contracting[-1])
    if old:
        raise GatewayError(
            ErrorKind.CONFLICT,
            f"cannot migrate the database: {contracting[-1]} takes away what nodes of earlier versions need;"
            f" update and restart {', '.join(old)} first",
        )


async def apply_migrations(
    database: Database, names: Sequence[str], package: str = MIGRATIONS, *, is_fresh: bool = True
) -> Sequence[str]:
    """Apply migrations to an open database and return the names of those that were not applied before."""
    initial = read_initial_schema(package, database.location.connection, names) if is_fresh else None
    applied = await _apply_initial(database, initial) if initial else []
    state = _ModelState(package, database.engine.connection_name)
    return [name for name in names if name in applied or await _apply(database, state, name)]


async def plan_migrations(
    database: Database, package: str = MIGRATIONS
) -> Sequence[tuple[str, Sequence[str]]]:
    """Return the pending migrations with their SQL; work of Python code is one comment. Changes nothing."""
    status = await read_status(database, package)
    _check_migratable(status)
    engine = database.engine
    state = _ModelState(package, engine.connection_name)
    for name in status.applied:
        await state.add(name)
    found = []
    for name in status.pending:
        editor = engine.schema_editor(engine, collect_sql=True)
        await state.add(name, editor, collect_sql=True)
        statements = [each for each in editor.collected_sql if each != "--"]
        found.append((name, [NOT_SQL if "CANNOT BE" in each else each for each in statements]))
    return found


async def migrate_open(database: Database, package: str = MIGRATIONS) -> Sequence[str]:
    """Apply the pending migrations to an open database and return their names.

    A SQLite file that is not empty is first copied to `<file>.before-<migration>`.
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
    return await apply_migrations(database, pending, package, is_fresh=status.is_fresh)


def _check_migratable(status: MigrationStatus) -> None:
    try:
        check(status)
    except GatewayError as error:
        if error.code != "schema_older":
            raise


class _ModelState:
    """State of the models after the applied migrations, computed once for all following ones."""

    def __init__(self, package: str, connection: str) -> None:
        self._package = package
        self._state = MigrationState(connection)
        self._known: set[str] = set()

    async def add(self, name: str, editor: Any = None, *, collect_sql: bool = False) -> None:
        """Apply one more migration to the state, and with an editor to the schema, or to its list of SQL."""
        if name in self._known:
            return
        migration: type[Migration] = importlib.import_module(f"{self._package}.{name}").Migration
        if editor is None:
            self._state.advance_models()
        else:
            self._state.make_classes()
        await migration(name, APP).apply(
            self._state, dry_run=editor is None, schema_editor=editor, collect_sql=collect_sql
        )
        self._known.add(name)


async def _apply_initial(database: Database, schema: InitialSchema) -> Sequence[str]:
    """Make the schema and record its migrations in one transaction; nothing when a process has begun."""
    with translate_errors("make the schema of the database"):
        async with database.engine.migrating() as transaction:
            recorder = await _prepare(database, transaction)
            if await _applied(transaction):
                return []
            await transaction.execute_script(schema.script)
            for name in schema.migrations:
                await recorder.record_applied(APP, name)
    log.info("made the schema of an empty database", extra={"migration": schema.migrations[-1]})
    return schema.migrations


class HistoryRecorder(MigrationRecorder):
    """Records migrations. All recorders have one model, whose making reads and parses its source."""

    _made: ClassVar[dict[str, type[Model]]] = {}

    def _make_model(self, table_name: str) -> type[Model]:
        if table_name not in self._made:
            self._made[table_name] = super()._make_model(table_name)
        return self._made[table_name]


async def _prepare(database: Database, transaction: Any) -> MigrationRecorder:
    """Exclude other processes, and make the table of the history."""
    await database.engine.exclude(transaction, "gatewayd migrations")
    recorder = HistoryRecorder(transaction)
    await recorder.ensure_schema(database.engine.schema_editor(transaction))
    return recorder


async def _apply(database: Database, state: _ModelState, name: str) -> bool:
    """Apply one migration and record it in one transaction; False when another process has applied it."""
    with translate_errors("migrate the database"):
        async with database.engine.migrating() as transaction:
            recorder = await _prepare(database, transaction)
            before = await _applied(transaction)
            if name in before:
                return False
            for earlier in before:
                await state.add(earlier)
            await state.add(name, database.engine.schema_editor(transaction))
            await recorder.record_applied(APP, name)
    log.info("migrated", extra={"migration": name})
    return True


async def _applied(client: Any) -> list[str]:
    query = f"SELECT name FROM {HISTORY} WHERE app = '{APP}' ORDER BY id"  # noqa: S608 - constants
    return [row["name"] for row in await client.execute_query_dict(query)]
