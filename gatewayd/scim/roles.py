"""The roles that a provider gives to users: kept and shown as they were sent, without any right here.

RFC 7643 section 4.1.2; PATCH is that of RFC 7644 section 3.5.2. No role of the gateway is changed by them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from gatewayd.accounts.records import ProviderRole
from gatewayd.scim.input_records import PatchVerb
from gatewayd.scim.patch.emails import describing_parts, equalities, matching_indexes, only_element
from gatewayd.scim.patch.steps import PatchStep
from gatewayd.scim.patch.value_selection import compile_selector
from gatewayd.scim.records import ResourceType
from gatewayd.scim.values import (
    MAX_TYPE_CHARACTERS,
    invalid_value,
    list_elements,
    members_by_name,
    read_flag,
    read_text,
    text_key,
    too_many,
    unwrap_value,
)

MAX_ROLES: Final = 100
MAX_ROLE_CHARACTERS: Final = 1024
"""Characters of the value of a role; Entra ID sends a JSON object there."""

Roles = tuple[ProviderRole, ...]

_PARTS: Final = ("value", "display", "type", "primary")


def read_roles(value: Any) -> Roles:
    """Return the elements of `roles`, each value and type once; those without any text are none.

    Errors are invalid_request, code `invalidValue`, naming the element; more than 100 are too_large.
    """
    sent = (
        _read(item, f"roles[{index}]") for index, item in enumerate(list_elements(value, "roles", MAX_ROLES))
    )
    return _tidy(sent)


def render_role(role: ProviderRole) -> dict[str, Any]:
    """Return a role as SCIM shows it."""
    return {part: value for part in _PARTS if (value := getattr(role, part)) is not None}


def patched_roles(roles: Roles, step: PatchStep) -> Roles:
    """Return the roles after one step.

    A part without a filter is that of the primary role, else of the first. When a filter selects nothing, and
    only says what parts are equal to, a role with these parts is made, as Entra ID expects; otherwise that is
    invalid_request, code `noTarget`. To remove what is not there is no error.
    """
    if step.verb is PatchVerb.ADD and step.value is None:
        return roles
    if step.where is None and step.part is None:
        return _whole(roles, step)
    chosen = _chosen(roles, step)
    if step.verb is PatchVerb.REMOVE and step.part is None:
        return _without(roles, chosen)
    sent = _sent(step)
    if not chosen and step.verb is PatchVerb.REMOVE:
        return roles
    if not chosen:
        wanted = {} if step.where is None else equalities(step.where, "roles")
        return _with(roles, [_read({**wanted, **sent}, "roles")])
    primary = min(chosen) if sent.get("primary") else None
    return _tidy(
        replace(role, **sent) if index in chosen else replace(role, primary=role.primary and primary is None)
        for index, role in enumerate(roles)
    )


def _whole(roles: Roles, step: PatchStep) -> Roles:
    match step.verb:
        case PatchVerb.ADD:
            return _with(roles, read_roles(step.value))
        case PatchVerb.REPLACE:
            return read_roles(step.value)
        case PatchVerb.REMOVE if step.value is None:
            return ()
        case PatchVerb.REMOVE:
            wanted = [
                describing_parts(item, f"roles[{index}]", _PARTS)
                for index, item in enumerate(list_elements(step.value, "roles", MAX_ROLES))
            ]
            return _without(roles, matching_indexes(wanted, map(render_role, roles)))


def _without(roles: Roles, chosen: frozenset[int]) -> Roles:
    return tuple(role for index, role in enumerate(roles) if index not in chosen)


def _chosen(roles: Roles, step: PatchStep) -> frozenset[int]:
    """Return the places of the roles that a step is about."""
    if step.where is None:
        primary = next((index for index, role in enumerate(roles) if role.primary), 0)
        return frozenset({primary} if roles else ())
    selects = compile_selector(step.where, ResourceType.USER, "roles")
    return frozenset(index for index, role in enumerate(roles) if selects(render_role(role)))


def _sent(step: PatchStep) -> dict[str, Any]:
    """Return the parts that a step writes."""
    if step.part is None:
        value = only_element(step.value)
        return _parts(value if isinstance(value, dict) else {"value": value}, "roles")
    value = None if step.verb is PatchVerb.REMOVE else unwrap_value(step.value)
    return _parts({step.part: value}, "roles")


def _read(value: Any, name: str) -> ProviderRole:
    """Return one role: an object, or its value alone."""
    if isinstance(value, str):
        value = {"value": value}
    if not isinstance(value, dict):
        raise invalid_value(name, "it is neither an object nor a text")
    return ProviderRole(**_parts(value, name))


def _parts(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the parts of a role that an object names, checked."""
    lengths = {"value": MAX_ROLE_CHARACTERS, "display": MAX_ROLE_CHARACTERS, "type": MAX_TYPE_CHARACTERS}
    parts: dict[str, Any] = {}
    for part, item in members_by_name(value, _PARTS, name).items():
        if part == "primary":
            parts[part] = item is not None and read_flag(item, f"{name}.{part}")
        else:
            parts[part] = read_text(item, f"{name}.{part}", longest=lengths[part])
    return parts


def _with(roles: Roles, sent: Iterable[ProviderRole]) -> Roles:
    """Return the roles and others; one that is marked primary takes the mark from the others."""
    new = list(sent)
    if any(role.primary for role in new):
        roles = tuple(replace(role, primary=False) for role in roles)
    return _tidy([*roles, *new])


def _tidy(roles: Iterable[ProviderRole]) -> Roles:
    """Return each pair of value and type once, as it was said last; what has no text is none."""
    found: dict[tuple[str, str, str], ProviderRole] = {}
    for role in roles:
        if not (role.value or role.display or role.type):
            continue
        # What has no value is told apart by what it is called.
        name = "" if role.value else text_key(role.display or "")
        found[text_key(role.value or ""), text_key(role.type or ""), name] = role
    if len(found) > MAX_ROLES:
        raise too_many("roles", MAX_ROLES)
    return tuple(found.values())
