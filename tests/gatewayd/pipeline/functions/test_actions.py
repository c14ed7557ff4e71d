"""Tests for gatewayd.pipeline.functions.actions."""

import asyncio
import json
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.catalog.records import Grant
from gatewayd.chats.records import Message
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.context import RequestFacts
from tests.fakes.plugins.memory import scope_of
from tests.fakes.providers.function_models import FunctionWorld, function, function_world
from tests.fakes.providers.models import make_actor

ADMIN = make_actor("u1")
USER = make_actor("u2", Role.USER)
FACTS = RequestFacts()


def action(body: str, *, extra: str = "", **changes: Any) -> Any:
    """Return a function `a` whose action has this body."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    parameters = "self, body, __user__=None, __id__=None, __event_emitter__=None, __model__=None"
    source = f"{extra}\nclass Action:\n    actions = [{{'id': 'one', 'name': 'One'}}]\n"
    return function("a", f"{source}    async def action({parameters}):\n{lines}\n", **changes)


def pressed(**changes: Any) -> dict[str, Any]:
    messages = [
        {"id": "q", "role": "user", "content": "hi"},
        {"id": "r", "role": "assistant", "content": "yo"},
    ]
    return {"model": "m", "messages": messages, **changes}


async def press(world: FunctionWorld, action_id: str = "a", *, by: Actor = ADMIN, **changes: Any) -> Any:
    return await world.actions.run(by, action_id, pressed(**changes), FACTS)


async def refusal(world: FunctionWorld, action_id: str = "a", **changes: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await press(world, action_id, **changes)
    return caught.value


async def usable(world: FunctionWorld, *model_ids: str, **meta: Any) -> None:
    """Let everybody use models."""
    for model_id in model_ids:
        await world.attach(model_id, **meta)
        await world.catalog.grant(model_id, [Grant("user", "*", "read")], by="admin")


@pytest.mark.parametrize(
    "value", ["None", "{}", "{'content': 'x'}", "'text'", "7", "True", "[1, {'a': None}]", "body['messages']"]
)
async def test_plain_values_come_back_as_they_are(value: str) -> None:
    async with function_world(action(f"return {value}")) as world:
        expected = pressed()["messages"] if "body" in value else eval(value)
        assert await press(world) == expected


async def test_a_model_comes_back_as_an_object() -> None:
    extra = "from pydantic import BaseModel\nclass Said(BaseModel):\n    content: str = 'x'\n"
    async with function_world(action("return Said()", extra=extra)) as world:
        assert await press(world) == {"content": "x"}


async def test_the_action_gets_body_user_model_and_its_own_id() -> None:
    body = "return [body['own'], body['chat_id'], body['id'], __user__['id'], __model__['id'], __id__]"
    async with function_world(action(body)) as world:
        assert await press(world, own=1) == [1, "", "", "u1", "m", "a"]
        assert await press(world, "a.one", own=1, id="r") == [1, "", "r", "u1", "m", "one"]


@pytest.mark.parametrize("action_id", ["b", "a.two", "a.one.more", "", ".one", "f"])
async def test_unknown_actions_are_not_found(action_id: str) -> None:
    other = function("f", "class Filter:\n    def outlet(self, body): return body\n")
    async with function_world(action("return 1"), other) as world:
        assert (await refusal(world, action_id)).kind is ErrorKind.NOT_FOUND


async def test_inactive_actions_are_not_found() -> None:
    async with function_world(action("return 1", is_active=False)) as world:
        assert (await refusal(world)).kind is ErrorKind.NOT_FOUND


async def test_users_may_press_what_is_global_or_attached_to_a_model_of_theirs() -> None:
    async with function_world(action("return 1", is_global=False)) as world:
        assert (await refusal(world, by=USER)).kind is ErrorKind.NOT_FOUND
        await usable(world, "m")
        assert (await refusal(world, by=USER)).kind is ErrorKind.FORBIDDEN
        assert await press(world) == 1
        await usable(world, "m", actionIds=["a"])
        assert await press(world, by=USER) == 1
        assert (await refusal(world, by=USER, model="n")).kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    "change", [{"model": None}, {"model": 1}, {"messages": None}, {"messages": [1]}, {"messages": {}}]
)
async def test_a_bad_body_is_refused(change: dict[str, Any]) -> None:
    async with function_world(action("return 1")) as world:
        assert (await refusal(world, **change)).kind is ErrorKind.INVALID_REQUEST


async def test_what_it_raises_refuses_the_call_with_its_text() -> None:
    async with function_world(action("raise ValueError('not now')")) as world:
        failure = await refusal(world)
        assert (failure.kind, failure.message) == (ErrorKind.INVALID_REQUEST, "not now")


async def test_changed_messages_are_kept_in_the_stored_chat() -> None:
    body = "body['messages'][1].update(content='better', rating=1)\nreturn {'messages': body['messages']}"
    async with function_world(action(body)) as world:
        await world.store_chat(
            "u1", Message("q", None, "user", "stored"), Message("r", "q", "assistant", "yo")
        )
        reply = await press(world, chat_id="c1", id="r")
        assert reply["messages"][1]["content"] == "better"
        assert world.message("r").content == "better"
        assert world.message("r").attributes == {"rating": 1}
        assert world.message("q").content == "stored"


async def test_a_foreign_chat_is_not_found_and_nothing_runs() -> None:
    async with function_world(action("await __event_emitter__({'type': 'ran', 'data': {}})")) as world:
        await world.store_chat("somebody", Message("r", None, "assistant", "yo"))
        assert (await refusal(world, chat_id="c1", id="r")).kind is ErrorKind.NOT_FOUND
        assert world.events.emitted == []
        assert await press(world, chat_id="unknown", id="r") is None
        [(target, _)] = world.events.emitted
        assert (target.user_id, target.chat_id, target.message_id) == ("u1", "unknown", "r")


PAGE = """
from fastapi.responses import HTMLResponse
page = HTMLResponse("<b>hi</b>", headers={"Content-Disposition": "inline"})
"""


async def test_a_page_is_shown_and_told_of() -> None:
    async with function_world(action("return page", extra=PAGE)) as world:
        told = json.loads(await press(world, chat_id="c1", id="r"))
        assert (told["status"], told["code"]) == ("success", "ui_component")
        [(target, event)] = world.events.emitted
        assert event == {"type": "embeds", "data": {"embeds": ["<b>hi</b>"]}}
        assert target.message_id == "r"


async def test_a_page_with_a_context_is_shown_and_the_context_returned() -> None:
    async with function_world(action("return page, {'rows': 2}", extra=PAGE)) as world:
        assert json.loads(await press(world)) == {"rows": 2}
        assert [event["type"] for _, event in world.events.emitted] == ["embeds"]


async def test_a_page_that_is_not_inline_is_its_text() -> None:
    body = "from fastapi.responses import HTMLResponse\nreturn HTMLResponse('<i>x</i>')"
    async with function_world(action(body)) as world:
        assert await press(world) == "<i>x</i>"
        assert world.events.emitted == []


MCP = """[
    {'type': 'text', 'text': 'one'},
    {'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png'},
    {'type': 'text', 'text': 'two'},
]"""
IMAGE = {"type": "image", "url": "/kept"}


async def test_texts_of_an_mcp_list_are_joined_and_pictures_are_files_of_the_message() -> None:
    async with function_world(action(f"return {MCP}")) as world:
        assert await press(world, chat_id="c1", id="r") == "one\ntwo"
        assert [(item.type, item.content) for item in world.kept] == [("image", b"hi")]
        source = {
            "source": {"name": "A"},
            "document": ["one\ntwo"],
            "metadata": [{"source": "a"}],
            "tool_result": True,
        }
        assert [event for _, event in world.events.emitted] == [
            {"type": "files", "data": {"files": [IMAGE]}},
            {"type": "source", "data": source},
        ]
        assert {target.message_id for target, _ in world.events.emitted} == {"r"}


@pytest.mark.parametrize(
    ("value", "said", "kinds"),
    [
        ("'done'", "done", ["source"]),
        ("''", "", []),
        ("'data:image/png;base64,aGk='", "The user sees the result: image.", ["files"]),
        ("[{'type': 'image', 'data': 'aGk='}]", "The user sees the result: image.", ["files"]),
        ("[{'type': 'resource', 'resource': {'text': 'page'}}]", "page", ["source"]),
    ],
)
async def test_texts_and_pictures_are_kept_with_the_message(value: str, said: str, kinds: list[str]) -> None:
    async with function_world(action(f"return {value}")) as world:
        assert await press(world, chat_id="c1", id="r") == said
        assert [event["type"] for _, event in world.events.emitted] == kinds


async def test_an_action_that_is_not_cited_leaves_no_source() -> None:
    source = "class Action:\n    citation = False\n    async def action(self, body):\n        return 'done'\n"
    async with function_world(function("a", source)) as world:
        assert await press(world, chat_id="c1", id="r") == "done"
        assert world.events.emitted == []


async def test_what_an_action_yields_is_one_text() -> None:
    async with function_world(action("yield 'do'\nyield 7\nyield 'ne'")) as world:
        assert await press(world) == "done"


async def test_a_file_that_cannot_be_kept_is_told_of_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: object, __: object) -> dict[str, Any]:
        raise GatewayError(ErrorKind.TOO_LARGE, "cannot accept the file: it is too large")

    monkeypatch.setattr(FunctionWorld, "_keep", lambda _, actor, item: fail(actor, item))
    async with function_world(action(f"return {MCP}")) as world:
        lost = "The image of this result cannot be stored: cannot accept the file: it is too large."
        assert await press(world) == f"one\ntwo\n{lost}"


async def test_a_model_that_cannot_be_read_fails_the_action_alone() -> None:
    extra = (
        "from pydantic import BaseModel\nclass Said(BaseModel):\n"
        "    def model_dump(self, **_):\n        raise ValueError('x')\n"
    )
    async with function_world(action("return Said()", extra=extra)) as world:
        failure = await refusal(world)
        assert (failure.kind, "'a': ValueError" in failure.message) == (ErrorKind.PLUGIN_FAILED, True)


async def test_an_object_that_is_no_json_is_its_text() -> None:
    async with function_world(action("return {'a': {1}}")) as world:
        assert json.loads(await press(world)) == {"a": "{1}"}


WAIT = """
import asyncio
try:
    await __event_emitter__({'type': 'begun', 'data': {}})
    await asyncio.Event().wait()
