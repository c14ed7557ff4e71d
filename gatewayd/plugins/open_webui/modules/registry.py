"""Implementation of `open_webui.models.functions`, `models.tools` and `utils.tools`: other plugins."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import Field

from gatewayd.plugins.open_webui.awaitable_records import AnswerDict, AnswerList, AnswerRecord, MappedRecord
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.modules.completions import scope_of
from gatewayd.plugins.open_webui.modules.users import id_of
from gatewayd.plugins.records import PluginFamily


class PluginMeta(MappedRecord):
    """Metadata of a plugin."""

    description: str | None = None
    manifest: dict[str, Any] = Field(default_factory=dict)


class FunctionModel(AnswerRecord):
    """A function: a pipe, filter or action."""

    id: str
    user_id: str = ""
    name: str = ""
    type: str = ""
    content: str = ""
    meta: PluginMeta = Field(default_factory=PluginMeta)
    is_active: bool = False
    is_global: bool = False
    updated_at: int = 0
    created_at: int = 0


class ToolModel(AnswerRecord):
    """A tool and the specifications of its methods."""

    id: str
    user_id: str = ""
    name: str = ""
    content: str = ""
    specs: list[Any] = Field(default_factory=list)
    meta: PluginMeta = Field(default_factory=PluginMeta)
    updated_at: int = 0
    created_at: int = 0


class FunctionsTable(HostTable):
    """The class of `Functions`."""

    @blocking
    async def get_function_by_id(self, id: str) -> FunctionModel | None:
        """Return a function; None when absent."""
        return FunctionModel.of(await self._host.plugins.find(PluginFamily.FUNCTION, id))

    @blocking
    async def get_functions(self, active_only: bool = False) -> AnswerList[FunctionModel]:
        """Return all functions, or only the active ones."""
        found = FunctionModel.each(await self._host.plugins.list(PluginFamily.FUNCTION, None))
        return AnswerList(function for function in found if function.is_active or not active_only)

    @blocking
    async def get_functions_by_type(self, type: str, active_only: bool = False) -> AnswerList[FunctionModel]:
        """Return the functions of a kind (`pipe`, `filter`, `action`), all or only the active ones."""
        found = FunctionModel.each(await self._host.plugins.list(PluginFamily.FUNCTION, type))
        return AnswerList(function for function in found if function.is_active or not active_only)

    @blocking
    async def get_function_valves_by_id(self, id: str) -> AnswerDict[str, Any] | None:
        """Return the stored valves of a function; None when absent."""
        return _mapping(await self._host.plugins.valves(PluginFamily.FUNCTION, id))

    @blocking
    async def update_function_valves_by_id(self, id: str, valves: Mapping[str, Any]) -> FunctionModel | None:
        """Merge into the valves of a function; return the function, None when absent."""
        if not await self._host.plugins.set_valves(PluginFamily.FUNCTION, id, valves):
            return None
        return FunctionModel.of(await self._host.plugins.find(PluginFamily.FUNCTION, id))

    @blocking
    async def get_user_valves_by_id_and_user_id(self, id: str, user_id: str) -> AnswerDict[str, Any]:
        """Return the user valves of a function; empty when nothing is set."""
        return AnswerDict(await self._host.plugins.user_valves(user_id, PluginFamily.FUNCTION, id) or {})

    @blocking
    async def update_user_valves_by_id_and_user_id(
        self, id: str, user_id: str, valves: Mapping[str, Any]
    ) -> AnswerDict[str, Any] | None:
        """Merge into the user valves of a function; return `valves`, None when not allowed."""
        done = await self._host.plugins.set_user_valves(user_id, PluginFamily.FUNCTION, id, valves)
        return AnswerDict(valves) if done else None


class ToolsTable(HostTable):
    """The class of `Tools`."""

    @blocking
    async def get_tool_by_id(self, id: str) -> ToolModel | None:
        """Return a tool; None when absent."""
        return ToolModel.of(await self._host.plugins.find(PluginFamily.TOOL, id))

    @blocking
    async def get_tools(self) -> AnswerList[ToolModel]:
        """Return all tools."""
        return ToolModel.each(await self._host.plugins.list(PluginFamily.TOOL, None))

    @blocking
    async def get_tool_valves_by_id(self, id: str) -> AnswerDict[str, Any] | None:
        """Return the stored valves of a tool; None when absent."""
        return _mapping(await self._host.plugins.valves(PluginFamily.TOOL, id))

    @blocking
    async def update_tool_valves_by_id(self, id: str, valves: Mapping[str, Any]) -> ToolModel | None:
        """Merge into the valves of a tool; return the tool, None when absent."""
        if not await self._host.plugins.set_valves(PluginFamily.TOOL, id, valves):
            return None
        return ToolModel.of(await self._host.plugins.find(PluginFamily.TOOL, id))

    @blocking
    async def get_user_valves_by_id_and_user_id(self, id: str, user_id: str) -> AnswerDict[str, Any]:
        """Return the user valves of a tool; empty when nothing is set."""
        return AnswerDict(await self._host.plugins.user_valves(user_id, PluginFamily.TOOL, id) or {})


class ToolFunctions:
    """The functions of `open_webui.utils.tools` that call the host."""

    def __init__(self, bridge: HostBridge) -> None:
        self._bridge = bridge

    async def get_tools(
        self,
        request: Any,
        tool_ids: Sequence[str],
        user: Any,
        extra_params: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, Any]]:
        """Return the tools that the user may call, by name, in the format of `__tools__`.

        Raises RuntimeError when request or user are not those of the running call.
        """
        del extra_params
        scope = scope_of(request)
        if scope is None:
            raise RuntimeError("cannot list tools outside of a call: pass __request__ as request")
        if id_of(user) != scope.actor.user_id:
            raise RuntimeError("cannot list tools: the user is not the user of the call")
        found = await self._bridge.reach(self._bridge.host.plugins.tools, list(tool_ids), scope)
        return {name: self._bridged(tool) for name, tool in found.items()}

    def _bridged(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool whose function runs on the loop of the daemon."""
        function = tool["callable"]

        async def call(**arguments: Any) -> Any:
            return await self._bridge.reach(function, **arguments)

        return {**tool, "callable": call}


