"""What a PATCH request makes of a user or a group (RFC 7644 section 3.5.2): all of it, or nothing.

Operations apply in their order to a copy; an error leaves nothing behind. A null, a blank text and an empty
list are no value (RFC 7643 section 2.5), so that writing one is removing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from gatewayd.accounts.records import Email, ProviderRole
from gatewayd.errors import GatewayError
from gatewayd.scim.input_records import MemberChange, PatchVerb
from gatewayd.scim.parser import read_name
from gatewayd.scim.patch.emails import NO_TARGET, patched_emails
from gatewayd.scim.patch.members import member_changes, merge_changes
from gatewayd.scim.patch.steps import PatchStep
from gatewayd.scim.records import Resource, ResourceType
from gatewayd.scim.roles import patched_roles, render_role
from gatewayd.scim.values import (
    DEFAULT_TYPE,
    MAX_MEMBERS,
    invalid_value,
    read_external_id,
    read_flag,
    read_text,
    read_user_name,
    require_text,
    too_many,
    unwrap_value,
)


def patched_user(resource: Resource, steps: Iterable[PatchStep]) -> Resource:
    """Return what a user becomes; `resource` is what is shown of its writable attributes, and stays as it is.

    A step that selects nothing yet waits until the others are done: Entra ID sends the parts of a new element
    as operations of their own, in any order. The result is fit for `reading.read_user`. An `externalId` that
    was taken away is null there. Raises invalid_request, code `invalidFilter`, `noTarget`, `invalidValue` or
    `mutability`, and too_large.
    """
    changed = dict(resource)
    for _ in patch_stepwise(changed, steps):
        pass
    return changed


def patch_stepwise(changed: Resource, steps: Iterable[PatchStep]) -> Iterator[None]:
    """Do to a resource what `patched_user` does, a step at a time."""
    kept = _addresses(changed)
    waiting: list[PatchStep] = []
    for step in steps:
        try:
            _put_step(changed, step, kept)
        except GatewayError as error:
            if error.code != NO_TARGET:
                raise
            waiting.append(step)
        yield
    for step in waiting:
        _put_step(changed, step, kept)
        yield


def plan_group(resource: Resource, steps: Iterable[PatchStep]) -> tuple[Resource, tuple[MemberChange, ...]]:
    """Return what a group becomes, and what is to be done to its members, in this order.

    `resource` is what is shown of its writable attributes but for the members, and stays as it is. The errors
    are those of `patched_user`; steps may name 10,000 members together.
    """
    changed = dict(resource)
    changes: list[MemberChange] = []
    members = 0
    for step in steps:
        if step.attribute == "members":
            members += len(step.value) if isinstance(step.value, list) else 1
            if members > MAX_MEMBERS:
                raise too_many("members", MAX_MEMBERS)
            changes.extend(member_changes(step))
        else:
            _put_single(changed, step, ResourceType.GROUP)
    return changed, merge_changes(changes)


def _addresses(resource: Resource) -> frozenset[str]:
    """Return the addresses of a user; one of an earlier release stays good for its account."""
    return frozenset(
        {resource.get("userName", ""), *(email["value"] for email in resource.get("emails") or ())}
    )


def _put_step(changed: Resource, step: PatchStep, kept: Collection[str]) -> None:
    """Write what one step does to a user, or nothing when it is refused."""
    if step.attribute == "name":
        _put(changed, "name", _name(changed.get("name") or {}, step))
    elif step.attribute == "emails":
        _put(changed, "emails", _emails(changed.get("emails") or [], step, kept))
    elif step.attribute == "roles":
        roles = tuple(ProviderRole(**role) for role in changed.get("roles") or ())
        _put(changed, "roles", [render_role(role) for role in patched_roles(roles, step)])
    else:
        _put_single(changed, step, ResourceType.USER, kept)


def _put_single(
    changed: Resource, step: PatchStep, resource: ResourceType, kept: Collection[str] = ()
) -> None:
    """Write an attribute with one value; here to add is to replace (RFC 7644 section 3.5.2.1)."""
    name = step.place.name
    value = None if step.verb is PatchVerb.REMOVE else unwrap_value(step.value)
    match name:
        case "userName":
            changed[name] = read_user_name(value, kept)
        case "active" if value is None:
            raise invalid_value(name, "it is required")
        case "active":
            changed[name] = read_flag(value, name)
        case "externalId":
            changed[name] = read_external_id(value)
        case "displayName" if resource is ResourceType.USER:
            _put(changed, name, read_text(value, name))
        case "displayName":
            changed[name] = require_text(read_text(value, name), name)
        case _:
            raise TypeError(f"{name} has more than one value")


def _name(parts: Mapping[str, Any], step: PatchStep) -> dict[str, Any]:
    """Return the parts of a name; those that were not sent stay (RFC 7644 section 3.5.2.3)."""
    value = None if step.verb is PatchVerb.REMOVE else step.value
    if step.part is not None:
        sent = {step.part: read_text(unwrap_value(value), step.place.name)}
    elif value is None:
        return dict(parts) if step.verb is PatchVerb.ADD else {}
    else:
        sent = read_name(value)
    return {part: text for part, text in {**parts, **sent}.items() if text is not None}


def _emails(
    emails: Iterable[Mapping[str, Any]], step: PatchStep, kept: Collection[str]
) -> list[dict[str, Any]]:
    before = tuple(
        Email(email["value"], email.get("type") or DEFAULT_TYPE, primary=bool(email.get("primary")))
        for email in emails
    )
    after = patched_emails(before, step, kept)
    return [{"value": email.value, "type": email.type, "primary": email.primary} for email in after]


def _put(changed: Resource, name: str, value: Any) -> None:
    """Write an attribute, or take it away when there is nothing to write."""
    if value:
        changed[name] = value
    else:
        changed.pop(name, None)
