"""Where plugins live."""

import os
from pathlib import Path

from gatewayd.plugins.isolation.loader import IsolationMode
from gatewayd.plugins.placement import PluginPlacement, PluginPlaces
from gatewayd.plugins.records import PluginFamily
from tests.fakes.plugins.isolated import Isolating
from tests.fakes.plugins.memory import make_registry, plugin_of

PLAIN = "class Pipe:\n    def pipe(self, body): return 'here'\n"


def asking(word: str) -> str:
    return f'"""\nisolation: {word}\n"""\n{PLAIN}'


async def test_places(tmp_path: Path) -> None:
    isolating = Isolating(tmp_path, mode=IsolationMode.THREAD)
    plain, apart = plugin_of("plain", PLAIN), plugin_of("apart", asking("process"), is_active=False)
    async with make_registry(plain, apart, isolation=isolating) as plugged:
        registry = plugged.registry
        places = PluginPlaces(registry, isolating(registry._loader._services, plugged.tasks))
        await registry.loaded(PluginFamily.FUNCTION, "plain")
        assert places.of(plain) == PluginPlacement(IsolationMode.THREAD)
        assert places.of(apart) == PluginPlacement(IsolationMode.PROCESS)
        assert places.of(plugin_of("wrong", asking("jail"))) == PluginPlacement(None)
        await registry.loaded(PluginFamily.FUNCTION, "apart")
        place = places.of(apart)
        assert place.mode is IsolationMode.PROCESS
        assert place.pid not in (None, os.getpid())
        assert (place.memory or 0) > 1 << 20
        assert PluginPlaces(registry).of(plugin_of("other", PLAIN)) == PluginPlacement(IsolationMode.THREAD)
