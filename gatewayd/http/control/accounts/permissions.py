"""Routes of `/v1/permissions`: default permissions, those of groups, and the effective ones of a user."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from aiohttp import web

from gatewayctl.wire import permissions as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.accounts import permissions as trees
from gatewayd.accounts.groups import CHANGE_LOCK, Groups
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.records import Group, GroupChange, PermissionTree, Role, User
from gatewayd.accounts.users import Users
from gatewayd.errors import invalid
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, author, control_reply
from gatewayd.http.routes import Route

DEFAULTS: Final = "default permissions"


class ControlPermissionRoutes:
    """Routes of permissions on the control socket."""

    def __init__(
        self, permissions: Permissions, groups: Groups, users: Users, writes: WriteTransactions
    ) -> None:
        self._permissions = permissions
        self._groups = groups
        self._users = users
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_PERMISSIONS, self.list),
            serve(routes.SET_PERMISSIONS, self.set),
            serve(routes.RESET_PERMISSIONS, self.reset),
            serve(routes.EXPLAIN_PERMISSIONS, self.explain),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `PermissionList`: the defaults, or with `?group=` the leaves of that group."""
        ref = request.query.get("group")
        if ref is None:
            return control_reply(
                wire.PermissionList(permissions=list(self._defaults(self._permissions.defaults())))
            )
        group = await self._groups.resolve(ref)
        return control_reply(wire.PermissionList(permissions=_of_group(group)))

    async def set(self, request: web.Request) -> web.StreamResponse:
        """Take `PermissionChange`, answer `PermissionsWritten` with the named leaves."""
        wanted = await read_model(request, wire.PermissionChange)
        partial = trees.check(_tree(wanted.values))
        if wanted.group is not None:
            return await self._change_group(request, wanted.group, partial, list(wanted.values))
        async with self._writes.block(request, "permission set", DEFAULTS, alone=CHANGE_LOCK) as dry_run:
            before = await self._permissions.read_defaults()
            after = trees.overlay(before, partial)
            after = await self._permissions.set_defaults(after, author(request))
            note_change(request, DEFAULTS, wanted.values, _named(before))
        return self._written(before, after, list(wanted.values), dry_run=dry_run)

    async def reset(self, request: web.Request) -> web.StreamResponse:
        """Take `PermissionReset`, answer `PermissionsWritten` with the named leaves."""
        wanted = await read_model(request, wire.PermissionReset)
        named = trees.check(_tree(dict.fromkeys(wanted.names, False)))
        if wanted.group is not None:
            return await self._strip_group(request, wanted.group, named, wanted.names)
        async with self._writes.block(request, "permission reset", DEFAULTS, alone=CHANGE_LOCK) as dry_run:
            before, initial = await self._permissions.read_defaults(), self._permissions.initial()
            chosen = {
                section: {leaf: initial[section][leaf] for leaf in leaves}
                for section, leaves in (named or initial).items()
            }
            after = await self._permissions.set_defaults(trees.overlay(before, chosen), author(request))
            note_change(request, DEFAULTS, _named(chosen), _named(before))
        return self._written(before, after, wanted.names, dry_run=dry_run)

    async def explain(self, request: web.Request) -> web.StreamResponse:
        """Answer `Explanation` for a user."""
        user = await self._users.resolve(request.match_info["ref"])
        groups = await self._groups.list(user.id)
        rows = explain(self._permissions, user, groups)
        return control_reply(wire.Explanation(user=user.email, role=user.role.value, permissions=rows))

    async def _change_group(
        self, request: web.Request, ref: str, partial: PermissionTree, names: Sequence[str]
    ) -> web.Response:
        async with self._writes.block(
            request, "permission set", f"group {ref}", alone=CHANGE_LOCK
        ) as dry_run:
            before = await self._groups.resolve(ref)
            merged = trees.copy(before.permissions)
            for section, leaves in partial.items():
                merged[section] = {**merged.get(section, {}), **leaves}
            group = await self._groups.change(before.id, GroupChange(permissions=merged))
            note_change(request, group.name, _named(partial), _named(before.permissions))
        return _group_written(before, group, names, dry_run=dry_run)

    async def _strip_group(
        self, request: web.Request, ref: str, named: PermissionTree, names: Sequence[str]
    ) -> web.Response:
        async with self._writes.block(
            request, "permission reset", f"group {ref}", alone=CHANGE_LOCK
        ) as dry_run:
            before = await self._groups.resolve(ref)
            kept = {
                section: {leaf: leaves[leaf] for leaf in leaves if leaf not in named.get(section, {})}
                for section, leaves in before.permissions.items()
            }
            change = GroupChange(permissions=kept if names else {})
            group = await self._groups.change(before.id, change)
            note_change(request, group.name, {"removed": list(names) or "every permission"})
        return _group_written(before, group, names, dry_run=dry_run)

    def _written(
        self, before: PermissionTree, after: PermissionTree, names: Sequence[str], *, dry_run: bool
    ) -> web.Response:
        rows = [row for row in self._defaults(after) if row.name in names]
        outcome = Outcome.UNCHANGED if before == after else Outcome.CHANGED
        return control_reply(wire.PermissionsWritten(outcome=outcome, dry_run=dry_run, permissions=rows))

    def _defaults(self, tree: PermissionTree) -> Sequence[wire.Permission]:
        initial = self._permissions.initial()
        return [
            wire.Permission(
                name=f"{section}.{leaf}", allowed=allowed, origin="default", initial=initial[section][leaf]
            )
            for section, leaf, allowed in _leaves(tree)
        ]


def explain(permissions: Permissions, user: User, groups: Sequence[Group]) -> list[wire.Explained]:
    """Return each permission of a user with its origins: the role, and groups by name."""
    own = permissions.effective_permissions(user, ())
    whole = permissions.effective_permissions(user, groups)
    base = "administrator" if user.role is Role.ADMIN else "default"
    rows = []
    for section, leaf, allowed in _leaves(whole):
        by = [base] if own[section][leaf] else []
        by += [group.name for group in groups if group.permissions.get(section, {}).get(leaf)]
        rows.append(wire.Explained(name=f"{section}.{leaf}", allowed=allowed, allowed_by=by))
    return rows


def _of_group(group: Group) -> list[wire.Permission]:
    return [
        wire.Permission(name=f"{section}.{leaf}", allowed=allowed, origin="group", initial=False)
        for section, leaf, allowed in _leaves(group.permissions)
    ]


def _group_written(before: Group, group: Group, names: Sequence[str], *, dry_run: bool) -> web.Response:
    rows = [row for row in _of_group(group) if row.name in names]
    outcome = Outcome.UNCHANGED if before.permissions == group.permissions else Outcome.CHANGED
    return control_reply(
        wire.PermissionsWritten(outcome=outcome, dry_run=dry_run, group=group.name, permissions=rows)
    )


def _leaves(tree: PermissionTree) -> Iterator[tuple[str, str, bool]]:
    for section, leaves in tree.items():
        for leaf, allowed in leaves.items():
            yield section, leaf, allowed


def _named(tree: PermissionTree) -> dict[str, bool]:
    return {f"{section}.{leaf}": allowed for section, leaf, allowed in _leaves(tree)}


def _tree(values: Mapping[str, bool]) -> PermissionTree:
    tree: PermissionTree = {}
    for name, value in values.items():
        section, separator, leaf = name.partition(".")
        if not separator:
            raise invalid(f"cannot accept {name!r}: expected SECTION.NAME", param=name)
        tree.setdefault(section, {})[leaf] = value
    return tree
