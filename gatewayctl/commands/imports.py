"""`gatewayctl import`: records of other programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from gatewayctl.command import DryRun, Noun, Session
from gatewayctl.commands.backups import progress
from gatewayctl.offline.orders import ConfigFile, run_order
from gatewayctl.offline.results import ImportedKind, ImportRemark, ImportReport
from gatewayctl.prompts import read_text
from gatewayctl.render import Output, View

noun = Noun("Records of other programs. It works on the files of the gateway, as root or as its user.")

URL_SIGN: Final = "://"

KINDS: View[ImportedKind] = View(
    name=lambda row: row.kind,
    columns={
        "KIND": lambda row: row.kind,
        "FOUND": lambda row: row.found,
        "IMPORTED": lambda row: row.imported,
        "HERE": lambda row: row.present,
        "LEFT OUT": lambda row: row.left_out,
    },
)
REPORT: View[ImportReport] = View(
    name=lambda row: "changed" if row.has_changed else "unchanged",
    columns={"SOURCE": lambda row: row.source},
)


@noun.verb(
    "open-webui",
    "gatewayctl import open-webui --database /srv/webui/webui.db --uploads /srv/webui/uploads --dry-run",
    "gatewayctl import open-webui --database @database-url --uploads /srv/webui/uploads",
)
def open_webui(
    session: Session,
    database: Annotated[
        str,
        typer.Option(
            "--database",
            metavar="FILE|URL",
            help="Database of Open WebUI: a SQLite file, or postgresql://...; @FILE reads it from there.",
        ),
    ],
    uploads: Annotated[
        Path | None,
        typer.Option("--uploads", metavar="DIR", help="Directory of its uploads; no file without it."),
    ] = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
) -> None:
    """Import users, chats, documents, plugins, models and settings of Open WebUI.

    The daemon must be stopped, except for a dry run; it reads and embeds the files at its next start. Open
    WebUI may run, and nothing of it is changed. A record that is here already stays as it is: a further run
    imports what is new or was missed, and an interrupted one goes on. The report names what was left out and
    why. -o name prints changed or unchanged.
    """
    address = read_text(database, "--database")
    values = {
        "database": address if URL_SIGN in address else str(Path(address).absolute()),
        "uploads": None if uploads is None else str(uploads.absolute()),
        "dry_run": dry_run,
    }
    report = ImportReport.model_validate(run_order("import.open-webui", progress(session), config, **values))
    if session.output is not Output.TABLE:
        session.show(report, REPORT)
        return
    session.show_all([each for each in report.kinds if each.found], KINDS)
    _say(session, "Left out:", report.left_out)
    _say(session, "Changed:", report.changed)
    if report.dry_run:
        session.note("Dry run: nothing was imported.")
    elif report.has_changed:
        session.note("Start the daemon: it reads and embeds the files.")
    else:
        session.note("Nothing was imported: what can be imported is here.")


def _say(session: Session, title: str, remarks: Sequence[ImportRemark]) -> None:
    if remarks:
        session.renderer.say("")
        session.renderer.say(title)
    for each in remarks:
        what = f"{each.count} {each.kind}" if each.count > 1 or not each.id else f"{each.kind} {each.id}"
        session.renderer.say(f"  {what}{f' ({each.name})' if each.name else ''}: {each.reason}")
