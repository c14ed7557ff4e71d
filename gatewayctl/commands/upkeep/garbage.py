"""`gatewayctl gc`: removal of what nothing needs."""

from typing import Annotated, Final

import typer

from gatewayctl.command import DryRun, Session, add_verb
from gatewayctl.render import Output, View
from gatewayctl.values import parse_duration
from gatewayctl.wire import routes
from gatewayctl.wire.upkeep.garbage import GarbageCollection, GarbageCount

MIN_AGE_SECONDS: Final = 3600

COUNTS: View[GarbageCount] = View(
    name=lambda row: row.kind,
    columns={
        "KIND": lambda row: row.kind,
        "REMOVED": lambda row: row.count,
        "BYTES": lambda row: row.bytes or None,
    },
)


def register(app: typer.Typer) -> None:
    """Add the verb to the root."""
    add_verb(app, "gc", collect, "gatewayctl gc --dry-run", "gatewayctl gc --older-than 7d")


def collect(
    session: Session,
    older_than: Annotated[
        str,
        typer.Option("--older-than", metavar="DURATION", help="Least age of files to remove; 1h or more."),
    ] = "24h",
    dry_run: DryRun = False,
) -> None:
    """Remove stored bytes without a file, abandoned uploads, vectors that nothing searches, and expired rows.

    The daemon goes on working. Nothing that is younger than --older-than is removed, so that no running
    upload loses anything. --dry-run shows what would be removed.
    """
    age = max(parse_duration(older_than), MIN_AGE_SECONDS)
    body = GarbageCollection(older_than=age)
    report = session.client.call(routes.COLLECT_GARBAGE, body=body, dry_run=dry_run)
    if dry_run and session.output is Output.TABLE:
        session.note("dry run: nothing was removed")
    session.show_all(report.removed, COUNTS)
