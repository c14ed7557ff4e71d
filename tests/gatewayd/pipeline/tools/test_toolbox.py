"""Tests for gatewayd.pipeline.tools.toolbox, through the pipeline."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.pipeline import NoFilters, Pipeline
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.pipeline.tools.calls import ToolEffects
from gatewayd.pipeline.tools.plugin_tools import PluginTools
from gatewayd.pipeline.tools.toolbox import PluginToolBox
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers.models import FakeRecords, make_actor, make_model
from tests.fakes.providers.tool_calls import (
    FakeEvents,
    FakeKit,
    FakeRegistry,
    FakeServers,
    FakeTool,
    Say,
    ScriptedModel,
    make_call,
    make_scope,
    make_spec,
)

ADMIN = make_actor()
USER = make_actor("u2", Role.USER)
CHAT = {"chat_id": "c1", "id": "m1"}
NATIVE = [Say("", [make_call("clock", {"zone": "UTC"})]), Say("It is noon.")]


async def clock(zone: str = "UTC") -> str:
    return f"noon in {zone}"


async def search(query: str) -> str:
    return f"found {query}"


def make_kit(kit_id: str = "kit", owner: str = "u2", **attributes: Any) -> FakeKit:
    specs = [make_spec("clock", zone="string"), make_spec("search", query="string")]
    return FakeKit(kit_id, {"clock": clock, "search": search}, specs, owner, attributes=attributes)


@dataclass
class World:
    """A model, tools, and the pipeline between them."""

    source: ScriptedModel
    catalog: Catalog
    registry: FakeRegistry = field(default_factory=lambda: FakeRegistry(make_kit()))
    servers: FakeServers = field(default_factory=FakeServers)
    events: FakeEvents = field(default_factory=FakeEvents)
    task_model: str = ""

    @property
    def box(self) -> PluginToolBox:
        tools, effects = PluginTools(self.registry), ToolEffects(self.events)
        models = TaskModels(self.catalog, NoFilters(), lambda: self.task_model)
        return PluginToolBox(tools, self.servers, self.catalog, effects, models)

    async def run(self, options: dict[str, Any], actor: Actor = ADMIN, **body: Any) -> ChatAnswer:
        body = {"model": "m", "messages": [{"role": "user", "content": "What time is it?"}], **body}
        self.request = ChatRequest("m", body, stream=False, options=options, request_id="r1")
        pipeline = Pipeline(self.catalog, NoFilters(), NoAttachments(), self.box)
        return await pipeline.run(self.request, actor)

    def offered(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.source.asked[0].get("tools", [])]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    tasks = TaskRegistry()
    source = ScriptedModel(models=[make_model("m"), make_model("task")], answers=NATIVE)
    catalog = Catalog(FakeRecords(), tasks, CatalogOptions(bypass_all=True))
    catalog.use([source])
    await catalog.list(ADMIN)
    yield World(source, catalog)
    await tasks.close()


def text_of(answer: ChatAnswer) -> Any:
    assert answer.completion is not None
    return answer.completion.body["choices"][0]["message"]["content"]


async def test_without_tool_ids_there_are_no_tools(world: World) -> None:
    await world.run({"chat_id": "c1", "id": "m1"})
    assert "tools" not in world.source.asked[0]


async def test_in_a_stored_chat_the_gateway_runs_the_calls(world: World) -> None:
    answer = await world.run({**CHAT, "tool_ids": ["kit"]}, USER)
    assert text_of(answer) == "It is noon."
    assert world.offered() == ["clock", "search"]
    assert world.source.asked[1]["messages"][-1]["content"] == "noon in UTC"
    assert [event["type"] for event in world.events.events] == ["source"]
    assert world.events.sent[0][0].message_id == "m1"


async def test_direct_callers_get_the_calls(world: World) -> None:
    answer = await world.run({"tool_ids": ["kit"]})
    assert answer.completion is not None
    choice = answer.completion.body["choices"][0]
    assert choice["message"]["tool_calls"] == NATIVE[0].calls
    assert world.offered() == ["clock", "search"]
    assert len(world.source.asked) == 1


async def test_direct_callers_may_ask_for_their_execution(world: World) -> None:
    answer = await world.run({"tool_ids": ["kit"], "execute_tools": True})
    assert text_of(answer) == "It is noon."
    assert [step.result for step in answer.steps] == ["noon in UTC"]


@pytest.mark.parametrize("tools", [[], [{"type": "function", "function": {"name": "own"}}]])
async def test_tools_of_the_caller_win(world: World, tools: list[Any]) -> None:
    answer = await world.run({**CHAT, "tool_ids": ["kit"], "execute_tools": True}, tools=tools)
    assert world.source.asked[0]["tools"] == tools
    assert answer.steps == []
    assert len(world.source.asked) == 1


@pytest.mark.parametrize("wanted", ["other", "secret", "server:x", ""])
async def test_a_tool_that_cannot_be_used_is_warned_about(world: World, wanted: str) -> None:
    world.registry = FakeRegistry(make_kit(), make_kit("secret", owner="u1"))
    answer = await world.run({**CHAT, "tool_ids": [wanted, "kit"]}, USER)
    assert answer.warnings == [
        f"cannot use tool {wanted!r}: there is no such tool, or it is not yours to use"
    ]
    assert text_of(answer) == "It is noon."


async def test_a_tool_that_fails_to_load_is_warned_about(world: World) -> None:
    broken = make_kit("broken")
    broken.problem = GatewayError(ErrorKind.PLUGIN_FAILED, "tool broken: SyntaxError: line 3")
    world.registry = FakeRegistry(broken)
    world.servers.known["server:down"] = GatewayError(
        ErrorKind.UPSTREAM_UNREACHABLE, "cannot reach server down"
    )
    answer = await world.run({**CHAT, "tool_ids": ["broken", "server:down"]})
    assert answer.warnings == [
        "cannot use tool 'broken': tool broken: SyntaxError: line 3",
        "cannot use tool 'server:down': cannot reach server down",
    ]
    assert "tools" not in world.source.asked[0]


@pytest.mark.parametrize("tool_ids", ["kit", [1], {}, ["x"] * 101])
async def test_what_is_no_list_of_ids_is_refused(world: World, tool_ids: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        await world.run({"tool_ids": tool_ids})
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "tool_ids")


async def test_tools_of_servers_and_names_that_are_taken(world: World) -> None:
    world.registry = FakeRegistry(make_kit(), make_kit("second"))
    remote = FakeTool(make_spec("clock", zone="string"), clock, source_id="server:mcp:far away")
    world.servers.known["server:mcp:far away"] = [remote]
    await world.run({"tool_ids": ["kit", "second", "server:mcp:far away", "kit"]})
    assert world.offered() == ["clock", "search", "second_clock", "second_search", "mcp_far_away_clock"]


async def test_a_renamed_tool_is_run(world: World) -> None:
    world.registry = FakeRegistry(make_kit(), make_kit("second"))
    world.source.answers = [Say("", [make_call("second_clock", {"zone": "CET"})]), Say("Noon.")]
    answer = await world.run({**CHAT, "tool_ids": ["kit", "second"]})
    assert answer.steps[0].result == "noon in CET"
    assert answer.steps[0].sources[0]["source"] == {"name": "second/clock"}


async def test_function_models_get_the_tools(world: World) -> None:
    await world.run({**CHAT, "tool_ids": ["kit"]})
    assert world.request.scope is not None
    known = world.request.scope.tools["clock"]
    assert (known["tool_id"], known["spec"]["name"]) == ("kit", "clock")
    assert known["metadata"] == {"file_handler": False, "citation": True}
    assert await known["callable"](zone="CET") == "noon in CET"


async def test_a_tool_runs_on_the_loop_of_the_daemon_wherever_it_is_called(world: World) -> None:
    loops: list[Any] = []

    async def note(query: str) -> str:
        loops.append(asyncio.get_running_loop())
        return query

    world.registry.kits["kit"].methods["search"] = note
    await world.run({**CHAT, "tool_ids": ["kit"]})
    assert world.request.scope is not None
    call = world.request.scope.tools["search"]["callable"]
    assert await asyncio.to_thread(lambda: asyncio.run(call(query="x"))) == "x"
    assert loops == [asyncio.get_running_loop()]


async def test_tools_of_the_model_are_run_for_everybody_who_may_use_them(world: World) -> None:
    world.registry = FakeRegistry(make_kit(), make_kit("secret", owner="u1"))
    await world.catalog.put_record(ModelRecord("m", "u1", "m", meta={"toolIds": ["secret", "kit", 3]}))
    answer = await world.run({}, USER)
    assert world.offered() == ["clock", "search"]
    assert text_of(answer) == "It is noon."
    assert answer.warnings == []
    await world.run({"tool_ids": []}, USER)
    assert "tools" not in world.source.asked[-1]


async def test_tools_of_a_scope(world: World) -> None:
    found = await world.box.find(["kit", "other"], make_scope(USER))
    assert list(found) == ["clock", "search"]


LEGACY = {"params": {"function_calling": "legacy"}, "tool_ids": ["kit"]}


def choose(*calls: tuple[str, dict[str, Any]]) -> Say:
    chosen = [{"name": name, "parameters": parameters} for name, parameters in calls]
    return Say(orjson.dumps({"tool_calls": chosen}).decode())


def shown(sources: Sequence[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(each["source"]["name"], each["document"][0], each["tool_result"]) for each in sources]


@pytest.mark.parametrize("mode", ["legacy", "default"])
async def test_in_the_prompt_mode_results_become_sources(world: World, mode: str) -> None:
    world.source.answers = [choose(("clock", {"zone": "CET"}), ("search", {"query": "x"})), Say("Noon.")]
    answer = await world.run({"params": {"function_calling": mode}, "tool_ids": ["kit"]})
    assert text_of(answer) == "Noon."
    assert shown(answer.sources) == [
        ("kit/clock", "noon in CET", True),
        ("kit/search", "found x", True),
    ]
    assert answer.sources[0]["metadata"] == [{"source": "kit/clock", "parameters": {"zone": "CET"}}]
    assert answer.steps == []
    assert "Query: What time is it?" in world.source.asked[0]["messages"][1]["content"]
    assert all("tools" not in body for body in world.source.asked)
    assert world.events.events == []


async def test_the_task_model_chooses_and_is_told_its_task(world: World) -> None:
    world.task_model = "task"
    world.source.answers = [choose(), Say("Noon.")]
    await world.run(LEGACY)
    assert [body["model"] for body in world.source.asked] == ["up-task", "up-m"]
    tasks = [context.scope.task for context in world.source.contexts]  # type: ignore[attr-defined]
    assert tasks == ["function_calling", None]


async def test_a_task_model_that_is_gone_leaves_the_choice_to_the_model(world: World) -> None:
    world.task_model = "gone"
    world.source.answers = [choose(("clock", {})), Say("Noon.")]
    answer = await world.run(LEGACY)
    assert [body["model"] for body in world.source.asked] == ["up-m", "up-m"]
    assert len(answer.sources) == 1


async def test_a_choice_that_fails_is_warned_about(world: World) -> None:
    world.source.answers = [Say(error=GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot answer")), Say("Noon.")]
    answer = await world.run(LEGACY)
    assert text_of(answer) == "Noon."
    assert answer.warnings == ["cannot use the tools of this request: cannot answer"]


async def test_a_tool_that_is_not_cited_is_read_and_not_shown(world: World) -> None:
    world.registry = FakeRegistry(make_kit(citation=False))
    world.source.answers = [choose(("clock", {})), Say("Noon.")]
    answer = await world.run(LEGACY)
    assert answer.sources == []
    assert len(world.source.asked) == 2


@pytest.mark.parametrize(("called", "warnings"), [((("clock", {}),), 0), ((), 1)])
async def test_a_used_tool_that_handles_files_takes_them(
    world: World, called: tuple[Any, ...], warnings: int
) -> None:
    world.registry = FakeRegistry(make_kit(file_handler=True))
    world.source.answers = [choose(*called), Say("Noon.")]
    pipeline = Pipeline(world.catalog, NoFilters(), NoAttachments(), world.box)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    request = ChatRequest("m", body, False, files=[{"type": "file", "id": "f1"}], options=dict(LEGACY))
    answer = await pipeline.run(request, ADMIN)
    assert len(answer.warnings) == warnings


class Messages(ScriptedModel):
    """A model that speaks the messages protocol."""

    async def complete_message(self, body: Body, model: Model, context: CallContext) -> Completion:
        return Completion(body={"type": "message"})

    async def stream_message(
        self, body: Body, model: Model, context: CallContext
    ) -> AsyncIterator[CompletionChunk]:
        yield CompletionChunk(raw=b"")


@pytest.mark.parametrize("tool_ids", [["kit"], ["other"]])
async def test_the_gateways_tools_end_the_passing_on_of_messages(world: World, tool_ids: list[str]) -> None:
    world.source = Messages(models=[make_model("m")], answers=NATIVE)
    world.catalog.use([world.source])
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    request = ChatRequest("m", body, False, options={"tool_ids": tool_ids}, native={"model": "m"})
    pipeline = Pipeline(world.catalog, NoFilters(), NoAttachments(), world.box)
    answer = await pipeline.run(request, ADMIN)
    assert answer.is_native == (tool_ids == ["other"])
    if not answer.is_native:
        assert world.offered() == ["clock", "search"]
        assert world.source.contexts[0].is_converted
