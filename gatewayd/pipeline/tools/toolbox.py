"""Tool box: selects the gateway's tools for a chat request and decides who runs their calls."""

import asyncio
import contextvars
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.json_access import as_mapping
from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.pipeline.documents.model_info import assigned_ids
from gatewayd.pipeline.documents.plugin_context import make_scope
from gatewayd.pipeline.interfaces import ToolUse
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.pipeline.tools.calls import OfferedTool, ToolCalls, ToolEffects, source_of
from gatewayd.pipeline.tools.plugin_tools import PluginTools
from gatewayd.pipeline.tools.prompt import parse_tool_choice, tool_choice_request
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.servers.records import SERVER, ToolSources

MAX_TOOL_IDS: Final = 100
MAX_NAME_CHARACTERS: Final = 64
"""Maximum length of a function name that all providers accept."""

PROMPT_MODES: Final = frozenset({"legacy", "default"})
"""Values of `params.function_calling` for models without native tool calls."""

TOOL_CHOICE_TASK: Final = "function_calling"

_INVALID_NAME_CHARACTER: Final = re.compile(r"[^A-Za-z0-9_-]")


class ToolCallable:
    """A tool as function models call it: keyword arguments in, the tool's return value out.

    It can be called on the event loop of any plugin; the tool always runs on the daemon's loop.
    """

    def __init__(self, offered: OfferedTool, scope: CallScope) -> None:
        self._offered = offered
        self._scope = scope
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()

    async def __call__(self, **arguments: Any) -> Any:
        """Run the tool; cancellation stops it."""
        work = self._offered.tool.run(arguments, self._scope)
        if asyncio.get_running_loop() is self._loop:
            return await work
        started = self._context.copy().run(asyncio.run_coroutine_threadsafe, work, self._loop)
        return await asyncio.wrap_future(started)


class PluginToolBox:
    """The `pipeline.interfaces.ToolBox` of plugins and tool servers.

    `iterations` is the maximum number of rounds of calls in one answer.
    """

    def __init__(
        self,
        plugins: PluginTools,
        servers: ToolSources | None,
        catalog: Catalog,
        effects: ToolEffects,
        models: TaskModels,
        iterations: int = 256,
    ) -> None:
        self._plugins = plugins
        self._servers = servers
        self._catalog = catalog
        self._effects = effects
        self._models = models
        self._iterations = iterations

    async def offer(self, request: ChatRequest, model: Model, actor: Actor) -> ToolUse | None:
        """Offer the tools in `tool_ids`, or those of the model's record.

        The caller's own `tools`, even an empty list, take precedence. The gateway runs the calls in a stored
        chat, with `execute_tools`, in the prompt mode, and for tools that the caller did not name; otherwise
        the caller gets them, as in Open WebUI.
        """
        asked = _tool_ids(request)
        if "tools" in request.body:
            return None
        record = self._catalog.find_record(model.id)
        names = assigned_ids(record, "toolIds") if asked is None else asked
        if not names:
            return None
        scope = request.scope or make_scope(request, model, record, actor)
        request.scope = scope
        tools = await self._tools(names, request if asked else None, scope)
        if not tools:
            return None
        scope.tools.update({tool.name: describe_tool(tool, scope) for tool in tools.values()})
        if as_mapping(request.options.get("params")).get("function_calling") in PROMPT_MODES:
            return await self._by_prompt(request, tools, scope)
        request.body["tools"] = [{"type": "function", "function": tool.spec} for tool in tools.values()]
        if asked and not _runs_in_gateway(request, scope):
            return ToolUse()
        return ToolUse(ToolCalls(tools, scope, self._effects), self._iterations)

    async def find(self, names: Sequence[str], scope: CallScope) -> Mapping[str, OfferedTool]:
        """Return the tools that the actor of a scope may use, by name; others are omitted."""
        return await self._tools(names, None, scope)

    async def _tools(
        self, names: Sequence[str], request: ChatRequest | None, scope: CallScope
    ) -> dict[str, OfferedTool]:
        """Return the tools by name; with a request, unusable tools add a warning."""
        found = await asyncio.gather(*(self._found(name, scope) for name in names[:MAX_TOOL_IDS]))
        tools: dict[str, OfferedTool] = {}
        for name, result in zip(names, found, strict=False):
            if isinstance(result, GatewayError):
                if request is not None:
                    request.warnings.append(f"cannot use tool {shorten(name)!r}: {result.message}")
                continue
            for tool in result:
                offered_name = _unique_name(tool, tools)
                tools[offered_name] = replace(tool, name=offered_name)
        return tools

    async def _found(self, name: str, scope: CallScope) -> Sequence[OfferedTool] | GatewayError:
        try:
            if not name.startswith(SERVER):
                return await self._plugins.find(name, scope.actor)
            known = await self._servers.tools([name], scope.actor, scope) if self._servers else ()
            if not known:
                return GatewayError(ErrorKind.NOT_FOUND, "there is no such tool, or it is not yours to use")
            return [OfferedTool(tool.name, tool) for tool in known]
        except GatewayError as error:
            return error

    async def _by_prompt(
        self, request: ChatRequest, tools: Mapping[str, OfferedTool], scope: CallScope
    ) -> ToolUse:
        """Ask a model which tools to call, call them, and return the results as sources."""
        messages = request.body.get("messages") or []
        asked = tool_choice_request([tool.spec for tool in tools.values()], messages)
        try:
            answer = await self._models.ask(TOOL_CHOICE_TASK, asked, request, scope.actor, dict(request.body))
        except GatewayError as error:
            request.warnings.append(f"cannot use the tools of this request: {error.message}")
            return ToolUse()
        calls = parse_tool_choice(answer, tools)
        runner = ToolCalls(tools, scope, self._effects, emits_sources=False)
        steps = list(await runner.run(calls, messages)) if calls else []
        sources = [source_of(tools[step.name], step.arguments, step.result) for step in steps if step.result]
        handles_files = any(tools[step.name].handles_files for step in steps)
        return ToolUse(sources=sources, handles_files=handles_files)


def _tool_ids(request: ChatRequest) -> Sequence[str] | None:
    given = request.options.get("tool_ids")
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise invalid("cannot accept tool_ids: expected a list of texts", param="tool_ids")
    if len(given) > MAX_TOOL_IDS:
        raise invalid(f"cannot accept tool_ids: at most {MAX_TOOL_IDS} are allowed", param="tool_ids")
    return list(dict.fromkeys(given))


def _runs_in_gateway(request: ChatRequest, scope: CallScope) -> bool:
    if request.options.get("execute_tools") is True:
        return True
    return bool(scope.target.chat_id and scope.target.message_id)


def _unique_name(tool: OfferedTool, taken: Mapping[str, object]) -> str:
    """Return a unique name for a tool, with the plugin's id as prefix if another tool has the name."""
    name = tool.name
    if name in taken:
        name = _INVALID_NAME_CHARACTER.sub("_", f"{tool.tool.source_id.removeprefix(SERVER)}_{name}")[
            :MAX_NAME_CHARACTERS
        ]
    number = 2
    while name in taken:
        name = f"{name[: MAX_NAME_CHARACTERS - 4]}_{number}"
        number += 1
    return name


def describe_tool(tool: OfferedTool, scope: CallScope) -> dict[str, Any]:
    """Return a tool as function models see it in `__tools__`."""
    return {
        "tool_id": tool.tool.source_id,
        "callable": ToolCallable(tool, scope),
        "spec": tool.spec,
        "metadata": {"file_handler": tool.handles_files, "citation": tool.is_cited},
    }