async def get_builtin_tools(*_: Any, **__: Any) -> dict[str, Any]:
    """Return an empty dict: the gateway has no built-in tools."""
    return {}


async def get_terminal_tools(*_: Any, **__: Any) -> dict[str, Any]:
    """Return an empty dict: there are no terminal tools."""
    return {}


def get_async_tool_function_and_apply_extra_params(
    function: Callable[..., Any], extra_params: Mapping[str, Any]
) -> Callable[..., Awaitable[Any]]:
    """Return a coroutine function with the extra parameters that the function has bound to it."""
    named = set(inspect.signature(function).parameters)
    filled = {name: value for name, value in extra_params.items() if name in named}
    bound = functools.partial(function, **filled)

    async def call(*args: Any, **kwargs: Any) -> Any:
        if inspect.iscoroutinefunction(function):
            return await bound(*args, **kwargs)
        return await asyncio.to_thread(bound, *args, **kwargs)

    made = functools.wraps(function)(call)
    made.__function__, made.__extra_params__ = function, dict(extra_params)  # type: ignore[attr-defined]
    return made


def get_updated_tool_function(
    function: Callable[..., Any], extra_params: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return the function of a tool with some of its extra parameters replaced.

    The function of a tool of the gateway is returned unchanged: it has the parameters of its call.
    """
    inner = getattr(function, "__function__", None)
    given = getattr(function, "__extra_params__", None)
    if inner is None or given is None:
        return function
    return get_async_tool_function_and_apply_extra_params(inner, {**given, **extra_params})


def _mapping(values: Mapping[str, Any] | None) -> AnswerDict[str, Any] | None:
    return None if values is None else AnswerDict(values)


def make_functions(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.functions`."""
    functions = FunctionsTable(bridge, "open_webui.models.functions.Functions")
    return {"Functions": functions, "FunctionModel": FunctionModel}


def make_tools(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.tools`."""
    return {"Tools": ToolsTable(bridge, "open_webui.models.tools.Tools"), "ToolModel": ToolModel}


def make_tool_functions(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.tools`."""
    return {
        "get_tools": ToolFunctions(bridge).get_tools,
        "get_builtin_tools": get_builtin_tools,
        "get_terminal_tools": get_terminal_tools,
        "get_async_tool_function_and_apply_extra_params": get_async_tool_function_and_apply_extra_params,
        "get_updated_tool_function": get_updated_tool_function,
    }
