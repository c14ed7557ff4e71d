"""Runs the tool calls of a model and applies their results (gatewayd-plugins(7), RESULTS)."""

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
"""Stores bytes as a file of the actor and returns its reference: `{"type", "url", ...}`."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as a request offers it.

    `name` is the name that the model uses. Without `is_cited` its results are no sources. With
    `handles_files` the files of a request are not attached after a call of the tool.
    """

    name: str
    tool: Tool
    is_cited: bool = True
    handles_files: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """The tool's schema under the offered name."""
        return {**self.tool.spec, "name": self.name}

    @property
    def origin(self) -> str:
        """Name in sources: `<tool id>/<function>`."""
        return f"{self.tool.source_id}/{self.tool.name}"


@dataclass(frozen=True, slots=True)
class ToolEffects:
    """Services for the effects of results: event emitter and media storage (None: media cannot be stored)."""

    events: EventEmitter
    keep: KeepMedia | None = None

    async def tell(self, target: EventTarget, name: str, values: Sequence[Any]) -> None:
        """Emit an event that adds values to a message, if there are any; `name` is its type and key."""
        if values:
            await self.events.emit(target, {"type": name, "data": {name: list(values)}})

    async def show(self, scope: CallScope, result: ToolResult) -> tuple[str, tuple[dict[str, Any], ...]]:
        """Emit the pages and files of a result; return its text and the references to its files.

        The text names the files that cannot be stored.
        """
        files, problems = [], []
        for item in result.media:
            try:
                files.append(await self._kept(scope.actor, item))
            except GatewayError as error:
                problems.append(f"The {item.type} of this result cannot be stored: {error.message}.")
        await self.tell(scope.target, "embeds", result.embeds)
        await self.tell(scope.target, "files", files)
        return "\n".join(part for part in (result.text, *problems) if part), tuple(files)

    async def _kept(self, actor: Actor, item: ResultMedia) -> dict[str, Any]:
        """Return the reference to bytes stored as a file; raise not_configured without media storage."""
        if self.keep is None:
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "this gateway stores no files")
        return await self.keep(actor, item)


class ToolCalls:
    """The `pipeline.interfaces.ToolRunner` for the tools of one request.

    Without `emits_sources` the caller handles the sources of the results.
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
        """Run the calls concurrently; emit the events of their results in the order of the calls."""
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
        text, files = await self._effects.show(self._scope, result)
        offered = self._tools.get(name)
        sources: tuple[Source, ...] = ()
        if self._emits_sources and offered is not None and offered.is_cited and text:
            sources = (source_of(offered, arguments, text),)
        for source in sources:
            await self._effects.events.emit(self._scope.target, {"type": "source", "data": source})
        return ToolStep(as_text(call.get("id")), name, arguments, text, files, result.embeds, sources)


async def interpret_result(value: Any, name: str) -> ToolResult:
    """Interpret the return value of a tool; an object that cannot be converted to text becomes an error text.

    Objects of a plugin's own classes are converted in a thread, because code of the plugin runs.
    """
    if type(value) in _PLAIN:
        outcome = run_guarded(lambda: read_result(value, name))
    else:
        outcome = await asyncio.to_thread(run_guarded, lambda: read_result(value, name))
    if isinstance(outcome.value, ToolResult):
        return outcome.value
    return ToolResult(f"Error: cannot read the result of {name}: {type(outcome.error).__name__}")


def source_of(offered: OfferedTool, arguments: str, text: str) -> Source:
    """Return the source for a result; the source of an uncited tool has no name and is not shown."""
    parameters = parse_arguments(arguments) or {}
    return {
        "source": {"name": offered.origin} if offered.is_cited else {},
        "document": [text],
        "metadata": [{"source": offered.origin, "parameters": parameters}],
        "tool_result": True,
    }
