"""Audit of tools and groups: owners and writers of tools without the permission `workspace.tools`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayd.accounts.groups import Groups
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import Group, PermissionTree, Role, User
from gatewayd.accounts.users import Users
from gatewayd.catalog.access_grants import WRITE
from gatewayd.catalog.records import EVERYBODY, Grant
from gatewayd.plugins.records import Plugin, PluginFamily
from gatewayd.plugins.registry import PluginManager

CHANGE_PERMISSION: Final = "tools"
INSTALL_PERMISSION: Final = "tools_import"


class FindingKind(StrEnum):
    """Kind of a finding."""

    OWNER = "owner"
    """The account owns the tool: it installed the source and can no longer change it."""

    WRITE_GRANT = "write_grant"
    """The account, the group or every user has a write grant on the tool."""

    IMPORT_PERMISSION = "import_permission"
    """The group, or every user by default, has `workspace.tools_import` and can install tools."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A finding; `holder` is a principal as in a grant, `*` for every account.

    `plugin_id` is None for an import permission. `accounts` is the number of accounts of the holder without
    the permission, None for every account.
    """

    kind: FindingKind
    plugin_id: str | None
    holder: Grant
    accounts: int | None


class PermissionAudit:
    """Examines tools and groups without changing them."""

    def __init__(
        self, registry: PluginManager, users: Users, groups: Groups, permissions: Permissions
    ) -> None:
        self._registry = registry
        self._users = users
        self._groups = groups
        self._permissions = permissions

    async def run(self) -> Sequence[AuditFinding]:
        """Return the findings: tools by id, then groups by name.

        A write grant to all users is always a finding.
        """
        defaults, groups = self._permissions.defaults(), await self._groups.list()
        held = _PermissionTrees(defaults, {group.id: group for group in groups})
        found: list[AuditFinding] = []
        for tool in self._registry.list(PluginFamily.TOOL):
            found += await self._of_tool(tool, held)
        if held.is_default(INSTALL_PERMISSION) and not held.is_default(CHANGE_PERMISSION):
            everybody = Grant("user", EVERYBODY, WRITE)
            found.append(AuditFinding(FindingKind.IMPORT_PERMISSION, None, everybody, None))
        importing = [group for group in groups if _allows(group.permissions, INSTALL_PERMISSION)]
        for group in importing:
            if count := await self._count_lacking(group, held):
                holder = Grant("group", group.id, WRITE)
                found.append(AuditFinding(FindingKind.IMPORT_PERMISSION, None, holder, count))
        return found

    async def _of_tool(self, tool: Plugin, held: "_PermissionTrees") -> Sequence[AuditFinding]:
        found = []
        owner = Grant("user", tool.user_id, WRITE)
        if count := await self._count(owner, held):
            found.append(AuditFinding(FindingKind.OWNER, tool.id, owner, count))
        for grant in tool.grants:
            if grant.permission != WRITE:
                continue
            count = await self._count(grant, held)
            if count != 0:
                found.append(AuditFinding(FindingKind.WRITE_GRANT, tool.id, grant, count))
        return found

    async def _count(self, holder: Grant, held: "_PermissionTrees") -> int | None:
        """Return how many accounts of a holder lack the permission; None for all users."""
        if holder.principal_type == "group":
            group = held.groups.get(holder.principal_id)
            return 0 if group is None else await self._count_lacking(group, held)
        if holder.principal_id == EVERYBODY:
            return None
        user = await self._users.find(holder.principal_id)
        if user is None:
            return 0
        group_ids = (await self._users.list_group_ids([user])).get(user.id, ())
        return 0 if held.may_change(user, group_ids) else 1

    async def _count_lacking(self, group: Group, held: "_PermissionTrees") -> int:
        if held.is_default(CHANGE_PERMISSION) or _allows(group.permissions, CHANGE_PERMISSION):
            return 0
        return await self._groups.count_members_outside(group.id, held.changing)


@dataclass(frozen=True, slots=True)
class _PermissionTrees:
    """The default permissions, and the groups that add permissions."""

    defaults: PermissionTree
    groups: Mapping[str, Group]

    def is_default(self, leaf: str) -> bool:
        return _allows(self.defaults, leaf)

    @property
    def changing(self) -> Sequence[str]:
        """The ids of the groups whose members may change the source of tools."""
        return [group.id for group in self.groups.values() if _allows(group.permissions, CHANGE_PERMISSION)]

    def may_change(self, user: User, group_ids: Iterable[str]) -> bool:
        """Whether a user has the permission; the rule of `Permissions.effective_permissions` for one leaf."""
        if user.role is Role.ADMIN or self.is_default(CHANGE_PERMISSION):
            return True
        return not set(self.changing).isdisjoint(group_ids)


def _allows(tree: PermissionTree, leaf: str) -> bool:
    return tree.get("workspace", {}).get(leaf, False)
