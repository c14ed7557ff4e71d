"""Runs the calls of tools that a model makes, and applies what comes of them (6.5)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.pipeline.records import ToolStep
from gatewayd.pipeline.runs.interfaces import EventEmitter
from gatewayd.pipeline.tools.arguments import parse_arguments, read_arguments
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.invoke import run_guarded
from gatewayd.plugins.servers.records import Tool
from gatewayd.plugins.tool_results import ResultMedia, ToolResult, read_result

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})

Source = dict[str, Any]

KeepMedia = Callable[[Actor, ResultMedia], Awaitable[dict[str, Any]]]
"""Keeps bytes as a file of the actor and returns the reference to it: `{"type", "url", ...}`."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as a request offers it.

    `name` is the one that the model calls it by. Without `is_cited` its results are no sources. With
    `handles_files` the files of a request are not attached when it was used.
    """

    name: str
    tool: Tool
    is_cited: bool = True
    handles_files: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """The specification under the name of the offer."""
        return {**self.tool.spec, "name": self.name}

    @property
    def origin(self) -> str:
        """The name in sources: `<tool id>/<function>`."""
        return f"{self.tool.source_id}/{self.tool.name}"


@dataclass(frozen=True, slots=True)
class ToolEffects:
    """What the results of tools need: where events go, and what keeps files (None: nothing does)."""

    events: EventEmitter
    keep: KeepMedia | None = None

    async def tell(self, target: EventTarget, name: str, values: Sequence[Any]) -> None:
        """Send the event that adds values of its own name to a message, when there are any."""
        if values:
            await self.events.emit(target, {"type": name, "data": {name: list(values)}})

    async def show(self, scope: CallScope, result: ToolResult) -> tuple[str, tuple[dict[str, Any], ...]]:
        """Show the pages of a result and keep its files; return its text and the references to the files.

        The text says which files cannot be kept.
        """
        files, problems = [], []
        for item in result.media:
            try:
                files.append(await self._kept(scope.actor, item))
            except GatewayError as error:
                problems.append(f"The {item.type} of this result is lost: {error.message}.")
        await self.tell(scope.target, "embeds", result.embeds)
        await self.tell(scope.target, "files", files)
        return "\n".join(part for part in (result.text, *problems) if part), tuple(files)

    async def _kept(self, actor: Actor, item: ResultMedia) -> dict[str, Any]:
        """Return the reference to bytes that are kept as a file; not_configured when nothing keeps files."""
        if self.keep is None:
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "this gateway keeps no files")
        return await self.keep(actor, item)


class ToolCalls:
    """A `chat.interfaces.ToolRunner` for the tools of one request.

    Without `emits_sources` the sources of the results are left to the caller.
    """

    def __init__(
        self,
        tools: Mapping[str, OfferedTool],
        scope: CallScope,
        effects: ToolEffects,
        *,
        emits_sources: bool = True,
    ) -> None:
        self._tools = tools
        self._scope = scope
        self._effects = effects
        self._emits_sources = emits_sources

    async def run(self, calls: Sequence[Body], messages: list[Any]) -> Sequence[ToolStep]:
        """Run the calls at the same time; events of their results are sent in the order of the calls."""
        self._scope.messages = messages
        results = await asyncio.gather(*(self._result(call) for call in calls))
        return [await self._step(call, result) for call, result in zip(calls, results, strict=True)]

    async def _result(self, call: Body) -> ToolResult:
        function = as_mapping(call.get("function"))
        name = as_text(function.get("name"))
        offered = self._tools.get(name)
        if offered is None:
            return ToolResult(f'Error: Tool "{name}" not found.')
        try:
            arguments = read_arguments(as_text(function.get("arguments")), offered.spec)
            return await interpret_result(await offered.tool.run(arguments, self._scope), name)
        except GatewayError as error:
            return ToolResult(error.message)

    async def _step(self, call: Body, result: ToolResult) -> ToolStep:
        function = as_mapping(call.get("function"))
        name, arguments = as_text(function.get("name")), as_text(function.get("arguments"))
        said, files = await self._effects.show(self._scope, result)
        offered = self._tools.get(name)
        sources: tuple[Source, ...] = ()
        if self._emits_sources and offered is not None and offered.is_cited and said:
            sources = (source_of(offered, arguments, said),)
        for source in sources:
            await self._effects.events.emit(self._scope.target, {"type": "source", "data": source})
        return ToolStep(as_text(call.get("id")), name, arguments, said, files, result.embeds, sources)


async def interpret_result(value: Any, name: str) -> ToolResult:
    """Return what a result means; an object that cannot be written as text is told so.

    Objects of a plugin's own classes are written by code of the plugin, in a thread.
    """
    if type(value) in _PLAIN:
        outcome = run_guarded(lambda: read_result(value, name))
    else:
        outcome = await asyncio.to_thread(run_guarded, lambda: read_result(value, name))
    if isinstance(outcome.value, ToolResult):
        return outcome.value
    return ToolResult(f"Error: cannot read the result of {name}: {type(outcome.error).__name__}")


def source_of(offered: OfferedTool, arguments: str, said: str) -> Source:
    """Return the source for a result; one of a tool that is not cited has no name, and is not shown."""
    parameters = parse_arguments(arguments) or {}
    return {
        "source": {"name": offered.origin} if offered.is_cited else {},
        "document": [said],
        "metadata": [{"source": offered.origin, "parameters": parameters}],
        "tool_result": True,
    }
