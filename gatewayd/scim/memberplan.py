"""What PATCH operations do to a group's members: set operations, never the members themselves.

RFC 7644 section 3.5.2. A group may have many members, so that none are read to change some.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from gatewayd.errors import GatewayError, invalid
from gatewayd.scim.conditions import Operator
from gatewayd.scim.drafts import MemberChange, Verb
from gatewayd.scim.records import ResourceType
from gatewayd.scim.selecting import selector
from gatewayd.scim.syntax import Comparison, Disjunction, Node
from gatewayd.scim.targets import Step
from gatewayd.scim.values import SentMembers, read_members, too_many

MAX_FILTERS: Final = 20

Changes = tuple[MemberChange, ...]


def member_changes(step: Step) -> Changes:
    """Return what one step on `members` does.

    To remove without a value is to replace all by none. To replace what a filter selects is to remove it and
    to add what was sent. Raises invalid_request, code `mutability`, for a change inside a member: members
    come and go as a whole (RFC 7643 section 4.2).
    """
    if step.part not in (None, "value"):
        raise _immutable(step.place.name)
    if step.where is not None:
        return _selected(step, step.where)
    sent = read_members(step.value)
    match step.verb:
        case Verb.ADD:
            return _addition(sent)
        case Verb.REPLACE:
            return (MemberChange(Verb.REPLACE, sent.user_ids, displays=sent.displays),)
        case Verb.REMOVE if step.value is None:
            return (MemberChange(Verb.REPLACE),)
        case Verb.REMOVE:
            return _removal(sent.user_ids)


def merged(changes: Iterable[MemberChange]) -> Changes:
    """Return changes in their order, neighbours that do the same as one.

    Raises too_large, code `tooMany`, for more than 20 removals by a filter for which members are read.
    """
    found: list[MemberChange] = []
    for (verb, is_listed), group in groupby(changes, key=lambda change: (change.verb, change.where is None)):
        alike = list(group)
        if verb is Verb.REPLACE:
            found.append(alike[-1])
        elif is_listed:
            ids = dict.fromkeys(user_id for change in alike for user_id in change.user_ids)
            displays = {user_id: each for change in alike for user_id, each in change.displays.items()}
            found.append(MemberChange(verb, tuple(ids), displays=displays))
        else:
            found.extend(alike)
    if sum(change.where is not None for change in found) > MAX_FILTERS:
        raise too_many("filters on members", MAX_FILTERS)
    return tuple(found)


def _selected(step: Step, where: Node) -> Changes:
    selector(where, ResourceType.GROUP, "members")
    if step.verb is Verb.ADD:
        raise _immutable("members")
    ids = _ids(where)
    removal = (MemberChange(Verb.REMOVE, where=where),) if ids is None else _removal(ids)
    if step.verb is Verb.REMOVE:
        return removal
    return removal + _addition(read_members(step.value))


def _ids(node: Node) -> tuple[str, ...] | None:
    """Return the ids that a filter lists; None when it says something else."""
    match node:
        case Disjunction():
            found = [_ids(inner) for inner in node.nodes]
            listed = [ids for ids in found if ids is not None]
            if len(listed) < len(found):
                return None
            return tuple(dict.fromkeys(user_id for ids in listed for user_id in ids))
        case Comparison(operator=Operator.EQ, value=str(user_id)):
            if (node.name.part or node.name.attribute).lower() != "value":
                return None
            # Nobody has an empty id.
            return (user_id,) if user_id else ()
        case _:
            return None


def _addition(sent: SentMembers) -> Changes:
    return (MemberChange(Verb.ADD, sent.user_ids, displays=sent.displays),) if sent.user_ids else ()


def _removal(user_ids: tuple[str, ...]) -> Changes:
    return (MemberChange(Verb.REMOVE, user_ids),) if user_ids else ()


def _immutable(name: str) -> GatewayError:
    message = f"cannot change {name}: a member cannot be changed, only added or removed"
    return invalid(message, param=name, code="mutability")
