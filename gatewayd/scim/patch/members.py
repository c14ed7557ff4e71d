"""PATCH of the members of a group as set operations (RFC 7644 section 3.5.2).

A group may have many members, so a change by ids reads none of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gatewayd.errors import GatewayError, invalid
from gatewayd.scim.filters.conditions import Operator
from gatewayd.scim.filters.syntax import AttributeComparison, Disjunction, FilterExpression
from gatewayd.scim.input_records import MemberChange, PatchVerb
from gatewayd.scim.patch.steps import PatchStep
from gatewayd.scim.patch.value_selection import compile_selector
from gatewayd.scim.records import ResourceType
from gatewayd.scim.values import SentMembers, invalid_value, read_display, read_members, too_many

MAX_FILTERS: Final = 20
MAX_CHANGES: Final = 50

Changes = tuple[MemberChange, ...]


def member_changes(step: PatchStep) -> Changes:
    """Return the changes of one step on `members`.

    A remove without a value removes all members. A replace with a filter removes the selected members and
    adds the sent ones. Raises invalid_request, code `mutability`, for a change of a sub-attribute other than
    `display`: members are added and removed as a whole (RFC 7643 section 4.2).
    """
    if step.part == "display":
        return _naming(step)
    if step.part not in (None, "value"):
        raise _immutable(step.target.name)
    if step.where is not None:
        return _selected(step, step.where)
    sent = read_members(step.value)
    match step.verb:
        case PatchVerb.ADD:
            return _addition(sent)
        case PatchVerb.REPLACE:
            return (MemberChange(PatchVerb.REPLACE, sent.user_ids, displays=sent.displays),)
        case PatchVerb.REMOVE if step.value is None:
            return (MemberChange(PatchVerb.REPLACE),)
        case PatchVerb.REMOVE:
            return _removal(sent.user_ids)


def merge_changes(changes: Iterable[MemberChange]) -> Changes:
    """Return an equivalent sequence with fewer changes.

    Consecutive additions and removals by ids become one removal and one addition. Changes before a
    replacement are dropped. Only the remaining ids are looked up, so an unknown id that is added and removed
    again is not reported.

    Raises too_large, code `tooMany`, for more than 50 remaining changes, or more than 20 that read members.
    """
    found: list[MemberChange] = []
    run = _Run()
    for change in changes:
        if _reads(change):
            found.extend((*run.changes(), change))
            run = _Run()
        elif change.verb is PatchVerb.REPLACE:
            found = [change]
            run = _Run()
        else:
            run.append(change)
    found.extend(run.changes())
    if sum(_reads(change) for change in found) > MAX_FILTERS:
        raise too_many("filters on members", MAX_FILTERS)
    if len(found) > MAX_CHANGES:
        raise too_many("changes of members", MAX_CHANGES)
    return tuple(found)


@dataclass(slots=True)
class _Run:
    """Consecutive additions and removals by ids, merged to one removal followed by one addition.

    Users who are removed and added again are in both: the removal resets their display name.
    """

    removed: dict[str, None] = field(default_factory=dict)
    added: dict[str, str | None] = field(default_factory=dict)

    def append(self, change: MemberChange) -> None:
        """Merge the next change."""
        for user_id in change.user_ids:
            if change.verb is PatchVerb.ADD:
                self.added[user_id] = change.displays.get(user_id, self.added.get(user_id))
            else:
                self.added.pop(user_id, None)
                self.removed[user_id] = None

    def changes(self) -> Changes:
        """Return the merged changes."""
        displays = {user_id: display for user_id, display in self.added.items() if display is not None}
        return _removal(tuple(self.removed)) + _addition(SentMembers(tuple(self.added), displays))


def _reads(change: MemberChange) -> bool:
    """Tell whether a change reads the members of the group."""
    return change.where is not None or change.is_naming


def _naming(step: PatchStep) -> Changes:
    """Return the changes of one step on `members.display`; a blank display name removes it."""
    if step.where is not None:
        compile_selector(step.where, ResourceType.GROUP, "members")
    value = None if step.verb is PatchVerb.REMOVE else step.value
    if value is not None and not isinstance(value, str):
        raise invalid_value(step.target.name, "it is not a text")
    display = read_display(value)
    if display is None and step.verb is PatchVerb.ADD:
        return ()
    return (MemberChange(step.verb, where=step.where, is_naming=True, display=display),)


def _selected(step: PatchStep, where: FilterExpression) -> Changes:
    compile_selector(where, ResourceType.GROUP, "members")
    if step.verb is PatchVerb.ADD:
        raise _immutable("members")
    ids = _ids(where)
    removal = (MemberChange(PatchVerb.REMOVE, where=where),) if ids is None else _removal(ids)
    if step.verb is PatchVerb.REMOVE:
        return removal
    return removal + _addition(read_members(step.value))


def _ids(node: FilterExpression) -> tuple[str, ...] | None:
    """Return the ids of a filter of `value eq` joined by `or`; None for another filter."""
    match node:
        case Disjunction():
            found = [_ids(inner) for inner in node.nodes]
            listed = [ids for ids in found if ids is not None]
            if len(listed) < len(found):
                return None
            return tuple(dict.fromkeys(user_id for ids in listed for user_id in ids))
        case AttributeComparison(operator=Operator.EQ, value=str(user_id)):
            if (node.name.part or node.name.attribute).lower() != "value":
                return None
            # No user has an empty id.
            return (user_id,) if user_id else ()
        case _:
            return None


def _addition(sent: SentMembers) -> Changes:
    return (MemberChange(PatchVerb.ADD, sent.user_ids, displays=sent.displays),) if sent.user_ids else ()


def _removal(user_ids: tuple[str, ...]) -> Changes:
    return (MemberChange(PatchVerb.REMOVE, user_ids),) if user_ids else ()


def _immutable(name: str) -> GatewayError:
    message = f"cannot change {name}: members can only be added or removed"
    return invalid(message, param=name, code="mutability")
