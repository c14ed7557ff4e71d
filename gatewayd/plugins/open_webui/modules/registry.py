"""`open_webui.models.functions`, `open_webui.models.tools` and `open_webui.utils.tools`: other plugins."""

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
    """What is told about a plugin beside its code."""

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
    """`Functions`."""

    @blocking
    async def get_function_by_id(self, id: str) -> FunctionModel | None:
        """Return a function."""
        return FunctionModel.of(await self._host.plugins.find(PluginFamily.FUNCTION, id))

    @blocking
    async def get_functions(self, active_only: bool = False) -> AnswerList[FunctionModel]:
        """Return all functions, or the active ones."""
        found = FunctionModel.each(await self._host.plugins.list(PluginFamily.FUNCTION, None))
        return AnswerList(function for function in found if function.is_active or not active_only)

    @blocking
    async def get_functions_by_type(self, type: str, active_only: bool = False) -> AnswerList[FunctionModel]:
        """Return the functions of a kind (`pipe`, `filter`, `action`), all or the active ones."""
        found = FunctionModel.each(await self._host.plugins.list(PluginFamily.FUNCTION, type))
        return AnswerList(function for function in found if function.is_active or not active_only)

    @blocking
    async def get_function_valves_by_id(self, id: str) -> AnswerDict[str, Any] | None:
        """Return what an administrator set in a function; None when there is no such function."""
        return _mapping(await self._host.plugins.valves(PluginFamily.FUNCTION, id))

    @blocking
    async def update_function_valves_by_id(self, id: str, valves: Mapping[str, Any]) -> FunctionModel | None:
        """Set the valves of a function; return the function."""
        if not await self._host.plugins.set_valves(PluginFamily.FUNCTION, id, valves):
            return None
        return FunctionModel.of(await self._host.plugins.find(PluginFamily.FUNCTION, id))

    @blocking
    async def get_user_valves_by_id_and_user_id(self, id: str, user_id: str) -> AnswerDict[str, Any]:
        """Return what a user set in a function."""
        return AnswerDict(await self._host.plugins.user_valves(user_id, PluginFamily.FUNCTION, id) or {})

    @blocking
    async def update_user_valves_by_id_and_user_id(
        self, id: str, user_id: str, valves: Mapping[str, Any]
    ) -> AnswerDict[str, Any] | None:
        """Set what a user has in a function; return it."""
        done = await self._host.plugins.set_user_valves(user_id, PluginFamily.FUNCTION, id, valves)
        return AnswerDict(valves) if done else None


class ToolsTable(HostTable):
    """`Tools`."""

    @blocking
    async def get_tool_by_id(self, id: str) -> ToolModel | None:
        """Return a tool."""
        return ToolModel.of(await self._host.plugins.find(PluginFamily.TOOL, id))

    @blocking
    async def get_tools(self) -> AnswerList[ToolModel]:
        """Return all tools."""
        return ToolModel.each(await self._host.plugins.list(PluginFamily.TOOL, None))

    @blocking
    async def get_tool_valves_by_id(self, id: str) -> AnswerDict[str, Any] | None:
        """Return what an administrator set in a tool; None when there is no such tool."""
        return _mapping(await self._host.plugins.valves(PluginFamily.TOOL, id))

    @blocking
    async def update_tool_valves_by_id(self, id: str, valves: Mapping[str, Any]) -> ToolModel | None:
        """Set the valves of a tool; return the tool."""
        if not await self._host.plugins.set_valves(PluginFamily.TOOL, id, valves):
            return None
        return ToolModel.of(await self._host.plugins.find(PluginFamily.TOOL, id))

    @blocking
    async def get_user_valves_by_id_and_user_id(self, id: str, user_id: str) -> AnswerDict[str, Any]:
        """Return what a user set in a tool."""
        return AnswerDict(await self._host.plugins.user_valves(user_id, PluginFamily.TOOL, id) or {})


class ToolFunctions:
    """What `open_webui.utils.tools` has of the gateway's own."""

    def __init__(self, gate: HostBridge) -> None:
        self._gate = gate

    async def get_tools(
        self,
        request: Any,
        tool_ids: Sequence[str],
        user: Any,
        extra_params: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, Any]]:
        """Return the functions of tools that the user may call, by name, as `__tools__` has them.

        RuntimeError when `request` is not the one of the call, or the user not that of the call.
        """
        del extra_params
        scope = scope_of(request)
        if scope is None:
            raise RuntimeError("cannot give tools outside of a call: the request is not that of __request__")
        if id_of(user) != scope.actor.user_id:
            raise RuntimeError("cannot give the tools of another user than the one of the call")
        found = await self._gate.reach(self._gate.host.plugins.tools, list(tool_ids), scope)
        return {name: self._reached(tool) for name, tool in found.items()}

    def _reached(self, tool: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool whose function runs on the daemon's loop, wherever it is called."""
        function = tool["callable"]

        async def call(**arguments: Any) -> Any:
            return await self._gate.reach(function, **arguments)

        return {**tool, "callable": call}


async def get_builtin_tools(*_: Any, **__: Any) -> dict[str, Any]:
    """Return the tools that the gateway itself has: none."""
    return {}


async def get_terminal_tools(*_: Any, **__: Any) -> dict[str, Any]:
    """Return the tools of a terminal: none."""
    return {}


def get_async_tool_function_and_apply_extra_params(
    function: Callable[..., Any], extra_params: Mapping[str, Any]
) -> Callable[..., Awaitable[Any]]:
    """Return a coroutine function with those extra parameters filled in that the function names."""
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
    """Return a tool's function with some of its extra parameters replaced.

    That of a tool of the gateway is returned as it is: it has the parameters of the call that it belongs to.
    """
    inner = getattr(function, "__function__", None)
    given = getattr(function, "__extra_params__", None)
    if inner is None or given is None:
        return function
    return get_async_tool_function_and_apply_extra_params(inner, {**given, **extra_params})


def _mapping(values: Mapping[str, Any] | None) -> AnswerDict[str, Any] | None:
    return None if values is None else AnswerDict(values)


def make_functions(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.functions`."""
    functions = FunctionsTable(gate, "open_webui.models.functions.Functions")
    return {"Functions": functions, "FunctionModel": FunctionModel}


def make_tools(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.tools`."""
    return {"Tools": ToolsTable(gate, "open_webui.models.tools.Tools"), "ToolModel": ToolModel}


def make_tool_functions(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.tools`."""
    return {
        "get_tools": ToolFunctions(gate).get_tools,
        "get_builtin_tools": get_builtin_tools,
        "get_terminal_tools": get_terminal_tools,
        "get_async_tool_function_and_apply_extra_params": get_async_tool_function_and_apply_extra_params,
        "get_updated_tool_function": get_updated_tool_function,
    }
