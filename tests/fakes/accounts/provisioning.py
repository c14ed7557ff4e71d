"""The SCIM services over the account stores in memory."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gatewayd.accounts.records import MembershipSource, User
from gatewayd.scim.groups import ProvisionedGroups
from gatewayd.scim.records import Resource, SearchParameters
from gatewayd.scim.renderer import render_group, render_user
from gatewayd.scim.users import ProvisionedUsers
from tests.fakes.accounts.directory import MemoryDirectory
from tests.fakes.accounts.services import Accounts

PROVIDER = "okta"
BASE = "https://ai.example.org"

Json = dict[str, Any]


@dataclass
class Provisioning:
    """Both services for one provider; what they answer is shown as resources."""

    provider: str = PROVIDER
    accounts: Accounts = field(default_factory=Accounts)

    @cached_property
    def directory(self) -> MemoryDirectory:
        return MemoryDirectory(self.accounts.memory)

    @cached_property
    def users(self) -> ProvisionedUsers:
        accounts = self.accounts
        return ProvisionedUsers(accounts.users, self.directory, accounts.commits, self.provider)

    @cached_property
    def groups(self) -> ProvisionedGroups:
        accounts = self.accounts
        return ProvisionedGroups(accounts.groups, self.directory, accounts.commits, self.provider)

    async def add_user(self, name: str = "ann", **more: Any) -> str:
        """Provision a user and return its id."""
        written = await self.users.create({"userName": f"{name}@example.org", **more})
        return written.entry.user.id

    async def add_group(self, name: str = "Staff", *members: str, **more: Any) -> str:
        """Provision a group and return its id."""
        body = {"displayName": name, "members": [{"value": member} for member in members], **more}
        return (await self.groups.create(body)).entry.group.id

    async def patch_user(self, user_id: str, *operations: Json) -> Resource:
        written = await self.users.patch(user_id, {"Operations": list(operations)})
        return render_user(written.entry, self.provider, BASE)

    async def shown_user(self, user_id: str) -> Resource:
        return render_user(await self.users.get(user_id, with_groups=True), self.provider, BASE)

    async def shown_group(self, group_id: str) -> Resource:
        return render_group(await self.groups.get(group_id, with_members=True), self.provider, BASE)

    async def found(self, filter: str | None = None, **more: Any) -> list[str]:
        """Return the user names that a search finds, in order."""
        found = await self.users.search(SearchParameters(filter=filter, **more), with_groups=False)
        shown = [render_user(entry, self.provider, BASE) for entry in found.entries]
        return [resource["userName"] for resource in shown]

    async def found_groups(self, filter: str | None = None, **more: Any) -> list[str]:
        """Return the names of the groups that a search finds, in order."""
        found = await self.groups.search(SearchParameters(filter=filter, **more), with_members=False)
        return [entry.group.name for entry in found.entries]

    async def account(self, user_id: str) -> User:
        return await self.accounts.users.get(user_id)

    async def sources(self, group_id: str) -> dict[str, list[MembershipSource]]:
        groups = self.accounts.groups
        found = await groups.list_sources(group_id, await groups.list_member_ids(group_id))
        return {user_id: sorted(sources) for user_id, sources in found.items()}


def replacing(path: str, value: Any) -> Json:
    return {"op": "replace", "path": path, "value": value}


def adding(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


def removing(path: str, **more: Any) -> Json:
    return {"op": "remove", "path": path, **more}
