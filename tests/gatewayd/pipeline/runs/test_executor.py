"""Tests for gatewayd.pipeline.runs.executor."""

import asyncio
import logging
from itertools import pairwise
from typing import Any, cast

import pytest

from gatewayd import deferred_writes
from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import ChunkStream
from gatewayd.chats.edits import EditedMessages
from gatewayd.chats.records import MessageChange, MessageState
from gatewayd.chats.run_writer import RunMessageWriter
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.records import EventTarget
from gatewayd.nodes.records import RUN_TAKEN
from gatewayd.pipeline.records import ChatAnswer, ChatRequest, ToolStep
from gatewayd.pipeline.runs import executor
from gatewayd.pipeline.runs.executor import ANSWER_FAILED, GATEWAY_STOPPED
from gatewayd.pipeline.runs.interfaces import RunOptions
from tests.fakes.storage.chat_runs import OWNER, World, asking, running_world
from tests.fakes.storage.memory_chats import MemoryMessages

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def saying(world: World, event_type: str, **data: Any) -> Any:
    """Return a step in which a plugin emits an event for message `a`."""

    async def step() -> None:
        target = world.events.told[0][0]
        await world.events.emit(target, {"type": event_type, "data": data})

    return step


async def test_events_come_in_their_order_and_the_message_is_kept() -> None:
    async with running_world() as world:
        world.pipeline.sources = [{"source": {"name": "book"}, "document": ["d"], "metadata": [{}]}]
        world.pipeline.scripts[""] = ["Hel", "lo", {"choices": [], "usage": USAGE}]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        kept = world.message()
        assert (kept.content, kept.done, kept.state) == ("Hello", True, MessageState.IDLE)
        assert kept.attributes["model"] == "m"
        assert kept.attributes["usage"] == USAGE
        assert kept.attributes["output"][0]["content"] == [{"type": "output_text", "text": "Hello"}]
        assert kept.items["sources"] == world.pipeline.sources
        assert kept.parent_id == "q"
        events = world.events.events("a")
        assert events[0] == {"type": "chat:active", "data": {"active": True}}
        assert events[1] == {"type": "chat:completion", "data": {"sources": world.pipeline.sources}}
        assert events[-3] == {"type": "chat:completion", "data": {"usage": USAGE}}
        last = events[-2]["data"]
        assert (last["done"], last["content"], last["title"]) == (True, "Hello", "A chat")
        assert events[-1] == {"type": "chat:active", "data": {"active": False}}
        assert {"type": "chat:completion", "data": {"content": "Hello"}} in events


async def test_content_is_told_whole_and_less_often_than_it_comes() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [str(number % 10) for number in range(1000)]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        told = [event["data"]["content"] for event in world.events.events("a") if "content" in event["data"]]
        assert 1 <= len(told) < 100
        assert all(later.startswith(before) for before, later in pairwise(told))
        assert told[-1] == world.message().content


async def test_what_is_slow_to_come_is_told_at_once() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["first", asyncio.Event()]
        await world.runs.start(asking(), OWNER)
        await asyncio.wait_for(world.until("chat:completion"), 5)
        assert world.events.events("a", "chat:completion")[0]["data"] == {"content": "first"}


async def test_content_is_kept_at_the_end_alone() -> None:
    async with running_world() as world:
        go_on = asyncio.Event()
        world.pipeline.scripts[""] = ["first", go_on, "second"]
        await world.runs.start(asking(), OWNER)
        await world.until("chat:completion")
        assert (world.message().content, world.message().done) == ("", False)
        assert world.message().state is MessageState.RUNNING
        go_on.set()
        await world.ended()
        assert world.message().content == "firstsecond"


async def test_content_is_kept_while_it_comes_when_set_so() -> None:
    async with running_world() as world:
        world.runs.configure(RunOptions(is_saved_often=True))
        world.pipeline.scripts[""] = ["first", asyncio.Event()]
        await world.runs.start(asking(), OWNER)
        while not world.message().content:
            await asyncio.sleep(0)
        assert (world.message().content, world.message().done) == ("first", False)


