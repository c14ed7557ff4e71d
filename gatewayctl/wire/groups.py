"""Groups on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Tree, Written
from gatewayctl.wire.users import User


class Group(Reply):
    """A set of users with the permissions it adds."""

    id: str
    name: str
    description: str = ""
    permissions: Tree = Field(default_factory=dict)
    member_count: int = 0
    created_at: str | None = None
    updated_at: str | None = None


class GroupList(Reply):
    """Groups by name."""

    groups: list[Group]


class GroupWritten(Written, Group):
    """A group after a write; `changed_members` counts the users that were added or removed."""

    changed_members: int = 0


class NewGroup(Request):
    """A group to create, or to bring into this state (ensure)."""

    name: str
    description: str | None = None
    permissions: Tree | None = None


class GroupChange(Request):
    """What to change about a group; an absent field stays."""

    name: str | None = None
    description: str | None = None


class Members(Request):
    """Users by id or e-mail."""

    users: list[str]


class MemberList(Reply):
    """The members of a group, by name."""

    users: list[User]
