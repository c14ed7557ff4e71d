"""Records of SCIM: queries, pages and results between the services, their store and the HTTP edge."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from gatewayd.accounts.records import Group, User
from gatewayd.scim.filters.conditions import Condition

Resource = dict[str, Any]
"""A rendered resource, possibly reduced by a projection."""

Item = TypeVar("Item")


class ResourceType(StrEnum):
    """The resource types (RFC 7643 section 4); the value is the name in `meta.resourceType`."""

    USER = "User"
    GROUP = "Group"


@dataclass(slots=True)
class PublicSite:
    """Public base URL, such as `https://ai.example.org`; empty for the address of the request."""

    address: str = ""


@dataclass(frozen=True, slots=True)
class StoredScimToken:
    """A token: its SHA-256, and epoch seconds. One that is retired is never valid again."""

    digest: str
    created_at: int
    retired_at: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceQuery:
    """Query of the store for one page of users or groups.

    `sort` is the name of an attribute in the table `attributes`, None for the order of creation. Resources
    without the attribute are last in ascending order and first in descending order; equal ones are in the
    order of creation. `externalId` is that of `provider`; with `by_subject` it is the OAuth subject of users
    at `provider`. `offset` counts from 0; a `limit` of 0 only counts.
    """

    condition: Condition | None = None
    provider: str = ""
    by_subject: bool = False
    sort: str | None = None
    descending: bool = False
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True)
class ResourcePage(Generic[Item]):
    """A page of the `total` results of a query, in order."""

    items: Sequence[Item]
    total: int


@dataclass(frozen=True, slots=True)
class MembershipReference:
    """The other end of a membership: a user in a group, or a group of a user."""

    id: str
    display: str


@dataclass(frozen=True, slots=True)
class UserEntry:
    """A user with the groups from providers; None if they were not requested."""

    user: User
    groups: Sequence[MembershipReference] | None = None


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """A group with the members from providers; None if they were not requested."""

    group: Group
    members: Sequence[MembershipReference] | None = None


@dataclass(frozen=True, slots=True)
class ResourceCounts:
    """Numbers of resources; `provisioned_users` have a user name or an external id from a provider."""

    users: int
    active_users: int
    provisioned_users: int
    groups: int
    provisioned_groups: int
    memberships: int


@dataclass(frozen=True, slots=True)
class SearchParameters:
    """Parameters of a list request as they were sent (RFC 7644 section 3.4.2); absent ones are None."""

    filter: str | None = None
    start_index: int | None = None
    count: int | None = None
    sort_by: str | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ScimSearchResult(Generic[Item]):
    """A page of results; `start_index` counts from 1."""

    entries: Sequence[Item]
    total: int
    start_index: int


@dataclass(frozen=True, slots=True)
class WriteResult(Generic[Item]):
    """Result of a write, and for the audit the resource before (None if it is new) and after.

    `before` and `after` have no members and no location. `changes` describes changes of members, for example
    `members +2 -1`. `skipped` are unknown user ids of members, which were left out.
    """

    entry: Item
    before: Resource | None
    after: Resource
    changes: str = ""
    skipped: Sequence[str] = ()
