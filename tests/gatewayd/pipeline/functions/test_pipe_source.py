"""Tests for gatewayd.pipeline.functions.pipe_source."""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.interfaces import CallContext
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.records import ChatAnswer
from gatewayd.plugins.records import PluginFamily
from tests.fakes.plugins.memory import scope_of
from tests.fakes.providers.function_models import FunctionWorld, ask, function, function_world
from tests.fakes.providers.models import make_actor

ADMIN = make_actor()


async def run(world: FunctionWorld, model: str = "p", **changes: Any) -> ChatAnswer:
    return await world.pipeline.run(ask(model, **changes), ADMIN)


async def whole(world: FunctionWorld, model: str = "p", **changes: Any) -> dict[str, Any]:
    answer = await run(world, model, **changes)
    assert answer.completion is not None
    return answer.completion.body


async def content(world: FunctionWorld, **changes: Any) -> Any:
    return (await whole(world, **changes))["choices"][0]["message"]["content"]


async def streamed(world: FunctionWorld, model: str = "p", **changes: Any) -> list[dict[str, Any]]:
    answer = await run(world, model, stream=True, **changes)
    assert answer.chunks is not None
    return [event async for chunk in answer.chunks for event in chunk.events]


def text(events: Sequence[dict[str, Any]]) -> str:
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


def reasons(events: Sequence[dict[str, Any]]) -> list[str]:
    found = [choice.get("finish_reason") for event in events for choice in event["choices"]]
    return [reason for reason in found if reason]


def pipe(body: str, *, head: str = "def", extra: str = "", **changes: Any) -> Any:
    """Return a function `p` whose `pipe` has this body."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    source = f"import json\n{extra}\nclass Pipe:\n    {head} pipe(self, body):\n{lines}\n"
    return function("p", source, **changes)


async def listed(world: FunctionWorld) -> dict[str, str]:
    models = await world.catalog.list(ADMIN)
    return {model.id: model.name for model in models if model.id not in {"m", "n"}}


async def test_a_pipe_is_a_model_of_its_id_and_name() -> None:
    off = function("off", "class Pipe:\n    def pipe(self): return ''\n", is_active=False)
    async with function_world(pipe("return ''", name="My pipe", created_at=7), off) as world:
        [model] = await world.functions.list_models()
        assert (model.id, model.name, model.owned_by, model.created) == ("p", "My pipe", "openai", 7)
        assert model.detail["pipe"] == {"type": "pipe"}
        assert model.detail["has_user_valves"] is False
        assert await listed(world) == {"p": "My pipe"}


MANIFOLD = """
class Pipe:
    class UserValves:
        pass

    def __init__(self):
        self.type = "manifold"
        self.name = "Co: "

    {pipes}

    def pipe(self, body):
        return body["model"]