@pytest.mark.parametrize(("seconds", "by_length"), [(1000.0, 0.0), (0.0, 1000.0)])
async def test_content_is_kept_less_often_than_it_comes(
    monkeypatch: pytest.MonkeyPatch, seconds: float, by_length: float
) -> None:
    kept = []
    save = RunMessageWriter.save

    async def breath() -> None:
        await asyncio.sleep(0)

    async def counted(answers: RunMessageWriter, chat_id: str, message_id: str, content: str) -> None:
        kept.append(content)
        await save(answers, chat_id, message_id, content)

    monkeypatch.setattr(RunMessageWriter, "save", counted)
    monkeypatch.setattr(executor, "EMIT_SECONDS", 0.0)
    monkeypatch.setattr(executor, "SAVE_SECONDS", seconds)
    monkeypatch.setattr(executor, "SAVE_SECONDS_PER_CHARACTER", by_length)
    async with running_world() as world:
        world.runs.configure(RunOptions(is_saved_often=True))
        world.pipeline.scripts[""] = [breath, "x"] * 500
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert len(kept) == 1
        assert world.message().content == "x" * 500


async def test_returned_text_takes_the_place_of_what_events_wrote() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [saying(world, "message", content="by event"), "returned"]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert world.message().content == "returned"


async def test_what_events_wrote_stays_when_nothing_is_returned() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [
            saying(world, "message", content="one "),
            saying(world, "message", content="two"),
            "",
        ]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert (world.message().content, world.message().done) == ("one two", True)
        done = next(event for event in world.events.events("a") if event["data"].get("done"))
        assert done["data"]["content"] == "one two"


async def test_tools_that_were_run_are_shown_between_the_texts() -> None:
    async with running_world() as world:
        step = ToolStep("t1", "find", '{"a": 1}', "found")
        world.pipeline.scripts[""] = ["Looking. ", step, "There."]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        content = world.message().content
        assert (
            content.index("Looking.") < content.index('<details type="tool_calls"') < content.index("There.")
        )
        kinds = [item["type"] for item in world.message().attributes["output"]]
        assert kinds == ["message", "function_call", "function_call_output", "message"]


@pytest.mark.parametrize("stream", [True, False])
async def test_failure_keeps_what_was_said_and_why(stream: bool) -> None:
    async with running_world() as world:
        failure = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on: it broke")
        world.pipeline.scripts[""] = ["partial ", failure]
        await world.runs.start(asking(stream=stream), OWNER)
        await world.ended()
        kept = world.message()
        assert kept.content == ("partial" if stream else "")
        assert (kept.done, kept.state) == (True, MessageState.IDLE)
        assert kept.attributes["error"] == {"content": "cannot go on: it broke"}
        assert world.events.types("a")[-3:] == ["chat:message:error", "chat:tasks:cancel", "chat:active"]
        error = world.events.events("a", "chat:message:error")[0]
        assert error["data"] == {"error": {"content": "cannot go on: it broke"}}


async def test_a_failure_of_the_gateway_that_nobody_waits_for_leaves_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [GatewayError(ErrorKind.INTERNAL, "cannot read it: it is damaged")]
        await world.runs.start(asking(), OWNER)
        await world.ended()
    [line] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.getMessage() == "answer failed: cannot read it: it is damaged"
    assert (vars(line)["request_id"], bool(line.exc_info)) == ("r1", True)


@pytest.mark.parametrize("error", [{"detail": "boom"}, {"message": "boom"}, "boom"])
async def test_error_in_band_is_a_failure(error: Any) -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["partial", {"error": error}]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert world.message().attributes["error"] == {"content": "boom"}
        assert world.message().content == "partial"


