"""Tools of plugins: lookup with access control, and calls."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.tools.calls import OfferedTool
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.records import Plugin, PluginFamily
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.iterators import PluginIterator, join_texts


class LoadedPlugin(Protocol):
    """A loaded plugin; `plugins.runtime.handles.PluginHandle` is one."""

    @property
    def plugin(self) -> Plugin:
        """The record of the plugin."""
        ...

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether an attribute of its instance, class or module is true."""
        ...

    def keep_for(self, owner: object) -> None:
        """Keep the plugin loaded while an object exists that makes further calls."""
        ...

    async def call(self, method: str, scope: CallScope, arguments: Mapping[str, Any]) -> Any:
        """Call a method; raises GatewayError of the kind plugin_failed."""
        ...


class ToolPluginRegistry(Protocol):
    """Finds plugins; `plugins.registry.PluginManager` is one."""

    def find(self, family: PluginFamily, plugin_id: str) -> Plugin | None:
        """Return a plugin, or None."""
        ...

    async def loaded(self, family: PluginFamily, plugin_id: str) -> LoadedPlugin:
        """Return a loaded plugin; raise plugin_failed if it cannot be loaded."""
        ...


class PluginTool:
    """One method of a plugin as a `plugins.servers.records.Tool`."""

    def __init__(self, loaded: LoadedPlugin, spec: Mapping[str, Any]) -> None:
        self._loaded = loaded
        self._spec = dict(spec)
        loaded.keep_for(self)

    @property
    def name(self) -> str:
        """Name of the method."""
        return str(self._spec["name"])

    @property
    def source_id(self) -> str:
        """Id of the plugin."""
        return self._loaded.plugin.id

    @property
    def spec(self) -> dict[str, Any]:
        """JSON schema of the method."""
        return self._spec

    async def run(self, arguments: dict[str, Any], scope: CallScope) -> Any:
        """Call the method; join what it yields, and raise its exceptions with their own text."""
        try:
            value = await self._loaded.call(self.name, scope, arguments)
            return await join_texts(value) if isinstance(value, PluginIterator) else value
        except PluginError as failure:
            raise GatewayError(failure.kind, failure.text or failure.message) from failure


class PluginTools:
    """Finds the tools of plugins."""

    def __init__(self, registry: ToolPluginRegistry, access: PluginAccess | None = None) -> None:
        self._registry = registry
        self._access = access or PluginAccess()

    async def find(self, plugin_id: str, actor: Actor) -> Sequence[OfferedTool]:
        """Return the tools of a plugin that the actor may use.

        Raises not_found with one text for a missing and for a forbidden tool, and plugin_failed if it cannot
        be loaded.
        """
        plugin = self._registry.find(PluginFamily.TOOL, plugin_id)
        if plugin is None or not (plugin.is_active and self._access.may_read(actor, plugin)):
            raise GatewayError(ErrorKind.NOT_FOUND, "there is no such tool, or it is not yours to use")
        loaded = await self._registry.loaded(PluginFamily.TOOL, plugin_id)
        handles_files = loaded.flag("file_handler")
        is_cited = loaded.flag("citation", default=True)
        tools = [PluginTool(loaded, spec) for spec in loaded.plugin.specs]
        return [OfferedTool(tool.name, tool, is_cited, handles_files) for tool in tools]
