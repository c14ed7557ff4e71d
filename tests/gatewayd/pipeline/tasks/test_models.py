"""Tests for gatewayd.pipeline.tasks.models."""

import logging
from dataclasses import replace

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.records import Endpoint
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.plugins.runtime.context import CallScope
from tests.fakes.providers.function_models import ask, function, function_world
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.chat_runs import OWNER, World, asking, running_world

MESSAGES = [{"role": "user", "content": "What is it called?"}]


def listen(world: World, problem: GatewayError | None = None) -> list[CallScope]:
    """Make the models say their own names, and return what plugins would be told."""
    scopes: list[CallScope] = []

    async def complete(body: Body, model: Model, context: CallContext) -> Completion:
        assert isinstance(context.scope, CallScope)
        scopes.append(context.scope)
        world.source.asked.append(body)
        if problem is not None:
            raise problem
        return Completion(body={"choices": [{"message": {"role": "assistant", "content": model.id}}]})

    world.source.complete = complete  # type: ignore[method-assign]
    return scopes


@pytest.mark.parametrize(("preferred", "answers"), [("", "m"), ("m", "m"), ("tasks", "tasks"), ("gone", "m")])
async def test_model_for_tasks_is_asked_or_that_of_the_request(preferred: str, answers: str) -> None:
    async with running_world() as world:
        scopes = listen(world)
        world.models.preferred = lambda: preferred
        assert await world.models.ask("naming", MESSAGES, asking(), OWNER, {"of": "it"}) == answers
        assert world.source.asked == [{"model": f"up-{answers}", "messages": MESSAGES, "stream": False}]
        assert [scope.model["id"] for scope in scopes] == [answers]


async def test_plugins_are_told_the_task_and_what_it_is_about() -> None:
    async with running_world() as world:
        scopes = listen(world)
        await world.models.ask("naming", MESSAGES, asking(tool_ids=["kit"]), OWNER, {"of": "it"})
        scope = scopes[0]
        about = {"of": "it", "model": "m", "chat_id": "c", "id": "a", "session_id": "s"}
        assert (scope.task, scope.task_body) == ("naming", about)
        assert (scope.metadata["task"], scope.metadata["task_body"]) == ("naming", about)
        assert (scope.target.chat_id, scope.target.message_id) == ("c", "")
        assert (scope.messages, scope.files, scope.metadata["tool_ids"]) == (MESSAGES, None, None)


async def test_failure_of_the_task_model_is_not_put_to_another_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_world() as world:
        listen(world, GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot answer"))
        world.models.preferred = lambda: "tasks"
        with caplog.at_level(logging.WARNING), pytest.raises(GatewayError) as caught:
            await world.models.ask("naming", MESSAGES, asking(), OWNER, {})
        assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
        assert {body["model"] for body in world.source.asked} == {"up-tasks"}
        assert "not used" not in caplog.text


async def test_model_that_the_actor_may_not_use_answers_no_task() -> None:
    async with running_world() as world:
        nobody = make_actor("nobody", Role.USER)
        world.models._catalog._records.clear()
        with pytest.raises(GatewayError) as caught:
            await world.models.ask("title_generation", MESSAGES, asking(), nobody, {})
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_record_of_the_model_applies_to_tasks_without_its_documents() -> None:
    async with running_world() as world:
        scopes = listen(world)
        record = world.models._catalog.find_record("m")
        assert record is not None
        world.models._catalog._records["m"] = replace(
            record, params={"system": "secret", "temperature": 0}, meta={"knowledge": [{"id": "k"}]}
        )
        await world.models.ask("naming", MESSAGES, asking(), OWNER, {})
        (body,) = world.source.asked
        assert body["messages"] == [{"role": "system", "content": "secret"}, *MESSAGES]
        assert body["temperature"] == 0
        assert scopes[0].files is None


@pytest.mark.parametrize(("endpoint", "told"), [(Endpoint.CHAT, "background"), (Endpoint.TASK, "task")])
async def test_filters_run_for_tasks_and_are_told_of_which(endpoint: Endpoint, told: str) -> None:
    inlet = """
    class Filter:
        def inlet(self, body, __task__):
            body["messages"][0]["content"] = __task__ + " " + body["metadata"]["endpoint"]
            return body
    """
    async with function_world(function("f", inlet)) as world:
        models = TaskModels(world.catalog, world.filters)
        request = ask()
        request.endpoint = endpoint
        assert await models.ask("naming", MESSAGES, request, make_actor(), {}) == "hello"
        assert world.source.asked[0]["messages"][0]["content"] == f"naming {told}"
        assert world.source.contexts[0].user_id == "u1"
