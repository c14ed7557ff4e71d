"""Placement of plugins: in threads of the gateway, or in processes of their own."""

from dataclasses import dataclass

from gatewayd.plugins.isolation.loader import IsolationMode
from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.interfaces import PluginIsolation
from gatewayd.plugins.runtime.invoke import PluginError


@dataclass(frozen=True, slots=True)
class PluginPlacement:
    """Isolation mode of a plugin; None when its header names an unknown mode.

    `pid` and `memory` (bytes) describe its process while it runs.
    """

    mode: IsolationMode | None
    pid: int | None = None
    memory: int | None = None


class PluginPlaces:
    """Finds the placement of plugins; without `isolation` all run in threads."""

    def __init__(self, registry: PluginManager, isolation: PluginIsolation | None = None) -> None:
        self._registry = registry
        self._isolation = isolation

    def of(self, plugin: Plugin) -> PluginPlacement:
        """Return the placement of a plugin without loading it."""
        loaded = self._registry.find_loaded(plugin.family, plugin.id)
        if loaded is None:
            return PluginPlacement(self._intended(plugin))
        if not isinstance(loaded, IsolatedPlugin):
            return PluginPlacement(IsolationMode.THREAD)
        process = loaded.supervisor.process
        if process is None or not process.is_alive:
            return PluginPlacement(IsolationMode.PROCESS)
        return PluginPlacement(IsolationMode.PROCESS, process.pid, process.resident)

    def _intended(self, plugin: Plugin) -> IsolationMode | None:
        try:
            isolates = self._isolation is not None and self._isolation.applies_to(plugin)
        except PluginError:
            return None
        return IsolationMode.PROCESS if isolates else IsolationMode.THREAD
