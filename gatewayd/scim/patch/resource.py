"""Application of a PATCH request to a user or group, all or nothing (RFC 7644 section 3.5.2).

Operations apply in order to a copy, so an error changes nothing. A null, a blank text and an empty list are
no value (RFC 7643 section 2.5): writing one removes the attribute.
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
    """Return the patched user; `resource` holds the rendered writable attributes and is not changed.

    A step that selects nothing is retried after the others: Entra ID sends the sub-attributes of a new
    element as separate operations in any order. The result is input for `parser.read_user`; a removed
    `externalId` is null. Raises invalid_request, code `invalidFilter`, `noTarget`, `invalidValue` or
    `mutability`, and too_large.
    """
    changed = dict(resource)
    for _ in patch_stepwise(changed, steps):
        pass
    return changed


def patch_stepwise(changed: Resource, steps: Iterable[PatchStep]) -> Iterator[None]:
    """Apply the steps of `patched_user` to a resource in place, and yield after each."""
    exempt = _addresses(changed)
    waiting: list[PatchStep] = []
    for step in steps:
        try:
            _put_step(changed, step, exempt)
        except GatewayError as error:
            if error.code != NO_TARGET:
                raise
            waiting.append(step)
        yield
    for step in waiting:
        _put_step(changed, step, exempt)
        yield


def plan_group(resource: Resource, steps: Iterable[PatchStep]) -> tuple[Resource, tuple[MemberChange, ...]]:
    """Return the patched group and the changes of its members, in order.

    `resource` holds the rendered writable attributes without the members and is not changed. The errors are
    those of `patched_user`; the steps may name at most 10,000 members together.
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
    """Return the present addresses of a user, which stay valid under stricter rules."""
    return frozenset(
        {resource.get("userName", ""), *(email["value"] for email in resource.get("emails") or ())}
    )


def _put_step(changed: Resource, step: PatchStep, exempt: Collection[str]) -> None:
    """Apply one step to a user; an error leaves `changed` untouched."""
    if step.attribute == "name":
        _put(changed, "name", _name(changed.get("name") or {}, step))
    elif step.attribute == "emails":
        _put(changed, "emails", _emails(changed.get("emails") or [], step, exempt))
    elif step.attribute == "roles":
        roles = tuple(ProviderRole(**role) for role in changed.get("roles") or ())
        _put(changed, "roles", [render_role(role) for role in patched_roles(roles, step)])
    else:
        _put_single(changed, step, ResourceType.USER, exempt)


def _put_single(
    changed: Resource, step: PatchStep, resource: ResourceType, exempt: Collection[str] = ()
) -> None:
    """Write a single-valued attribute; for it, add is replace (RFC 7644 section 3.5.2.1)."""
    name = step.target.name
    value = None if step.verb is PatchVerb.REMOVE else unwrap_value(step.value)
    match name:
        case "userName":
            changed[name] = read_user_name(value, exempt)
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
    """Return the sub-attributes of a name; absent ones stay unchanged (RFC 7644 section 3.5.2.3)."""
    value = None if step.verb is PatchVerb.REMOVE else step.value
    if step.part is not None:
        sent = {step.part: read_text(unwrap_value(value), step.target.name)}
    elif value is None:
        return dict(parts) if step.verb is PatchVerb.ADD else {}
    else:
        sent = read_name(value)
    return {part: text for part, text in {**parts, **sent}.items() if text is not None}


def _emails(
    emails: Iterable[Mapping[str, Any]], step: PatchStep, exempt: Collection[str]
) -> list[dict[str, Any]]:
    before = tuple(
        Email(email["value"], email.get("type") or DEFAULT_TYPE, primary=bool(email.get("primary")))
        for email in emails
    )
    after = patched_emails(before, step, exempt)
    return [{"value": email.value, "type": email.type, "primary": email.primary} for email in after]


def _put(changed: Resource, name: str, value: Any) -> None:
    """Write an attribute, or remove it if the value is empty."""
    if value:
        changed[name] = value
    else:
        changed.pop(name, None)
