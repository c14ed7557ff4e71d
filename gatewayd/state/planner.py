"""Comparison of a document with the present objects: the changes of one table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gatewayd.state.interfaces import StateTable
from gatewayd.state.records import (
    FieldChange,
    Fields,
    ObjectChange,
    StateAction,
    StateObject,
    StateSnapshot,
    refused,
)
from gatewayd.state.scope import StateScope
from gatewayd.time_slices import LoopPacer


async def compare_table(
    table: StateTable, value: Mapping[str, Any], scope: StateScope, *, prune: bool
) -> tuple[Sequence[ObjectChange], Sequence[str]]:
    """Return the changes of one table, creations first, and notes for people.

    With `prune` own objects that the document does not name are deleted. Raises as `StateTable.check`.
    """
    held = await table.read(scope)
    wanted = await table.check(table.objects(value), held, scope)
    absent = sorted(name for name, each in held.items() if each.is_own and name not in wanted)
    leaving, notes = await table.keep(StateSnapshot(held, wanted, tuple(absent if prune else ())), scope)
    table.announce(StateSnapshot(held, wanted, tuple(leaving)), scope)
    pace = LoopPacer()
    made: list[ObjectChange] = []
    for name in sorted(wanted):
        await pace.turn()
        change = _compare(table, name, wanted[name], held.get(name), scope)
        if change is not None:
            made.append(change)
    made.sort(key=lambda change: (change.action is not StateAction.CREATE, table.rank(change)))
    return [*made, *(_deletion(table, name, held[name]) for name in leaving)], notes


async def named_once(
    table: StateTable, wanted: Mapping[str, Fields], normal: Callable[[str], str]
) -> dict[str, tuple[str, Fields]]:
    """Return name and fields of each wanted object by its normal name; invalid_request if two are equal."""
    found: dict[str, tuple[str, Fields]] = {}
    pace = LoopPacer()
    for name, fields in wanted.items():
        await pace.turn()
        key = normal(name)
        if key in found:
            raise refused(table.path(name), f"it names the same object as {table.path(found[key][0])}")
        found[key] = name, fields
    return found


def _compare(
    table: StateTable, name: str, fields: Fields, held: StateObject | None, scope: StateScope
) -> ObjectChange | None:
    secrets = table.secrets if held is None else table.secrets | held.secrets
    before = {} if held is None else held.fields
    changes = tuple(
        FieldChange(
            each,
            before.get(each),
            value,
            is_secret=each in secrets or (table.table, name, each) in scope.secrets,
        )
        for each, value in sorted(fields.items())
        if held is None or before.get(each) != value
    )
    if held is not None and not changes:
        return None
    action = StateAction.CREATE if held is None else StateAction.UPDATE
    return ObjectChange(table.table, name, action, table.path(name), changes)


def _deletion(table: StateTable, name: str, held: StateObject) -> ObjectChange:
    fields = tuple(
        FieldChange(each, value, None, is_secret=each in held.secrets | table.secrets)
        for each, value in sorted(held.fields.items())
        if value not in (None, "", [], {})
    )
    return ObjectChange(table.table, name, StateAction.DELETE, table.path(name), fields)
