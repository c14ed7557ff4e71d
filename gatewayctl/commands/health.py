"""`gatewayctl health`: the state of the daemon."""

import typer

from gatewayctl.render import View
from gatewayctl.verbs import Session, add_verb
from gatewayctl.wire.health import Health, SourceState

VIEW: View[Health] = View(
    name=lambda row: row.status,
    columns={
        "STATUS": lambda row: row.status,
        "VERSION": lambda row: row.version,
        "PROTOCOL": lambda row: row.protocol,
        "STARTED": lambda row: row.started_at,
        "UPTIME": lambda row: f"{row.uptime_seconds} s",
        "DATABASE": lambda row: "ok" if row.database else f"failing: {row.database_problem}",
        "SANDBOX": lambda row: row.extraction_sandbox,
        "STALLS": lambda row: f"{row.stalls}, the longest {row.longest_stall_ms} ms" if row.stalls else "0",
        "SOURCES": lambda row: [_source(state) for state in row.sources],
    },
)


def register(app: typer.Typer) -> None:
    """Add the verb to the root."""
    add_verb(app, "health", show, "gatewayctl health", "gatewayctl health -o name")


def show(session: Session) -> None:
    """Show version, uptime, database, stalls and model sources; -o name prints pass, warn or fail.

    A daemon that answers is no failure of the command, whatever state it is in.
    """
    session.show(session.client.get_health(), VIEW)


def _source(state: SourceState) -> str:
    return f"{state.name}: {state.problem or f'{state.models} models'}"
