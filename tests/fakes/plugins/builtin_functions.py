"""The functions that come with the gateway, behind the door that all plugins come through."""

from typing import Any

from gatewayd.plugins.records import SWITCHES_KEY, Plugin, PluginFamily, PluginKind, PluginOrigin
from gatewayd.plugins.registry import PluginSources
from tests.fakes.plugins.memory import Plugged, make_registry


def with_builtin(plugin_id: str, *, make_request: Any = None, events: Any = None, **valves: Any) -> Plugged:
    """Return a registry with the built-in functions, where one is switched on and has these valves."""
    kept = Plugin(
        id=plugin_id,
        family=PluginFamily.FUNCTION,
        kind=PluginKind.FILTER,
        user_id="",
        name="",
        content="",
        origin=PluginOrigin.BUILTIN,
        valves=valves,
        meta={SWITCHES_KEY: {"is_active": True, "is_global": True}},
    )
    return make_registry(kept, sources=PluginSources(), make_request=make_request, events=events)
