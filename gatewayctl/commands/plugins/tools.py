"""`gatewayctl tool`: plugins whose methods models call, and who may use them."""

from gatewayctl.client import ControlClient
from gatewayctl.command import DryRun, Noun, Session
from gatewayctl.commands import access_lists as access
from gatewayctl.commands.plugins import common as plugins
from gatewayctl.commands.plugins import valves
from gatewayctl.commands.plugins.common import (
    Owner,
    Paths,
    PluginBatch,
    PluginId,
    PluginInstallation,
    WantedId,
    WantedName,
)
from gatewayctl.wire import routes
from gatewayctl.wire.models import Holders
from gatewayctl.wire.plugins import PluginChange, PluginWritten

FAMILY = "tool"

noun = Noun("Tools: plugins whose methods models call, and who may use them.")


@noun.verb("list", "gatewayctl tool list", "gatewayctl tool list -o name")
def list_tools(session: Session) -> None:
    """List tools, those of the directory of plugins included."""
    session.show_all(session.client.call(routes.LIST_PLUGINS, FAMILY).plugins, plugins.TOOLS)


@noun.verb("install", "gatewayctl tool install weather.py --user ada@example.org")
def install(
    session: Session,
    paths: Paths,
    plugin_id: WantedId = None,
    name: WantedName = None,
    user: Owner = None,
    dry_run: DryRun = False,
) -> None:
    """Install tools, or update installed ones; their owners and administrators may use them.

    One that does not load is refused, and does not keep others from being installed. In a dry run what is new
    is loaded in a process of its own. Exits with 1 when one failed.
    """
    PluginBatch(session, FAMILY, PluginInstallation(plugin_id, name, user), dry_run=dry_run).run(paths)


@noun.verb("enable", "gatewayctl tool enable weather")
def enable(session: Session, plugin: PluginId, dry_run: DryRun = False) -> None:
    """Switch a tool on, as new ones are.

    Exits with 1 when it does not load.
    """
    plugins.switch(session, FAMILY, plugin, PluginChange(is_active=True), dry_run=dry_run)


@noun.verb("disable", "gatewayctl tool disable weather")
def disable(session: Session, plugin: PluginId, dry_run: DryRun = False) -> None:
    """Switch a tool off for everybody; its calls that run come to their end."""
    plugins.switch(session, FAMILY, plugin, PluginChange(is_active=False), dry_run=dry_run)


def _grant(client: ControlClient, plugin: str, request: Holders, *, dry_run: bool) -> PluginWritten:
    return client.call(routes.GRANT_PLUGIN, FAMILY, plugin, body=request, dry_run=dry_run)


def _revoke(client: ControlClient, plugin: str, request: Holders, *, dry_run: bool) -> PluginWritten:
    return client.call(routes.REVOKE_PLUGIN, FAMILY, plugin, body=request, dry_run=dry_run)


access.register(
    noun,
    access.Things(
        FAMILY,
        "The right to write is for name, description, valves and access list; the source takes the permission"
        " workspace.tools too.",
        PluginId,
        plugins.WRITTEN,
        _grant,
        _revoke,
    ),
    grants=["gatewayctl tool grant weather --group staff", "gatewayctl tool grant weather --everyone"],
    revocation="gatewayctl tool revoke-access weather --everyone",
)
plugins.register(noun, FAMILY)
noun.add_typer(valves.make_noun(FAMILY), name="valves")
