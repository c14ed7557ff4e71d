"""What a condition means, without a database: every SQL predicate must say the same.

Written for plainness: it turns a resource into the values that SCIM shows, and compares them one by one.
A comparison with a text that no column can hold (a NUL character, a lone surrogate) is false, and NE is true.
"""

import operator as python
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gatewayd.accounts.display_identity import display_identity
from gatewayd.accounts.records import Group, User
from gatewayd.scim import attributes
from gatewayd.scim.filters.conditions import (
    AllCondition,
    AnyCondition,
    CompareCondition,
    Condition,
    ElementCondition,
    NotCondition,
    Operator,
    PresentCondition,
    Value,
)
from gatewayd.scim.links import EXTERNAL_ID_FIELD, SUBJECT_FIELD, read_links
from gatewayd.scim.records import GroupEntry, MembershipReference, ResourceType, UserEntry

Values = Mapping[str, Sequence[Value]]
"""The values of each attribute by whole name; empty texts are no values."""

COMPARISONS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: python.eq,
    Operator.CO: python.contains,
    Operator.SW: str.startswith,
    Operator.EW: str.endswith,
    Operator.GT: python.gt,
    Operator.GE: python.ge,
    Operator.LT: python.lt,
    Operator.LE: python.le,
}


def evaluate(
    condition: Condition, entry: UserEntry | GroupEntry, provider: str = "", *, by_subject: bool = False
) -> bool:
    """Tell whether a user with its groups, or a group with its members, is what a condition asks for."""
    resource = ResourceType.USER if isinstance(entry, UserEntry) else ResourceType.GROUP
    rows = elements(entry)
    values = {**singles(entry, provider, by_subject=by_subject), **_gathered(rows)}
    return _holds(condition, values, rows, resource)


def singles(entry: UserEntry | GroupEntry, provider: str, *, by_subject: bool = False) -> Values:
    """Return the values of the attributes that have one."""
    if isinstance(entry, GroupEntry):
        group = entry.group
        kept = {"displayName": group.name, **_common(group, "Group", _external_id(group.scim, provider))}
    else:
        user, seen = entry.user, display_identity(entry.user)
        external_id = _external_id(user.scim, provider)
        if by_subject:
            external_id = read_links(user.oauth, SUBJECT_FIELD).get(provider)
        kept = {
            "userName": seen.user_name,
            "displayName": seen.display_name,
            "name.formatted": seen.formatted_name,
            "name.givenName": seen.given_name,
            "name.familyName": seen.family_name,
            "active": user.is_verified,
            **_common(user, "User", external_id),
        }
    return {name: () if value in (None, "") else (value,) for name, value in kept.items()}


def elements(entry: UserEntry | GroupEntry) -> Mapping[str, Sequence[Values]]:
    """Return the elements of the attributes that have many."""
    if isinstance(entry, GroupEntry):
        return {"members": [_reference("members", "User", member) for member in entry.members or ()]}
    emails = [
        _filled({"emails.value": email.value, "emails.type": email.type, "emails.primary": email.primary})
        for email in display_identity(entry.user).emails
    ]
    return {
        "emails": emails,
        "groups": [_reference("groups", "direct", group) for group in entry.groups or ()],
    }


def _holds(
    condition: Condition, values: Values, rows: Mapping[str, Sequence[Values]], resource: ResourceType
) -> bool:
    match condition:
        case CompareCondition(attribute, operator, wanted):
            return _compares(values[attribute], operator, wanted, is_exact(resource, attribute))
        case PresentCondition(attribute):
            return _is_present(attribute, values, rows)
        case ElementCondition(attribute, inner):
            return any(_holds(inner, row, {}, resource) for row in rows[attribute])
        case NotCondition(inner):
            return not _holds(inner, values, rows, resource)
        case AllCondition(parts):
            return all(_holds(part, values, rows, resource) for part in parts)
        case AnyCondition(parts):
            return any(_holds(part, values, rows, resource) for part in parts)


def _is_present(attribute: str, values: Values, rows: Mapping[str, Sequence[Values]]) -> bool:
    if attribute in rows:
        return bool(rows[attribute])
    if attribute in values:
        return bool(values[attribute])
    parts = [found for name, found in values.items() if name.startswith(f"{attribute}.")]
    if not parts:
        raise KeyError(attribute)
    return any(parts)


def is_exact(resource: ResourceType, attribute: str) -> bool:
    """Tell whether the texts of an attribute are compared in their very case."""
    place = attributes.find_attribute(resource, attribute)
    if place is None:
        raise KeyError(attribute)
    return place.attribute.is_case_exact


def _compares(values: Sequence[Value], operator: Operator, wanted: Value, exact: bool) -> bool:
    if operator is Operator.NE:
        return not values or any(not _one(value, Operator.EQ, wanted, exact) for value in values)
    return any(_one(value, operator, wanted, exact) for value in values)


def _one(value: Any, operator: Operator, wanted: Any, exact: bool) -> bool:
    if isinstance(wanted, str):
        if not _is_storable(wanted):
            return False
        if not exact:
            value, wanted = fold(value), fold(wanted)
    return COMPARISONS[operator](value, wanted)


def fold(text: str) -> str:
    """Return the form in which texts are compared when case does not matter."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _common(resource: User | Group, name: str, external_id: str | None) -> Mapping[str, Any]:
    return {
        "id": resource.id,
        "externalId": external_id,
        "meta.resourceType": name,
        "meta.created": resource.created_at * 1_000_000,
        "meta.lastModified": resource.modified_us,
    }


def _external_id(scim: Mapping[str, Any] | None, provider: str) -> str | None:
    return read_links(scim, EXTERNAL_ID_FIELD).get(provider)


def _reference(attribute: str, kind: str, reference: MembershipReference) -> Values:
    return _filled(
        {
            f"{attribute}.value": reference.id,
            f"{attribute}.display": reference.display,
            f"{attribute}.type": kind,
        }
    )


def _filled(element: Mapping[str, Value]) -> Values:
    return {name: () if value == "" else (value,) for name, value in element.items()}


def _gathered(rows: Mapping[str, Sequence[Values]]) -> Values:
    names = {
        "emails": ("emails.value", "emails.type", "emails.primary"),
        "groups": ("groups.value", "groups.display", "groups.type"),
        "members": ("members.value", "members.display", "members.type"),
    }
    return {
        name: [value for element in found for value in element[name]]
        for attribute, found in rows.items()
        for name in names[attribute]
    }
