"""Who may use and change which plugin (6.6): functions are the administrators', tools have access lists."""

from gatewayd.accounts.permissions import is_exempt, require
from gatewayd.accounts.records import Actor
from gatewayd.catalog.grants import READ, WRITE, covers
from gatewayd.errors import GatewayError, Kind, not_found
from gatewayd.plugins.records import Family, Plugin


class PluginAccess:
    """Decides from roles, ownership and access lists.

    With `bypass_admins` administrators may everything. So may whoever holds the control socket.
    """

    def __init__(self, *, bypass_admins: bool = True) -> None:
        self._bypass_admins = bypass_admins

    def may_read(self, actor: Actor, plugin: Plugin) -> bool:
        """Tell whether an actor may use a plugin; functions are used through models, by everybody."""
        return plugin.family is Family.FUNCTION or self._allows(actor, plugin, READ)

    def may_write(self, actor: Actor, plugin: Plugin) -> bool:
        """Tell whether an actor may change a plugin and see its source and valves."""
        if plugin.family is Family.FUNCTION:
            return actor.is_admin
        return self._allows(actor, plugin, WRITE)

    def check_read(self, actor: Actor, plugin: Plugin) -> None:
        """Raise not_found for a tool that the actor may not even know."""
        if not self.may_read(actor, plugin):
            raise not_found(plugin.family.value, plugin.id)

    def check_write(self, actor: Actor, plugin: Plugin) -> None:
        """Raise not_found for a tool that the actor may not know, forbidden for what it may not change."""
        self.check_read(actor, plugin)
        if not self.may_write(actor, plugin):
            whose = "it is somebody else's"
            raise GatewayError(Kind.FORBIDDEN, f"cannot change {plugin.family.value} {plugin.id!r}: {whose}")

    def check_create(self, actor: Actor, family: Family) -> None:
        """Raise forbidden, naming what is missing, for who may not install a plugin."""
        if family is Family.TOOL:
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
    """Raise forbidden for everybody but administrators."""
    if not actor.is_admin:
        raise GatewayError(Kind.FORBIDDEN, "cannot do this: only administrators may")
