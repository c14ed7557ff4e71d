"""Other plugins for plugins: their records and valves, and the tools that a user may call."""

from collections.abc import Mapping, Sequence

from gatewayd.pipeline.tools.toolbox import PluginToolBox, describe_tool
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugin_host.not_found import none_if_not_found
from gatewayd.plugins.interfaces import Record
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.serializers import render_plugin
from gatewayd.plugins.service import PluginService, check_unlocked
from gatewayd.plugins.user_valves import UserValves


class PluginsForPlugins:
    """A `plugins.interfaces.HostPlugins`.

    Plugins are trusted with the records and valves of each other; tools and the valves of users are those
    that the user may use.
    """

    def __init__(
        self,
        registry: PluginManager,
        plugins: PluginService,
        user_valves: UserValves,
        toolbox: PluginToolBox,
        actors: PluginActors,
    ) -> None:
        self._registry = registry
        self._plugins = plugins
        self._user_valves = user_valves
        self._toolbox = toolbox
        self._actors = actors

    async def list(self, family: PluginFamily, kind: str | None) -> Sequence[Record]:
        """Return the plugins by id; none of a kind that there is not."""
        plugins = self._registry.list(family)
        return [render_plugin(plugin) for plugin in plugins if kind in (None, plugin.kind.value)]

    async def find(self, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return one plugin."""
        plugin = self._registry.find(family, plugin_id)
        return None if plugin is None else render_plugin(plugin)

    async def valves(self, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return what was set in a plugin, without the defaults; not_configured when it cannot be read."""
        plugin = self._registry.find(family, plugin_id)
        if plugin is None:
            return None
        check_unlocked(plugin)
        return dict(plugin.valves)

    async def set_valves(self, family: PluginFamily, plugin_id: str, values: Record) -> bool:
        """Merge into the valves of a plugin; invalid_request naming the field that does not fit."""
        changed = self._plugins.set_valves(self._actors.everybody(), family, plugin_id, values)
        return await none_if_not_found(changed) is not None

    async def user_valves(self, user_id: str, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return what a user set in a plugin that the user may use."""
        actor = await self._actors.of(user_id)
        if actor is None:
            return None
        return await none_if_not_found(self._user_valves.find(actor, family, plugin_id))

    async def set_user_valves(
        self, user_id: str, family: PluginFamily, plugin_id: str, values: Record
    ) -> bool:
        """Merge into what a user set; invalid_request naming the field that does not fit."""
        actor = await self._actors.of(user_id)
        if actor is None:
            return False
        return await none_if_not_found(self._user_valves.change(actor, family, plugin_id, values)) is not None

    async def tools(self, tool_ids: Sequence[str], scope: CallScope) -> Mapping[str, Record]:
        """Return the tools that the user of a call may use, by name, as `__tools__` has them."""
        found = await self._toolbox.find(tool_ids, scope)
        return {tool.name: describe_tool(tool, scope) for tool in found.values()}
