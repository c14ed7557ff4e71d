import inspect
import threading
from typing import Any

import pytest

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.runtime.context import RequestFacts
from gatewayd.plugins.runtime.requests import make_request
from tests.fakes.plugins.host import make_scope
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home


@pytest.fixture
async def module(installed: InstalledModules) -> Any:
    return (
        await load_at_home(
            "from open_webui.models.functions import Functions\n"
            "from open_webui.models.tools import Tools\n"
            "from open_webui.utils.tools import get_tools, get_builtin_tools, get_terminal_tools\n"
            "from open_webui.utils.tools import get_updated_tool_function as updated\n"
            "from open_webui.utils.tools import get_async_tool_function_and_apply_extra_params as applied\n"
        )
    )[0]


async def test_functions(module: Any) -> None:
    functions = module.Functions
    found = await in_thread(functions.get_function_by_id, "shout")
    assert (found.name, found.type, found.is_active) == ("Shout", "filter", True)
    assert await in_thread(functions.get_function_by_id, "adder") is None
    assert [f.id for f in await in_thread(functions.get_functions)] == ["shout"]
    assert [f.id for f in await in_thread(functions.get_functions_by_type, "filter", True)] == ["shout"]
    assert await in_thread(functions.get_functions_by_type, "pipe") == []


async def test_what_is_told_about_a_plugin_is_an_object_and_a_mapping(module: Any, host: PluginHost) -> None:
    meta = {"description": "adds", "manifest": {"version": "1"}, "further": True}
    await_for: Any = host.plugins
    await_for.kept["adder"]["meta"] = meta
    for tool in [
        await in_thread(module.Tools.get_tool_by_id, "adder"),
        *await in_thread(module.Tools.get_tools),
    ]:
        assert tool.meta.description == tool.meta["description"] == tool.meta.get("description") == "adds"
        assert tool.meta.manifest == {"version": "1"}
        assert (tool.meta.further, "further" in tool.meta, "none" in tool.meta) == (True, True, False)
        assert dict(tool.meta) == tool.meta.model_dump() == meta
    shout = await in_thread(module.Functions.get_function_by_id, "shout")
    assert (shout.meta.description, shout.meta.get("manifest")) == (None, {})


async def test_extra_parameters_of_a_tool_are_replaced(module: Any) -> None:
    async def tool(text: str, __user__: Any = None, __messages__: Any = None) -> list[Any]:
        return [text, __user__, __messages__]

    bound = module.applied(tool, {"__user__": "ada", "__messages__": [1]})
    again = module.updated(function=bound, extra_params={"__messages__": [2], "__files__": []})
    assert await again(text="x") == ["x", "ada", [2]]
    assert await bound(text="x") == ["x", "ada", [1]]
    assert module.updated(tool, {"__messages__": []}) is tool
    assert await module.get_terminal_tools(None) == {}


async def test_valves_of_functions(module: Any) -> None:
    functions = module.Functions

    async def plugin() -> Any:
        return await functions.get_function_valves_by_id("shout")

    assert await at_home(plugin) == {"loud": 3}
    assert await in_thread(functions.get_function_valves_by_id, "none") is None
    assert (await in_thread(functions.update_function_valves_by_id, "shout", {"loud": 4})).id == "shout"
    assert await in_thread(functions.get_function_valves_by_id, "shout") == {"loud": 4}
    assert await in_thread(functions.update_function_valves_by_id, "none", {}) is None
    assert await in_thread(functions.get_user_valves_by_id_and_user_id, "shout", "ada") == {}
    changed = await in_thread(functions.update_user_valves_by_id_and_user_id, "shout", "ada", {"x": 1})
    assert changed == {"x": 1}
    assert await in_thread(functions.get_user_valves_by_id_and_user_id, "shout", "ada") == {"x": 1}


async def test_tools(module: Any) -> None:
    tools = module.Tools
    assert [tool.id for tool in await (await in_thread(tools.get_tools))] == ["adder"]
    assert (await in_thread(tools.get_tool_by_id, "adder")).specs == [{"name": "add"}]
    assert await in_thread(tools.get_tool_by_id, "shout") is None
    assert await in_thread(tools.get_tool_valves_by_id, "adder") is None
    assert (await in_thread(tools.update_tool_valves_by_id, "adder", {"y": 2})).id == "adder"
    assert await in_thread(tools.get_tool_valves_by_id, "adder") == {"y": 2}
    assert await in_thread(tools.update_tool_valves_by_id, "none", {}) is None
    assert await in_thread(tools.get_user_valves_by_id_and_user_id, "adder", "ada") == {}


async def test_tools_of_a_call_run_on_the_daemons_loop(
    module: Any, installed: InstalledModules, host: PluginHost
) -> None:
    request = make_request(RequestFacts(), installed.app, make_scope("ada"))

    async def plugin() -> Any:
        tools = await module.get_tools(request, ["adder"], {"id": "ada"}, {"__user__": {}})
        return await tools["adder"]["callable"](a=1, b=2), tools["adder"]["spec"]

    assert await at_home(plugin) == (3, {"name": "add"})
    assert host.plugins.threads == [threading.current_thread().name]  # type: ignore[attr-defined]


async def test_tools_need_the_call_and_its_user(module: Any, installed: InstalledModules) -> None:
    request = make_request(RequestFacts(), installed.app, make_scope("ada"))
    with pytest.raises(RuntimeError, match="outside of a call"):
        await module.get_tools(None, ["adder"], {"id": "ada"}, {})
    with pytest.raises(RuntimeError, match="the user is not the user of the call"):
        await module.get_tools(request, ["adder"], {"id": "bob"}, {})
    assert await module.get_builtin_tools(request, {}) == {}


async def test_extra_parameters_are_filled_in(module: Any) -> None:
    def plain(a: int, __user__: dict[str, Any]) -> tuple[int, str, str]:
        """Add."""
        return a, __user__["id"], threading.current_thread().name

    async def later(a: int) -> int:
        return a

    extra = {"__user__": {"id": "ada"}, "__id__": "x"}
    made = module.applied(plain, extra)
    assert inspect.iscoroutinefunction(made)
    assert made.__doc__ == "Add."
    number, user, thread = await made(a=1)
    assert (number, user) == (1, "ada")
    assert thread != threading.current_thread().name
    assert await module.applied(later, extra)(a=2) == 2
