"""What users set for themselves."""

import pytest

from gatewayd.accounts.records import Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.user_valves import UserValves
from tests.fakes.plugins.memory import actor_of, make_registry, plugin_of, readable_by

CONTENT = """
    from pydantic import BaseModel
    class Tools:
        class UserValves(BaseModel):
            tone: str = "dry"
            size: int = 1
        def run(self): pass
"""
READER, OTHER, ADMIN = actor_of("reader"), actor_of("other"), actor_of("admin", Role.ADMIN)


async def test_users_set_their_own_values() -> None:
    plugin = plugin_of("t", CONTENT, grants=readable_by("reader"))
    async with make_registry(plugin) as plugged:
        own = UserValves(plugged.registry, plugged.user_valves, PluginAccess())
        assert await own.find(READER, PluginFamily.TOOL, "t") is None
        schema = await own.schema(READER, PluginFamily.TOOL, "t")
        assert schema is not None
        assert set(schema["properties"]) == {"tone", "size"}
        assert await own.change(READER, PluginFamily.TOOL, "t", {"tone": "warm"}) == {"tone": "warm"}
        assert await own.change(READER, PluginFamily.TOOL, "t", {"size": 2}) == {"tone": "warm", "size": 2}
        assert await own.find(READER, PluginFamily.TOOL, "t") == {"tone": "warm", "size": 2}
        with pytest.raises(GatewayError) as caught:
            await own.change(READER, PluginFamily.TOOL, "t", {"size": "x"})
        assert caught.value.param == "size"


async def test_a_tool_that_one_may_not_use_is_not_found() -> None:
    plugin = plugin_of("t", CONTENT, grants=readable_by("reader"))
    async with make_registry(plugin) as plugged:
        own = UserValves(plugged.registry, plugged.user_valves, PluginAccess())
        for work in (own.find, own.schema):
            with pytest.raises(GatewayError) as caught:
                await work(OTHER, PluginFamily.TOOL, "t")
            assert caught.value.kind is ErrorKind.NOT_FOUND
        with pytest.raises(GatewayError) as caught:
            await own.find(READER, PluginFamily.TOOL, "none")
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_plugin_that_is_off_is_not_loaded_for_those_who_may_not_change_it() -> None:
    content = CONTENT.replace("class Tools", "class Filter")
    async with make_registry(plugin_of("f", content, is_active=False)) as plugged:
        own = UserValves(plugged.registry, plugged.user_valves, PluginAccess())
        for work in (
            own.schema(READER, PluginFamily.FUNCTION, "f"),
            own.change(READER, PluginFamily.FUNCTION, "f", {}),
        ):
            with pytest.raises(GatewayError) as caught:
                await work
            assert caught.value.kind is ErrorKind.NOT_FOUND
        assert plugged.registry.find_loaded(PluginFamily.FUNCTION, "f") is None
        assert await own.schema(ADMIN, PluginFamily.FUNCTION, "f") is not None
