"""Implementation of `HostPlugins`: records, valves and tools of other plugins."""

from collections.abc import Mapping, Sequence

from gatewayd.pipeline.tools.toolbox import PluginToolBox, describe_tool
from gatewayd.plugin_host.actors import PluginActors, none_if_not_found
from gatewayd.plugins.interfaces import Record
from gatewayd.plugins.records import PluginFamily, render_plugin
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.service import PluginService, check_unlocked
from gatewayd.plugins.user_valves import UserValves


class PluginsForPlugins:
    """A `plugins.interfaces.HostPlugins`.

    A plugin may read and change the records and valves of every other plugin. Tools and user valves are
    limited to the plugins that the user may use.
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
        """Return the plugins of a family and kind, sorted by id; empty for an unknown kind."""
        plugins = self._registry.list(family)
        return [render_plugin(plugin) for plugin in plugins if kind in (None, plugin.kind.value)]

    async def find(self, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return one plugin; None when absent."""
        plugin = self._registry.find(family, plugin_id)
        return None if plugin is None else render_plugin(plugin)

    async def valves(self, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return the stored valves without defaults; not_configured when they cannot be decrypted."""
        plugin = self._registry.find(family, plugin_id)
        if plugin is None:
            return None
        check_unlocked(plugin)
        return dict(plugin.valves)

    async def set_valves(self, family: PluginFamily, plugin_id: str, values: Record) -> bool:
        """Merge into the valves; False when the plugin is absent, invalid_request names the faulty field."""
        changed = self._plugins.set_valves(self._actors.unrestricted(), family, plugin_id, values)
        return await none_if_not_found(changed) is not None

    async def user_valves(self, user_id: str, family: PluginFamily, plugin_id: str) -> Record | None:
        """Return the user valves; None when nothing is set or the user may not use the plugin."""
        actor = await self._actors.of(user_id)
        if actor is None:
            return None
        return await none_if_not_found(self._user_valves.find(actor, family, plugin_id))

    async def set_user_valves(
        self, user_id: str, family: PluginFamily, plugin_id: str, values: Record
    ) -> bool:
        """Merge into the user valves; False when the user may not use the plugin.

        Raises invalid_request that names the faulty field.
        """
        actor = await self._actors.of(user_id)
        if actor is None:
            return False
        return await none_if_not_found(self._user_valves.change(actor, family, plugin_id, values)) is not None

    async def tools(self, tool_ids: Sequence[str], scope: CallScope) -> Mapping[str, Record]:
        """Return the tools that the user of the call may use, by name, in the format of `__tools__`."""
        found = await self._toolbox.find(tool_ids, scope)
        return {tool.name: describe_tool(tool, scope) for tool in found.values()}
