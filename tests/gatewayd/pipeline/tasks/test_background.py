"""Tests for gatewayd.pipeline.tasks.background."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import RunClaim
from gatewayd.nodes.runs import RUN_TAKEN, LocalRuns
from gatewayd.pipeline.runs.interfaces import RunOptions
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.write_attempt import CHAT_ITSELF_ID
from tests.fakes.storage.chat_runs import OWNER, World, asking, running_world

ALL = {"title_generation": True, "tags_generation": True, "follow_up_generation": True}
ANSWERS = {
    "title_generation": '```json\n{"title": "On things"}\n```',
    "tags_generation": '{"tags": ["Science", "Deep Sea"]}',
    "follow_up_generation": '{"follow_ups": ["Why?", "How?"]}',
}


def answer_tasks(world: World, answers: dict[str, Any]) -> list[CallScope]:
    """Make the source answer each task by its name, and return what plugins would be told."""
    scopes: list[CallScope] = []

    async def complete(body: Body, model: Model, context: CallContext) -> Completion:
        scope = context.scope
        assert isinstance(scope, CallScope)
        scopes.append(scope)
        world.source.asked.append(body)
        said = answers[scope.task or ""]
        if isinstance(said, Exception):
            raise said
        return Completion(body={"choices": [{"message": {"role": "assistant", "content": said}}]})

    world.source.complete = complete  # type: ignore[method-assign]
    return scopes


async def test_everything_that_is_asked_for_is_made_in_its_order() -> None:
    async with running_world() as world:
        scopes = answer_tasks(world, ANSWERS)
        await world.runs.start(asking(background_tasks=ALL), OWNER)
        await world.ended()
        assert world.events.types("a")[-4:] == [
            "chat:message:follow_ups",
            "chat:title",
            "chat:tags",
            "chat:active",
        ]
        assert world.events.events("a", "chat:title")[0]["data"] == "On things"
        assert world.events.events("a", "chat:tags")[0]["data"] == ["Science", "Deep Sea"]
        assert world.message().attributes["followUps"] == ["Why?", "How?"]
        assert world.state.chats["c"].title == "On things"
        assert sorted(world.state.tags["c"]) == ["deep_sea", "science"]
        # What a model emits while it makes a title is nothing of the answer.
        assert {(scope.target.chat_id, scope.target.message_id) for scope in scopes} == {("c", "")}
        assert [scope.task for scope in scopes] == [
            "follow_up_generation",
            "title_generation",
            "tags_generation",
        ]
        assert scopes[0].metadata["task"] == "follow_up_generation"
        assert scopes[0].task_body is not None
        assert scopes[0].task_body["messages"][-1] == {"role": "assistant", "content": "hello"}


async def test_model_is_shown_the_conversation_with_its_answer() -> None:
    async with running_world() as world:
        answer_tasks(world, ANSWERS)
        await world.runs.start(asking(background_tasks={"title_generation": True}), OWNER)
        await world.ended()
        asked = world.source.asked[-1]
        assert asked["model"] == "up-m"
        assert asked["stream"] is False
        prompt = asked["messages"][0]["content"]
        assert "USER: What is it?" in prompt
        assert "ASSISTANT: hello" in prompt


@pytest.mark.parametrize(
    ("background", "options"),
    [
        (None, RunOptions()),
        ({}, RunOptions()),
        (dict.fromkeys(ALL, False), RunOptions()),
        (ALL, RunOptions(makes_titles=False, makes_tags=False, makes_follow_ups=False)),
    ],
)
async def test_nothing_is_made_that_is_not_asked_for_and_permitted(
    background: Any, options: RunOptions
) -> None:
    async with running_world() as world:
        world.runs.configure(options)
        await world.runs.start(asking(background_tasks=background), OWNER)
        await world.ended()
        assert world.source.asked == []


async def test_model_for_tasks_is_used_when_one_is_set() -> None:
    async with running_world() as world:
        answer_tasks(world, ANSWERS)
        world.models.preferred = lambda: "tasks"
        await world.runs.start(asking(background_tasks=ALL), OWNER)
        await world.ended()
        assert {asked["model"] for asked in world.source.asked} == {"up-tasks"}


async def test_model_of_the_chat_is_used_when_that_for_tasks_is_gone() -> None:
    async with running_world() as world:
        answer_tasks(world, ANSWERS)
        world.models.preferred = lambda: "gone"
        await world.runs.start(asking(background_tasks=ALL), OWNER)
        await world.ended()
        assert {asked["model"] for asked in world.source.asked} == {"up-m"}
        assert world.state.chats["c"].title == "On things"


async def test_title_that_is_not_json_is_kept_as_it_is() -> None:
    async with running_world() as world:
        answer_tasks(world, {**ANSWERS, "title_generation": '"A plain title"\n'})
        await world.runs.start(asking(background_tasks=ALL), OWNER)
        await world.ended()
        assert world.state.chats["c"].title == "A plain title"


async def test_question_is_the_title_when_the_model_says_nothing() -> None:
    async with running_world() as world:
        answer_tasks(world, {**ANSWERS, "title_generation": ""})
        await world.runs.start(asking(background_tasks=ALL), OWNER)
        await world.ended()
        assert world.state.chats["c"].title == "What is it?"


async def test_task_that_fails_leaves_the_answer_and_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async with running_world() as world:
        failure = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot answer that")
        answer_tasks(world, {**ANSWERS, "follow_up_generation": failure})
        with caplog.at_level(logging.WARNING):
            await world.runs.start(asking(background_tasks=ALL), OWNER)
            await world.ended()
        [line] = [each for each in caplog.records if "cannot answer that" in each.getMessage()]
        told = line.__dict__
        assert (told["chat_id"], told["message_id"], told["request_id"]) == ("c", "a", "r1")
        assert "error" not in world.message().attributes
        assert world.state.chats["c"].title == "On things"
        assert world.events.types("a")[-2:] == ["chat:tags", "chat:active"]


async def test_failed_answer_has_no_background() -> None:
    async with running_world() as world:
        world.pipeline.scripts[""] = [GatewayError(ErrorKind.TIMEOUT, "cannot wait")]
        await world.runs.start(asking(background_tasks=ALL), OWNER)
        await world.ended()
        assert world.source.asked == []


async def test_one_of_several_answers_names_the_chat() -> None:
    async with running_world() as world:
        answer_tasks(world, ANSWERS)
        await world.runs.start(asking(message_ids={"m": "a1", "n": "a2"}, background_tasks=ALL), OWNER)
        await world.ended()
        assert world.events.types().count("chat:title") == 1
        assert world.events.types().count("chat:message:follow_ups") == 2


async def test_chat_that_is_not_kept_gets_questions_alone() -> None:
    async with running_world() as world:
        answer_tasks(world, ANSWERS)
        await world.runs.start(asking(chat_id="local:x", background_tasks=ALL), OWNER)
        await world.ended()
        assert "chat:message:follow_ups" in world.events.types()
        assert "chat:title" not in world.events.types()
        assert "chat:tags" not in world.events.types()
        assert len(world.source.asked) == 1


@pytest.mark.parametrize("is_renamed", [False, True])
async def test_what_the_database_cannot_take_now_is_told_at_once_and_written_later(is_renamed: bool) -> None:
    async with running_world() as world:
        answer_tasks(world, ANSWERS)
        complete = world.source.complete

        async def away(body: Body, model: Model, context: CallContext) -> Completion:
            world.state.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: it is away")
            return await complete(body, model, context)

        world.source.complete = away  # type: ignore[method-assign]
        await world.runs.start(asking(background_tasks=ALL), OWNER)
        await world.ended()
        told = ["chat:message:follow_ups", "chat:title", "chat:tags", "chat:active"]
        assert world.events.types("a")[-4:] == told
        assert world.deferred.count == 3
        world.state.outage = None
        if is_renamed:
            world.deferred.supersede(("c", CHAT_ITSELF_ID))
        await world.deferred.close(5)
        assert world.message().attributes["followUps"] == ["Why?", "How?"]
        assert world.state.chats["c"].title == ("A chat" if is_renamed else "On things")
        assert sorted(world.state.tags["c"]) == ["deep_sea", "science"]


class TakenRuns(LocalRuns):
    """A claim that fails with an error from some moment on."""

    def __init__(self) -> None:
        self.error: GatewayError | None = None

    @asynccontextmanager
    async def fenced(self, claim: RunClaim) -> AsyncIterator[None]:
        if self.error is not None:
            raise self.error
        yield


@pytest.mark.parametrize(("code", "made"), [(RUN_TAKEN, 1), (None, 3)])
async def test_a_run_that_lost_its_message_makes_nothing_more(code: str | None, made: int) -> None:
    register = TakenRuns()
    async with running_world(register=register) as world:
        scopes = answer_tasks(world, ANSWERS)
        answered = world.source.complete

        async def lose(body: Body, model: Model, context: CallContext) -> Completion:
            # Without a code it is an outage, in which the work goes on.
            register.error = GatewayError(ErrorKind.CONFLICT, "cannot", code=code)
            return await answered(body, model, context)

        world.source.complete = lose  # type: ignore[method-assign]
        await world.runs.start(asking(background_tasks=ALL), OWNER)
        await world.ended()
        assert len(scopes) == made
        assert (world.state.chats["c"].title == "On things") is (made == 3)
