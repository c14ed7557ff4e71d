"""`gatewayctl service`: the gateway as a service of this machine."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from gatewayctl.command import DryRun, Noun, Session, Yes
from gatewayctl.failures import CommandError
from gatewayctl.prompts import confirm
from gatewayctl.render import View
from gatewayctl.service.installation import Place, ServiceInstallation
from gatewayctl.wire.service import ServiceStep

noun = Noun("The service: units, users, manual pages and commands on this machine. No daemon is asked.")

STEPS: View[ServiceStep] = View(
    name=lambda row: row.target,
    columns={
        "STEP": lambda row: f"dry run: {row.outcome}" if row.dry_run else row.outcome,
        "TARGET": lambda row: row.target,
        "DETAIL": lambda row: row.detail,
    },
)
Prefix = Annotated[
    Path,
    typer.Option(
        "--prefix",
        metavar="DIR",
        help="Install below this directory, for an image or a package; the service manager is not asked.",
    ),
]
ROOT = Path("/")


def place(prefix: Path) -> Place:
    """Return the destination for the programs beside this interpreter."""
    absolute = prefix.absolute()
    interpreter = Path(sys.executable)
    return Place(absolute, interpreter.parent.absolute(), interpreter.resolve(), is_image=absolute != ROOT)


@noun.verb("install", "gatewayctl service install --dry-run", "gatewayctl service install --yes")
def install(session: Session, prefix: Prefix = ROOT, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Install units, users, directories, manual pages, commands and a configuration.

    A step that was made before changes nothing, and a configuration is never overwritten. Nothing is started.
    Run it again after an upgrade.
    """
    confirm(f"Install the service below {prefix}?", yes=yes or dry_run)
    here = place(prefix)
    _show(session, ServiceInstallation(here, dry_run=dry_run).install())
    if not (dry_run or here.is_image):
        session.note("Start it: systemctl enable --now gatewayd.socket gatewayd-control.socket gatewayd")


@noun.verb("uninstall", "gatewayctl service uninstall --dry-run", "gatewayctl service uninstall --yes")
def uninstall(session: Session, prefix: Prefix = ROOT, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Stop the service and remove what `install` put there; configuration, state and users stay."""
    confirm(f"Remove the service below {prefix}?", yes=yes or dry_run)
    _show(session, ServiceInstallation(place(prefix), dry_run=dry_run).uninstall())


def _show(session: Session, steps: Iterable[ServiceStep]) -> None:
    """Run the steps and show them, also those before a failed one."""
    made: list[ServiceStep] = []
    try:
        for step in steps:
            made.append(step)
    except CommandError:
        for step in made:
            session.note(f"{step.outcome} {step.target}")
        raise
    session.show_all(made, STEPS)
