"""One plugin that is really loaded, for tests that call it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from gatewayd.plugins.runtime.instance import PluginInstance
from tests.fakes.plugins.memory import Plugged, make_registry, plugin_of, scope_of


@asynccontextmanager
async def running(
    content: str, plugin_id: str = "p", **fields: Any
) -> AsyncIterator[tuple[PluginInstance, Plugged]]:
    plugin = plugin_of(plugin_id, content, **fields)
    async with make_registry(plugin) as plugged:
        yield await plugged.registry.loaded(plugin.family, plugin_id), plugged


async def result_of(content: str, method: str, arguments: dict[str, Any] | None = None, **scope: Any) -> Any:
    async with running(content) as (loaded, _):
        return await loaded.call(method, scope_of(**scope), arguments or {})
