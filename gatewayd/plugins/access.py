"""Access to plugins: administrators manage functions, access lists protect tools.

A source runs with the rights of the gateway. A change of the source of a tool requires the permission
`workspace.tools` at that moment. Ownership and write grants are not enough: both outlast the permission.
See gatewayd-plugins(7), SECURITY.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from gatewayd.accounts.permissions import is_exempt, require
from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import READ, WRITE, allowed_grants, covers
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.plugins.records import Plugin, PluginFamily

PUBLIC_SHARING: Final = "public_tools"
"""The `sharing` permission to grant a tool to all users."""

CurrentActor = Callable[[Actor], Awaitable[Actor]]
"""Reads the rights of an actor again; `accounts.current.CurrentRights.of` is the implementation."""


async def _as_given(actor: Actor) -> Actor:
    return actor


class PluginAccess:
    """Decides from roles, ownership, access lists and permissions.

    The control socket bypasses access lists, as do administrators with `bypass_admins`. `current` reads the
    rights of an actor again before a plugin is changed.
    """

    def __init__(self, *, bypass_admins: bool = True, current: CurrentActor = _as_given) -> None:
        self._bypass_admins = bypass_admins
        self.current = current

    def may_read(self, actor: Actor, plugin: Plugin) -> bool:
        """Whether an actor may use a plugin; every actor may use functions, through models."""
        return plugin.family is PluginFamily.FUNCTION or self._allows(actor, plugin, READ)

    def may_write(self, actor: Actor, plugin: Plugin) -> bool:
        """Whether an actor may change the name, valves and access list of a plugin, and remove it."""
        if plugin.family is PluginFamily.FUNCTION:
            return actor.is_admin
        return self._allows(actor, plugin, WRITE)

    def check_read(self, actor: Actor, plugin: Plugin) -> None:
        """Raise not_found for a tool that the actor may not read."""
        if not self.may_read(actor, plugin):
            raise not_found(plugin.family.value, plugin.id)

    def check_write(self, actor: Actor, plugin: Plugin) -> None:
        """Raise not_found for a tool that the actor may not read, forbidden for one it may not change."""
        self.check_read(actor, plugin)
        if not self.may_write(actor, plugin):
            reason = "it belongs to another user"
            raise GatewayError(
                ErrorKind.FORBIDDEN, f"cannot change {plugin.family.value} {plugin.id!r}: {reason}"
            )

    def check_source(self, actor: Actor, plugin: Plugin) -> None:
        """Raise as `check_write`, and forbidden for a tool without the permission `workspace.tools`."""
        self.check_write(actor, plugin)
        if plugin.family is PluginFamily.TOOL:
            require(actor, "workspace", "tools")

    def granted(self, actor: Actor, wanted: Iterable[Grant], held: Iterable[Grant] = ()) -> tuple[Grant, ...]:
        """Return the wanted grants on a tool that are in `held` or that the actor may give.

        A write grant requires the permission `workspace.tools`. The other grants are dropped.
        """
        kept = frozenset(held)
        given = allowed_grants(actor, wanted, kept, public=PUBLIC_SHARING)
        if actor.may("workspace", "tools"):
            return given
        return tuple(grant for grant in given if grant in kept or grant.permission != WRITE)

    def check_create(self, actor: Actor, family: PluginFamily) -> None:
        """Raise forbidden without a permission to install: `workspace.tools` or `workspace.tools_import`.

        Functions require an administrator.
        """
        if family is PluginFamily.TOOL:
            if not actor.may("workspace", "tools_import"):
                require(actor, "workspace", "tools")
        else:
            check_admin(actor)

    def _allows(self, actor: Actor, plugin: Plugin, permission: str) -> bool:
        if is_exempt(actor, bypass_admins=self._bypass_admins):
            return True
        if plugin.user_id and plugin.user_id == actor.user_id:
            return True
        return any(covers(grant, actor, permission) for grant in plugin.grants)


def check_admin(actor: Actor) -> None:
    """Raise forbidden for an actor that is not an administrator."""
    if not actor.is_admin:
        raise GatewayError(ErrorKind.FORBIDDEN, "cannot do this: only administrators may")