"""
ENTRIES = '[{"id": "a/b c@d", "name": "B"}, {"id": "x"}, {"name": "no id"}, "odd", {"id": 7}]'


@pytest.mark.parametrize(
    "pipes",
    [
        f"def pipes(self): return {ENTRIES}",
        f"async def pipes(self): return {ENTRIES}",
        f"def pipes(self): yield from {ENTRIES}",
        f"pipes = {ENTRIES}",
    ],
)
async def test_a_manifold_lists_several_and_is_asked_by_the_whole_id(pipes: str) -> None:
    async with function_world(function("p", MANIFOLD.format(pipes=pipes))) as world:
        assert await listed(world) == {"p.a/b c@d": "Co: B", "p.x": "Co: x"}
        assert await content(world, model="p.a/b c@d") == "p.a/b c@d"
        [first, _] = await world.functions.list_models()
        assert first.detail["has_user_valves"] is True


@pytest.mark.parametrize(
    "pipes",
    [
        "def pipes(self): raise ValueError('no key')",
        "def pipes(self): return 7",
        "pipes = None\n    x = nothing",
    ],
)
async def test_a_pipe_that_fails_to_list_leaves_the_others_alone(
    pipes: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = function("broken", MANIFOLD.format(pipes=pipes))
    async with function_world(broken, pipe("return 'x'")) as world:
        assert await listed(world) == {"p": "P"}
        assert "models not listed" in caplog.text


async def test_a_pipe_that_takes_long_to_list_is_left_out_and_asked_once_at_a_time() -> None:
    source = """
    import asyncio

    class Pipe:
        def __init__(self):
            self.asked = 0
            self.go = asyncio.Event()

        async def pipes(self, __event_emitter__):
            self.asked += 1
            await __event_emitter__({"type": "asked", "data": {}})
            await self.go.wait()
            return [{"id": str(self.asked), "name": "slow"}]

        async def pipe(self, body):
            self.go.set()
            return ""
    """
    slow = function("slow", source)
    async with function_world(slow, pipe("return ''"), seconds=0.01) as world:
        await world.events.arrived.wait()
        await world.registry.loaded(slow.family, "p")
        assert [model.id for model in await world.functions.list_models()] == ["p"]
        loaded = await world.registry.loaded(slow.family, "slow")
        assert loaded.value("asked") == 1
        asking = next(key for key, name in world.tasks.list().items() if name == "models of function slow")
        await loaded.call("pipe", scope_of(), {"body": {}})
        while asking in world.tasks.list():
            await asyncio.sleep(0)
        world.functions._seconds = 20
        assert "slow.1" in [model.id for model in await world.catalog.list_all()]
        assert loaded.value("asked") == 1
        assert [model.id for model in await world.functions.list_models()] == ["p", "slow.2"]


async def test_a_pipe_that_was_late_is_asked_again_when_it_has_changed() -> None:
    source = """
    import asyncio

    class Pipe:
        def __init__(self):
            self.go = asyncio.Event()

        async def pipes(self):
            await self.go.wait()
            return [{{"id": "{}"}}]

        async def pipe(self, body):
            self.go.set()
            return ""
    """
    slow = function("slow", source.format("old"))
    async with function_world(slow, seconds=0.01) as world:
        world.functions.on_late = lambda: None
        asking = next(key for key, name in world.tasks.list().items() if name == "models of function slow")
        loaded = await world.registry.loaded(slow.family, "slow")
        await loaded.call("pipe", scope_of(), {"body": {}})
        while asking in world.tasks.list():
            await asyncio.sleep(0)
        world.functions._seconds = 20
        changed = slow.content.replace("old", "new").replace("await self.go.wait()", "pass")
        await world.registry.adopt(replace(slow, content=changed), None)
        assert await listed(world) == {"slow.new": "new"}


async def test_the_pipe_gets_the_request_and_nothing_of_the_gateways_own() -> None:
    source = """
    import json

    class Pipe:
        async def pipe(self, body, __user__, __metadata__, __model__, __chat_id__, __files__, __task__):
            assert __metadata__["chat_id"] == __chat_id__ == "c1"
            assert __user__["id"] == "u1" and __model__["id"] == "p" and __task__ is None
            body["messages"].clear()
            return json.dumps({key: body[key] for key in sorted(body) if key != "messages"})
    """
    async with function_world(function("p", source)) as world:
        request = ask("p", options={"chat_id": "c1"}, body={"temperature": 1, "metadata": {"x": "y"}})
        answer = await world.pipeline.run(request, ADMIN)
        assert answer.completion is not None
        said = answer.completion.body["choices"][0]["message"]["content"]
        assert said == '{"model": "p", "stream": false, "temperature": 1}'
        assert request.body["messages"] == [{"role": "user", "content": "hi"}]


WHOLE = [
    ("def", "return 'ab'", "ab"),
    ("async def", "return 'ab'", "ab"),
    ("def", "return None", None),
    ("def", "return ''", ""),
    ("def", "yield 'a'\nyield b'b'", "ab"),
    ("async def", "yield 'a'\nyield {'choices': [{'delta': {'content': 'b'}}]}", "ab"),
    ("def", "return iter(['a', 'b'])", "ab"),
    ("def", "return (part for part in ['a', 'b'])", "ab"),
    ("def", "return ['a', 'b']", "ab"),
    ("def", "return {'choices': [{'message': {'role': 'assistant', 'content': 'ab'}}]}", "ab"),
    ("def", "return 'data: ' + json.dumps({'choices': [{'delta': {'content': 'ab'}}]})", "ab"),
    ("def", "yield 'data: ' + json.dumps({'choices': [{'delta': {'content': 'ab'}}]})", "ab"),
    ("def", "yield 'a'\nyield None\nyield 'b'", "ab"),
    ("def", "return Reply()", "ab"),
    ("async def", "yield Reply()", "ab"),
    ("def", "return Streaming()", "ab"),
    ("def", "return Whole(200)", "ab"),
    ("def", "return 12", "12"),
]
EXTRA = """
from pydantic import BaseModel

class Reply(BaseModel):
    choices: list = [{"index": 0, "message": {"role": "assistant", "content": "ab"}}]

