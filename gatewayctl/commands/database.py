"""`gatewayctl database`: the database of the daemon."""

import sys
from typing import Annotated, Final

import typer
from pydantic import TypeAdapter

from gatewayctl.command import Noun, Session, Yes
from gatewayctl.commands.backups import progress
from gatewayctl.failures import FAILURE
from gatewayctl.offline.orders import ConfigFile, run_order
from gatewayctl.offline.results import CopiedTable, PlannedMigration, SchemaCopy, SchemaState
from gatewayctl.prompts import confirm, read_text
from gatewayctl.render import Output, View
from gatewayctl.wire import routes
from gatewayctl.wire.database import DatabaseCheck, DatabaseState

noun = Noun(
    "The database of the daemon. All verbs but check work without the daemon, as root or as its user."
)

MAX_SECONDS: Final = 86400
SOUND: Final = "sound"
NO_SCHEMA: Final = "none yet: the first start makes it"
"""Shown for a database that does not exist, or has no table."""

VIEW: View[DatabaseState] = View(
    name=lambda row: row.status,
    columns={"DATABASE": lambda row: row.status, "PROBLEMS": lambda row: row.problems},
)
SCHEMA: View[SchemaState] = View(
    name=lambda row: row.applied[-1] if row.applied else "",
    columns={
        "DATABASE": lambda row: row.database,
        "SCHEMA": lambda row: row.applied[-1] if row.applied else NO_SCHEMA,
        "PENDING": lambda row: row.pending if row.applied else None,
        "PROBLEM": lambda row: row.problem,
        "COPIES": lambda row: [each.before for each in row.copies],
    },
)
PLAN: View[PlannedMigration] = View(
    name=lambda row: row.migration,
    columns={"MIGRATION": lambda row: row.migration, "STATEMENTS": lambda row: len(row.sql)},
)
MADE: View[PlannedMigration] = View(
    name=lambda row: row.migration, columns={"MIGRATION": lambda row: row.migration}
)
COPY: View[SchemaCopy] = View(
    name=lambda row: row.before,
    columns={
        "BEFORE": lambda row: row.before,
        "MADE": lambda row: row.made_at,
        "BYTES": lambda row: row.size,
        "COPY": lambda row: row.path,
    },
)
COPIED: View[CopiedTable] = View(
    name=lambda row: row.table,
    columns={"TABLE": lambda row: row.table, "ROWS": lambda row: row.rows, "SUM": lambda row: row.sum[:16]},
)


@noun.verb("check", "gatewayctl database check", "gatewayctl database check --timeout 3600 -o name")
def check(
    session: Session,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.1, max=MAX_SECONDS, help="Time limit of the check."
        ),
    ] = 60.0,
) -> None:
    """Check the database for damage while the daemon runs.

    Of SQLite the pages and the indexes are checked, of PostgreSQL every value is read. Damage that is found
    makes the health of the daemon fail until a check finds none. -o name prints sound or damaged. Exits with
    1 when the database is damaged, or when the check takes longer.
    """
    state = session.client.call(routes.CHECK_DATABASE, body=DatabaseCheck(timeout=timeout))
    session.show(state, VIEW)
    if state.status != SOUND:
        sys.stdout.flush()
        raise typer.Exit(FAILURE)


@noun.verb("status", "gatewayctl database status", "gatewayctl database status -o json")
def status(session: Session, config: ConfigFile = None) -> None:
    """Show which migrations are applied and which are pending, and the copies from before migrations.

    The daemon may run. Exits with 1 if this version cannot use the database as it is.
    """
    state = SchemaState.model_validate(run_order("database.status", progress(session), config))
    session.show(state, SCHEMA)
    if state.problem:
        sys.stdout.flush()
        raise typer.Exit(FAILURE)


@noun.verb("plan", "gatewayctl database plan")
def plan(session: Session, config: ConfigFile = None) -> None:
    """Show what the pending migrations would run, as SQL; work of Python code is a comment.

    Nothing is changed, and the daemon may run.
    """
    found = run_order("database.plan", progress(session), config)
    steps = TypeAdapter(list[PlannedMigration]).validate_python(found)
    if session.output is not Output.TABLE:
        session.show_all(steps, PLAN)
        return
    for step in steps:
        session.renderer.say(f"-- {step.migration}")
        for line in "\n".join(step.sql).splitlines():
            session.renderer.say(line)
    if not steps:
        session.renderer.say("-- nothing is pending")


@noun.verb("migrate", "gatewayctl database migrate")
def migrate(session: Session, config: ConfigFile = None) -> None:
    """Copy the database, then bring its schema up to date, while the daemon is stopped.

    A migration that fails or is interrupted changes nothing; run it again. The copy is kept until it is
    removed by hand, and `rollback` returns to it.
    """
    found = run_order("database.migrate", progress(session), config)
    session.show_all(TypeAdapter(list[PlannedMigration]).validate_python(found), MADE)
    if not found:
        session.note("Nothing was pending.")


@noun.verb(
    "rollback", "gatewayctl database rollback --yes", "gatewayctl database rollback --to 0016_batches --yes"
)
def rollback(
    session: Session,
    to: Annotated[
        str, typer.Option("--to", metavar="MIGRATION", help="The copy from before this one; else the newest.")
    ] = "",
    yes: Yes = False,
    config: ConfigFile = None,
) -> None:
    """Return to the copy from before a migration, while the daemon is stopped; later changes are lost.

    The present database is kept beside it. The version of gatewayd that made the schema can use it again.
    """
    confirm("Return to the database from before the migration?", yes=yes)
    session.show(
        SchemaCopy.model_validate(run_order("database.rollback", progress(session), config, to=to)), COPY
    )


@noun.verb(
    "copy",
    "gatewayctl database copy --to @new-url --yes",
    "gatewayctl database copy --to sqlite:////var/lib/gatewayd/gatewayd.db --yes",
)
def copy(
    session: Session,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="URL", help="Address of the new database; @FILE or @- reads it from there."
        ),
    ],
    yes: Yes = False,
    config: ConfigFile = None,
) -> None:
    """Copy the database from SQLite to PostgreSQL or back, while the daemon is stopped.

    The target must be empty, or have the remains of an interrupted copy; no daemon starts on it before every
    table has the same rows as the source. The source is not changed. Then set database_url to the target.
    """
    address = read_text(to, "--to")
    confirm("Copy the database?", yes=yes)
    found = run_order("database.copy", progress(session), config, to=address)
    session.show_all(TypeAdapter(list[CopiedTable]).validate_python(found), COPIED)
    session.note("Set database_url to the new database and start the daemon.")
