"""Tests for gatewayd.assembly.plugin_host."""

from contextlib import AsyncExitStack
from pathlib import Path

from gatewayd.assembly.gateway import assemble, reload
from gatewayd.assembly.plugin_host import make_gateway_host
from gatewayd.settings import load


async def test_plugins_see_the_settings_that_are_in_force_and_no_secret(state: Path) -> None:
    given = {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false", "OPENAI_API_KEYS": ""}
    async with AsyncExitStack() as stack:
        gateway = await assemble(load(None, given), stack)
        host = make_gateway_host(gateway.services)
        assert host.data_dir == state / "plugin-data"
        assert await host.settings.get("TASK_MODEL") == ""
        await reload(gateway, load(None, {**given, "TASK_MODEL": "small"}))
        assert await host.settings.get("TASK_MODEL") == "small"
        assert await host.settings.get("WEBUI_SECRET_KEY") is None
        assert "TOOL_SERVER_CONNECTIONS" not in await host.settings.all()
