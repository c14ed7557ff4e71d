"""Plugins of the store, of a directory and of the gateway itself, and their loading."""

from pathlib import Path

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.plugins.invoke import PluginFailure
from gatewayd.plugins.records import Family
from tests.fakes.plugins import make_registry, plugin_of, scope_of

FILTER = """
    class Filter:
        def inlet(self, body):
            body["seen"] = True
            return body
"""


async def test_a_stored_plugin_is_loaded_and_called() -> None:
    async with make_registry(plugin_of("seen", FILTER)) as plugged:
        loaded = await plugged.registry.loaded(Family.FUNCTION, "seen")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == {"seen": True}


async def test_an_unknown_plugin_is_not_found() -> None:
    async with make_registry() as plugged:
        with pytest.raises(GatewayError) as caught:
            await plugged.registry.loaded(Family.TOOL, "none")
        assert caught.value.kind is Kind.NOT_FOUND


async def test_one_broken_plugin_leaves_the_others_alone(tmp_path: Path) -> None:
    broken = plugin_of("broken", "class Filter:\n    x = missing\n")
    async with make_registry(broken, plugin_of("seen", FILTER)) as plugged:
        with pytest.raises(PluginFailure, match=r"filter broken: NameError: .*\(line 2\)"):
            await plugged.registry.loaded(Family.FUNCTION, "broken")
        loaded = await plugged.registry.loaded(Family.FUNCTION, "seen")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == {"seen": True}
        found = plugged.registry.find(Family.FUNCTION, "broken")
        assert found is not None
        assert found.problem is not None
        assert found.problem.doing == "load"