async def test_next_answer_takes_the_error_away() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [GatewayError(ErrorKind.TIMEOUT, "cannot wait")]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert "error" in world.message().attributes
        world.pipeline.scripts[""] = ["good"]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert "error" not in world.message().attributes
        assert world.message().content == "good"


async def test_stop_keeps_what_was_said_and_closes_the_source() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["partial", asyncio.Event()]
        started = await world.runs.start(asking(), OWNER)
        await world.until("chat:completion")
        assert await world.tasks.stop(started.task_ids[0])
        kept = world.message()
        assert (kept.content, kept.done, kept.state) == ("partial", True, MessageState.IDLE)
        assert "error" not in kept.attributes
        assert world.pipeline.closed == 1
        assert world.events.types("a")[-2:] == ["chat:tasks:cancel", "chat:active"]


async def test_stop_before_anything_was_said_ends_the_message() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [asyncio.Event()]
        started = await world.runs.start(asking(), OWNER)
        assert await world.tasks.stop(started.task_ids[0])
        assert (world.message().done, world.message().content) == (True, "")


async def test_end_of_the_gateway_is_told_in_the_message() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["partial", asyncio.Event()]
        await world.runs.start(asking(), OWNER)
        await world.until("chat:completion")
        await world.tasks.close()
        kept = world.message()
        assert (kept.content, kept.done) == ("partial", True)
        assert kept.attributes["error"] == {"content": GATEWAY_STOPPED}


async def test_fault_of_the_gateway_ends_the_message(caplog: pytest.LogCaptureFixture) -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["partial", KeyError("a bug")]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert world.message().attributes["error"] == {"content": ANSWER_FAILED}
        assert (world.message().content, world.message().done) == ("partial", True)
        assert world.events.types("a")[-1] == "chat:active"
        assert "a bug" in caplog.text


async def test_whole_answer_is_told_and_kept() -> None:
    async with running_world() as world:
        world.pipeline.sources = [{"source": {"name": "book"}, "document": ["d"], "metadata": [{}]}]
        own = {"source": {"name": "of the model"}, "document": ["e"], "metadata": [{}]}
        world.pipeline.scripts[""] = ["hello", {"usage": USAGE, "sources": [own]}]
        await world.runs.start(asking(stream=False), OWNER)
        await world.ended()
        assert world.message().content == "hello"
        assert world.message().attributes["usage"] == USAGE
        assert world.message().items["sources"] == [*world.pipeline.sources, own]
        assert {"type": "chat:completion", "data": {"content": "hello"}} in world.events.events("a")


async def test_reasoning_is_shown_and_stays_out_of_the_text() -> None:
    async with running_world() as world:
        thinking = {"choices": [{"delta": {"reasoning_content": "a <b>\nc"}}]}
        world.pipeline.scripts[""] = [thinking, "answer"]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        content = world.message().content
        assert content.startswith('<details type="reasoning" done="true" duration="0">')
        assert "&gt; a &lt;b&gt;\n&gt; c" in content
        assert content.endswith("</details>\nanswer")


async def test_stop_while_a_failure_is_kept_ends_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    finish, begun = RunMessageWriter.finish, asyncio.Event()

    async def slow(answers: RunMessageWriter, *where: str, **what: Any) -> bool:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return await finish(answers, *where, **what)

    monkeypatch.setattr(RunMessageWriter, "finish", slow)
    async with running_world() as world:
        world.pipeline.scripts[""] = ["partial", GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on")]
        started = await world.runs.start(asking(), OWNER)
        await begun.wait()
        await world.tasks.stop(started.task_ids[0])
        kept = world.message()
        assert (kept.content, kept.done, kept.state) == ("partial", True, MessageState.IDLE)
        assert kept.attributes["error"] == {"content": "cannot go on"}


async def test_an_answer_that_no_message_holds_ends_with_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "MAX_CONTENT_CHARACTERS", 300)
    async with running_world() as world:
        world.pipeline.scripts[""] = ["begin ", "&" * 500]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        kept = world.message()
        assert kept.content == f"begin {'&' * 294}"
        assert (kept.done, kept.state) == (True, MessageState.IDLE)
        assert "over 300 characters" in kept.attributes["error"]["content"]


