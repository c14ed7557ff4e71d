"""Runs over a real database, the real pipeline and the real events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.chats.records import Chat, Message, MessageState
from gatewayd.chats.run_writer import RESTARTED, RunMessageWriter
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.events.records import EventTarget
from gatewayd.events.service import EventService
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.pipeline.runs.executor import GATEWAY_STOPPED
from gatewayd.pipeline.runs.interfaces import RunOptions
from gatewayd.pipeline.runs.service import RunService
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import sqlite
from gatewayd.storage.message_events import TortoiseMessageEvents
from gatewayd.storage.messages import TortoiseMessages
from gatewayd.storage.users import TortoiseUsers
from gatewayd.tasks import TaskRegistry
from tests.fakes.accounts.records import user
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers.models import FakeSource, make_model
from tests.fakes.storage.chat_runs import OWNER, Stores, asking, make_catalog, make_runs
from tests.fakes.storage.events import EventSite, payloads


@dataclass
class Paused(FakeSource):
    """Streams two pieces, with a wait between them."""

    def __post_init__(self) -> None:
        self.go_on = asyncio.Event()
        self.begun = 0

    async def stream(self, body: Body, model: Model, context: CallContext) -> AsyncIterator[CompletionChunk]:
        try:
            yield _piece("one ")
            self.begun += 1
            await self.go_on.wait()
            yield _piece("two")
        finally:
            self.closed_streams += 1


def _piece(content: str) -> CompletionChunk:
    return CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": content}}]}])


@dataclass
class Kept:
    """Runs, and what they keep."""

    runs: RunService
    tasks: TaskRegistry
    stores: Stores
    source: Paused
    site: EventSite

    async def message(self, message_id: str, chat_id: str = "c") -> Message:
        found = await self.stores.messages.find(chat_id, message_id)
        assert found is not None
        return found

    async def ended(self) -> None:
        while self.tasks.started():
            await asyncio.sleep(0.001)

    async def begun(self, count: int = 1) -> None:
        while self.source.begun < count:
            await asyncio.sleep(0.001)


@asynccontextmanager
async def kept(file: Path) -> AsyncIterator[Kept]:
    async with Database.open(sqlite(file)) as database:
        stores = Stores(TortoiseChats(), TortoiseMessages(), TortoiseMessageEvents(), database)
        if await stores.chats.find("c") is None:
            await TortoiseUsers().add(user("owner"), None)
            question = Message(id="q", parent_id=None, role="user", content="What is it?")
            for chat_id in ("c", *(f"c{number}" for number in range(10))):
                await stores.chats.add(
                    Chat(id=chat_id, user_id="owner", title="A chat", current_id="q"), [question]
                )
        tasks, site = TaskRegistry(), EventSite()
        source = Paused(models=[make_model("m")])
        catalog = await make_catalog(source, tasks)
        pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
        events = EventService(stores.effects, site.hub, site.calls, site.deferred)
        runs = make_runs(stores, catalog, pipeline, events, tasks)
        yield Kept(runs, tasks, stores, source, site)
        await tasks.close()


async def test_answer_is_kept_and_told(migrated_copy: Path) -> None:
    async with kept(migrated_copy) as world:
        listener = world.site.hub.subscribe("owner", last_id=None, chat_id=None)
        await world.runs.start(asking(), OWNER)
        world.source.go_on.set()
        await world.ended()
        message = await world.message("a")
        assert (message.content, message.done, message.parent_id) == ("one two", True, "q")
        frames = payloads(await listener.next())
        told = [frame["data"] for frame in frames if frame.get("message_id") == "a"]
        assert told[0] == {"type": "chat:active", "data": {"active": True}}
        assert told[-2]["data"]["content"] == "one two"
        assert told[-1] == {"type": "chat:active", "data": {"active": False}}
        listener.close()


async def test_many_runs_at_once_are_all_kept(migrated_copy: Path) -> None:
    async with kept(migrated_copy) as world:
        world.runs.configure(RunOptions(is_saved_often=True))
        places = [(f"c{number % 10}", f"a{number}") for number in range(200)]
        starts = [world.runs.start(asking(chat_id=chat, id=message), OWNER) for chat, message in places]
        await asyncio.gather(*starts)
        await world.begun(200)
        world.source.go_on.set()
        await asyncio.wait_for(world.ended(), 120)
        for chat, message in places:
            assert (await world.message(message, chat)).content == "one two"


async def test_what_plugins_write_meanwhile_is_kept(migrated_copy: Path) -> None:
    async with kept(migrated_copy) as world:
        await world.runs.start(asking(), OWNER)
        await world.begun()
        target = EventTarget("owner", "c", "a")
        events = EventService(world.stores.effects, world.site.hub, world.site.calls, world.site.deferred)
        for number in range(5):
            await events.emit(target, {"type": "status", "data": {"description": str(number), "done": False}})
        world.source.go_on.set()
        await world.ended()
        message = await world.message("a")
        assert [item["description"] for item in message.items["statusHistory"]] == list("01234")
        assert message.content == "one two"


async def test_end_of_the_gateway_is_written_before_the_database_closes(migrated_copy: Path) -> None:
    async with kept(migrated_copy) as world:
        places = [f"a{number}" for number in range(20)]
        for message_id in places:
            await world.runs.start(asking(id=message_id), OWNER)
        await world.begun(20)
    async with kept(migrated_copy) as world:
        for message_id in places:
            message = await world.message(message_id)
            assert (message.content, message.done, message.state) == ("one ".strip(), True, MessageState.IDLE)
            assert message.attributes["error"] == {"content": GATEWAY_STOPPED}


async def test_start_of_the_gateway_ends_what_died(migrated_copy: Path) -> None:
    async with kept(migrated_copy) as world:
        await world.runs.start(asking(), OWNER)
        await world.begun()
        # As a killed process would leave it.
        stores = world.stores
        assert await RunMessageWriter(stores.messages, stores.chats, stores.transactor).end_running() == 1
        message = await world.message("a")
        assert (message.done, message.attributes["error"]) == (True, {"content": RESTARTED})
