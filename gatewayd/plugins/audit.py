"""Who holds something on the source of a tool without the permission `workspace.tools`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import Group, PermissionTree, Role, User
from gatewayd.accounts.users import Users
from gatewayd.catalog.grants import WRITE
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.plugins.records import Family, Plugin
from gatewayd.plugins.registry import Registry

CHANGES: Final = "tools"
INSTALLS: Final = "tools_import"


class FindingKind(StrEnum):
    """What is held."""

    OWNER = "owner"
    """The account owns the tool: it installed the source that runs, and changes it no longer."""

    WRITE_GRANT = "write_grant"
    """The account, the group or everybody may write the tool, and changes its source with the permission."""

    IMPORT_PERMISSION = "import_permission"
    """The group, or everybody by default, has `workspace.tools_import`: it installs tools."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One of them; `holder` names who as a grant does, with `*` for every account.

    `accounts` counts those who lack the permission, None for every account.
    """

    kind: FindingKind
    plugin_id: str | None
    holder: Grant
    accounts: int | None


class PermissionAudit:
    """Looks through tools and groups; nothing is changed."""

    def __init__(self, registry: Registry, users: Users, groups: Groups, permissions: Permissions) -> None:
        self._registry = registry
        self._users = users
        self._groups = groups
        self._permissions = permissions

    async def run(self) -> Sequence[Finding]:
        """Return what is held without the permission, the tools by id and then the groups by name.

        A write grant to everybody is always among them.
        """
        defaults, groups = self._permissions.defaults(), await self._groups.list()
        held = _Held(defaults, {group.id: group for group in groups})
        found: list[Finding] = []
        for tool in self._registry.list(Family.TOOL):
            found += await self._of_tool(tool, held)
        if held.is_default(INSTALLS) and not held.is_default(CHANGES):
            found.append(Finding(FindingKind.IMPORT_PERMISSION, None, Grant("user", EVERYBODY, WRITE), None))
        for group in groups:
            if _allows(group.permissions, INSTALLS) and (count := await self._lacking(group, held)):
                holder = Grant("group", group.id, WRITE)
                found.append(Finding(FindingKind.IMPORT_PERMISSION, None, holder, count))
        return found

    async def _of_tool(self, tool: Plugin, held: "_Held") -> Sequence[Finding]:
        found = []
        owner = Grant("user", tool.user_id, WRITE)
        if count := await self._count(owner, held):
            found.append(Finding(FindingKind.OWNER, tool.id, owner, count))
        for grant in tool.grants:
            if grant.permission != WRITE:
                continue
            count = await self._count(grant, held)
            if count != 0:
                found.append(Finding(FindingKind.WRITE_GRANT, tool.id, grant, count))
        return found

    async def _count(self, holder: Grant, held: "_Held") -> int | None:
        """Return how many accounts of a holder lack the permission, None for everybody."""
        if holder.principal_type == "group":
            group = held.groups.get(holder.principal_id)
            return 0 if group is None else await self._lacking(group, held)
        if holder.principal_id == EVERYBODY:
            return None
        user = await self._users.find(holder.principal_id)
        return 0 if user is None else len(await self._without([user], held))

    async def _lacking(self, group: Group, held: "_Held") -> int:
        if held.is_default(CHANGES) or _allows(group.permissions, CHANGES):
            return 0
        return len(await self._without(await self._groups.list_members(group.id), held))

    async def _without(self, users: Sequence[User], held: "_Held") -> Sequence[User]:
        group_ids = await self._users.list_group_ids(users)
        return [user for user in users if not held.may_change(user, group_ids.get(user.id, ()))]


@dataclass(frozen=True, slots=True)
class _Held:
    """The default permissions, and the groups with what they add."""

    defaults: PermissionTree
    groups: Mapping[str, Group]

    def is_default(self, leaf: str) -> bool:
        return _allows(self.defaults, leaf)

    def may_change(self, user: User, group_ids: Iterable[str]) -> bool:
        """Tell what `Permissions.effective` does for one leaf, for many accounts."""
        if user.role is Role.ADMIN or self.is_default(CHANGES):
            return True
        return any(
            name in self.groups and _allows(self.groups[name].permissions, CHANGES) for name in group_ids
        )


def _allows(tree: PermissionTree, leaf: str) -> bool:
    return tree.get("workspace", {}).get(leaf, False)
