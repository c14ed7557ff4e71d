"""`gatewayctl health`: the state of the daemon."""

import sys
from typing import Final

import typer

from gatewayctl.command import Session, add_verb
from gatewayctl.failures import FAILURE
from gatewayctl.render import View
from gatewayctl.wire import routes
from gatewayctl.wire.health import Health, SourceState, VectorCache

FAIL: Final = "fail"
MIB: Final = 2**20


def _recall(row: Health) -> str | None:
    if row.vector_recall is None:
        return None
    return f"{row.vector_recall:.3f} with ef_search {row.vector_ef_search}"


VIEW: View[Health] = View(
    name=lambda row: row.status,
    columns={
        "STATUS": lambda row: row.status,
        "VERSION": lambda row: row.version,
        "PROTOCOL": lambda row: row.protocol,
        "STARTED": lambda row: row.started_at,
        "UPTIME": lambda row: f"{row.uptime_seconds} s",
        "DATABASE": lambda row: "ok" if row.database else f"failing: {row.database_problem}",
        "DEGRADED": lambda row: ", ".join(row.degraded) or None,
        "SANDBOX": lambda row: row.extraction_sandbox,
        "VECTORS": lambda row: row.vector_index,
        "RECALL": _recall,
        "VECTOR CACHE": lambda row: _cache(row.vector_cache),
        "STALLS": lambda row: f"{row.stalls}, the longest {row.longest_stall_ms} ms" if row.stalls else "0",
        "SOURCES": lambda row: [_source(state) for state in row.sources],
    },
)


def register(app: typer.Typer) -> None:
    """Add the verb to the root."""
    add_verb(app, "health", show, "gatewayctl health", "gatewayctl health -o name")


def show(session: Session) -> None:
    """Show version, uptime, database, stalls and model sources; -o name prints pass, warn or fail.

    A daemon without its database is shown, and then the command exits with 1.
    """
    health = session.client.call(routes.GET_HEALTH)
    session.show(health, VIEW)
    if health.status == FAIL:
        sys.stdout.flush()
        raise typer.Exit(FAILURE)


def _source(state: SourceState) -> str:
    return f"{state.name}: {state.problem or f'{state.models} models'}"


def _cache(cache: VectorCache | None) -> str | None:
    if cache is None:
        return None
    sizes = f"{cache.size_bytes / MIB:.0f} of {cache.limit_bytes / MIB:.0f} MiB"
    told = f"{sizes}, {cache.reloads} loaded again" if cache.reloads else sizes
    return f"{told}: {cache.problem}" if cache.problem else told
