"""Export, plan and apply of documents of declarative state, one plan or apply at a time."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

import orjson

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import Actor
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.state.interfaces import StateTable
from gatewayd.state.planner import compare_table
from gatewayd.state.providers import ProviderTable, as_report
from gatewayd.state.records import Fields, ObjectChange, StateAction, StateObject, StatePlan, located
from gatewayd.state.scope import StateScope, read_scope
from gatewayd.time_slices import LoopPacer, iterate_paced

FORMAT: Final = 1
"""Version of the document, its member `format`."""

PLAN_CHANGED: Final = "plan_changed"

Document = Mapping[str, Mapping[str, Any]]
"""Tables by name, each with its objects."""

Recorder = Callable[[ObjectChange], Awaitable[None]]
"""Records one change that was made, for the audit log."""


class StateService:
    """Compares documents with the objects of the gateway, and makes the changes by their services.

    `tables` is in the order in which objects are created; they are deleted in the opposite order. All of a
    document is validated before the first write. Each change is atomic; a plan whose apply was interrupted is
    completed by applying the document again. `alone` keeps the other nodes of a cluster from applying
    meanwhile; it raises conflict while one does.
    """

    def __init__(
        self,
        users: Users,
        groups: Groups,
        tables: Sequence[StateTable],
        alone: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._alone = alone
        self._users = users
        self._groups = groups
        self._tables = tables
        self._lock = asyncio.Lock()

    async def export(self, actor: Actor, author: str, names: Sequence[str] = ()) -> dict[str, Any]:
        """Return the document of the tables with these names, all for none: sorted, without secrets."""
        scope = await read_scope(self._users, self._groups, actor, author)
        document: dict[str, Any] = {"format": FORMAT}
        for table in self._tables:
            held = await table.read(scope)
            if names and table.table not in names:
                continue
            own = [name for name in sorted(held) if held[name].is_own]
            shown = dict(await iterate_paced((name, _shown(held[name], table)) for name in own))
            document[table.table] = table.document(shown)
        return document

    async def plan(self, actor: Actor, author: str, document: Document, *, prune: bool) -> StatePlan:
        """Return what applying a document changes; raises invalid_request that names a path of it."""
        async with self._lock:
            plan, _ = await self._plan(actor, author, document, prune=prune)
        return plan

    async def apply(
        self,
        actor: Actor,
        author: str,
        document: Document,
        record: Recorder,
        *,
        prune: bool,
        digest: str | None,
    ) -> StatePlan:
        """Make the changes of a document and return them; `record` is awaited after each one.

        Raises conflict (`plan_changed`) if `digest` names another plan than that of this moment, conflict
        while another node applies, and the error of the first change that fails, with the number of changes
        before it.
        """
        async with self._lock, self._alone():
            plan, scope = await self._plan(actor, author, document, prune=prune)
            if digest is not None and digest != plan.digest:
                raise GatewayError(
                    ErrorKind.CONFLICT,
                    "cannot apply the plan: the state has changed since it was made",
                    param="plan",
                    code=PLAN_CHANGED,
                )
            tables = {table.table: table for table in self._tables}
            for done, change in enumerate(plan.writes):
                try:
                    with located(change.path):
                        await tables[change.table].write(change, scope)
                except GatewayError as error:
                    raise _interrupted(error, done, len(plan.writes)) from error
                await record(change)
        return plan

    async def _plan(
        self, actor: Actor, author: str, document: Document, *, prune: bool
    ) -> tuple[StatePlan, StateScope]:
        scope = await read_scope(self._users, self._groups, actor, author)
        needed = {name for table in self._tables if table.table in document for name in table.needs}
        kept: list[ObjectChange] = []
        removed: list[ObjectChange] = []
        for table in self._tables:
            value = document.get(table.table)
            if value is None:
                if table.table in needed:
                    await table.read(scope)
                continue
            changes, notes = await compare_table(table, value, scope, prune=prune)
            scope.notes += notes
            if isinstance(table, ProviderTable):
                kept += map(as_report, changes)
                continue
            kept += [each for each in changes if each.action is not StateAction.DELETE]
            removed[:0] = [each for each in changes if each.action is StateAction.DELETE]
        planned = (*kept, *removed)
        return StatePlan(planned, tuple(scope.notes), await digest_of(planned)), scope


async def digest_of(changes: Sequence[ObjectChange]) -> str:
    """Return the SHA-256 of a plan, of which secret values are no part."""
    made = hashlib.sha256()
    pace = LoopPacer()
    for change in changes:
        fields = [(each.name, *each.shown) for each in change.fields]
        made.update(orjson.dumps([change.path, change.action, fields], option=orjson.OPT_SORT_KEYS))
        await pace.turn()
    return made.hexdigest()


def _shown(found: StateObject, table: StateTable) -> Fields:
    """Return the fields of an object that an export has."""
    hidden = found.secrets | table.secrets
    return {name: value for name, value in found.fields.items() if value is not None and name not in hidden}


def _interrupted(error: GatewayError, done: int, total: int) -> GatewayError:
    reason = f"{error.message}; {done} of {total} changes were made before it"
    return GatewayError(error.kind, reason, param=error.param, code=error.code)
