"""Table of the attributes of users and groups, for discovery, filters, sorting, PATCH and projection.

gatewayd-scim(7), Attributes lists the attributes; RFC 7643 (3.1, 4.1, 4.2 and 7) defines their
characteristics.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Final

from gatewayd.scim.records import ResourceType

CORE: Final = "urn:ietf:params:scim:schemas:core:2.0"
ENTERPRISE: Final = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


class AttributeType(StrEnum):
    """The data types (RFC 7643 section 2.3)."""

    STRING = "string"
    BOOLEAN = "boolean"
    DATE_TIME = "dateTime"
    REFERENCE = "reference"
    COMPLEX = "complex"


class Mutability(StrEnum):
    """Mutability of an attribute (RFC 7643 section 7)."""

    READ_ONLY = "readOnly"
    READ_WRITE = "readWrite"
    IMMUTABLE = "immutable"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute with its characteristics (RFC 7643 section 7). `parts` are its sub-attributes."""

    name: str
    description: str
    kind: AttributeType = AttributeType.STRING
    is_multiple: bool = False
    is_required: bool = False
    is_case_exact: bool = False
    mutability: Mutability = Mutability.READ_WRITE
    is_always_returned: bool = False
    is_unique: bool = False
    canonical: tuple[str, ...] = ()
    refers_to: tuple[str, ...] = ()
    parts: tuple["Attribute", ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceSchema:
    """Schema of a resource type: its endpoint, and its attributes beside the common ones."""

    resource: ResourceType
    endpoint: str
    description: str
    attributes: tuple[Attribute, ...]

    @property
    def urn(self) -> str:
        """The identifier of the schema."""
        return f"{CORE}:{self.resource.value}"


def _read_only(
    name: str,
    description: str,
    kind: AttributeType = AttributeType.STRING,
    refers_to: tuple[str, ...] = (),
    canonical: tuple[str, ...] = (),
) -> Attribute:
    return Attribute(
        name,
        description,
        kind,
        is_case_exact=True,
        mutability=Mutability.READ_ONLY,
        refers_to=refers_to,
        canonical=canonical,
    )


COMMON: Final = (
    Attribute(
        "id",
        "The identifier that the gateway gave the resource.",
        is_case_exact=True,
        mutability=Mutability.READ_ONLY,
        is_always_returned=True,
        is_unique=True,
    ),
    Attribute("externalId", "The identifier that the provider gave the resource.", is_case_exact=True),
    Attribute(
        "meta",
        "What the gateway knows about the resource.",
        AttributeType.COMPLEX,
        mutability=Mutability.READ_ONLY,
        parts=(
            _read_only("resourceType", "The name of the resource type."),
            _read_only("created", "When the resource was made.", AttributeType.DATE_TIME),
            _read_only("lastModified", "When the resource last changed.", AttributeType.DATE_TIME),
            _read_only(
                "location", "The address of the resource.", AttributeType.REFERENCE, refers_to=("uri",)
            ),
        ),
    ),
)
"""The attributes that every resource has (RFC 7643 section 3.1)."""

USER: Final = ResourceSchema(
    ResourceType.USER,
    "/Users",
    "An account",
    (
        Attribute(
            "userName",
            "The name by which the provider knows the account: an e-mail address.",
            is_required=True,
            is_unique=True,
        ),
        Attribute(
            "name",
            "The parts of the person's name.",
            AttributeType.COMPLEX,
            parts=(
                Attribute("formatted", "The whole name."),
                Attribute("familyName", "The family name."),
                Attribute("givenName", "The given name."),
            ),
        ),
        Attribute("displayName", "The name that people see."),
        Attribute(
            "emails",
            "E-mail addresses; the primary one, else the first, is that of the account.",
            AttributeType.COMPLEX,
            is_multiple=True,
            parts=(
                Attribute("value", "The address."),
                Attribute("type", "What the address is for.", canonical=("work", "home", "other")),
                Attribute("primary", "Whether it is the preferred address.", AttributeType.BOOLEAN),
            ),
        ),
        Attribute(
            "roles",
            "The roles that the provider gives the person; kept for the provider, they give no right here.",
            AttributeType.COMPLEX,
            is_multiple=True,
            parts=(
                Attribute("value", "The role."),
                Attribute("display", "What the role is called."),
                Attribute("type", "What kind of role it is."),
                Attribute("primary", "Whether it is the main role.", AttributeType.BOOLEAN),
            ),
        ),
        Attribute("active", "Whether the account may be used.", AttributeType.BOOLEAN, is_required=True),
        Attribute(
            "groups",
            "The groups that the provider put the account into.",
            AttributeType.COMPLEX,
            is_multiple=True,
            mutability=Mutability.READ_ONLY,
            parts=(
                _read_only("value", "The id of the group."),
                _read_only(
                    "$ref", "The address of the group.", AttributeType.REFERENCE, refers_to=("Group",)
                ),
                Attribute("display", "The name of the group.", mutability=Mutability.READ_ONLY),
                _read_only("type", "How the account belongs to it.", canonical=("direct",)),
            ),
        ),
    ),
)

GROUP: Final = ResourceSchema(
    ResourceType.GROUP,
    "/Groups",
    "A group of accounts",
    (
        Attribute("displayName", "The name of the group.", is_required=True, is_unique=True),
        Attribute(
            "members",
            "The accounts that the provider put into the group.",
            AttributeType.COMPLEX,
            is_multiple=True,
            parts=(
                Attribute(
                    "value", "The id of the account.", is_case_exact=True, mutability=Mutability.IMMUTABLE
                ),
                Attribute(
                    "$ref",
                    "The address of the account.",
                    AttributeType.REFERENCE,
                    is_case_exact=True,
                    mutability=Mutability.IMMUTABLE,
                    refers_to=("User",),
                ),
                Attribute(
                    "display",
                    "The name that the provider sent, else the display name of the account.",
                ),
                Attribute(
                    "type",
                    "What the member is.",
                    is_case_exact=True,
                    mutability=Mutability.IMMUTABLE,
                    canonical=("User",),
                ),
            ),
        ),
    ),
)

SCHEMAS: Final[Mapping[ResourceType, ResourceSchema]] = MappingProxyType(
    {ResourceType.USER: USER, ResourceType.GROUP: GROUP}
)

PASSED_OVER: Final = frozenset(
    {
        *(
            "nickName",
            "profileUrl",
            "title",
            "userType",
            "preferredLanguage",
            "locale",
            "timezone",
            "password",
        ),
        *("phoneNumbers", "ims", "photos", "addresses", "entitlements", "x509Certificates"),
        *("middleName", "honorificPrefix", "honorificSuffix"),
        *("employeeNumber", "costCenter", "organization", "division", "department", "manager"),
    }
)
"""Attributes (RFC 7643, 4.1 and 4.3) that providers send and the gateway accepts but never stores."""


@dataclass(frozen=True, slots=True)
class QualifiedAttribute:
    """An attribute with its full name, such as `emails.type`, and its parent attribute."""

    name: str
    attribute: Attribute
    parent: Attribute | None = None

    @property
    def is_writable(self) -> bool:
        """Whether a client may write the attribute."""
        whole = self.parent or self.attribute
        read_only = Mutability.READ_ONLY
        return whole.mutability is not read_only and self.attribute.mutability is not read_only


@cache
def attributes_by_path(resource: ResourceType) -> Mapping[str, QualifiedAttribute]:
    """Return all attributes and sub-attributes of a resource type, by full name in lower case."""
    return MappingProxyType(
        {target.name.lower(): target for target in _qualified_attributes(SCHEMAS[resource])}
    )


def find_attribute(resource: ResourceType, name: str) -> QualifiedAttribute | None:
    """Return the attribute with this name in any case, with or without the URN of the schema."""
    key = name.lower()
    prefix = f"{SCHEMAS[resource].urn.lower()}:"
    return attributes_by_path(resource).get(key.removeprefix(prefix))


def _qualified_attributes(schema: ResourceSchema) -> Iterator[QualifiedAttribute]:
    for attribute in (*COMMON, *schema.attributes):
        yield QualifiedAttribute(attribute.name, attribute)
        for part in attribute.parts:
            yield QualifiedAttribute(f"{attribute.name}.{part.name}", part, attribute)
