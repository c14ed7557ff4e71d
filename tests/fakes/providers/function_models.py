"""Chats with functions of plugins: a catalogue of plain and function models, filters, outlets and actions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from gatewayd.catalog.records import ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.chats.records import Chat, Message
from gatewayd.pipeline.filters.chain import PluginFilters
from gatewayd.pipeline.filters.outlets import OutletRunner
from gatewayd.pipeline.functions.actions import ActionRunner
from gatewayd.pipeline.functions.pipe_source import FunctionSource, refresh_listener
from gatewayd.pipeline.pipeline import NoTools, Pipeline
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.runs.message_updates import MessageUpdates
from gatewayd.pipeline.tools.calls import ToolEffects
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.registry import PluginManager, PluginSources
from gatewayd.plugins.tool_results import ResultMedia
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.plugins.memory import NotedEvents, make_registry, plugin_of
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model
from tests.fakes.storage.memory_chats import ChatState, MemoryChats, MemoryMessages


def function(plugin_id: str, source: str, **changes: Any) -> Plugin:
    """Return a function that is active for every model."""
    return plugin_of(plugin_id, source, **{"is_global": True, **changes})


@dataclass
class FunctionWorld:
    """Everything around a registry; models `m` and `n` are those of `source`."""

    registry: PluginManager
    tasks: TaskRegistry
    catalog: Catalog
    source: FakeSource
    functions: FunctionSource
    events: NotedEvents
    state: ChatState = field(default_factory=ChatState)
    runs_outlets: bool = False
    kept: list[ResultMedia] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.filters = PluginFilters(self.registry, self.catalog.find_record, lambda: self.runs_outlets)
        self.rewriting = MessageUpdates(MemoryChats(self.state), MemoryMessages(self.state))
        self.outlets = OutletRunner(self.filters, self.catalog, self.rewriting)
        effects = ToolEffects(self.events, self._keep)
        self.actions = ActionRunner(self.registry, self.catalog, self.rewriting, effects, self.tasks)
        self.pipeline = Pipeline(self.catalog, self.filters, NoAttachments(), NoTools())

    async def attach(self, model_id: str, **meta: Any) -> None:
        """Give a model a record with this `meta`."""
        await self.catalog.put_record(ModelRecord(model_id, "admin", model_id, meta=meta))

    async def store_chat(self, user_id: str, *messages: Message) -> None:
        """Keep a chat `c1` of a user."""
        await MemoryChats(self.state).add(Chat("c1", user_id, "Chat"), messages)

    def message(self, message_id: str) -> Message:
        """Return a stored message of `c1`."""
        found = self.state.message("c1", message_id)
        assert found is not None
        return found

    async def _keep(self, actor: object, item: ResultMedia) -> dict[str, Any]:
        self.kept.append(item)
        return {"type": item.type, "url": "/kept"}


@asynccontextmanager
async def function_world(
    *plugins: Plugin, seconds: float = 20.0, is_safe: bool = False
) -> AsyncIterator[FunctionWorld]:
    """Open a world with these functions, all of them ready to be called."""
    sources = PluginSources(has_builtin=False, is_safe=is_safe)
    async with make_registry(*plugins, sources=sources) as plugged:
        registry, tasks, events = plugged.registry, plugged.tasks, plugged.events
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        source = FakeSource(models=[make_model("m"), make_model("n")])
        functions = FunctionSource(registry, events, tasks, seconds=seconds)
        registry.subscribe(refresh_listener(catalog, functions))
        catalog.use([source, functions])
        await catalog.list(make_actor())
        yield FunctionWorld(registry, tasks, catalog, source, functions, events)


def ask(model: str = "m", *, stream: bool = False, **changes: Any) -> ChatRequest:
    """Return a request with one short question."""
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **changes.pop("body", {})}
    if stream:
        body["stream"] = True
    return ChatRequest(model=model, body=body, stream=stream, request_id="r1", **changes)
