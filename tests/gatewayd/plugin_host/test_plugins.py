"""Tests for gatewayd.plugin_host.plugins."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.errors import GatewayError
from gatewayd.plugins.records import PluginFamily, render_plugin
from tests.fakes.plugins.host_services import Hosting, Wishes, hosting
from tests.fakes.plugins.memory import actor_of, plugin_of, readable_by, scope_of

FILTER = """
    from pydantic import BaseModel

    class Filter:
        class Valves(BaseModel):
            loud: int = 1
            kind: str = "x"

        class UserValves(BaseModel):
            polite: bool = False

        def __init__(self):
            self.valves = self.Valves()

        def inlet(self, body):
            return body
"""

TOOLS = '''
    class Tools:
        def add(self, a: int, b: int) -> int:
            """Add two numbers."""
            return a + b
'''

FUNCTION, TOOL = PluginFamily.FUNCTION, PluginFamily.TOOL


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Hosting]:
    plugins = [
        plugin_of("shout", FILTER),
        plugin_of("echo", "class Pipe:\n    def pipe(self, body):\n        return 'x'\n"),
        plugin_of("sealed", FILTER, locked="cannot read its valves"),
        plugin_of("adder", TOOLS),
        plugin_of("shared", TOOLS, grants=readable_by("*")),
    ]
    async with hosting(tmp_path, Wishes(plugins)) as opened:
        for plugin in (each for each in plugins if each.locked is None):
            await opened.plugged.registry.loaded(plugin.family, plugin.id)
        yield opened


async def test_records(made: Hosting) -> None:
    plugins = made.host.plugins
    assert [each["id"] for each in await plugins.list(FUNCTION, None)] == ["echo", "sealed", "shout"]
    assert [each["id"] for each in await plugins.list(FUNCTION, "filter")] == ["sealed", "shout"]
    assert await plugins.list(FUNCTION, "event") == []
    assert [each["id"] for each in await plugins.list(TOOL, None)] == ["adder", "shared"]
    found = made.plugged.registry.find(FUNCTION, "shout")
    assert found is not None
    assert await plugins.find(FUNCTION, "shout") == render_plugin(found)
    assert await plugins.find(TOOL, "shout") is None


async def test_valves(made: Hosting) -> None:
    plugins = made.host.plugins
    assert await plugins.valves(FUNCTION, "shout") == {}
    assert await plugins.set_valves(FUNCTION, "shout", {"loud": 3})
    assert await plugins.set_valves(FUNCTION, "shout", {"kind": "y"})
    assert await plugins.valves(FUNCTION, "shout") == {"loud": 3, "kind": "y"}
    assert await plugins.valves(FUNCTION, "none") is None
    assert not await plugins.set_valves(FUNCTION, "none", {"loud": 3})
    with pytest.raises(GatewayError):
        await plugins.set_valves(FUNCTION, "shout", {"loud": "very"})


async def test_valves_that_cannot_be_read_are_not_none_at_all(made: Hosting) -> None:
    with pytest.raises(GatewayError, match="cannot read its valves"):
        await made.host.plugins.valves(FUNCTION, "sealed")


async def test_the_valves_of_users(made: Hosting) -> None:
    plugins, ann = made.host.plugins, made.ann.id
    assert await plugins.user_valves(ann, FUNCTION, "shout") is None
    assert await plugins.set_user_valves(ann, FUNCTION, "shout", {"polite": True})
    assert await plugins.user_valves(ann, FUNCTION, "shout") == {"polite": True}
    assert await plugins.user_valves(made.admin.id, FUNCTION, "shout") is None
    assert await plugins.user_valves("nobody", FUNCTION, "shout") is None
    assert not await plugins.set_user_valves("nobody", FUNCTION, "shout", {"polite": True})
    assert not await plugins.set_user_valves(ann, FUNCTION, "none", {})
    # A tool that is not the user's.
    assert not await plugins.set_user_valves(ann, TOOL, "adder", {})


async def test_tools_are_those_of_the_user(made: Hosting) -> None:
    scope = scope_of(actor_of("ann"))
    found = await made.host.plugins.tools(["adder", "shared", "none"], scope)
    assert list(found) == ["add"]
    assert (found["add"]["tool_id"], found["add"]["spec"]["name"]) == ("shared", "add")
    assert await found["add"]["callable"](a=1, b=2) == 3
