"""Storage interfaces of the account services; every implementation passes one conformance suite.

A change is committed and flushed when the method returns, or at the end of a surrounding block of
`transactions.Transactor`. Stores make no ids and no timestamps. `find_*` returns None without a match;
`change` and `remove` return False without a match.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gatewayd.accounts.records import ApiKey, Group, MembershipSource, StoredSession, User


class UserStore(Protocol):
    """Users and their password hashes.

    `add` and `change` also write the lookup keys of the user: the displayed user name and e-mail addresses
    (`display_identity`), the external id per provider in `scim`, the subject per provider in `oauth`. No two
    users have the same e-mail address, username, displayed user name (any case), or external id or subject of
    one provider.
    """

    async def add(self, user: User, password_hash: str | None) -> None:
        """Insert a user; raise conflict, with the code `taken` and the field, for a taken value."""
        ...

    async def find(self, user_id: str) -> User | None:
        """Return the user with this id."""
        ...

    async def find_by_email(self, email: str) -> User | None:
        """Return the user with this normalised e-mail address."""
        ...

    async def find_password_hash(self, user_id: str) -> str | None:
        """Return the password hash, None if the user is unknown or has no password."""
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
        """Return one page of users whose name or e-mail contains `query` (any case), and the total count.

        `order_by` is one of name, email, role, created_at, updated_at, last_active_at.
        """
        ...

    async def list_ids(self, *, query: str = "") -> Sequence[str]:
        """Return the ids of all users that `list` finds for `query`, sorted by created_at.

        Uncommitted changes of the calling task may be missing.
        """
        ...

    async def list_by_ids(self, user_ids: Sequence[str]) -> Sequence[User]:
        """Return the users with these ids, in this order; unknown ids are left out."""
        ...

    async def change(self, user: User) -> bool:
        """Write every field of a user except the password; raise conflict as `add` does."""
        ...

    async def set_password_hash(self, user_id: str, password_hash: str | None) -> bool:
        """Write the password hash alone."""
        ...

    async def remove(self, user_id: str) -> bool:
        """Delete a user with their memberships and keys."""
        ...

    async def count(self) -> int:
        """Return the number of users."""
        ...

    async def count_active_admins(self) -> int:
        """Return the number of active administrators."""
        ...

    async def find_first_admin_id(self) -> str | None:
        """Return the id of the primary administrator: the oldest one by created_at, then id."""
        ...

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_active_at (epoch seconds) for many users at once, never moving it backwards."""
        ...


class GroupStore(Protocol):
    """Groups and their members.

    A user has one membership of a group per `MembershipSource`. No two groups have the same name (any case)
    or the same external id of one provider.
    """

    async def add(self, group: Group) -> None:
        """Insert a group; raise conflict, with the code `taken` and the field, for a taken value."""
        ...

    async def find(self, group_id: str) -> Group | None:
        """Return the group with its member count."""
        ...

    async def find_by_name(self, name: str) -> Group | None:
        """Return the group with this name, in any case."""
        ...

    async def list(self, *, user_id: str | None = None) -> Sequence[Group]:
        """Return all groups, or those of one user, sorted by name, with member counts."""
        ...

    async def change(self, group: Group) -> bool:
        """Write every field of a group; raise conflict as `add` does."""
        ...

    async def remove(self, group_id: str) -> bool:
        """Delete a group and its memberships."""
        ...

    async def list_member_ids(self, group_id: str) -> Sequence[str]:
        """Return the ids of the members, sorted by name.

        Uncommitted changes of the calling task may be missing.
        """
        ...

    async def list_group_ids(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the distinct group ids of each user; users without groups are absent."""
        ...

    async def list_sources(
        self, group_id: str, user_ids: Sequence[str]
    ) -> Mapping[str, Sequence[MembershipSource]]:
        """Return the sources of the membership of each user, by user id; non-members are absent."""
        ...

    async def count_by_source(self, group_id: str) -> Mapping[MembershipSource, int]:
        """Return the number of members per source; sources without members are absent."""
        ...

    async def count_members_outside(self, group_id: str, group_ids: Sequence[str]) -> int:
        """Return the number of members that are in none of the other groups, without administrators."""
        ...

    async def count_members(
        self, group_ids: Sequence[str], *, source: MembershipSource | None = None
    ) -> Mapping[str, int]:
        """Return the number of members that `source` (None: any) added per group; empty groups are absent."""
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
        """Add the existing users among `user_ids` that `source` has not added yet; return how many.

        `displays` holds display names from the source, by user id, of at most 255 characters; other members
        have the display name of their account. A member with a changed display name counts as added. Raise
        not_found without such a group.
        """
        ...

    async def keep_members(self, group_id: str, user_ids: Sequence[str], *, source: MembershipSource) -> int:
        """Remove all members of `source` except these; return how many. Raise not_found as `add_members`."""
        ...

    async def remove_members(
        self, group_id: str, user_ids: Sequence[str], *, source: MembershipSource | None = None
    ) -> int:
        """Remove users that `source` (None: any) added; return how many. Raise not_found as `add_members`."""
        ...

    async def touch(self, group_id: str, *, at: int, modified_us: int) -> None:
        """Write the time of the last change of a group, in seconds and in microseconds."""
        ...


class KeyStore(Protocol):
    """API keys by digest."""

    async def add(self, key: ApiKey) -> None:
        """Insert a key; raise conflict if the user already has one with this name (any case)."""
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
    """Session tokens that were revoked before they expired."""

    async def add(self, jti: str, user_id: str, expires_at: int) -> None:
        """Store a token id as revoked; idempotent."""
        ...

    async def add_all(self, sessions: Sequence[StoredSession]) -> None:
        """Store the token ids of sessions as revoked; idempotent."""
        ...

    async def contains(self, jti: str) -> bool:
        """Tell whether the token was revoked."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the ids of tokens that expired before this time; return how many."""
        ...


class SessionStore(Protocol):
    """Sessions by the id of their token. The sessions of an earlier token version of a user are not found."""

    async def add(self, session: StoredSession) -> None:
        """Insert a session."""
        ...

    async def find(self, session_id: str) -> StoredSession | None:
        """Return the session with this id."""
        ...

    async def list(self, user_id: str, *, after: int) -> Sequence[StoredSession]:
        """Return the sessions of a user that expire later than `after`, newest first."""
        ...

    async def list_of_provider(
        self, provider: str, *, user_id: str | None = None, provider_session: str | None = None
    ) -> Sequence[StoredSession]:
        """Return the sessions that began at a provider, of one user or with one id at the provider."""
        ...

    async def remove(self, session_ids: Sequence[str]) -> int:
        """Delete sessions; return how many there were."""
        ...

    async def confirm(self, session_id: str, at: int) -> bool:
        """Write the time of a confirmation by a password."""
        ...

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write last_seen_at (epoch seconds) for many sessions at once, never moving it backwards."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the sessions that expired before this time; return how many."""
        ...


class ValueStore(Protocol):
    """JSON values by name: runtime settings and the default permissions."""

    async def load(self) -> Mapping[str, Any]:
        """Return all stored values."""
        ...

    async def put(self, values: Mapping[str, Any], *, at: int, by: str) -> None:
        """Write several values as one change; `by` is the id of the actor, for the audit."""
        ...

    async def remove(self, names: Sequence[str]) -> int:
        """Delete stored values, so that the configured ones apply again; return how many were stored."""
        ...