class Streaming:
    status_code = 200
    def __init__(self):
        self.body_iterator = self.parts()
    async def parts(self):
        line = ('data: ' + json.dumps({'choices': [{'delta': {'content': 'ab'}}]}) + '\\n\\n').encode()
        for at in range(0, len(line), 5):
            yield line[at:at + 5]
        yield b'data: [DONE]\\n\\n'

class Whole:
    def __init__(self, status):
        self.status_code = status
        self.body = json.dumps({'choices': [{'message': {'content': 'ab'}}], 'detail': 'not so'}).encode()
"""


@pytest.mark.parametrize(("head", "body", "expected"), WHOLE)
async def test_each_kind_of_return_is_a_whole_answer(head: str, body: str, expected: Any) -> None:
    async with function_world(pipe(body, head=head, extra=EXTRA)) as world:
        reply = await whole(world)
        assert reply["choices"][0]["message"]["content"] == expected
        assert (reply["object"], reply["model"]) == ("chat.completion", "p")
        assert isinstance(reply["created"], int)
        assert reply["id"]


@pytest.mark.parametrize(("head", "body", "expected"), WHOLE)
async def test_each_kind_of_return_is_a_stream_with_one_end(head: str, body: str, expected: Any) -> None:
    async with function_world(pipe(body, head=head, extra=EXTRA)) as world:
        events = await streamed(world)
        assert text(events) == (expected or "")
        assert reasons(events) == ["stop"]
        assert {event["object"] for event in events} == {"chat.completion.chunk"}
        assert all(event["id"] and event["model"] == "p" for event in events)


async def test_real_responses_of_a_web_framework_are_read() -> None:
    source = """
    from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse

    class Pipe:
        def pipes(self):
            return [{"id": name, "name": name} for name in ("json", "text", "stream", "error")]

        def pipe(self, body):
            def parts():
                yield b'data: {"choices": [{"delta": {"content": "str'
                yield 'eam"}}]}\\n\\n'.encode()
            kind = body["model"].partition(".")[2]
            if kind == "json":
                return JSONResponse({"choices": [{"message": {"content": "json"}}]})
            if kind == "error":
                return JSONResponse({"error": {"message": "too much"}}, status_code=429)
            return PlainTextResponse("text") if kind == "text" else StreamingResponse(parts())
    """
    async with function_world(function("p", source)) as world:
        for kind in ("json", "text", "stream"):
            assert await content(world, model=f"p.{kind}") == kind
            assert text(await streamed(world, model=f"p.{kind}")) == kind
        with pytest.raises(GatewayError) as caught:
            await whole(world, model="p.error")
        assert caught.value.message == "pipe p: too much"


FAILURES = [
    ("def", "raise ValueError('broken')", "pipe p: ValueError: broken"),
    ("async def", "raise ValueError('broken')", "pipe p: ValueError: broken"),
    ("def", "raise ValueError('broken')\nyield ''", "pipe p: ValueError: broken"),
    ("async def", "raise ValueError('broken')\nyield ''", "pipe p: ValueError: broken"),
    ("def", "return {'error': {'detail': 'broken'}}", "pipe p: broken"),
    ("def", "return {'error': 'broken'}", "pipe p: broken"),
    ("def", "return {'error': {'code': 5}}", 'pipe p: {"code":5}'),
    ("def", 'yield \'data: {"error": {"message": "broken"}}\'', "pipe p: broken"),
    ("def", "return Whole(500)", "pipe p: not so"),
]


async def test_the_code_that_a_pipe_reports_is_kept() -> None:
    body = "return {'error': {'message': 'long', 'code': 'context_length_exceeded', 'param': 'messages'}}"
    async with function_world(pipe(body)) as world:
        with pytest.raises(GatewayError, match="pipe p: long") as caught:
            await run(world, stream=False)
    assert (caught.value.kind, caught.value.param, caught.value.provider_code) == (
        ErrorKind.INVALID_REQUEST,
        "messages",
        "context_length_exceeded",
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("head", "body", "message"), FAILURES)
async def test_a_failure_before_the_first_chunk_is_raised(
    head: str, body: str, message: str, stream: bool
) -> None:
    async with function_world(pipe(body, head=head, extra=EXTRA)) as world:
        with pytest.raises(GatewayError) as caught:
            await run(world, stream=stream)
        assert (caught.value.kind, caught.value.message) == (ErrorKind.PLUGIN_FAILED, message)


@pytest.mark.parametrize(
    "body", ["yield 'a'\nraise ValueError('x')", "yield 'a'\nyield {'error': {'detail': 'x'}}"]
)
async def test_a_failure_after_the_first_chunk_is_raised_from_the_stream(body: str) -> None:
    async with function_world(pipe(body)) as world:
        answer = await run(world, stream=True)
        assert answer.chunks is not None
        assert text((await anext(answer.chunks)).events) == "a"
        with pytest.raises(GatewayError) as caught:
            await anext(answer.chunks)
        assert caught.value.kind is ErrorKind.PLUGIN_FAILED


async def test_events_among_the_items_are_emitted_and_not_passed_on() -> None:
    body = """
