"""`gatewayctl function`: pipes, filters and actions."""

from typing import Annotated, Literal

import typer

from gatewayctl.command import DryRun, Noun, Session
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
from gatewayctl.wire.plugins import PluginChange

FAMILY = "function"

noun = Noun("Functions: plugins that answer as models (pipes), change chats (filters) or act on messages.")

ForAll = Annotated[
    bool | None,
    typer.Option(
        "--global/--no-global",
        help="Apply the filter or action to all models, or only to models that name it.",
    ),
]
Kind = Literal["pipe", "filter", "action"]


@noun.verb("list", "gatewayctl function list", "gatewayctl function list --kind filter -o name")
def list_functions(
    session: Session,
    kind: Annotated[Kind | None, typer.Option("--kind", help="List only functions of this kind.")] = None,
) -> None:
    """List functions, those of the directory of plugins and those that come with the gateway included."""
    session.show_all(session.client.call(routes.LIST_PLUGINS, FAMILY, kind=kind).plugins, plugins.FUNCTIONS)


@noun.verb(
    "install",
    "gatewayctl function install hello.py --enable --global",
    "gatewayctl function install functions",
)
def install(
    session: Session,
    paths: Paths,
    plugin_id: WantedId = None,
    name: WantedName = None,
    enable: Annotated[bool, typer.Option("--enable", help="Switch the function on.")] = False,
    for_all: ForAll = None,
    user: Owner = None,
    dry_run: DryRun = False,
) -> None:
    """Install functions, or update installed ones; a new function is off by default.

    One that does not load is refused, and does not keep others from being installed. In a dry run what is new
    is loaded in a process of its own. Exits with 1 when one failed.
    """
    wanted = PluginInstallation(plugin_id, name, user, True if enable else None, for_all)
    PluginBatch(session, FAMILY, wanted, dry_run=dry_run).run(paths)


@noun.verb("enable", "gatewayctl function enable rate_limit --global")
def enable(session: Session, plugin: PluginId, for_all: ForAll = None, dry_run: DryRun = False) -> None:
    """Switch a function on.

    Exits with 1 when it does not load.
    """
    request = PluginChange(is_active=True)
    if for_all is not None:
        request.is_global = for_all
    plugins.switch(session, FAMILY, plugin, request, dry_run=dry_run)


@noun.verb("disable", "gatewayctl function disable rate_limit")
def disable(session: Session, plugin: PluginId, dry_run: DryRun = False) -> None:
    """Switch a function off; its calls that run come to their end."""
    plugins.switch(session, FAMILY, plugin, PluginChange(is_active=False), dry_run=dry_run)


plugins.register(noun, FAMILY)
noun.add_typer(valves.make_noun(FAMILY), name="valves")
