"""What a database of Open WebUI has and a gateway has not, and whether it is such a database at all."""

from collections.abc import Mapping
from typing import Final

from gatewayd.errors import invalid
from gatewayd.imports.interfaces import ForeignDatabase
from gatewayd.imports.records import ImportLedger

NEEDED: Final[Mapping[str, frozenset[str]]] = {
    "user": frozenset({"id", "email", "name", "role"}),
    "auth": frozenset({"id", "password"}),
    "chat": frozenset({"id", "user_id", "chat"}),
}
"""Columns that every version has."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "prompt": "the gateway has no prompts",
    "memory": "the gateway has no memories",
    "note": "the gateway has no notes",
    "channel": "the gateway has no channels",
    "message": "the gateway has no channels",
    "feedback": "the gateway keeps no ratings of answers",
    "skill": "the gateway has no skills",
    "app": "the gateway has no apps",
    "automation": "the gateway has no automations",
    "calendar_event": "the gateway has no calendars",
    "document": "documents from before collections are not imported: add them to a collection",
    "oauth_session": "sessions end: people sign in again",
}
"""Tables whose rows have no place here, and why."""


def check_source(source: ForeignDatabase, address: str) -> None:
    """Raise invalid_request unless a database has the tables of Open WebUI."""
    for table, columns in NEEDED.items():
        missing = sorted(columns - source.columns.get(table, frozenset()))
        if missing:
            what = f"column {missing[0]} in {table}" if table in source.columns else f"table {table}"
            reason = f"it has no {what}, so it is no database of Open WebUI"
            raise invalid(f"cannot import from {address}: {reason}", param="database")


async def note_leftovers(source: ForeignDatabase, ledger: ImportLedger) -> None:
    """Count the rows that have no place here."""
    for table, reason in LEFT_OUT.items():
        count = await source.count(table)
        if count:
            ledger.leave_out(table.replace("_", " "), "", "", reason, count=count)
