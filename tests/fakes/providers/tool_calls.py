"""Tools, a model that calls them, and where their events go, in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Grant, Model
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.events.records import EventTarget
from gatewayd.pipeline.tools.calls import OfferedTool, ToolCalls, ToolEffects
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.runtime.context import CallScope
from tests.fakes.providers.models import FakeSource, make_actor

Run = Callable[..., Awaitable[Any]]


def make_spec(name: str, /, **properties: Any) -> dict[str, Any]:
    """Return a specification whose parameters have these types, or these schemas."""
    schemas = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in properties.items()}
    return {
        "name": name,
        "description": f"Does {name}.",
        "parameters": {"type": "object", "properties": schemas, "required": list(schemas)},
    }


@dataclass
class FakeTool:
    """A tool that does what its function does, and remembers with what it was called."""

    spec: dict[str, Any]
    do: Run
    source_id: str = "kit"
    called: list[dict[str, Any]] = field(default_factory=list)
    scopes: list[CallScope] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    async def run(self, arguments: dict[str, Any], scope: CallScope) -> Any:
        self.called.append(arguments)
        self.scopes.append(scope)
        return await self.do(**arguments)


@dataclass
class FakeEvents:
    """Remembers events."""

    sent: list[tuple[EventTarget, Any]] = field(default_factory=list)

    async def emit(self, target: EventTarget, event: Any) -> bool:
        self.sent.append((target, event))
        return True

    @property
    def events(self) -> list[Any]:
        return [event for _, event in self.sent]


@dataclass
class FakeServers:
    """Tools of servers by the names that requests use; an error in place of tools is raised."""

    known: dict[str, Sequence[FakeTool] | Exception] = field(default_factory=dict)

    async def tools(self, names: Sequence[str], actor: Actor, scope: CallScope) -> Sequence[FakeTool]:
        found: list[FakeTool] = []
        for name in names:
            tools = self.known.get(name, ())
            if isinstance(tools, Exception):
                raise tools
            found += tools
        return found


def make_scope(actor: Actor | None = None, chat_id: str = "c1") -> CallScope:
    actor = actor or make_actor()
    return CallScope(actor, EventTarget(actor.user_id, chat_id, "m1" if chat_id else ""))


def make_runner(
    *tools: FakeTool, scope: CallScope | None = None, events: FakeEvents | None = None, **changes: Any
) -> ToolCalls:
    """Return what runs the calls of these tools."""
    offered = {tool.name: OfferedTool(tool.name, tool, **changes) for tool in tools}
    return ToolCalls(offered, scope or make_scope(), ToolEffects(events or FakeEvents()))


def make_call(name: str, arguments: Any = None, call_id: str = "call_1") -> Body:
    """Return a call as a message has it; arguments that are text are taken as they are."""
    written = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written}}


@dataclass
class Say:
    """One answer of a model: text, then calls."""

    text: str = ""
    calls: Sequence[Body] = ()
    usage: dict[str, Any] | None = None
    error: Exception | None = None


@dataclass
class ScriptedModel(FakeSource):
    """A source that says what it is told, one answer for each time it is asked; the last one again after."""

    answers: Sequence[Say] = ()
    gate: asyncio.Event | None = None

    def _next(self, body: Body) -> Say:
        self.asked.append(body)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        self.contexts.append(context)
        answer = self._next(body)
        if answer.error is not None:
            raise answer.error
        message: Body = {"role": "assistant", "content": answer.text or None}
        if answer.calls:
            message["tool_calls"] = list(answer.calls)
        reason = "tool_calls" if answer.calls else "stop"
        reply: Body = {"id": f"c{len(self.asked)}", "object": "chat.completion", "model": model.upstream_id}
        reply["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
        if answer.usage:
            reply["usage"] = answer.usage
        return Completion(body=reply)

    async def stream(self, body: Body, model: Model, context: CallContext) -> AsyncIterator[CompletionChunk]:
        self.contexts.append(context)
        answer = self._next(body)
        try:
            if answer.error is not None:
                raise answer.error
            for event in self._events(answer, f"c{len(self.asked)}"):
                yield CompletionChunk(events=[event])
        finally:
            self.closed_streams += 1

    def _events(self, answer: Say, answer_id: str) -> list[Body]:
        head = {"id": answer_id, "object": "chat.completion.chunk", "created": len(self.asked), "model": "up"}
        deltas: list[Body] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": letter} for letter in answer.text]
        for index, call in enumerate(answer.calls):
            function = call["function"]
            begin = {**call, "index": index, "function": {**function, "arguments": ""}}
            deltas.append({"tool_calls": [begin]})
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": letter}}]}
                for letter in function["arguments"]
            ]
        events = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
        reason = "tool_calls" if answer.calls else "stop"
        events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if answer.usage:
            events.append({**head, "choices": [], "usage": answer.usage})
        return events


@dataclass
class FakeKit:
    """A loaded plugin whose methods are functions."""

    id: str
    methods: dict[str, Run]
    specs: list[dict[str, Any]]
    owner: str = "u9"
    grants: Sequence[Grant] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    problem: Exception | None = None
    is_active: bool = True

    @property
    def plugin(self) -> Plugin:
        return Plugin(
            self.id,
            PluginFamily.TOOL,
            PluginKind.TOOL,
            self.owner,
            self.id,
            "",
            specs=self.specs,
            is_active=self.is_active,
            grants=tuple(self.grants),
        )

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self.attributes.get(name, default))

    def keep_for(self, owner: object) -> None:
        return

    async def call(self, method: str, scope: CallScope, arguments: Mapping[str, Any]) -> Any:
        return await self.methods[method](**arguments)


class FakeRegistry:
    """Finds kits."""

    def __init__(self, *kits: FakeKit) -> None:
        self.kits = {kit.id: kit for kit in kits}

    def find(self, family: PluginFamily, plugin_id: str) -> Plugin | None:
        kit = self.kits.get(plugin_id) if family is PluginFamily.TOOL else None
        return kit.plugin if kit else None

    async def loaded(self, family: PluginFamily, plugin_id: str) -> FakeKit:
        kit = self.kits[plugin_id]
        if kit.problem is not None:
            raise kit.problem
        return kit
