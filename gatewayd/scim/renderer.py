"""Renderer of users and groups as SCIM resources (RFC 7643, 3.1, 4.1 and 4.2; gatewayd-scim(7), Attributes).

Absent values are left out, never null. `base` is scheme and host, such as `https://ai.example.org`; without
it a resource has neither `meta.location` nor `$ref`. Without a `provider` it has no `externalId`.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gatewayd.accounts.display_identity import display_identity
from gatewayd.accounts.records import Email, Group, ProviderIdentity, User
from gatewayd.scim.attributes import SCHEMAS
from gatewayd.scim.external_ids import external_id
from gatewayd.scim.records import GroupEntry, MembershipReference, Resource, ResourceType, UserEntry
from gatewayd.scim.roles import render_role

ROOT: Final = "/api/v1/scim/v2"
"""Path of the SCIM endpoints below the base (gatewayd-scim(7), Endpoints)."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLION: Final = 1_000_000
# Read-only attributes and members, which are left out of PATCH input and audit records.
_OWN: Final = frozenset({"id", "meta", "groups", "members"})


def render_time(us: int) -> str:
    """Return microseconds since the epoch as RFC 3339 in UTC, for example `2026-11-21T10:00:00.123456Z`."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def resource_url(resource: ResourceType, resource_id: str, base: str) -> str:
    """Return the address of a user or a group."""
    return f"{base}{ROOT}{SCHEMAS[resource].endpoint}/{resource_id}"


def render_user(entry: UserEntry, provider: str, base: str) -> Resource:
    """Return a user; `groups` is present if the entry has them, even if the list is empty."""
    user = entry.user
    identity = display_identity(user)
    groups = entry.groups
    return _present(
        schemas=[SCHEMAS[ResourceType.USER].urn],
        id=user.id,
        externalId=external_id(user, provider),
        userName=identity.user_name,
        name=_name(identity),
        displayName=identity.display_name,
        emails=[_email(each) for each in identity.emails] or None,
        roles=[render_role(each) for each in identity.roles] or None,
        active=user.is_verified,
        groups=None if groups is None else [_group_of(each, base) for each in groups],
        meta=_meta(ResourceType.USER, user, base),
    )


def render_group(entry: GroupEntry, provider: str, base: str) -> Resource:
    """Return a group; `members` is present if the entry has them, even if the list is empty."""
    group = entry.group
    members = entry.members
    return _present(
        schemas=[SCHEMAS[ResourceType.GROUP].urn],
        id=group.id,
        externalId=external_id(group, provider),
        displayName=group.name,
        members=None if members is None else [render_member(each, base) for each in members],
        meta=_meta(ResourceType.GROUP, group, base),
    )


def render_member(user: MembershipReference, base: str) -> dict[str, str]:
    """Return a member of a group."""
    return _end(ResourceType.USER, user, base, ResourceType.USER.value)


def writable_attributes(resource: Resource) -> Resource:
    """Return a rendered resource without read-only attributes and members."""
    return {name: value for name, value in resource.items() if name not in _OWN}


def auditable_attributes(resource: Resource) -> Resource:
    """Return a rendered resource for the audit: its id and its writable attributes."""
    return {"id": resource["id"], **writable_attributes(resource)}


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _name(identity: ProviderIdentity) -> dict[str, str] | None:
    parts = _present(
        formatted=identity.formatted_name,
        familyName=identity.family_name,
        givenName=identity.given_name,
    )
    return parts or None


def _email(email: Email) -> dict[str, Any]:
    return {"value": email.value, "type": email.type, "primary": email.primary}


def _group_of(group: MembershipReference, base: str) -> dict[str, str]:
    return _end(ResourceType.GROUP, group, base, "direct")


def _end(resource: ResourceType, end: MembershipReference, base: str, kind: str) -> dict[str, str]:
    address = {"$ref": resource_url(resource, end.id, base)} if base else {}
    return {"value": end.id, **address, "display": end.display, "type": kind}


def _meta(resource: ResourceType, item: User | Group, base: str) -> dict[str, str]:
    meta = {
        "resourceType": resource.value,
        "created": render_time(item.created_at * _MILLION),
        "lastModified": render_time(item.modified_us),
    }
    return {**meta, "location": resource_url(resource, item.id, base)} if base else meta
