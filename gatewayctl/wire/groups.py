"""Groups on the wire."""

from typing import Literal

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Tree, Written
from gatewayctl.wire.users import User

SourceName = Literal["manual", "default", "scim", "oauth"]


class Group(Reply):
    """A set of users with the permissions it adds.

    `external_ids` has the id of the group at each provider, by provider name. `sources` counts the members
    that each source has added; it is empty in a list of groups.
    """

    id: str
    name: str
    description: str = ""
    permissions: Tree = Field(default_factory=dict)
    member_count: int = 0
    created_at: str | None = None
    updated_at: str | None = None
    external_ids: dict[str, str] = Field(default_factory=dict)
    sources: dict[str, int] = Field(default_factory=dict)


class GroupList(Reply):
    """Groups by name."""

    groups: list[Group]


class GroupWritten(Written, Group):
    """A group after a write; `changed_members` counts the users that were added or removed.

    `provided_members` counts those of them that a provider (SCIM, OAuth) had added and may add again.
    """

    changed_members: int = 0
    provided_members: int = 0


class NewGroup(Request):
    """A group to create, or to bring into this state (ensure)."""

    name: str
    description: str | None = None
    permissions: Tree | None = None


class GroupChange(Request):
    """Changes of a group; absent fields stay."""

    name: str | None = None
    description: str | None = None


class GroupMembers(Request):
    """Users by id or e-mail."""

    users: list[str]


class RemovedMembers(GroupMembers):
    """Users to remove from a group that `source` has added; None is any source."""

    source: SourceName | None = None


class Member(User):
    """A member of a group, and the sources that added it: an administrator, the sign-up, SCIM or OAuth."""

    sources: list[str] = Field(default_factory=list)


class MemberList(Reply):
    """The members of a group, by name."""

    users: list[Member]
