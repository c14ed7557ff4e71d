"""SQL columns of the SCIM attributes of users and groups, from which conditions are compiled.

Only text of this module becomes SQL. The display name of a group member is not searchable: it is stored for
replies only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayd.accounts.records import MembershipSource, Role
from gatewayd.scim.records import ResourceType


class ValueType(StrEnum):
    """Storage type of an attribute's values."""

    FOLDED = "folded"
    EXACT = "exact"
    BOOLEAN = "boolean"
    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class ValueTable:
    """A side table of values of a resource: `owner` is its column of the resource's id, `rows` its FROM.

    `provider` is the column of the provider that a value belongs to. Without `is_multiple` a resource has at
    most one value; with it, `order` sorts them.
    """

    owner: str
    rows: str
    provider: str | None = None
    is_multiple: bool = False
    order: str = ""


@dataclass(frozen=True, slots=True)
class AttributeColumn:
    """SQL of an attribute: an expression over a row of the resource or, if present, of the `side` table.

    An absent text is stored as "" if it `is_optional`. For a constant, `sql` is the value itself.
    """

    sql: str
    type: ValueType
    side: ValueTable | None = None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class AttributeTable:
    """The attributes of a resource by name in lower case; `wholes` contains the complex ones.

    A complex attribute is the table of its values, or an expression for its presence.
    """

    id: str
    fields: Mapping[str, AttributeColumn]
    wholes: Mapping[str, ValueTable | str]


_LINKS: Final = f"FROM group_members WHERE source = '{MembershipSource.SCIM.value}'"

EMAILS: Final = ValueTable("e.user_id", "user_emails e", is_multiple=True, order="e.is_primary DESC, e.id")
USER_GROUPS: Final = ValueTable(
    "m.user_id",
    f"(SELECT user_id, group_id {_LINKS}) m JOIN groups o ON o.id = m.group_id",
    is_multiple=True,
    order="m.group_id",
)
GROUP_MEMBERS: Final = ValueTable(
    "m.group_id",
    f"(SELECT user_id, group_id {_LINKS}) m JOIN users o ON o.id = m.user_id",
    is_multiple=True,
    order="m.user_id",
)
EXTERNAL_IDS: Final = ValueTable("x.user_id", "user_external_ids x", "x.provider")
SUBJECTS: Final = ValueTable("x.user_id", "user_subjects x", "x.provider")
GROUP_EXTERNAL_IDS: Final = ValueTable("x.group_id", "group_external_ids x", "x.provider")

USER_ATTRIBUTES: Final = AttributeTable(
    "u.id",
    {
        "id": AttributeColumn("u.id", ValueType.EXACT),
        "externalid": AttributeColumn("x.external_id", ValueType.EXACT, EXTERNAL_IDS),
        "username": AttributeColumn("u.user_name_key", ValueType.FOLDED),
        "displayname": AttributeColumn("u.display_name_key", ValueType.FOLDED, is_optional=True),
        "name.formatted": AttributeColumn("u.formatted_name_key", ValueType.FOLDED, is_optional=True),
        "name.givenname": AttributeColumn("u.given_name_key", ValueType.FOLDED, is_optional=True),
        "name.familyname": AttributeColumn("u.family_name_key", ValueType.FOLDED, is_optional=True),
        "active": AttributeColumn(f"(u.active AND u.role <> '{Role.PENDING.value}')", ValueType.BOOLEAN),
        "emails.value": AttributeColumn("e.value_key", ValueType.FOLDED, EMAILS),
        "emails.type": AttributeColumn("e.type_key", ValueType.FOLDED, EMAILS),
        "emails.primary": AttributeColumn("e.is_primary", ValueType.BOOLEAN, EMAILS),
        "groups.value": AttributeColumn("m.group_id", ValueType.EXACT, USER_GROUPS),
        "groups.display": AttributeColumn("o.name_key", ValueType.FOLDED, USER_GROUPS),
        "groups.type": AttributeColumn("direct", ValueType.CONSTANT, USER_GROUPS),
        "meta.resourcetype": AttributeColumn(ResourceType.USER.value, ValueType.CONSTANT),
        "meta.created": AttributeColumn("u.created_at", ValueType.SECONDS),
        "meta.lastmodified": AttributeColumn("u.modified_us", ValueType.MICROSECONDS),
    },
    {
        "name": "(u.formatted_name_key <> '' OR u.given_name_key <> '' OR u.family_name_key <> '')",
        "emails": EMAILS,
        "groups": USER_GROUPS,
        "meta": "TRUE",
    },
)

USER_ATTRIBUTES_BY_SUBJECT: Final = AttributeTable(
    USER_ATTRIBUTES.id,
    {**USER_ATTRIBUTES.fields, "externalid": AttributeColumn("x.subject", ValueType.EXACT, SUBJECTS)},
    USER_ATTRIBUTES.wholes,
)
"""The attributes of users when `externalId` is the subject of the user's OAuth account."""

GROUP_ATTRIBUTES: Final = AttributeTable(
    "g.id",
    {
        "id": AttributeColumn("g.id", ValueType.EXACT),
        "externalid": AttributeColumn("x.external_id", ValueType.EXACT, GROUP_EXTERNAL_IDS),
        "displayname": AttributeColumn("g.name_key", ValueType.FOLDED),
        "members.value": AttributeColumn("m.user_id", ValueType.EXACT, GROUP_MEMBERS),
        "members.type": AttributeColumn(ResourceType.USER.value, ValueType.CONSTANT, GROUP_MEMBERS),
        "meta.resourcetype": AttributeColumn(ResourceType.GROUP.value, ValueType.CONSTANT),
        "meta.created": AttributeColumn("g.created_at", ValueType.SECONDS),
        "meta.lastmodified": AttributeColumn("g.modified_us", ValueType.MICROSECONDS),
    },
    {"members": GROUP_MEMBERS, "meta": "TRUE"},
)


def attribute_table(resource: ResourceType, *, by_subject: bool = False) -> AttributeTable:
    """Return the attribute table of a resource type."""
    if resource is ResourceType.GROUP:
        return GROUP_ATTRIBUTES
    return USER_ATTRIBUTES_BY_SUBJECT if by_subject else USER_ATTRIBUTES
