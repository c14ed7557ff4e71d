"""What PATCH operations do to a group's members: set operations, never the members themselves.

RFC 7644 section 3.5.2. A group may have many members, so that none are read to change some.
"""

from collections.abc import Iterable
from itertools import groupby

from gatewayd.errors import GatewayError, invalid
from gatewayd.scim.conditions import Operator
from gatewayd.scim.drafts import MemberChange, Verb
from gatewayd.scim.records import ResourceType
from gatewayd.scim.selecting import selector
from gatewayd.scim.syntax import Comparison, Disjunction, Node
from gatewayd.scim.targets import Step
from gatewayd.scim.values import read_members

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
    user_ids = read_members(step.value)
    match step.verb:
        case Verb.ADD:
            return _change(Verb.ADD, user_ids)
        case Verb.REPLACE:
            return (MemberChange(Verb.REPLACE, user_ids),)
        case Verb.REMOVE if step.value is None:
            return (MemberChange(Verb.REPLACE),)
        case Verb.REMOVE:
            return _change(Verb.REMOVE, user_ids)


def merged(changes: Iterable[MemberChange]) -> Changes:
    """Return changes in their order, neighbours that do the same as one."""
    found: list[MemberChange] = []
    for (verb, is_listed), group in groupby(changes, key=lambda change: (change.verb, change.where is None)):
        alike = list(group)
        if verb is Verb.REPLACE:
            found.append(alike[-1])
        elif is_listed:
            ids = dict.fromkeys(user_id for change in alike for user_id in change.user_ids)
            found.append(MemberChange(verb, tuple(ids)))
        else:
            found.extend(alike)
    return tuple(found)


def _selected(step: Step, where: Node) -> Changes:
    selector(where, ResourceType.GROUP, "members")
    if step.verb is Verb.ADD:
        raise _immutable("members")
    ids = _ids(where)
    removal = (MemberChange(Verb.REMOVE, where=where),) if ids is None else _change(Verb.REMOVE, ids)
    if step.verb is Verb.REMOVE:
        return removal
    return removal + _change(Verb.ADD, read_members(step.value))


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


def _change(verb: Verb, user_ids: tuple[str, ...]) -> Changes:
    return (MemberChange(verb, user_ids),) if user_ids else ()


def _immutable(name: str) -> GatewayError:
    message = f"cannot change {name}: a member cannot be changed, only added or removed"
    return invalid(message, param=name, code="mutability")
