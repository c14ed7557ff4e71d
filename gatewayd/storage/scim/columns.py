"""Where the attributes of users and groups are stored: the tables that conditions are compiled from.

The only text that reaches SQL is in here. What a provider calls a member of a group cannot be searched: it is
kept for the answer alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayd.accounts.records import Role, Source
from gatewayd.scim.records import ResourceType


class Type(StrEnum):
    """How the values of an attribute are stored."""

    FOLDED = "folded"
    EXACT = "exact"
    BOOLEAN = "boolean"
    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Side:
    """A table of values beside a resource: `owner` is the resource's id in it, `rows` what is selected from.

    `provider` is the column that tells whose value it is. Without `is_multiple` a resource has at most one
    value; with it, `order` tells the first.
    """

    owner: str
    rows: str
    provider: str | None = None
    is_multiple: bool = False
    order: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """Where an attribute is: an expression over a row of the resource or, if there is one, of `side`.

    An absent text is empty, if it `is_optional`. Of a constant the expression is the value.
    """

    sql: str
    type: Type
    side: Side | None = None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """The attributes of a resource by name in lower case; `wholes` has the complex ones.

    A whole is the table of its values, or an expression that tells whether there is one.
    """

    id: str
    fields: Mapping[str, Field]
    wholes: Mapping[str, Side | str]


_LINKS: Final = f"FROM group_members WHERE source = '{Source.SCIM.value}'"

EMAILS: Final = Side("e.user_id", "user_emails e", is_multiple=True, order="e.is_primary DESC, e.id")
GROUPS: Final = Side(
    "m.user_id",
    f"(SELECT user_id, group_id {_LINKS}) m JOIN groups o ON o.id = m.group_id",
    is_multiple=True,
    order="m.group_id",
)
MEMBERS: Final = Side(
    "m.group_id",
    f"(SELECT user_id, group_id {_LINKS}) m JOIN users o ON o.id = m.user_id",
    is_multiple=True,
    order="m.user_id",
)
EXTERNAL_IDS: Final = Side("x.user_id", "user_external_ids x", "x.provider")
SUBJECTS: Final = Side("x.user_id", "user_subjects x", "x.provider")
GROUP_EXTERNAL_IDS: Final = Side("x.group_id", "group_external_ids x", "x.provider")

USERS: Final = Table(
    "u.id",
    {
        "id": Field("u.id", Type.EXACT),
        "externalid": Field("x.external_id", Type.EXACT, EXTERNAL_IDS),
        "username": Field("u.user_name_key", Type.FOLDED),
        "displayname": Field("u.display_name_key", Type.FOLDED, is_optional=True),
        "name.formatted": Field("u.formatted_name_key", Type.FOLDED, is_optional=True),
        "name.givenname": Field("u.given_name_key", Type.FOLDED, is_optional=True),
        "name.familyname": Field("u.family_name_key", Type.FOLDED, is_optional=True),
        "active": Field(f"(u.active AND u.role <> '{Role.PENDING.value}')", Type.BOOLEAN),
        "emails.value": Field("e.value_key", Type.FOLDED, EMAILS),
        "emails.type": Field("e.type_key", Type.FOLDED, EMAILS),
        "emails.primary": Field("e.is_primary", Type.BOOLEAN, EMAILS),
        "groups.value": Field("m.group_id", Type.EXACT, GROUPS),
        "groups.display": Field("o.name_key", Type.FOLDED, GROUPS),
        "groups.type": Field("direct", Type.CONSTANT, GROUPS),
        "meta.resourcetype": Field(ResourceType.USER.value, Type.CONSTANT),
        "meta.created": Field("u.created_at", Type.SECONDS),
        "meta.lastmodified": Field("u.modified_us", Type.MICROSECONDS),
    },
    {
        "name": "(u.formatted_name_key <> '' OR u.given_name_key <> '' OR u.family_name_key <> '')",
        "emails": EMAILS,
        "groups": GROUPS,
        "meta": "TRUE",
    },
)

USERS_BY_SUBJECT: Final = Table(
    USERS.id, {**USERS.fields, "externalid": Field("x.subject", Type.EXACT, SUBJECTS)}, USERS.wholes
)
"""The attributes of users, when an external id means the subject that OAuth knows a user by."""

GROUPS_TABLE: Final = Table(
    "g.id",
    {
        "id": Field("g.id", Type.EXACT),
        "externalid": Field("x.external_id", Type.EXACT, GROUP_EXTERNAL_IDS),
        "displayname": Field("g.name_key", Type.FOLDED),
        "members.value": Field("m.user_id", Type.EXACT, MEMBERS),
        "members.type": Field(ResourceType.USER.value, Type.CONSTANT, MEMBERS),
        "meta.resourcetype": Field(ResourceType.GROUP.value, Type.CONSTANT),
        "meta.created": Field("g.created_at", Type.SECONDS),
        "meta.lastmodified": Field("g.modified_us", Type.MICROSECONDS),
    },
    {"members": MEMBERS, "meta": "TRUE"},
)


def table_of(resource: ResourceType, *, by_subject: bool = False) -> Table:
    """Return where the attributes of a resource type are."""
    if resource is ResourceType.GROUP:
        return GROUPS_TABLE
    return USERS_BY_SUBJECT if by_subject else USERS
