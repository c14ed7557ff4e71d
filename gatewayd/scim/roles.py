"""Roles of users at a provider: stored and returned as they were sent (RFC 7643 section 4.1.2).

They grant no right and change no role of the gateway. PATCH follows RFC 7644 section 3.5.2.
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
"""Maximum characters of the value of a role; Entra ID sends a JSON object as text."""

Roles = tuple[ProviderRole, ...]

_PARTS: Final = ("value", "display", "type", "primary")


def read_roles(value: Any) -> Roles:
    """Return the elements of `roles`, each value and type once; elements without any text are dropped.

    Raises invalid_request, code `invalidValue`, naming the element; too_large for more than 100.
    """
    sent = (
        _read(item, f"roles[{index}]") for index, item in enumerate(list_elements(value, "roles", MAX_ROLES))
    )
    return _tidy(sent)


def render_role(role: ProviderRole) -> dict[str, Any]:
    """Return a role as a SCIM object."""
    return {part: value for part in _PARTS if (value := getattr(role, part)) is not None}


def patched_roles(roles: Roles, step: PatchStep) -> Roles:
    """Return the roles after one step.

    A sub-attribute without a filter belongs to the primary role, else to the first. If a filter selects
    nothing and consists of equalities only, a role with these sub-attributes is created, as Entra ID expects;
    otherwise the error is invalid_request, code `noTarget`. Removing an absent role is no error.
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
    """Return the indexes of the roles that a step selects."""
    if step.where is None:
        primary = next((index for index, role in enumerate(roles) if role.primary), 0)
        return frozenset({primary} if roles else ())
    selects = compile_selector(step.where, ResourceType.USER, "roles")
    return frozenset(index for index, role in enumerate(roles) if selects(render_role(role)))


def _sent(step: PatchStep) -> dict[str, Any]:
    """Return the sub-attributes that a step writes."""
    if step.part is None:
        value = only_element(step.value)
        return _parts(value if isinstance(value, dict) else {"value": value}, "roles")
    value = None if step.verb is PatchVerb.REMOVE else unwrap_value(step.value)
    return _parts({step.part: value}, "roles")


def _read(value: Any, name: str) -> ProviderRole:
    """Return one role, sent as an object or as its value alone."""
    if isinstance(value, str):
        value = {"value": value}
    if not isinstance(value, dict):
        raise invalid_value(name, "it is neither an object nor a text")
    return ProviderRole(**_parts(value, name))


def _parts(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the checked sub-attributes of a role in an object."""
    lengths = {"value": MAX_ROLE_CHARACTERS, "display": MAX_ROLE_CHARACTERS, "type": MAX_TYPE_CHARACTERS}
    parts: dict[str, Any] = {}
    for part, item in members_by_name(value, _PARTS, name).items():
        if part == "primary":
            parts[part] = item is not None and read_flag(item, f"{name}.{part}")
        else:
            parts[part] = read_text(item, f"{name}.{part}", longest=lengths[part])
    return parts


def _with(roles: Roles, sent: Iterable[ProviderRole]) -> Roles:
    """Return the roles with further ones; a new primary role replaces the former primary one."""
    new = list(sent)
    if any(role.primary for role in new):
        roles = tuple(replace(role, primary=False) for role in roles)
    return _tidy([*roles, *new])


def _tidy(roles: Iterable[ProviderRole]) -> Roles:
    """Return each pair of value and type once, the last of duplicates; drop roles without any text."""
    found: dict[tuple[str, str, str], ProviderRole] = {}
    for role in roles:
        if not (role.value or role.display or role.type):
            continue
        # Roles without a value are distinguished by their display name.
        name = "" if role.value else text_key(role.display or "")
        found[text_key(role.value or ""), text_key(role.type or ""), name] = role
    if len(found) > MAX_ROLES:
        raise too_many("roles", MAX_ROLES)
    return tuple(found.values())
