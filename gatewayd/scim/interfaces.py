"""Storage interfaces of SCIM beside the account stores; SQLite and PostgreSQL pass one conformance suite."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatewayd.accounts.records import Group, User
from gatewayd.scim.records import (
    MembershipReference,
    ResourceCounts,
    ResourcePage,
    ResourceQuery,
    StoredScimToken,
)


class ScimDirectory(Protocol):
    """Reads users and groups by condition. It sees only memberships with the source `scim`.

    The database evaluates every condition, with values as parameters. Except for ids and members, the number
    of statements does not depend on the number of resources.
    """

    async def list_users(self, query: ResourceQuery) -> ResourcePage[User]:
        """Return one page of users in at most two statements."""
        ...

    async def list_groups(self, query: ResourceQuery) -> ResourcePage[Group]:
        """Return one page of groups in at most two statements."""
        ...

    async def list_groups_of(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
        """Return the groups of at most 200 users in one statement; users without groups are absent."""
        ...

    async def list_members_of(self, group_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
        """Return the members of each of at most 200 groups, with one statement per thousand members.

        Empty groups are absent.
        """
        ...

    async def list_known(self, user_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids that are users, with one statement per thousand."""
        ...

    async def count(self) -> ResourceCounts:
        """Return the numbers of users, groups and memberships."""
        ...


class ScimTokenStore(Protocol):
    """The tokens of SCIM clients, as digests."""

    async def list(self) -> Sequence[StoredScimToken]:
        """Return all tokens, the newest first, retired ones too."""
        ...

    async def add(self, digest: str, at: int) -> None:
        """Insert a token, which is the newest; conflict if it is stored."""
        ...

    async def retire(self, digest: str, at: int) -> None:
        """Note that a token is not valid any more."""
        ...
