"""What travels between the provisioning services, their store and the edge."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from gatewayd.accounts.records import Group, User
from gatewayd.scim.filters.conditions import Condition

Resource = dict[str, Any]
"""A resource as SCIM shows it, or as much of it as was asked for."""

Item = TypeVar("Item")


class ResourceType(StrEnum):
    """The resources there are (RFC 7643 section 4); the value is the name in `meta.resourceType`."""

    USER = "User"
    GROUP = "Group"


@dataclass(slots=True)
class PublicSite:
    """Where the gateway is reached, such as `https://ai.example.org`; empty for wherever a client asks."""

    address: str = ""


@dataclass(frozen=True, slots=True)
class ResourceQuery:
    """One page of users or groups, as the store is asked for it.

    `sort` names an attribute as `attributes` does, None is the order of creation; resources that lack the
    attribute come last when ascending, first when descending, and equal ones in the order of creation.
    `provider` is whose external ids `externalId` means; with `by_subject` it means the provider's OAuth
    subject of users. `offset` counts from 0; a `limit` of 0 only counts.
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
    """Some of the `total` that fit a query, in order."""

    items: Sequence[Item]
    total: int


@dataclass(frozen=True, slots=True)
class MembershipReference:
    """The other end of a membership: a user in a group, or a group of a user."""

    id: str
    display: str


@dataclass(frozen=True, slots=True)
class UserEntry:
    """A user with the groups that a provider put it into; None when they were not asked for."""

    user: User
    groups: Sequence[MembershipReference] | None = None


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """A group with the members that a provider put into it; None when they were not asked for."""

    group: Group
    members: Sequence[MembershipReference] | None = None


@dataclass(frozen=True, slots=True)
class ResourceCounts:
    """How much there is: `provisioned_users` have a user name or an external id from a provider."""

    users: int
    active_users: int
    provisioned_users: int
    groups: int
    provisioned_groups: int
    memberships: int


@dataclass(frozen=True, slots=True)
class SearchParameters:
    """What a client asks a list for, as it was sent (RFC 7644 section 3.4.2): absent is None."""

    filter: str | None = None
    start_index: int | None = None
    count: int | None = None
    sort_by: str | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ScimSearchResult(Generic[Item]):
    """A page of the answer; `start_index` counts from 1."""

    entries: Sequence[Item]
    total: int
    start_index: int


@dataclass(frozen=True, slots=True)
class WriteResult(Generic[Item]):
    """What a write left behind, and for the audit the resource before (None when it is new) and after.

    `before` and `after` hold no members and no location. `changes` describes what they cannot show, for
    example `members +2 -1`. `skipped` are the ids of members that no user has, which were left out.
    """

    entry: Item
    before: Resource | None
    after: Resource
    changes: str = ""
    skipped: Sequence[str] = ()
