"""Runs over stored chats in memory: a scripted pipeline, listeners that remember, and everything around."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gatewayd.accounts.records import Actor, Role
from gatewayd.catalog.records import EVERYBODY, Grant, ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.chats.access import ChatAccess
from gatewayd.chats.interfaces import ChatStore, MessageStore
from gatewayd.chats.records import Chat, Message
from gatewayd.chats.renderer import render_branch
from gatewayd.chats.run_writer import RunMessageWriter
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.interfaces import MessageEffects
from gatewayd.events.records import EventTarget
from gatewayd.nodes.runs import LocalRuns
from gatewayd.pipeline.pipeline import NoFilters
from gatewayd.pipeline.records import ChatAnswer, ChatRequest, ToolStep
from gatewayd.pipeline.runs.control import TaskControl
from gatewayd.pipeline.runs.executor import RunServices
from gatewayd.pipeline.runs.interfaces import (
    ChatPipeline,
    EventEmitter,
    LoadConversation,
    RunOutlets,
    RunRegister,
)
from gatewayd.pipeline.runs.message_updates import MessageUpdates
from gatewayd.pipeline.runs.post_processor import PostProcessing
from gatewayd.pipeline.runs.service import RunService
from gatewayd.pipeline.tasks.background import BackgroundWork
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import Transactor
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model
from tests.fakes.storage.memory_chats import ChatState, MemoryChats, MemoryEffects, MemoryMessages

OWNER = make_actor("owner", Role.USER)
STRANGER = make_actor("stranger", Role.USER)
ADMIN = make_actor("admin")

Step = str | Body | ToolStep | Exception | asyncio.Event | Callable[[], Awaitable[object]]
"""A piece of text, an event of a stream, a tool that was run, a failure, a wait, or something to do."""


@dataclass
class FakeEvents:
    """Remembers what was emitted, and applies what persists of it."""

    effects: MemoryEffects
    told: list[tuple[EventTarget, dict[str, Any]]] = field(default_factory=list)
    withdrawn: list[EventTarget] = field(default_factory=list)

    def withdraw_calls(self, target: EventTarget) -> None:
        self.withdrawn.append(target)

    async def emit(self, target: EventTarget, event: Any) -> bool:
        where = (target.chat_id, target.message_id)
        if event["type"] == "message":
            await self.effects.append_content(*where, event["data"]["content"])
        elif event["type"] == "replace":
            await self.effects.replace_content(*where, event["data"]["content"])
        self.told.append((target, event))
        return True

    def types(self, message_id: str | None = None) -> list[str]:
        return [event["type"] for event in self.events(message_id)]

    def events(self, message_id: str | None = None, event_type: str | None = None) -> list[dict[str, Any]]:
        return [
            event
            for target, event in self.told
            if message_id in (None, target.message_id) and event_type in (None, event["type"])
        ]


@dataclass
class FakePipeline:
    """Answers by the script of a model; `""` is that of all others."""

    scripts: dict[str, Sequence[Step]] = field(default_factory=dict)
    sources: list[dict[str, Any]] = field(default_factory=list)
    asked: list[ChatRequest] = field(default_factory=list)
    closed: int = 0
    before: Callable[[], Awaitable[object]] | None = None
    """What happens before an answer begins."""

    async def run(self, request: ChatRequest, actor: Actor) -> ChatAnswer:
        self.asked.append(request)
        if self.before is not None:
            await self.before()
        script = self.scripts.get(request.model, self.scripts.get("", ("hello",)))
        if script and isinstance(script[0], GatewayError):
            raise script[0]
        answer = ChatAnswer(sources=list(self.sources), warnings=list(request.warnings))
        if request.stream:
            answer.chunks = self._chunks(script, answer)
            return answer
        texts = []
        for step in script:
            chunk = await self._do(step, answer)
            texts += [] if chunk is None else [chunk]
        said = "".join(text for text in texts if isinstance(text, str))
        extra = {name: value for text in texts if isinstance(text, dict) for name, value in text.items()}
        message = {"role": "assistant", "content": said}
        extra |= {"sources": [*self.sources, *extra.get("sources", [])]} if self.sources else {}
        answer.completion = Completion(
            body={"id": "c1", "choices": [{"index": 0, "message": message}], **extra}
        )
        return answer

    async def _chunks(
        self, script: Sequence[Step], answer: ChatAnswer
    ) -> AsyncGenerator[CompletionChunk, None]:
        try:
            for step in script:
                value = await self._do(step, answer)
                if isinstance(value, str):
                    yield CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": value}}]}])
                elif value is not None:
                    yield CompletionChunk(events=[value])
        finally:
            self.closed += 1

    async def _do(self, step: Step, answer: ChatAnswer) -> str | Body | None:
        match step:
            case Exception():
                raise step
            case asyncio.Event():
                await step.wait()
            case ToolStep():
                answer.steps.append(step)
            case str() | dict():
                return step
            case _:
                await step()
        return None


class FakeOwnedChats:
    """Finds chats of their owners, as the service does."""

    def __init__(self, chats: ChatStore, messages: MessageStore) -> None:
        self._access = ChatAccess(chats, admin_access=True)
        self._messages = messages

    async def owned(self, actor: Actor, chat_id: str) -> Chat:
        return await self._access.owned(actor, chat_id)

    async def branch(self, chat_id: str, message_id: str) -> list[dict[str, Any]]:
        return render_branch(await self._messages.branch(chat_id, message_id))


class RunPlaces:
    """Counts the places of runs; there are `limit`."""

    def __init__(self, limit: int = 1_000_000) -> None:
        self.limit = limit
        self.taken: list[str] = []

    def begin_run(self, account: str) -> Callable[[], None]:
        if len(self.taken) == self.limit:
            raise GatewayError(ErrorKind.RATE_LIMITED, "cannot take the request: there are too many")
        self.taken.append(account)
        return partial(self.taken.remove, account)


@dataclass
class World:
    """Everything that runs need, and a chat `c` of the owner with a question `q`."""

    state: ChatState
    pipeline: FakePipeline
    events: FakeEvents
    tasks: TaskRegistry
    source: FakeSource
    models: TaskModels
    runs: RunService
    stopping: TaskControl
    deferred: DeferredWrites
    room: RunPlaces

    def message(self, message_id: str = "a", chat_id: str = "c") -> Message:
        found = self.state.message(chat_id, message_id)
        assert found is not None
        return found

    def stored(self, message_id: str = "a") -> Message:
        """Return what is stored of a message, also while the database is away."""
        return self.state.messages["c"][message_id]

    async def ended(self) -> None:
        """Wait until every run is over."""
        while self.tasks.started():
            await asyncio.sleep(0)

    async def until(self, event_type: str, count: int = 1) -> None:
        """Wait until as many events of a type were told."""
        while len(self.events.events(event_type=event_type)) < count:
            await asyncio.sleep(0)


@dataclass
class Stores:
    """What keeps chats; in memory unless a test brings a database."""

    chats: ChatStore
    messages: MessageStore
    effects: MessageEffects
    transactor: Transactor = field(default_factory=Memory)


async def make_catalog(source: FakeSource, tasks: TaskRegistry) -> Catalog:
    """Return a catalogue whose models everybody may use."""
    everybody = (Grant("user", EVERYBODY, "read"),)
    records = FakeRecords(
        {model.id: ModelRecord(model.id, "admin", model.id, grants=everybody) for model in source.models}
    )
    catalog = Catalog(records, tasks, CatalogOptions())
    await catalog.load()
    catalog.use([source])
    await catalog.list(ADMIN)
    return catalog


def make_runs(
    stores: Stores,
    catalog: Catalog,
    pipeline: ChatPipeline,
    events: EventEmitter,
    tasks: TaskRegistry,
    outlets: RunOutlets | None = None,
    models: TaskModels | None = None,
    deferred: DeferredWrites | None = None,
    room: RunPlaces | None = None,
    register: RunRegister | None = None,
) -> RunService:
    """Return runs over their parts."""
    owned = FakeOwnedChats(stores.chats, stores.messages)
    deferred = deferred or DeferredWrites(tasks)
    rewriting = MessageUpdates(stores.chats, stores.messages, deferred)
    models = models or TaskModels(catalog, NoFilters())
    register = register or LocalRuns()
    background = BackgroundWork(models, stores.chats, stores.messages, events, deferred, register)
    after = PostProcessing(outlets or NoOutlets(), background, owned, rewriting, events)
    answers = RunMessageWriter(stores.messages, stores.chats, stores.transactor)
    desk = RunServices(
        pipeline,
        answers,
        stores.messages,
        stores.effects,
        events,
        tasks,
        deferred,
        room or RunPlaces(),
        register,
    )
    return RunService(desk, catalog, stores.chats, owned, after)


def make_plain_runs(catalog: Catalog, pipeline: ChatPipeline, tasks: TaskRegistry) -> RunService:
    """Return runs without any chat."""
    state = ChatState()
    effects = MemoryEffects(state)
    stores = Stores(MemoryChats(state), MemoryMessages(state), effects)
    return make_runs(stores, catalog, pipeline, FakeEvents(effects), tasks)


class NoOutlets:
    """Runs no filter."""

    async def run_for_run(
        self, request: ChatRequest, actor: Actor, conversation: LoadConversation
    ) -> list[dict[str, Any]] | None:
        """Leave the messages as they are."""
        return None


@asynccontextmanager
async def running_world(
    outlets: RunOutlets | None = None, register: RunRegister | None = None
) -> AsyncIterator[World]:
    """Open a world; close the tasks at the end."""
    state, tasks = ChatState(), TaskRegistry()
    effects = MemoryEffects(state)
    stores = Stores(MemoryChats(state), MemoryMessages(state), effects)
    await stores.chats.add(
        Chat(id="c", user_id="owner", title="A chat", current_id="q"),
        [Message(id="q", parent_id=None, role="user", content="What is it?")],
    )
    source = FakeSource(models=[make_model("m"), make_model("n"), make_model("tasks")])
    catalog = await make_catalog(source, tasks)
    pipeline, events = FakePipeline(), FakeEvents(effects)
    models = TaskModels(catalog, NoFilters())
    deferred = DeferredWrites(tasks)
    room = RunPlaces()
    runs = make_runs(stores, catalog, pipeline, events, tasks, outlets, models, deferred, room, register)
    stopping = TaskControl(tasks, FakeOwnedChats(stores.chats, stores.messages), LocalRuns())
    yield World(state, pipeline, events, tasks, source, models, runs, stopping, deferred, room)
    await deferred.close(0)
    await tasks.close()


def asking(*, stream: bool = True, model: str = "m", **options: Any) -> ChatRequest:
    """Return a request to answer message `a` of chat `c`, not waited for unless `session_id` is empty."""
    given = {"chat_id": "c", "id": "a", "session_id": "s", **options}
    kept = {name: value for name, value in given.items() if value is not None}
    messages = [{"role": "user", "content": "What is it?"}]
    return ChatRequest(
        model, {"model": model, "messages": messages, "stream": stream}, stream, options=kept, request_id="r1"
    )
