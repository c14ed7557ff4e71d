"""Runs whose answers come from real pipes, with real filters and real events around them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.chats.records import Chat, Message
from gatewayd.pipeline.filters.chain import PluginFilters
from gatewayd.pipeline.filters.outlets import OutletRunner
from gatewayd.pipeline.functions.pipe_source import FunctionSource
from gatewayd.pipeline.pipeline import NoTools, Pipeline
from gatewayd.pipeline.runs.message_updates import MessageUpdates
from gatewayd.pipeline.runs.service import RunService
from gatewayd.plugins.records import Plugin
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.plugins.memory import make_registry, plugin_of
from tests.fakes.providers.models import FakeRecords
from tests.fakes.storage.chat_runs import ADMIN, Stores, asking, make_runs
from tests.fakes.storage.events import EventSite
from tests.fakes.storage.memory_chats import ChatState, MemoryChats, MemoryEffects, MemoryMessages

SOON = 20.0

SLOW = """
    import asyncio

    class Pipe:
        ended = False

        async def pipe(self, body, __event_emitter__, __task__=None):
            try:
                yield "so far"
                await __event_emitter__({"type": "status", "data": {"description": "waiting", "done": False}})
                await asyncio.Event().wait()
            finally:
                Pipe.ended = True
"""


@dataclass
class Site:
    """Runs over plugins; the administrator has the chat `c` with the question `q`."""

    state: ChatState
    tasks: TaskRegistry
    runs: RunService
    registry: Any

    def message(self) -> Message:
        found = self.state.message("c", "a")
        assert found is not None
        return found

    async def answer(self, model: str = "p", **options: Any) -> Message:
        await self.runs.start(asking(model=model, **options), ADMIN)
        async with asyncio.timeout(SOON):
            while self.tasks.started():
                await asyncio.sleep(0.001)
        return self.message()


@asynccontextmanager
async def site(*plugins: Plugin) -> AsyncIterator[Site]:
    state = ChatState()
    stores = Stores(MemoryChats(state), MemoryMessages(state), MemoryEffects(state))
    question = Message(id="q", parent_id=None, role="user", content="What is it?")
    await stores.chats.add(Chat(id="c", user_id="admin", title="A chat", current_id="q"), [question])
    events = EventSite(state).events
    async with make_registry(*plugins, events=events) as plugged:
        tasks, registry = plugged.tasks, plugged.registry
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        catalog.use([FunctionSource(registry, events, tasks)])
        await catalog.list(ADMIN)
        filters = PluginFilters(registry, catalog.find_record)
        outlets = OutletRunner(filters, catalog, MessageUpdates(stores.chats, stores.messages))
        pipeline = Pipeline(catalog, filters, NoAttachments(), NoTools())
        runs = make_runs(stores, catalog, pipeline, events, tasks, outlets)
        yield Site(state, tasks, runs, registry)
        await tasks.close()


def pipe(lines: str, head: str = "async def") -> Plugin:
    """Return the pipe `p` with these lines as its body."""
    body = "\n".join(f"        {line}" for line in lines.strip().splitlines())
    return plugin_of(
        "p", f"class Pipe:\n    {head} pipe(self, body, __event_emitter__=None, __task__=None):\n{body}"
    )


async def test_stop_reaches_a_pipe() -> None:
    async with site(plugin_of("p", SLOW)) as world:
        started = await world.runs.start(asking(model="p"), ADMIN)
        async with asyncio.timeout(SOON):
            while "statusHistory" not in world.message().items:
                await asyncio.sleep(0.001)
            assert await world.tasks.stop(started.task_ids[0])
            loaded = await world.registry.loaded("function", "p")
            while not loaded.value("ended"):
                await asyncio.sleep(0.001)
        assert (world.message().content, world.message().done) == ("so far", True)


async def test_text_that_a_pipe_emits_stays_when_it_returns_none() -> None:
    emitting = """
for word in ("one ", "two"):
    await __event_emitter__({"type": "message", "data": {"content": word}})
"""
    async with site(pipe(emitting)) as world:
        for stream in (True, False):
            message = await world.answer(stream=stream)
            assert (message.content, message.done, message.attributes.get("error")) == ("one two", True, None)


async def test_text_that_a_pipe_returns_takes_the_place_of_what_it_emitted() -> None:
    emitting = """
await __event_emitter__({"type": "message", "data": {"content": "emitted"}})
await __event_emitter__({"type": "status", "data": {"description": "done", "done": True}})
return "returned"
"""
    async with site(pipe(emitting)) as world:
        message = await world.answer()
        assert message.content == "returned"
        assert [item["description"] for item in message.items["statusHistory"]] == ["done"]


async def test_failure_of_a_pipe_is_in_the_message() -> None:
    async with site(pipe('yield "partial"\nraise ValueError("boom")', "def")) as world:
        message = await world.answer()
        assert message.content == "partial"
        assert "boom" in message.attributes["error"]["content"]
        assert message.done


async def test_answer_is_filtered_by_outlets() -> None:
    outlet = """
        class Filter:
            def outlet(self, body):
                body["messages"][-1]["content"] += "!"
                return body
    """
    async with site(pipe('return "hello"', "def"), plugin_of("f", outlet)) as world:
        message = await world.answer()
        assert message.content == "hello!"
        assert message.attributes["originalContent"] == "hello"


async def test_pipe_is_told_what_task_it_answers() -> None:
    titles = 'return "{\\"title\\": \\"Made by " + str(__task__) + "\\"}"'
    async with site(pipe(titles, "def")) as world:
        await world.answer(background_tasks={"title_generation": True})
        assert world.state.chats["c"].title == "Made by title_generation"
