"""Tests for gatewayd.pipeline.tools.loop, through the pipeline."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.interfaces import ToolUse
from gatewayd.pipeline.pipeline import NoFilters, Pipeline
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.providers.models import FakeRecords, make_actor, make_model
from tests.fakes.providers.tool_calls import FakeTool, Say, ScriptedModel, make_call, make_runner, make_spec

ADMIN = make_actor()
CALL = make_call("weather", {"city": "Bern"})
SUNNY = [Say("Let me see.", [CALL], {"total_tokens": 3}), Say("It is sunny.", usage={"total_tokens": 4})]


async def weather(city: str) -> str:
    return f"sunny in {city}"


@dataclass
class Box:
    """Offers one tool."""

    tool: FakeTool
    iterations: int = 8
    uses: list[ToolUse] = field(default_factory=list)

    async def offer(self, request: ChatRequest, model: Model, actor: Actor) -> ToolUse:
        self.uses.append(ToolUse(make_runner(self.tool), self.iterations))
        return self.uses[-1]


@dataclass
class World:
    """A model, a tool and the pipeline between them."""

    source: ScriptedModel
    box: Box
    catalog: Catalog

    async def run(self, *, stream: bool = False, **body: Any) -> ChatAnswer:
        self.body = {"model": "m", "messages": [{"role": "user", "content": "weather?"}], **body}
        pipeline = Pipeline(self.catalog, NoFilters(), NoAttachments(), self.box)
        options = {"tool_ids": ["weather"]}
        self.body.update({"stream_options": {"include_usage": True}} if stream else {})
        request = ChatRequest("m", self.body, stream, request_id="r1", options=options)
        return await pipeline.run(request, ADMIN)


Make = Callable[..., World]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    tasks = TaskRegistry()

    def world(answers: Sequence[Say], do: Any = weather, iterations: int = 8) -> World:
        source = ScriptedModel(models=[make_model("m")], answers=answers)
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        catalog.use([source])
        tool = FakeTool(make_spec("weather", city="string"), do)
        return World(source, Box(tool, iterations), catalog)

    yield world
    await tasks.close()


async def read(answer: ChatAnswer) -> tuple[list[Body], list[int]]:
    """Return the events, and how many calls had been run by the time each came."""
    events, steps = [], []
    assert answer.chunks is not None
    async for chunk in answer.chunks:
        events += chunk.events
        steps += [len(answer.steps)] * len(chunk.events)
    await answer.chunks.aclose()
    return events, steps


def text_of(events: Sequence[Body]) -> str:
    choices = [choice for event in events for choice in event["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def reasons(events: Sequence[Body]) -> list[str]:
    choices = [choice for event in events for choice in event["choices"]]
    return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]


RESULTS = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny in Bern"},
]


async def test_a_whole_answer(make: Make) -> None:
    world = make(SUNNY)
    answer = await world.run()
    assert answer.completion is not None
    body = answer.completion.body
    message = {"role": "assistant", "content": "Let me see.\n\nIt is sunny."}
    assert body["choices"] == [{"index": 0, "message": message, "finish_reason": "stop"}]
    assert body["usage"] == {"total_tokens": 7}
    assert world.source.asked[1]["messages"] == RESULTS
    assert [(step.name, step.arguments, step.result) for step in answer.steps] == [
        ("weather", '{"city":"Bern"}', "sunny in Bern")
    ]


async def test_a_streamed_answer_is_one_stream(make: Make) -> None:
    world = make(SUNNY)
    answer = await world.run(stream=True)
    events, steps = await read(answer)
    assert text_of(events) == "Let me see.\n\nIt is sunny."
    assert reasons(events) == ["stop"]
    assert {(event["id"], event["created"]) for event in events} == {("c1", 1)}
    assert [event["usage"] for event in events if event.get("usage")] == [{"total_tokens": 7}]
    assert not [event for event in events if "tool_calls" in str(event)]
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    assert [delta["role"] for delta in deltas if "role" in delta] == ["assistant"]
    assert world.source.asked[1]["messages"] == RESULTS
    assert steps.index(1) == 1 + len("Let me see.")
    assert world.source.closed_streams == 2


async def test_content_is_passed_on_before_the_tool_has_run(make: Make) -> None:
    gate = asyncio.Event()

    async def wait(city: str) -> str:
        await gate.wait()
        return city

    answer = await make(SUNNY, wait).run(stream=True)
    assert answer.chunks is not None
    seen = ""
    while seen != "Let me see.":
        seen += text_of((await anext(answer.chunks)).events)
    gate.set()
    assert text_of((await anext(answer.chunks)).events).strip() == "I"
    await answer.chunks.aclose()


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_without_calls_is_as_it_came(make: Make, stream: bool) -> None:
    answer = await make([Say("Hello.", usage={"total_tokens": 1})]).run(stream=stream)
    if answer.completion is not None:
        assert answer.completion.body["choices"][0]["message"]["content"] == "Hello."
        assert answer.completion.body["usage"] == {"total_tokens": 1}
    else:
        events, _ = await read(answer)
        assert (text_of(events), reasons(events)) == ("Hello.", ["stop"])
    assert answer.steps == []


@pytest.mark.parametrize("stream", [True, False])
async def test_rounds_without_end_are_ended(make: Make, stream: bool) -> None:
    world = make([Say("More.", [CALL], {"total_tokens": 1})], iterations=3)
    answer = await world.run(stream=stream)
    note = "The answer ends here: 3 rounds of tool calls are allowed."
    if answer.completion is not None:
        choice = answer.completion.body["choices"][0]
        assert choice["finish_reason"] == "length"
        assert "tool_calls" not in choice["message"]
        assert choice["message"]["content"].endswith(note)
        assert answer.completion.body["usage"] == {"total_tokens": 4}
    else:
        events, _ = await read(answer)
        assert reasons(events) == ["length"]
        assert text_of(events).endswith(f"More.\n\n{note}")
        assert [event["usage"] for event in events if event.get("usage")] == [{"total_tokens": 4}]
        assert {event["id"] for event in events} == {"c1"}
    assert len(answer.steps) == 3
    assert len(world.source.asked) == 4


@pytest.mark.parametrize("stream", [True, False])
async def test_several_calls_of_several_rounds(make: Make, stream: bool) -> None:
    calls = [make_call("weather", {"city": city}, city) for city in ("Bern", "Basel")]
    world = make([Say("", calls), Say("", [make_call("nothing", {}, "c3")]), Say("Done.")])
    answer = await world.run(stream=stream)
    if answer.chunks is not None:
        events, _ = await read(answer)
        assert text_of(events) == "Done."
    assert [(step.id, step.result) for step in answer.steps] == [
        ("Bern", "sunny in Bern"),
        ("Basel", "sunny in Basel"),
        ("c3", 'Error: Tool "nothing" not found.'),
    ]
    roles = [message["role"] for message in world.source.asked[2]["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool"]


@pytest.mark.parametrize("stream", [True, False])
async def test_calls_that_were_written_badly_go_back_as_json(make: Make, stream: bool) -> None:
    calls = [make_call("weather", "{'city': 'Bern'}", "c1"), make_call("weather", "Bern", "c2")]
    world = make([Say("", calls), Say("Done.")])
    answer = await world.run(stream=stream)
    if answer.chunks is not None:
        await read(answer)
    sent = world.source.asked[1]["messages"][1]["tool_calls"]
    assert [call["function"]["arguments"] for call in sent] == ['{"city": "Bern"}', "{}"]
    assert [step.result for step in answer.steps] == [
        "sunny in Bern",
        "cannot call weather: its arguments are not a JSON object",
    ]


async def test_a_forced_choice_holds_for_the_first_round_alone(make: Make) -> None:
    world = make(SUNNY)
    await world.run(tool_choice="required")
    assert [body.get("tool_choice") for body in world.source.asked] == ["required", None]


async def test_there_is_one_answer(make: Make) -> None:
    world = make(SUNNY)
    answer = await world.run(n=2)
    assert "n" not in world.source.asked[0]
    assert len(answer.warnings) == 1


async def test_a_failure_of_a_later_round_raises(make: Make) -> None:
    broken = [SUNNY[0], Say(error=GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on"))]
    with pytest.raises(GatewayError, match="cannot go on"):
        await make(broken).run()
    answer = await make(broken).run(stream=True)
    with pytest.raises(GatewayError, match="cannot go on"):
        await read(answer)
    assert len(answer.steps) == 1


async def test_a_failure_before_the_first_chunk_raises_from_run(make: Make) -> None:
    with pytest.raises(GatewayError):
        await make([Say(error=GatewayError(ErrorKind.RATE_LIMITED, "cannot"))]).run(stream=True)


async def test_no_tool_runs_after_an_error_in_band(make: Make) -> None:
    world = make(SUNNY)

    class Broken(ScriptedModel):
        async def stream(self, *given: Any) -> AsyncIterator[CompletionChunk]:
            async for chunk in super().stream(*given):
                if chunk.events[0]["choices"][0]["finish_reason"]:
                    yield CompletionChunk(events=[{"error": {"message": "overloaded"}}])
                    return
                yield chunk

    source = Broken(models=[make_model("m")], answers=SUNNY)
    world.catalog.use([source])
    answer = await world.run(stream=True)
    assert answer.chunks is not None
    events = [event async for chunk in answer.chunks for event in chunk.events]
    assert events[-1] == {"error": {"message": "overloaded"}}
    assert answer.steps == []


async def test_leaving_a_stream_stops_the_tools(make: Make) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def hang(city: str) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    world = make(SUNNY, hang)
    answer = await world.run(stream=True)
    reading = asyncio.ensure_future(read(answer))
    async with asyncio.timeout(5):
        await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert stopped.is_set()
    assert answer.chunks is not None
    await answer.chunks.aclose()
    assert world.source.closed_streams == 1


async def test_an_unread_stream_closes_its_source(make: Make) -> None:
    world = make(SUNNY)
    answer = await world.run(stream=True)
    assert answer.chunks is not None
    await answer.chunks.aclose()
    assert world.source.closed_streams == 1