finally:
    await __event_emitter__({'type': 'cleaned', 'data': {}})
"""


async def test_an_action_is_a_task_of_its_chat_that_can_be_stopped() -> None:
    async with function_world(action(WAIT)) as world:
        pressing = asyncio.ensure_future(press(world, chat_id="c9", id="r"))
        await world.events.arrived.wait()
        world.events.arrived.clear()
        [info] = world.tasks.started(chat_id="c9")
        assert (info.purpose.user_id, info.purpose.message_id) == ("u1", "r")
        assert await world.tasks.stop(info.id)
        with pytest.raises(GatewayError) as caught:
            await pressing
        assert caught.value.kind is ErrorKind.CONFLICT
        await world.events.arrived.wait()
        assert [event["type"] for _, event in world.events.emitted] == ["begun", "cleaned"]


async def test_an_action_runs_on_when_its_caller_leaves() -> None:
    source = """
    import asyncio

    class Action:
        def __init__(self):
            self.go = asyncio.Event()

        async def release(self):
            self.go.set()

        async def action(self, body, __event_emitter__):
            await __event_emitter__({"type": "begun", "data": {}})
            await self.go.wait()
            return {"messages": [{"id": "r", "content": "better"}]}
    """
    async with function_world(function("a", source)) as world:
        await world.store_chat("u1", Message("r", None, "assistant", "yo"))
        pressing = asyncio.ensure_future(press(world, chat_id="c1", id="r"))
        await world.events.arrived.wait()
        pressing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pressing
        [info] = world.tasks.started(chat_id="c1")
        assert world.message("r").content == "yo"
        loaded = await world.registry.loaded(PluginFamily.FUNCTION, "a")
        await loaded.call("release", scope_of(), {})
        while world.tasks.find(info.id) is not None:
            await asyncio.sleep(0)
        assert world.message("r").content == "better"
