"""Tests for gatewayd.plugins.audit."""

from collections.abc import Sequence

from gatewayd.accounts.records import NewGroup, PermissionTree, Role, User
from gatewayd.catalog.records import Grant
from gatewayd.plugins.audit import AuditFinding, PermissionAudit
from tests.fakes.accounts.services import Accounts
from tests.fakes.plugins.memory import make_registry, plugin_of

TOOL = "class Tools: pass"
MAY: PermissionTree = {"workspace": {"tools": True}}
IMPORTS: PermissionTree = {"workspace": {"tools_import": True}}


async def group_of(
    accounts: Accounts, name: str, *members: User, permissions: PermissionTree | None = None
) -> str:
    group, _ = await accounts.groups.ensure(NewGroup(name, permissions=permissions or {}))
    await accounts.groups.add_members(group.id, [user.id for user in members])
    return group.id


async def audited(accounts: Accounts, owner: str, *grants: Grant) -> Sequence[AuditFinding]:
    functions = plugin_of("f", "class Filter: pass", user_id=owner)
    async with make_registry(plugin_of("t", TOOL, user_id=owner, grants=grants), functions) as plugged:
        audit = PermissionAudit(plugged.registry, accounts.users, accounts.groups, accounts.permissions)
        return await audit.run()


def told(findings: Sequence[AuditFinding]) -> list[tuple[str, str | None, str, int | None]]:
    return [(one.kind.value, one.plugin_id, one.holder.principal_id, one.accounts) for one in findings]


async def test_owners_and_writers_without_the_permission_are_found() -> None:
    accounts = Accounts()
    ann, bob, root = [await accounts.add_user(name) for name in ("ann", "bob", "root")]
    makers = await group_of(accounts, "makers", bob, permissions=MAY)
    mixed = await group_of(accounts, "mixed", ann, bob)
    grants = [
        Grant("user", ann.id, "write"),
        Grant("user", ann.id, "read"),
        Grant("user", bob.id, "write"),
        Grant("user", "gone", "write"),
        Grant("group", makers, "write"),
        Grant("group", mixed, "write"),
        Grant("group", "gone", "write"),
        Grant("user", "*", "write"),
        Grant("user", "*", "read"),
    ]
    assert told(await audited(accounts, ann.id, *grants)) == [
        ("owner", "t", ann.id, 1),
        ("write_grant", "t", ann.id, 1),
        ("write_grant", "t", mixed, 1),
        ("write_grant", "t", "*", None),
    ]
    boss = await accounts.add_user("boss", Role.ADMIN)
    for fine in (bob.id, boss.id, "control:root", ""):
        assert told(await audited(accounts, fine)) == []
    # Once everybody has the permission, what is left is what everybody may write.
    await accounts.permissions.set_defaults(MAY, by="test")
    assert told(await audited(accounts, root.id, *grants)) == [("write_grant", "t", "*", None)]


async def test_who_only_imports_is_found() -> None:
    accounts = Accounts()
    ann, bob = [await accounts.add_user(name) for name in ("ann", "bob")]
    importers = await group_of(accounts, "importers", ann, bob, permissions=IMPORTS)
    await group_of(accounts, "makers", bob, permissions={"workspace": {"tools": True, "tools_import": True}})
    assert told(await audited(accounts, bob.id)) == [("import_permission", None, importers, 1)]
    await accounts.permissions.set_defaults(IMPORTS, by="test")
    assert told(await audited(accounts, bob.id)) == [
        ("import_permission", None, "*", None),
        ("import_permission", None, importers, 1),
    ]
