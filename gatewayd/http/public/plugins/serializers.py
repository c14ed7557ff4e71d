"""Functions and tools as clients of this API family see them, with what is known of how they do."""

import re
from collections.abc import Iterable
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import render_grant
from gatewayd.http.public.files.owners import OwnerFinder
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.records import Plugin, PluginFamily
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.handles import PluginHandle
from gatewayd.plugins.serializers import render_plugin
from gatewayd.plugins.servers.records import ToolServer

RenderedPlugin = dict[str, Any]

_USER_VALVES: Final = re.compile(r"^[ \t]*class\s+UserValves\b", re.MULTILINE)


class PluginSerializer:
    """Shows plugins to actors; nothing is loaded for it."""

    def __init__(self, registry: PluginManager, access: PluginAccess, owners: OwnerFinder) -> None:
        self._registry = registry
        self._access = access
        self._owners = owners

    def shown(self, actor: Actor, plugin: Plugin, *, has_source: bool = True) -> RenderedPlugin:
        """Return a plugin, with `origin` and `loaded` beside what clients know; tools with `write_access`.

        Who may change it also sees `path`, `error`, the last problem (`{"at", "doing", "message"}` or None),
        `missing`, the names that it imports and the gateway does not have, and `left_behind`, the number of
        calls that still run after they were stopped.
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
        """Return plugins without their sources, on demand with `user`, the owner."""
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
    """Return a tool server among the tools, under the id by which `tool_ids` name it."""
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
    """Tell whether users can set something; of what is not loaded, by its source."""
    return bool(_USER_VALVES.search(plugin.content)) if loaded is None else loaded.has_user_valves()