AWAY = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: the database is away")


def away(world: World, error: GatewayError | None = AWAY) -> Any:
    """Return a step at which the database goes away, or with None comes back."""

    async def step() -> None:
        world.state.outage = error

    return step


async def told_done(world: World) -> None:
    """Wait until listeners were told of the end of the newest answer."""
    async with asyncio.timeout(5):
        while not any(event["data"].get("done") for event in world.events.events("a")):
            await asyncio.sleep(0)


@pytest.fixture
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_writes, "FIRST_PAUSE_SECONDS", 0.0)


@pytest.mark.usefixtures("_no_pauses")
@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_ends_while_the_database_is_away_is_told_and_stored_later(stream: bool) -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["Hel", away(world), "lo", {"usage": USAGE}]
        await world.runs.start(asking(stream=stream, background_tasks={"tags_generation": True}), OWNER)
        await told_done(world)
        done = [event["data"] for event in world.events.events("a") if event["data"].get("done")]
        assert [(each["content"], each["title"]) for each in done] == [("Hello", "A chat")]
        assert (world.stored().content, world.stored().done) == ("", False)
        # What follows an answer follows when it is stored.
        assert world.tasks.started()
        world.state.outage = None
        await asyncio.wait_for(world.ended(), 5)
        kept = world.message()
        assert (kept.content, kept.done, kept.state) == ("Hello", True, MessageState.IDLE)
        assert "error" not in kept.attributes
        assert world.events.types("a").count("chat:message:error") == 0
        assert world.events.types("a")[-1] == "chat:active"


@pytest.mark.usefixtures("_no_pauses")
async def test_a_failure_while_the_database_is_away_is_told_and_stored_later() -> None:
    async with running_world() as world:
        failure = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on: it broke")
        world.pipeline.scripts[""] = ["partial", away(world), failure]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert world.events.types("a")[-3:] == ["chat:message:error", "chat:tasks:cancel", "chat:active"]
        assert not world.stored().done
        world.state.outage = None
        await world.deferred.close(5)
        kept = world.message()
        assert (kept.content, kept.done) == ("partial", True)
        assert kept.attributes["error"] == {"content": "cannot go on: it broke"}


@pytest.mark.parametrize("kind", [ErrorKind.UNAVAILABLE, ErrorKind.INTERNAL])
async def test_an_answer_that_cannot_be_stored_at_all_is_told_and_logged_once(
    kind: ErrorKind, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deferred_writes, "MAX_DEFERRED_WRITES", 0)
    async with running_world() as world:
        world.pipeline.scripts[""] = ["said", away(world, GatewayError(kind, "cannot write: it is so"))]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        assert world.events.types("a")[-3:] == ["chat:message:error", "chat:tasks:cancel", "chat:active"]
        assert {"type": "chat:completion", "data": {"content": "said"}} in world.events.events("a")
        [record] = [each for each in caplog.records if each.levelno >= logging.ERROR]
        assert (record.__dict__["chat_id"], record.__dict__["message_id"]) == ("c", "a")
        world.state.outage = None


async def test_an_answer_whose_message_another_run_has_is_dropped_and_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with running_world() as world:
        taken = GatewayError(ErrorKind.CONFLICT, "another run answers the message", code=RUN_TAKEN)
        world.pipeline.scripts[""] = ["said", away(world, taken)]
        await world.runs.start(asking(), OWNER)
        await world.ended()
        world.state.outage = None
    assert "answer dropped: another run answers the message" in caplog.text
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.usefixtures("_no_pauses")
async def test_a_stop_while_an_answer_waits_for_the_database_loses_nothing() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["said", away(world)]
        started = await world.runs.start(asking(), OWNER)
        await told_done(world)
        assert await world.tasks.stop(started.task_ids[0])
        world.state.outage = None
        await world.deferred.close(5)
        kept = world.message()
        assert (kept.content, kept.done, "error" in kept.attributes) == ("said", True, False)


