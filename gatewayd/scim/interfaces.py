"""What provisioning needs from storage beside the account stores; SQLite and PostgreSQL pass one suite."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatewayd.accounts.records import Group, User
from gatewayd.scim.records import MembershipReference, ResourceCounts, ResourcePage, ResourceQuery


class ScimDirectory(Protocol):
    """Reads users and groups by condition. Only memberships with the source `scim` are seen.

    Every condition is answered by the database, with values as parameters. But for ids and members, the
    number of statements does not depend on the number of resources.
    """

    async def list_users(self, query: ResourceQuery) -> ResourcePage[User]:
        """Return one page of users in at most two statements."""
        ...

    async def list_groups(self, query: ResourceQuery) -> ResourcePage[Group]:
        """Return one page of groups in at most two statements."""
        ...

    async def list_groups_of(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
        """Return the groups of each of at most 200 users in one statement; users without are absent."""
        ...

    async def list_members_of(self, group_ids: Sequence[str]) -> Mapping[str, Sequence[MembershipReference]]:
        """Return the members of each of at most 200 groups, a statement for each thousand members.

        Empty groups are absent.
        """
        ...

    async def list_known(self, user_ids: Sequence[str]) -> frozenset[str]:
        """Return which of the ids are users, in one statement for each thousand."""
        ...

    async def count(self) -> ResourceCounts:
        """Return how much there is."""
        ...