yield {"event": {"type": "status", "data": {"description": "one"}}}
yield 'data: {"event": {"type": "status", "data": {"description": "two"}}}'
yield {"event": "odd"}
yield "a"
"""
    async with function_world(pipe(body)) as world:
        events = await streamed(world, options={"chat_id": "c1", "id": "m1"})
        assert text(events) == "a"
        assert all("event" not in event for event in events)
        assert await content(world) == "a"
        told = world.events.emitted
        assert [event["data"]["description"] for _, event in told if isinstance(event, dict)] == 2 * [
            "one",
            "two",
        ]
        assert (told[0][0].chat_id, told[0][0].message_id) == ("c1", "m1")


async def test_sources_and_usage_are_passed_on() -> None:
    body = "yield {'sources': [1]}\nyield 'a'\nyield {'usage': {'total_tokens': 3}}"
    async with function_world(pipe(body)) as world:
        events = await streamed(world)
        assert events[0]["sources"] == [1]
        assert events[0]["choices"] == []
        reply = await whole(world)
        assert (reply["sources"], reply["usage"]) == ([1], {"total_tokens": 3})


CLEAN = """
import asyncio
import threading

class Pipe:
    async def pipe(self, body, __event_emitter__):
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            await __event_emitter__({"type": "cleaned", "data": {}})
"""


async def test_closing_a_stream_ends_the_pipe() -> None:
    async with function_world(function("p", CLEAN)) as world:
        answer = await run(world, stream=True)
        assert answer.chunks is not None
        assert text((await anext(answer.chunks)).events) == "a"
        await answer.chunks.aclose()
        await world.events.arrived.wait()
        assert world.events.emitted[0][1]["type"] == "cleaned"


async def test_cancelling_a_whole_answer_reaches_the_pipe() -> None:
    source = """
    import asyncio

    class Pipe:
        async def pipe(self, body, __event_emitter__):
            try:
                await __event_emitter__({"type": "begun", "data": {}})
                await asyncio.Event().wait()
            finally:
                await __event_emitter__({"type": "cleaned", "data": {}})
    """
    async with function_world(function("p", source)) as world:
        asking = asyncio.ensure_future(run(world))
        await world.events.arrived.wait()
        world.events.arrived.clear()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await world.events.arrived.wait()
        assert [event["type"] for _, event in world.events.emitted] == ["begun", "cleaned"]


async def test_without_a_scope_the_caller_is_who_the_context_names() -> None:
    source = """
    class Pipe:
        def pipe(self, body, __user__, __chat_id__, __metadata__):
            return f"{__user__['id']} {__user__['role']} {__chat_id__!r} {__metadata__}"
    """
    async with function_world(function("p", source)) as world:
        [model] = await world.functions.list_models()
        context = CallContext("r1", "u9", user_role=Role.USER.value)
        body = {"model": "p", "messages": []}
        reply = await world.functions.complete(body, model, context)
        assert reply.body["choices"][0]["message"]["content"] == "u9 user '' {}"


async def test_models_of_an_earlier_source_are_not_listed_while_the_new_one_takes_long() -> None:
    source = """
    import asyncio

    class Pipe:
        async def pipes(self):
            {}
            return [{{"id": "x"}}]
    """
    first = function("p", source.format("pass"))
    async with function_world(first) as world:
        assert await listed(world) == {"p.x": "x"}
        world.functions._seconds = 0.01
        waiting = replace(first, content=source.format("await asyncio.Event().wait()"))
        await world.registry.adopt(waiting, None)
        assert await listed(world) == {}


async def test_a_request_waits_for_a_pipe_that_is_still_loading() -> None:
    source = """
    import threading
    threading._gatewayd_test_gate.wait(15)

    class Pipe:
        def pipe(self, body):
            return "loaded"
    """
    gate = threading._gatewayd_test_gate = threading.Event()  # type: ignore[attr-defined]
    async with function_world(function("p", source)) as world:
        world.functions._seconds = 0.01
        assert await listed(world) == {}
        asking = asyncio.ensure_future(content(world))
        await asyncio.sleep(0)
        gate.set()
        assert await asking == "loaded"
        assert not await world.functions.load_model("p")
        assert not await world.functions.load_model("nobody")
    del threading._gatewayd_test_gate  # type: ignore[attr-defined]


async def test_a_pipe_that_does_not_load_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async with function_world(function("p", "class Pipe:\n    x = y\n")) as world:
        with pytest.raises(GatewayError, match="Model not found: 'p'"):
            await run(world)
    monkeypatch.setattr("gatewayd.pipeline.functions.pipe_source.LOADING_SECONDS", 0.05)
    slow = "import time\nfor _ in range(1000): time.sleep(0.01)\nclass Pipe: pass"
    async with function_world(function("p", slow)) as world:
        assert not await world.functions.load_model("p")


async def test_a_pause_of_the_gateway_is_not_charged_to_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayd.pipeline.functions.pipe_source.LOADING_SECONDS", 0.1)
    monkeypatch.setattr("gatewayd.deadlines.PAUSE_THRESHOLD_SECONDS", 0.02)
    async with function_world(pipe("return ''")) as world:
        plugin = await world.registry.loaded(PluginFamily.FUNCTION, "p")

        async def loaded_after_a_pause(*_: object) -> object:
            time.sleep(0.2)
            for _ in range(10):
                await asyncio.sleep(0)
            return plugin

        monkeypatch.setattr(world.registry, "loaded", loaded_after_a_pause)
        world.functions._seconds = 0.1
        assert [model.id for model in await world.functions.list_models()] == ["p"]
        monkeypatch.setattr(world.registry, "find_loaded", lambda *_: None)
        assert await world.functions.load_model("p")


async def test_a_function_that_is_off_is_no_model() -> None:
    async with function_world(pipe("return ''")) as world:
        [model] = await world.functions.list_models()
        await world.registry.update(replace(pipe("return ''"), is_active=False))
        with pytest.raises(GatewayError) as caught:
            await world.functions.complete({"messages": []}, model, CallContext("r", "u"))
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_function_that_is_gone_is_no_model() -> None:
    async with function_world(pipe("return ''")) as world:
        [model] = await world.functions.list_models()
        world.registry.drop(PluginFamily.FUNCTION, "p")
        with pytest.raises(GatewayError) as caught:
            await world.functions.complete({"messages": []}, model, CallContext("r", "u"))
        assert caught.value.kind is ErrorKind.NOT_FOUND
        assert await world.functions.list_models() == []


async def test_models_are_listed_anew_as_soon_as_a_pipe_changes() -> None:
    first = pipe("return ''")
    async with function_world(first) as world:
        assert await listed(world) == {"p": "P"}
        await world.registry.update(replace(first, name="Other"))
        assert await listed(world) == {"p": "Other"}
        await world.registry.adopt(replace(first, id="q", name="Q"), None)
        assert await listed(world) == {"p": "Other", "q": "Q"}
        await world.registry.update(replace(first, is_active=False))
        assert await listed(world) == {"q": "Q"}
        world.registry.drop(PluginFamily.FUNCTION, "q")
        assert await listed(world) == {}


async def test_models_are_not_listed_anew_when_another_kind_changes() -> None:
    other = function("f", "class Filter:\n    def inlet(self, body): return body\n")
    async with function_world(other) as world:
        listings = world.catalog.listings()
        before = list(world.tasks.list().values())
        await world.registry.update(replace(other, name="Other"))
        assert list(world.tasks.list().values()) == before
        assert all(not item.never_answered for item in listings)


async def test_a_result_that_cannot_be_looked_at_is_refused() -> None:
    extra = """class Closed:
    def __getattr__(self, name):
        raise RuntimeError(name)
"""
    async with function_world(pipe("return Closed()", extra=extra)) as world:
        with pytest.raises(GatewayError, match="a Closed is neither text nor an object") as caught:
            await whole(world)
    assert caught.value.kind is ErrorKind.PLUGIN_FAILED


async def test_ids_and_names_of_models_can_be_written() -> None:
    source = """
class Pipe:
    pipes = [{"id": "a\\ud800", "name": "b\\ud800"}]
    def pipe(self, body):
        return body["model"]
"""
    async with function_world(function("p", source)) as world:
        assert (await listed(world))["p.a?"] == "b?"
        assert await content(world, model="p.a?") == "p.a?"


@pytest.mark.parametrize("body", ["return 'a\\ud800'", "yield 'a\\ud800'"])
async def test_answers_can_be_written(body: str) -> None:
    async with function_world(pipe(body)) as world:
        assert await content(world) == "a?"
        assert text(await streamed(world)) == "a?"