async def test_the_end_of_the_gateway_names_an_answer_that_it_loses(caplog: pytest.LogCaptureFixture) -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = ["said", away(world)]
        await world.runs.start(asking(), OWNER)
        await told_done(world)
        assert await world.tasks.end_started() == 1
        await world.deferred.close(0)
        [record] = [each for each in caplog.records if each.levelno >= logging.ERROR]
        assert (record.__dict__["chat_id"], record.__dict__["message_id"]) == ("c", "a")
        world.state.outage = None


@pytest.mark.usefixtures("_no_pauses")
async def test_what_waits_for_the_database_overwrites_nothing() -> None:
    async with running_world() as world:
        # A content that the user wrote meanwhile stays, and the message is done all the same.
        edited = EditedMessages(MemoryMessages(world.state), world.deferred)
        world.pipeline.scripts[""] = ["said", away(world)]
        await world.runs.start(asking(), OWNER)
        await told_done(world)
        world.state.outage = None
        await edited.change("c", "a", MessageChange(content="mine"))
        await asyncio.wait_for(world.ended(), 5)
        assert (world.message().content, world.message().done) == ("mine", True)
        world.events.told.clear()
        # Nor does the answer before end the next one.
        await world.runs.start(asking(), OWNER)
        await told_done(world)
        world.state.outage = None
        go_on = asyncio.Event()
        world.pipeline.scripts[""] = ["again", go_on]
        await world.runs.start(asking(), OWNER)
        assert not world.deferred.count
        assert world.message().state is MessageState.RUNNING
        go_on.set()
        await world.ended()
        assert world.message().content == "again"
        world.events.told.clear()
        # Nothing is made anew of a chat that is gone.
        world.pipeline.scripts[""] = ["said", away(world)]
        await world.runs.start(asking(), OWNER)
        await told_done(world)
        world.state.outage = None
        del world.state.chats["c"], world.state.messages["c"]
        await asyncio.wait_for(world.ended(), 5)
        assert world.state.messages == {}


@pytest.mark.usefixtures("_no_pauses")
async def test_sources_and_progress_wait_for_the_database_in_their_order() -> None:
    async with running_world() as world:
        world.runs.configure(RunOptions(is_saved_often=True))
        world.pipeline.sources = [{"source": {"name": "book"}, "document": ["d"], "metadata": [{}]}]
        world.pipeline.scripts[""] = ["said"]
        world.pipeline.before = away(world)
        await world.runs.start(asking(), OWNER)
        await told_done(world)
        assert world.stored().items == {}
        world.state.outage = None
        await asyncio.wait_for(world.ended(), 5)
        assert (world.message().content, world.message().items["sources"]) == ("said", world.pipeline.sources)


class UnreadChunks:
    """An answer that nobody has read yet."""

    is_closed = False

    async def __anext__(self) -> CompletionChunk:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True


async def test_a_stop_before_the_first_read_closes_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_world() as world:
        chunks, is_telling = UnreadChunks(), asyncio.Event()
        answer = ChatAnswer(chunks=cast(ChunkStream, chunks), sources=[{"source": {"name": "book"}}])
        emit = world.events.emit

        async def run(request: ChatRequest, actor: Actor) -> ChatAnswer:
            return answer

        async def slow(target: EventTarget, event: dict[str, Any]) -> bool:
            if "sources" in event.get("data", {}):
                is_telling.set()
                await asyncio.Event().wait()
            return await emit(target, event)

        monkeypatch.setattr(world.pipeline, "run", run)
        monkeypatch.setattr(world.events, "emit", slow)
        started = await world.runs.start(asking(), OWNER)
        await asyncio.wait_for(is_telling.wait(), 5)
        assert await world.tasks.stop(started.task_ids[0])
        assert chunks.is_closed
