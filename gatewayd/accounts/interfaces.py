"""What the account services need from storage; every implementation passes one conformance suite.

All changes are committed and flushed when a method returns, or, inside a block of `commits.Transactor`,
when it ends. Stores make no ids and no timestamps. `find_*` returns None when there is nothing; `change` and
`remove` return False when there was nothing to change.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gatewayd.accounts.records import ApiKey, Group, MembershipSource, User


class UserStore(Protocol):
    """Users and their password hashes.

    `add` and `change` keep beside the user what is looked up by: the shown user name and e-mail addresses
    (`identities.shown`), the external id of each provider in `scim`, the subject of each in `oauth`. No two
    users have the same e-mail, username, shown user name (any case), or external id or subject of one
    provider.
    """

    async def add(self, user: User, password_hash: str | None) -> None:
        """Insert a user; raise conflict, with the code `taken` and the field, when something is taken."""
        ...

    async def find(self, user_id: str) -> User | None:
        """Return the user with this id."""
        ...

    async def find_by_email(self, email: str) -> User | None:
        """Return the user with this normalised e-mail address."""
        ...

    async def find_password_hash(self, user_id: str) -> str | None:
        """Return the password hash, None when the user is unknown or has no password."""
        ...

    async def list(
        self,
        *,
        query: str = "",
        order_by: str = "created_at",
        descending: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[User], int]:
        """Return one page of users whose name or e-mail contains `query` (any case), and the count of all.

        `order_by` is one of name, email, role, created_at, updated_at, last_active_at.
        """
        ...

    async def list_ids(self, *, query: str = "") -> Sequence[str]:
        """Return the ids of all users whom `list` finds for `query`, by created_at.

        What the task itself has not committed yet may be missing.
        """
        ...

    async def list_by_ids(self, user_ids: Sequence[str]) -> Sequence[User]:
        """Return the users with these ids, in their order; those that are gone are left out."""
        ...

    async def change(self, user: User) -> bool:
        """Write every field of a user but the password; raise conflict as `add` does."""
        ...

    async def set_password_hash(self, user_id: str, password_hash: str | None) -> bool:
        """Write the password hash alone."""
        ...

    async def remove(self, user_id: str) -> bool:
        """Delete a user with the memberships and keys."""
        ...

    async def count(self) -> int:
        """Return how many users exist."""
        ...

    async def count_active_admins(self) -> int:
        """Return how many active administrators exist."""
        ...

    async def find_first_admin_id(self) -> str | None:
        """Return the id of the oldest administrator, by created_at then id; nobody else may change him."""
        ...

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_active_at (epoch seconds) for many users at once, never moving it backwards."""
        ...


class GroupStore(Protocol):
    """Groups and who is in them.

    A user is in a group once for each `MembershipSource` that says so. No two groups have the same name (any
    case) or the same external id of one provider.
    """

    async def add(self, group: Group) -> None:
        """Insert a group; raise conflict, with the code `taken` and the field, when something is taken."""
        ...

    async def find(self, group_id: str) -> Group | None:
        """Return the group with its member count."""
        ...

    async def find_by_name(self, name: str) -> Group | None:
        """Return the group with this name, in any case."""
        ...

    async def list(self, *, user_id: str | None = None) -> Sequence[Group]:
        """Return all groups, or those of one user, by name, with member counts."""
        ...

    async def change(self, group: Group) -> bool:
        """Write every field of a group; raise conflict as `add` does."""
        ...

    async def remove(self, group_id: str) -> bool:
        """Delete a group and its memberships."""
        ...

    async def list_member_ids(self, group_id: str) -> Sequence[str]:
        """Return the ids of the members by name.

        What the task itself has not committed yet may be missing.
        """
        ...

    async def list_group_ids(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the group ids of each of the users, each once; users without groups are absent."""
        ...

    async def list_sources(
        self, group_id: str, user_ids: Sequence[str]
    ) -> Mapping[str, Sequence[MembershipSource]]:
        """Return who put each of the users into a group, by user id; those who are no members are absent."""
        ...

    async def count_by_source(self, group_id: str) -> Mapping[MembershipSource, int]:
        """Return how many members each source has put into a group; sources without any are absent."""
        ...

    async def count_members_outside(self, group_id: str, group_ids: Sequence[str]) -> int:
        """Return how many members of a group are in none of the other groups; administrators do not count."""
        ...

    async def count_members(
        self, group_ids: Sequence[str], *, source: MembershipSource | None = None
    ) -> Mapping[str, int]:
        """Return how many users `source`, None any, has in each of the groups; empty groups are absent."""
        ...

    async def add_members(
        self,
        group_id: str,
        user_ids: Sequence[str],
        *,
        source: MembershipSource,
        at: int,
        displays: Mapping[str, str] | None = None,
    ) -> int:
        """Add the existing users among `user_ids` whom `source` has not added yet; return how many.

        `displays` is what the source calls some of them, by user id, each at most 255 characters; otherwise
        they are called as they are shown. A member who is called otherwise from now on counts as added. Raise
        not_found without such a group.
        """
        ...

    async def keep_members(self, group_id: str, user_ids: Sequence[str], *, source: MembershipSource) -> int:
        """Remove all whom `source` has added but these; return how many. Raise not_found as `add_members`."""
        ...

    async def remove_members(
        self, group_id: str, user_ids: Sequence[str], *, source: MembershipSource | None = None
    ) -> int:
        """Remove users whom `source`, None any, has added; return how many users. Raise as `add_members`."""
        ...

    async def touch(self, group_id: str, *, at: int, modified_us: int) -> None:
        """Write when a group last changed, in seconds and in microseconds."""
        ...


class KeyStore(Protocol):
    """API keys by digest."""

    async def add(self, key: ApiKey) -> None:
        """Insert a key; raise conflict when the user already has one of this name (any case)."""
        ...

    async def find(self, key_id: str) -> ApiKey | None:
        """Return the key with this id."""
        ...

    async def find_by_digest(self, digest: str) -> ApiKey | None:
        """Return the key with this SHA-256."""
        ...

    async def list(self, *, user_id: str | None = None) -> Sequence[ApiKey]:
        """Return the keys of one user, or all, oldest first."""
        ...

    async def remove(self, key_id: str) -> bool:
        """Delete a key."""
        ...

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_used_at (epoch seconds) for many keys at once, never moving it backwards."""
        ...


class RevocationStore(Protocol):
    """Session tokens that were ended before they expired."""

    async def add(self, jti: str, user_id: str, expires_at: int) -> None:
        """Remember a token id as revoked; doing it twice is no error."""
        ...

    async def contains(self, jti: str) -> bool:
        """Tell whether the token was revoked."""
        ...

    async def prune(self, before: int) -> int:
        """Forget tokens that expired before this time; return how many."""
        ...


class ValueStore(Protocol):
    """JSON values by name: runtime settings and the default permissions."""

    async def load(self) -> Mapping[str, Any]:
        """Return all stored values."""
        ...

    async def put(self, values: Mapping[str, Any], *, at: int, by: str) -> None:
        """Write several values as one change; `by` names who did it, for the audit."""
        ...

    async def remove(self, names: Sequence[str]) -> int:
        """Forget values, so that the configured ones show again; return how many were stored."""
        ...
