"""Routes of `/v1/state`: export of the declarative state, and plan and apply of a document."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.upkeep import state as wire
from gatewayd import ids
from gatewayd.errors import invalid, shorten
from gatewayd.http.audit import note_change, shorten_value, wait_for_rows
from gatewayd.http.body import large_reply, pages_reply, read_model, validate_model
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, author, is_set
from gatewayd.http.routes import Route
from gatewayd.json_decoder import BULK_LIMITS
from gatewayd.state.records import FieldChange, ObjectChange, StateAction, StatePlan, join_path
from gatewayd.state.service import StateService
from gatewayd.time_slices import LoopPacer

ROWS_AT_ONCE: Final = 100
"""Changes after which apply waits for their rows of the audit log."""

DIGEST_CHARACTERS: Final = 12
"""Characters of the digest of a source in a plan."""

CHANGES_PER_PAGE: Final = 50
"""Changes that are rendered at a time."""

MAX_LISTED: Final = 100
"""Maximum number of texts in the changes of a list."""

ACTIONS: Final = {
    StateAction.CREATE: "create",
    StateAction.UPDATE: "change",
    StateAction.DELETE: "remove",
}
"""The verbs of audit rows, as the single commands have them."""

NOUNS: Final = {"tool_servers": "tool-server"}
"""Nouns of audit rows that are not the table without its last letter."""


class ControlStateRoutes:
    """Routes of declarative state on the control socket."""

    def __init__(self, state: StateService, viewers: ControlActors) -> None:
        self._state = state
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.EXPORT_STATE, self.export), serve(routes.APPLY_STATE, self.apply)]

    async def export(self, request: web.Request) -> web.StreamResponse:
        """Answer `StateExport`; `?table=` has the names of tables, comma separated."""
        names = [name for name in request.query.get("table", "").split(",") if name]
        for name in names:
            if name not in wire.TABLES:
                known = ", ".join(wire.TABLES)
                raise invalid(f"cannot export {shorten(name)!r}: expected one of {known}", param="table")
        operator = self._viewers.operator(request[PEER])
        found = await self._state.export(operator, author(request), names)
        document = {name: found[name] for name in ("format", *wire.TABLES) if name in found}
        return await large_reply({"document": document})

    async def apply(self, request: web.Request) -> web.StreamResponse:
        """Take `StateApply`, answer `StatePlan`: what was changed, or with `?dry_run=true` what would be."""
        asked = await read_model(request, wire.StateApply, wire.MAX_DOCUMENT_BYTES, BULK_LIMITS)
        document = await read_document(asked.document)
        operator, by = self._viewers.operator(request[PEER]), author(request)
        dry_run = is_set(request, "dry_run")
        if dry_run:
            plan = await self._state.plan(operator, by, document, prune=asked.prune)
        else:
            plan = await self._state.apply(
                operator, by, document, AuditRecorder(request), prune=asked.prune, digest=asked.plan
            )
        fields = {"digest": plan.digest, "notes": list(plan.notes), "dry_run": dry_run}
        return await pages_reply(render_pages(plan), "changes", fields)


class AuditRecorder:
    """Writes the audit row of each change that was made, under the action of the single command."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._count = 0

    async def __call__(self, change: ObjectChange) -> None:
        """Write the row; wait for all rows so far after each hundred."""
        noun = NOUNS.get(change.table, change.table.removesuffix("s"))
        values = {each.name: each.shown[1] for each in change.fields if _is_audited(each)}
        before = {each.name: each.shown[0] for each in change.fields if _is_audited(each)}
        match change.action:
            case StateAction.DELETE:
                note_change(self._request, change.name, before=before)
            case StateAction.CREATE:
                note_change(self._request, change.name, values)
            case _:
                note_change(self._request, change.name, values, before)
        audit(self._request, f"{noun} {ACTIONS[change.action]}", f"state: {change.path}")
        self._count += 1
        if self._count % ROWS_AT_ONCE == 0:
            await wait_for_rows(self._request)


async def read_document(value: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tables of a document; invalid_request names the path of the first wrong field."""
    outer = validate_model(wire.StateDocument, value)
    pace = LoopPacer()
    tables: dict[str, dict[str, Any]] = {}
    for table in wire.TABLES:
        found = getattr(outer, table)
        if found is None:
            continue
        tables[table] = dict(found)
        model = wire.OBJECTS.get(table)
        if model is None:
            continue
        for name, fields in found.items():
            await pace.turn()
            checked = validate_model(model, fields, join_path(table, name))
            given = checked.model_dump(by_alias=True, exclude_unset=True)
            tables[table][name] = {each: value for each, value in given.items() if value is not None}
    return tables


async def render_pages(plan: StatePlan) -> AsyncIterator[Sequence[Any]]:
    """Yield pages of the changes of a plan as JSON, without secrets; long values are cut."""
    for start in range(0, len(plan.changes), CHANGES_PER_PAGE):
        page = plan.changes[start : start + CHANGES_PER_PAGE]
        yield [_change(each).model_dump(mode="json") for each in page]


def _change(change: ObjectChange) -> wire.StateChange:
    return wire.StateChange(
        path=change.path,
        table=change.table,
        name=change.name,
        action=change.action.value,
        fields=[_field(each) for each in change.fields],
    )


def _field(change: FieldChange) -> wire.StateFieldChange:
    shown = describe_source if change.name == "content" else shorten_value
    before, after = (shown(value) for value in change.shown)
    added, removed = _list_changes(change)
    return wire.StateFieldChange(
        name=change.name,
        before=before,
        after=after,
        secret=change.is_secret,
        added=added,
        removed=removed,
    )


def describe_source(value: Any) -> str | None:
    """Return length and digest of a source, which is too long for a plan."""
    if not isinstance(value, str):
        return None
    return f"{len(value.splitlines())} lines, sha256 {ids.digest(value)[:DIGEST_CHARACTERS]}"


def _list_changes(change: FieldChange) -> tuple[list[str], list[str]]:
    """Return the texts that the new and the former one of two lists have alone, a hundred of each."""
    before, after = change.shown
    if not (isinstance(before, list) and isinstance(after, list)):
        return [], []
    added, removed = set(after) - set(before), set(before) - set(after)
    return sorted(added)[:MAX_LISTED], sorted(removed)[:MAX_LISTED]


def _is_audited(change: FieldChange) -> bool:
    """Whether a row has the values: sources are long, and valves may be secret whatever their schema says."""
    return change.name != "content" and not change.name.startswith("valves.")
