"""Tests for gatewayd.pipeline.filters.outlets."""

from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.chats.records import Message
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.runtime.context import RequestFacts
from tests.fakes.providers.function_models import FunctionWorld, ask, function, function_world
from tests.fakes.providers.models import make_actor

ADMIN = make_actor("u1")
FACTS = RequestFacts(path="/api/chat/completed")
UNUSABLE = "cannot use the body of filter 'a'"

SHOUT = """
class Filter:
    def __init__(self):
        self.toggle = {toggle}

    async def outlet(self, body, __metadata__, __event_emitter__):
        assert body["chat_id"] == __metadata__["chat_id"]
        body["messages"][-1]["content"] += "{mark}"
        body["mine"] = body["session_id"]
        await __event_emitter__({{"type": "status", "data": {{"description": "{mark}"}}}})
        {end}
"""


def shout(plugin_id: str, *, end: str = "return body", toggle: bool = False, **changes: Any) -> Any:
    return function(plugin_id, SHOUT.format(mark=f" {plugin_id}", end=end, toggle=toggle), **changes)


def finished(**changes: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    return {"model": "m", "messages": messages, **changes}


async def completed(world: FunctionWorld, **changes: Any) -> dict[str, Any]:
    return await world.outlets.completed(ADMIN, finished(**changes), FACTS)


async def refusal(world: FunctionWorld, **changes: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await completed(world, **changes)
    return caught.value


async def test_without_filters_the_same_object_comes_back() -> None:
    async with function_world(shout("off", is_active=False)) as world:
        assert await completed(world, own=1) == finished(own=1)


async def test_without_ids_the_filters_run_and_no_id_is_added() -> None:
    async with function_world(shout("b"), shout("a")) as world:
        reply = await completed(world, own=1)
        assert reply["messages"][-1] == {"role": "assistant", "content": "hello a b"}
        assert reply.keys() == {"model", "messages", "own", "mine"}


async def test_ids_that_were_sent_come_back() -> None:
    async with function_world(shout("a")) as world:
        reply = await completed(world, chat_id="unknown", session_id="s", id="")
        assert (reply["chat_id"], reply["session_id"], reply["id"], reply["mine"]) == (
            "unknown",
            "s",
            "",
            "s",
        )
        assert world.events.emitted[0][0].session_id == "s"


async def test_toggles_and_attachment_count_here_too() -> None:
    async with function_world(shout("a", toggle=True), shout("b", is_global=False)) as world:
        assert (await completed(world))["messages"][-1]["content"] == "hello"
        await world.attach("m", filterIds=["b"])
        assert (await completed(world, filter_ids=["a"]))["messages"][-1]["content"] == "hello a b"


async def test_changed_contents_are_kept_in_the_stored_chat() -> None:
    async with function_world(shout("a")) as world:
        await world.store_chat(
            "u1", Message("q", None, "user", "hi"), Message("r", "q", "assistant", "hello")
        )
        messages = [{"id": "q", "role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        await completed(world, chat_id="c1", id="r", messages=messages)
        assert world.message("r").content == "hello a"
        assert world.message("r").attributes == {"originalContent": "hello"}
        assert world.message("q").attributes == {}


async def test_a_foreign_chat_is_not_found_and_nothing_runs() -> None:
    async with function_world(shout("a")) as world:
        await world.store_chat("somebody", Message("r", None, "assistant", "hello"))
        assert (await refusal(world, chat_id="c1", id="r")).kind is ErrorKind.NOT_FOUND
        assert world.events.emitted == []
        assert world.message("r").content == "hello"


async def test_a_model_that_is_not_the_callers_is_not_found() -> None:
    async with function_world(shout("a")) as world:
        assert (await refusal(world, model="gone")).kind is ErrorKind.NOT_FOUND
        with pytest.raises(GatewayError) as caught:
            await world.outlets.completed(make_actor("u2", Role.USER), finished(), FACTS)
        assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"model": 7}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{}, "hi"]}, "messages[1]"),
    ],
)
async def test_a_bad_body_is_refused(change: dict[str, Any], param: str) -> None:
    async with function_world(shout("a")) as world:
        failure = await refusal(world, **change)
        assert (failure.kind, failure.param) == (ErrorKind.INVALID_REQUEST, param)


@pytest.mark.parametrize("value", [7, ["x"], {"a": 1}, None])
async def test_odd_ids_count_as_none(value: Any) -> None:
    source = "class Filter:\n    def outlet(self, body, __chat_id__):\n        assert __chat_id__ == ''\n"
    async with function_world(function("f", source)) as world:
        reply = await completed(world, chat_id=value, id=value, session_id=value, filter_ids=value)
        assert reply["chat_id"] == value


async def test_no_messages_are_no_reason_to_fail() -> None:
    source = "class Filter:\n    def outlet(self, body):\n        return body\n"
    async with function_world(function("f", source)) as world:
        assert (await completed(world, messages=[], id="r"))["messages"] == []


@pytest.mark.parametrize(
    ("end", "kind", "message"),
    [
        ("raise ValueError('not so')", ErrorKind.INVALID_REQUEST, "not so"),
        (
            "return 7",
            ErrorKind.PLUGIN_FAILED,
            "cannot use the body of filter 'a': expected an object, got int",
        ),
        (
            "return {}",
            ErrorKind.PLUGIN_FAILED,
            "cannot use the body of filter 'a': messages must be a list of objects",
        ),
    ],
)
async def test_a_failure_refuses_the_call(end: str, kind: ErrorKind, message: str) -> None:
    async with function_world(shout("a", end=end)) as world:
        failure = await refusal(world)
        assert (failure.kind, failure.message) == (kind, message)


async def test_a_filter_that_does_not_load_refuses_the_call() -> None:
    async with function_world(function("a", "class Filter(\n")) as world:
        assert (await refusal(world)).kind is ErrorKind.PLUGIN_FAILED


async def after_run(world: FunctionWorld) -> list[dict[str, Any]] | None:
    request = ask(options={"chat_id": "c1", "id": "r", "session_id": "s"})
    messages = [
        {"id": "q", "role": "user", "content": "hi"},
        {"id": "r", "role": "assistant", "content": "yo"},
    ]

    async def conversation() -> list[dict[str, Any]]:
        return messages

    found = await world.outlets.run_for_run(request, ADMIN, conversation)
    assert messages[-1]["content"] == "yo"
    return found


async def test_after_a_run_filters_that_fail_leave_the_messages_as_they_were() -> None:
    broken = function("broken", "class Filter(\n")
    plugins = (shout("a"), shout("b", end="raise ValueError('no')"), shout("c", end="return []"), broken)
    async with function_world(*plugins) as world:
        after = await after_run(world)
        assert after is not None
        assert [message["content"] for message in after] == ["hi", "yo a"]
        assert {target.message_id for target, _ in world.events.emitted} == {"r"}


async def test_after_a_run_without_outlets_nothing_comes_back() -> None:
    async with function_world(
        function("f", "class Filter:\n    def inlet(self, body): return body\n")
    ) as world:
        assert await after_run(world) is None
