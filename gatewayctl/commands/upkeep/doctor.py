"""`gatewayctl doctor`: what is wrong with the gateway, and the commands that repair it."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import ValidationError

from gatewayctl.command import Session, add_verb
from gatewayctl.failures import CommandError
from gatewayctl.render import Output, View
from gatewayctl.wire import routes
from gatewayctl.wire.upkeep.doctor import DoctorFinding, DoctorReport

WARNINGS: Final = 1
ERRORS: Final = 2
SECONDS: Final = 300.0

FINDINGS: View[DoctorFinding] = View(
    name=lambda row: row.code,
    columns={
        "LEVEL": lambda row: row.level,
        "CODE": lambda row: row.code,
        "FINDING": lambda row: row.sentence,
        "REPAIR": lambda row: row.command,
    },
)
STOPPED: Final = DoctorFinding(
    code="daemon-stopped",
    level="warning",
    sentence="no daemon answers on the control socket: providers, plugins and indexes were not checked",
    command="systemctl start gatewayd",
)


def register(app: typer.Typer) -> None:
    """Add the verb to the root."""
    add_verb(app, "doctor", examine, "gatewayctl doctor", "gatewayctl doctor -o json")


def examine(
    session: Session,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Configuration of a daemon that does not run; see gatewayd(8).",
        ),
    ] = None,
) -> None:
    """Check the gateway and show what is wrong, with a code, a sentence, and the command that repairs it.

    Nothing is changed. Without a running daemon its configuration, files and database are checked. Exits with
    0 when nothing is wrong, with 1 for warnings and with 2 for errors.
    """
    try:
        findings = session.client.call(routes.RUN_DOCTOR).findings
    except CommandError as error:
        if error.kind != "unreachable":
            raise
        findings = [STOPPED, *_stopped(file)]
    session.show_all(findings, FINDINGS)
    if not findings:
        if session.output is Output.TABLE:
            session.renderer.say("nothing is wrong")
        return
    sys.stdout.flush()
    raise typer.Exit(ERRORS if any(each.level == "error" for each in findings) else WARNINGS)


def _stopped(file: Path | None) -> list[DoctorFinding]:
    """Return the findings of `gatewayd --doctor`."""
    named = [] if file is None else ["-f", str(file)]
    command = [sys.executable, "-m", "gatewayd", "--doctor", *named]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise CommandError("timeout", f"cannot check the stopped gateway within {SECONDS:g} s") from error
    try:
        return DoctorReport.model_validate_json(done.stdout).findings
    except ValidationError as error:
        reason = (done.stderr.strip().splitlines() or ["gatewayd --doctor printed nothing"])[-1]
        raise CommandError("system", f"cannot check the stopped gateway: {reason}") from error
