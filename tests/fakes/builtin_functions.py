"""The functions that come with the gateway, behind the door that all plugins come through."""

from typing import Any

from gatewayd.plugins.records import SWITCHES, Family, Origin, Plugin, PluginKind
from gatewayd.plugins.registry import Sources
from tests.fakes.plugins import Plugged, make_registry


def with_builtin(plugin_id: str, *, make_request: Any = None, events: Any = None, **valves: Any) -> Plugged:
    """Return a registry with the built-in functions, where one is switched on and has these valves."""
    kept = Plugin(
        id=plugin_id,
        family=Family.FUNCTION,
        kind=PluginKind.FILTER,
        user_id="",
        name="",
        content="",
        origin=Origin.BUILTIN,
        valves=valves,
        meta={SWITCHES: {"is_active": True, "is_global": True}},
    )
    return make_registry(kept, sources=Sources(), make_request=make_request, events=events)
