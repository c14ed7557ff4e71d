"""Serializers of functions, tools and tool servers in the format of Open WebUI, with their state."""

import re
from collections.abc import Iterable
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import render_grant
from gatewayd.http.public.files.owners import OwnerFinder
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.records import Plugin, PluginFamily, render_plugin
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.servers.records import ToolServer

RenderedPlugin = dict[str, Any]

_USER_VALVES: Final = re.compile(r"^[ \t]*class\s+UserValves\b", re.MULTILINE)


class PluginSerializer:
    """Serializer of plugins for actors. It loads no plugin."""

    def __init__(self, registry: PluginManager, access: PluginAccess, owners: OwnerFinder) -> None:
        self._registry = registry
        self._access = access
        self._owners = owners

    def shown(self, actor: Actor, plugin: Plugin, *, has_source: bool = True) -> RenderedPlugin:
        """Return a plugin, with `origin` and `loaded` beside the fields of Open WebUI; tools also with
        `write_access`.

        Actors with write access also get `path`, `error`, the last problem (`{"at", "doing", "message"}` or
        None), `missing`, the imported names that the gateway does not have, and `left_behind`, the number of
        stopped calls that still run.
        """
        loaded = self._registry.find_loaded(plugin.family, plugin.id)
        shown = render_plugin(plugin, has_source=has_source)
        shown |= {"origin": plugin.origin.value, "loaded": loaded is not None}
        may_write = self._access.may_write(actor, plugin)
        if plugin.family is PluginFamily.TOOL:
            has_user_valves = _has_user_valves(plugin, loaded)
            shown["meta"]["has_user_valves"] = has_user_valves
            state = {"is_active": plugin.is_active, "has_user_valves": has_user_valves}
            shown |= {**state, "write_access": may_write}
        elif loaded is not None and loaded.flag("toggle"):
            shown["meta"]["toggle"] = True
        if may_write:
            shown |= self._details(plugin)
        return shown

    async def listed(
        self, actor: Actor, plugins: Iterable[Plugin], *, has_owner: bool = False
    ) -> list[RenderedPlugin]:
        """Return plugins without their sources, optionally with the owner as `user`."""
        found = list(plugins)
        shown = [self.shown(actor, plugin, has_source=False) for plugin in found]
        if has_owner:
            owners = await self._owners.shown(plugin.user_id for plugin in found)
            for one in shown:
                one["user"] = owners[one["user_id"]]
        return shown

    def _details(self, plugin: Plugin) -> RenderedPlugin:
        problem = plugin.problem
        error = None
        if problem is not None:
            error = {"at": problem.at, "doing": problem.doing, "message": problem.sentence}
        return {
            "path": plugin.path,
            "error": error,
            "missing": list(plugin.missing),
            "left_behind": self._registry.left_behind(plugin.family, plugin.id),
        }


def render_server(server: ToolServer) -> RenderedPlugin:
    """Return a tool server as a tool, with the id that `tool_ids` use."""
    server_id = server.tool_id
    return {
        "id": server_id,
        "user_id": server_id,
        "name": server.name,
        "meta": {"description": server.description},
        "access_grants": [render_grant(grant) for grant in server.grants],
        "updated_at": server.updated_at,
        "created_at": server.created_at,
        "has_user_valves": False,
        "write_access": False,
    }


def _has_user_valves(plugin: Plugin, loaded: PluginHandle | None) -> bool:
    """Return whether a plugin has user valves; for an unloaded plugin the source decides."""
    return bool(_USER_VALVES.search(plugin.content)) if loaded is None else loaded.has_user_valves()
