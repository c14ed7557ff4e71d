"""Tests for gatewayd.pipeline.tools.plugin_tools."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.tools.calls import ToolCalls, ToolEffects
from gatewayd.pipeline.tools.plugin_tools import PluginTools
from tests.fakes.plugins.memory import make_registry, plugin_of, readable_by
from tests.fakes.providers.models import make_actor
from tests.fakes.providers.tool_calls import FakeKit, FakeRegistry, make_call, make_scope, make_spec

USER = make_actor("u2", Role.USER, groups=("g1",))


async def greet(name: str) -> str:
    return f"Hello {name}"


def kit(*grants: Grant, owner: str = "u9", **attributes: object) -> FakeKit:
    return FakeKit("kit", {"greet": greet}, [make_spec("greet", name="string")], owner, grants, attributes)


async def test_a_method_is_a_tool() -> None:
    tools = await PluginTools(FakeRegistry(kit())).find("kit", make_actor())
    assert [(tool.name, tool.origin, tool.spec["description"]) for tool in tools] == [
        ("greet", "kit/greet", "Does greet.")
    ]
    assert await tools[0].tool.run({"name": "Ada"}, make_scope()) == "Hello Ada"
    assert (tools[0].is_cited, tools[0].handles_files) == (True, False)


async def test_attributes_of_the_plugin_hold_for_its_tools() -> None:
    tools = await PluginTools(FakeRegistry(kit(citation=False, file_handler=True))).find("kit", make_actor())
    assert (tools[0].is_cited, tools[0].handles_files) == (False, True)


@pytest.mark.parametrize(
    ("grants", "owner"),
    [
        ([], "u2"),
        ([Grant("user", "u2", "read")], "u9"),
        ([Grant("group", "g1", "read")], "u9"),
        ([Grant("user", "*", "read")], "u9"),
    ],
)
async def test_who_may_use_a_tool(grants: list[Grant], owner: str) -> None:
    assert await PluginTools(FakeRegistry(kit(*grants, owner=owner))).find("kit", USER)


@pytest.mark.parametrize(
    "known", [FakeRegistry(), FakeRegistry(kit()), FakeRegistry(kit(Grant("group", "g2", "read")))]
)
async def test_what_is_missing_and_what_is_not_yours_are_told_in_the_same_words(known: FakeRegistry) -> None:
    with pytest.raises(GatewayError) as caught:
        await PluginTools(known).find("kit", USER)
    assert caught.value.message == "there is no such tool, or it is not yours to use"


async def test_a_tool_that_is_switched_off_is_not_there() -> None:
    off = kit(owner="u2")
    off.is_active = False
    with pytest.raises(GatewayError, match="there is no such tool"):
        await PluginTools(FakeRegistry(off)).find("kit", USER)


async def test_a_plugin_that_does_not_load() -> None:
    broken = kit()
    broken.problem = GatewayError(ErrorKind.PLUGIN_FAILED, "cannot load it")
    with pytest.raises(GatewayError, match="cannot load it"):
        await PluginTools(FakeRegistry(broken)).find("kit", make_actor())


KIT = """
class Tools:
    citation = False

    async def greet(self, name: str, __user__: dict, __messages__: list, __event_emitter__) -> str:
        \"\"\"Greet somebody.

        :param name: who it is
        \"\"\"
        await __event_emitter__({"type": "status", "data": {"description": name}})
        return f"{__user__['name']} greets {name} after {len(__messages__)}"

    def add(self, a: int, b: int = 2) -> int:
        return a + b

    def count(self, n: int):
        yield from map(str, range(n))

    def fail(self):
        raise ValueError("no such city")

    def silent(self):
        raise ValueError

    def leave(self):
        raise SystemExit
"""


@pytest.fixture
async def calls() -> AsyncIterator[ToolCalls]:
    async with make_registry(plugin_of("kit", KIT, grants=readable_by("u2"))) as plugged:
        found = await PluginTools(plugged.registry).find("kit", USER)
        offered = {tool.name: tool for tool in found}
        yield ToolCalls(offered, make_scope(USER), ToolEffects(plugged.events))


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("greet", {"name": "Ada", "__user__": {}}, "u2 greets Ada after 1"),
        ("add", {"a": "1"}, "3"),
        ("add", {"a": 1, "b": 3, "c": 4}, "4"),
        ("count", {"n": 3}, "012"),
        ("fail", {}, "no such city"),
        ("leave", {}, "SystemExit"),
        ("silent", {}, "ValueError"),
        ("add", {}, "missing 1 required positional argument"),
    ],
)
async def test_methods_of_a_real_plugin(
    calls: ToolCalls, name: str, arguments: dict[str, object], result: str
) -> None:
    [step] = await calls.run([make_call(name, arguments)], [{"role": "user", "content": "x"}])
    assert result in step.result
    assert step.sources == ()
