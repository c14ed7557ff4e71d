"""Tests for gatewayd.pipeline.pipeline."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.catalog.records import Grant, Model, ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.records import Completion, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.documents.plugin_context import make_scope
from gatewayd.pipeline.interfaces import ChatFilter, ToolUse
from gatewayd.pipeline.pipeline import NoFilterChain, NoFilters, NoTools, Pipeline
from gatewayd.pipeline.records import ChatRequest
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers.models import FakeRecords, FakeSource, make_actor, make_model

ADMIN = make_actor()


@dataclass
class World:
    """A catalogue with one source, and hooks that can be exchanged."""

    source: FakeSource
    catalog: Catalog
    filters: Any = field(default_factory=NoFilters)
    attachments: Any = field(default_factory=NoAttachments)
    tools: Any = field(default_factory=NoTools)

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline(self.catalog, self.filters, self.attachments, self.tools)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    tasks = TaskRegistry()
    source = FakeSource(models=[make_model("m"), make_model("n")])
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
    catalog.use([source])
    await catalog.list(ADMIN)
    yield World(source, catalog)
    await tasks.close()


def ask(*, stream: bool = False, **changes: Any) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    if stream:
        body["stream"] = True
    return ChatRequest(model="m", body=body, stream=stream, request_id="r1", **changes)


async def test_source_gets_its_own_name_of_the_model_and_who_asks(world: World) -> None:
    answer = await world.pipeline.run(ask(), ADMIN)
    assert answer.completion is not None
    assert world.source.asked[0]["model"] == "up-m"
    assert (world.source.contexts[0].request_id, world.source.contexts[0].user_id) == ("r1", "u1")


async def test_placeholders_are_filled_once_in_the_texts_of_caller_and_record(world: World) -> None:
    await world.catalog.put_record(ModelRecord("m", "u1", "m", params={"system": "{{A}} {{USER_ID}}"}))
    request = ask(options={"variables": {"{{A}}": "{{USER_ROLE}}"}})
    request.body["messages"] = [{"role": "system", "content": "{{USER_ID}} {{A}}"}, *request.body["messages"]]
    await world.pipeline.run(request, ADMIN)
    assert world.source.asked[0]["messages"][0]["content"] == "{{USER_ROLE}} u1\nu1 {{USER_ROLE}}"


async def test_failure_before_the_first_chunk_raises_from_run(world: World) -> None:
    world.source.script = lambda _: [GatewayError(ErrorKind.RATE_LIMITED, "cannot", retry_after=2)]
    with pytest.raises(GatewayError) as caught:
        await world.pipeline.run(ask(stream=True), ADMIN)
    assert caught.value.retry_after == 2


async def test_empty_stream_is_a_failure(world: World) -> None:
    with pytest.raises(GatewayError) as caught:
        await world.pipeline.run(ask(stream=True), ADMIN)
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


async def test_failure_after_the_first_chunk_raises_from_the_stream(world: World) -> None:
    chunk = CompletionChunk(raw=b"data: {}\n\n")
    world.source.script = lambda _: [chunk, GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on")]
    answer = await world.pipeline.run(ask(stream=True), ADMIN)
    assert answer.chunks is not None
    assert await anext(answer.chunks) is chunk
    with pytest.raises(GatewayError):
        await anext(answer.chunks)
    assert world.source.closed_streams == 1


async def test_closing_an_unread_stream_closes_the_source(world: World) -> None:
    world.source.script = lambda _: [CompletionChunk(raw=b"data: {}\n\n")]
    answer = await world.pipeline.run(ask(stream=True), ADMIN)
    assert answer.chunks is not None
    await answer.chunks.aclose()
    assert world.source.closed_streams == 1


async def test_files_without_documents_are_warned_about(world: World) -> None:
    answer = await world.pipeline.run(ask(files=[{"type": "file", "id": "f1"}]), ADMIN)
    assert len(answer.warnings) == 1
    assert "f1" in answer.warnings[0]


@dataclass
class Shout:
    """A filter with all three hooks."""

    log: list[str] = field(default_factory=list)
    route_to: str | None = None

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        self.log.append(f"inlet {model.id}")
        request.body["messages"][0]["content"] = "HI"
        if self.route_to is not None:
            request.model = self.route_to

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        self.log.append("stream")
        return CompletionChunk(events=[{**event, "seen": True} for event in chunk.events])

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        self.log.append("outlet")
        completion.body["outlet"] = True


@dataclass
class Choose:
    """Chooses one filter for all its hooks."""

    item: ChatFilter

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> NoFilterChain:
        return NoFilterChain((self.item,), (self.item,), (self.item,))


async def test_filters_change_request_chunks_and_answer(world: World) -> None:
    shout = Shout()
    world.filters = Choose(shout)
    world.source.script = lambda _: [CompletionChunk(raw=b'data: {"n":1}\n\n')]
    streamed = await world.pipeline.run(ask(stream=True), ADMIN)
    assert streamed.chunks is not None
    assert [chunk.events async for chunk in streamed.chunks] == [[{"n": 1, "seen": True}]]
    whole = await world.pipeline.run(ask(), ADMIN)
    assert whole.completion is not None
    assert whole.completion.body["outlet"] is True
    assert world.source.asked[0]["messages"][0]["content"] == "HI"
    assert shout.log == ["inlet m", "stream", "inlet m", "outlet"]


async def test_inlet_cannot_route_around_the_access_list(world: World) -> None:
    user = make_actor("u2", Role.USER)
    await world.catalog.grant("m", [Grant("user", "*", "read")], by="u1")
    world.filters = Choose(Shout(route_to="n"))
    with pytest.raises(GatewayError) as caught:
        await world.pipeline.run(ask(), user)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    await world.pipeline.run(ask(), ADMIN)
    assert world.source.asked[0]["model"] == "up-n"


async def test_attachments_become_sources_of_the_answer(world: World) -> None:
    class Attach:
        async def attach(
            self, request: ChatRequest, actor: Actor, found: Sequence[dict[str, Any]] = ()
        ) -> list[dict[str, Any]]:
            request.body["messages"].insert(0, {"role": "system", "content": "context"})
            return [{"source": {"id": request.files[0]["id"]}}]

    world.attachments = Attach()
    answer = await world.pipeline.run(ask(files=[{"type": "file", "id": "f1"}]), ADMIN)
    assert answer.completion is not None
    assert next(iter(answer.completion.body.items())) == ("sources", [{"source": {"id": "f1"}}])
    assert world.source.asked[0]["messages"][0]["content"] == "context"

    async def complete(*_: object) -> Completion:
        return Completion(body={"choices": [], "sources": [{"source": {"id": "own"}}]})

    world.source.complete = complete  # type: ignore[assignment]
    answer = await world.pipeline.run(ask(files=[{"type": "file", "id": "f1"}]), ADMIN)
    assert answer.completion is not None
    assert answer.completion.body["sources"] == [{"source": {"id": "f1"}}, {"source": {"id": "own"}}]


async def test_references_without_type_or_id_are_warned_about(world: World) -> None:
    answer = await world.pipeline.run(ask(files=[{"docs": []}, {"type": "text"}]), ADMIN)
    assert len(answer.warnings) == 2
    assert answer.warnings[1].startswith("cannot use text ")


async def test_what_plugins_are_told_is_made_only_when_one_may_ask(world: World) -> None:
    plain, chat = ask(), ask(options={"chat_id": "c1", "id": "m1"})
    await world.pipeline.run(plain, ADMIN)
    await world.pipeline.run(chat, ADMIN)
    world.filters = Choose(Shout())
    filtered = ask()
    await world.pipeline.run(filtered, ADMIN)
    assert plain.scope is None
    assert chat.scope is not None
    assert (chat.scope.target.chat_id, chat.scope.target.message_id) == ("c1", "m1")
    assert filtered.scope is not None
    assert [context.scope for context in world.source.contexts] == [None, chat.scope, filtered.scope]
    assert [context.chat_id for context in world.source.contexts] == ["", "c1", ""]


async def test_function_models_are_told_of_every_request(world: World) -> None:
    world.source.models = [make_model("f", detail={"pipe": {"type": "pipe"}})]
    await world.catalog.list(ADMIN, refresh=True)
    request = ask()
    request.model = "f"
    await world.pipeline.run(request, ADMIN)
    assert world.source.contexts[0].scope is request.scope is not None


async def test_the_scope_of_the_caller_is_kept(world: World) -> None:
    request = ask(options={"chat_id": "c1"})
    known = make_scope(request, make_model("m"), None, ADMIN)
    request.scope = known
    await world.pipeline.run(request, ADMIN)
    assert world.source.contexts[0].scope is known


async def test_a_record_of_a_model_is_applied_once_an_inlet_has_routed_to_it(world: World) -> None:
    record = ModelRecord("n", "u1", "n", params={"system": "Be brief.", "temperature": 0.5})
    await world.catalog.put_record(record)
    world.filters = Choose(Shout(route_to="n"))
    request = ask()
    await world.pipeline.run(request, ADMIN)
    asked = world.source.asked[0]
    assert asked["temperature"] == 0.5
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    assert request.scope is not None
    assert request.scope.model is not None
    assert request.scope.model["id"] == "n"


async def test_a_filter_that_handles_files_takes_them_from_the_documents(world: World) -> None:
    @dataclass
    class Own(Choose):
        async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> NoFilterChain:
            return NoFilterChain((self.item,), handles_files=True)

    world.filters = Own(Shout())
    answer = await world.pipeline.run(ask(files=[{"type": "file", "id": "f1"}]), ADMIN)
    assert answer.warnings == []


NAMED = {"tool_ids": ["t"]}


@dataclass
class Box:
    """A tool box that offers what it is told, and counts how often it is asked."""

    use: ToolUse
    asked: int = 0

    async def offer(self, request: ChatRequest, model: Model, actor: Actor) -> ToolUse:
        self.asked += 1
        return self.use


async def test_results_of_tools_become_sources_before_those_of_documents(world: World) -> None:
    @dataclass
    class Attach:
        found: Sequence[dict[str, Any]] = ()

        async def attach(
            self, request: ChatRequest, actor: Actor, found: Sequence[dict[str, Any]] = ()
        ) -> list[dict[str, Any]]:
            self.found = found
            return [*found, {"source": {"id": "f1"}}]

    shown = {"source": {"name": "t/a"}, "tool_result": True}
    hidden: dict[str, Any] = {"source": {}, "tool_result": True}
    world.attachments = Attach()
    world.tools = Box(ToolUse(sources=[shown, hidden]))
    answer = await world.pipeline.run(ask(options=NAMED), ADMIN)
    assert world.attachments.found == [shown, hidden]
    assert answer.sources == [shown, {"source": {"id": "f1"}}]
    assert answer.steps == []


async def test_a_tool_that_handles_files_takes_them_from_the_documents(world: World) -> None:
    world.tools = Box(ToolUse(handles_files=True))
    answer = await world.pipeline.run(ask(files=[{"type": "file", "id": "f1"}], options=NAMED), ADMIN)
    assert answer.warnings == []


async def test_tools_are_looked_for_where_something_may_name_them(world: World) -> None:
    world.tools = box = Box(ToolUse())
    await world.pipeline.run(ask(), ADMIN)
    assert box.asked == 0
    await world.pipeline.run(ask(options=NAMED), ADMIN)
    assert box.asked == 1
    await world.catalog.put_record(ModelRecord("m", "u1", "m", meta={"toolIds": ["t"]}))
    await world.pipeline.run(ask(), ADMIN)
    assert box.asked == 2


async def two_sources(first: FakeSource, second: FakeSource) -> Pipeline:
    """Return a pipeline whose catalogue asks `first` first."""
    catalog = Catalog(FakeRecords(), TaskRegistry(), CatalogOptions())
    for source in (first, second):
        source.models = [make_model("m")]
    catalog.use([second, first])
    await catalog.list(ADMIN)
    return Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())


UNREACHED = GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "cannot reach it")


@pytest.mark.parametrize("stream", [True, False])
async def test_another_source_answers_when_the_first_is_not_reached(stream: bool) -> None:
    down = FakeSource(name="down", script=lambda _: [UNREACHED])
    well = FakeSource(name="well", script=lambda _: [CompletionChunk(events=[{"n": 1}])])
    pipeline = await two_sources(down, well)
    down.failure = UNREACHED
    answer = await pipeline.run(ask(stream=stream), ADMIN)
    assert (len(down.asked), len(well.asked)) == (1, 1)
    if answer.chunks is not None:
        assert [chunk.events for chunk in [chunk async for chunk in answer.chunks]] == [[{"n": 1}]]


async def test_nobody_else_is_asked_once_a_chunk_came() -> None:
    broken = FakeSource(name="broken", script=lambda _: [CompletionChunk(events=[{"n": 1}]), UNREACHED])
    well = FakeSource(name="well", script=lambda _: [CompletionChunk(events=[{"n": 2}])])
    answer = await (await two_sources(broken, well)).run(ask(stream=True), ADMIN)
    assert answer.chunks is not None
    assert (await anext(answer.chunks)).events == [{"n": 1}]
    with pytest.raises(GatewayError, match="cannot reach it"):
        await anext(answer.chunks)
    assert well.asked == []
