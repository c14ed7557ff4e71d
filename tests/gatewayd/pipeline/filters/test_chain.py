"""Tests for gatewayd.pipeline.filters.chain."""

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.documents.plugin_context import make_scope
from gatewayd.pipeline.filters.chain import EMPTY_CHAIN
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.runtime.runner import PluginRunner
from tests.fakes.providers.function_models import FunctionWorld, ask, function, function_world
from tests.fakes.providers.models import make_actor, make_model

ADMIN = make_actor()

NOTE = """
class Filter:
    def __init__(self):
        self.toggle = {toggle}

    async def inlet(self, body):
        body["messages"][0]["content"] += "{mark}"
        return body
"""


def noting(plugin_id: str, **changes: Any) -> Any:
    """Return a filter that writes its id into the question."""
    toggle = changes.pop("toggle", False)
    return function(plugin_id, NOTE.format(toggle=toggle, mark=f" {plugin_id}"), **changes)


def by_priority(plugin_id: str, default: int, **changes: Any) -> Any:
    source = f"""
    from pydantic import BaseModel

    class Filter:
        class Valves(BaseModel):
            priority: int = {default}

        def __init__(self):
            self.valves = self.Valves()

        def inlet(self, body: dict) -> dict:
            body["messages"][0]["content"] += " {plugin_id}"
            return body
    """
    return function(plugin_id, source, **changes)


async def asked(world: FunctionWorld, **changes: Any) -> dict[str, Any]:
    """Return what the source was asked."""
    await world.pipeline.run(ask(**changes), ADMIN)
    return world.source.asked[-1]


async def question(world: FunctionWorld, **changes: Any) -> str:
    """Return the question as the source got it."""
    return str((await asked(world, **changes))["messages"][0]["content"])


async def refused(world: FunctionWorld, **changes: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await world.pipeline.run(ask(**changes), ADMIN)
    assert world.source.asked == []
    return caught.value


async def test_without_active_filters_the_chain_is_empty_and_nothing_is_made() -> None:
    async with function_world(noting("off", is_active=False), noting("other", is_global=False)) as world:
        request = ask()
        assert await world.filters.choose(request, make_model("m"), ADMIN) is EMPTY_CHAIN
        assert request.scope is None
        assert await question(world) == "hi"


async def test_filters_run_when_they_are_global_or_attached_to_the_model() -> None:
    async with function_world(noting("all"), noting("some", is_global=False)) as world:
        await world.attach("m", filterIds=["some", "unknown"])
        assert await question(world) == "hi all some"
        assert await question(world, model="n") == "hi all"


async def test_a_toggle_filter_runs_when_the_request_says_so() -> None:
    async with function_world(noting("a", toggle=True), noting("b", toggle=True)) as world:
        assert await question(world) == "hi"
        assert await question(world, options={"filter_ids": ["b", 7]}) == "hi b"
        assert await question(world, options={"filter_ids": "b"}) == "hi"


async def test_filters_run_by_priority_then_id() -> None:
    late = by_priority("a", 5)
    first = by_priority("z", 9, valves={"priority": -1})
    async with function_world(late, first, by_priority("c", 0), by_priority("b", 0)) as world:
        assert await question(world) == "hi z b c a"


async def test_in_safe_mode_no_filter_runs() -> None:
    async with function_world(noting("all"), is_safe=True) as world:
        assert await question(world) == "hi"


async def test_tasks_of_the_gateway_are_filtered_and_have_no_outlet() -> None:
    outlet = """
    class Filter:
        def outlet(self, body: dict) -> dict:
            return body
    """
    async with function_world(noting("all"), function("out", outlet)) as world:
        world.runs_outlets = True
        request = ask()
        request.scope = make_scope(request, make_model("m"), None, ADMIN)
        assert len((await world.filters.choose(request, make_model("m"), ADMIN)).outlets) == 1
        request.scope = make_scope(request, make_model("m"), None, ADMIN)
        request.scope.task = "title_generation"
        chain = await world.filters.choose(request, make_model("m"), ADMIN)
        assert (len(chain.inlets), len(chain.outlets)) == (1, 0)


async def test_a_filter_that_a_request_has_met_has_no_part_in_those_within_it() -> None:
    async with function_world(noting("a"), noting("b")) as world:
        request = ask()
        request.scope = make_scope(request, make_model("m"), None, ADMIN)
        request.scope.filtered = {"a"}
        assert len((await world.filters.choose(request, make_model("m"), ADMIN)).inlets) == 1
        assert request.scope.filtered == {"a"}
        request = ask()
        await world.pipeline.run(request, ADMIN)
        assert request.scope is not None
        assert request.scope.filtered == {"a", "b"}


async def test_filters_are_on_when_they_run_for_requests_that_switch_none_on() -> None:
    async with function_world(noting("toggled", toggle=True), noting("some", is_global=False)) as world:
        assert not await world.filters.are_on("m")
        await world.attach("m", filterIds=["some"])
        assert await world.filters.are_on("m")
        assert not await world.filters.are_on("n")


BODY = """
class Filter:
    async def inlet(self, body, __metadata__, __user__, __model__, __id__, __event_emitter__):
        assert body["metadata"] is __metadata__
        assert body["stream"] is False
        await __event_emitter__({"type": "status", "data": {
            "description": f"{__user__['id']} {__model__['id']} {__id__} {__metadata__['chat_id']}",
            "keys": sorted(body),
        }})
        body["top_k"] = 3
        body["features"] = {"x": True}
        __metadata__["mine"] = 1
        return body
"""


async def test_the_inlet_sees_the_request_and_what_it_adds_travels() -> None:
    async with function_world(function("f", BODY)) as world:
        options = {"chat_id": "c1", "tool_ids": ["t"]}
        request = ask(options=options, files=[])
        await world.pipeline.run(request, ADMIN)
        [(_, event)] = world.events.emitted
        assert event["data"]["description"] == "u1 m f c1"
        assert event["data"]["keys"] == ["messages", "metadata", "model", "stream", "tool_ids"]
        sent = world.source.asked[-1]
        assert sent["top_k"] == 3
        assert not {"metadata", "features", "tool_ids", "chat_id"} & sent.keys()
        assert request.options["features"] == {"x": True}
        assert request.scope is not None
        assert request.scope.metadata["mine"] == 1


async def test_none_and_no_return_keep_the_body_as_it_was_left() -> None:
    source = """
    class Filter:
        def inlet(self, body):
            body["messages"][0]["content"] = "changed in place"
    """
    async with function_world(function("f", source)) as world:
        assert await question(world) == "changed in place"


@pytest.mark.parametrize(
    ("line", "crossings"),
    [
        ('body["messages"][0]["content"] += " small"', []),
        ('body["messages"].append({"role": "user", "content": "small"})', []),
        ("print(body)", ["inlet"]),
        ('raise ValueError("no")', ["inlet"]),
    ],
)
async def test_a_small_inlet_needs_no_crossing(
    line: str, crossings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    run = PluginRunner.run

    async def counted(self: PluginRunner, doing: str, *rest: Any) -> Any:
        done.append(doing)
        return await run(self, doing, *rest)

    source = (
        f"class Filter:\n    def inlet(self, body, __user__=None):\n        {line}\n        return body\n"
    )
    async with function_world(function("f", source)) as world:
        monkeypatch.setattr(PluginRunner, "run", counted)
        if "raise" in line:
            assert (await refused(world)).message == "no"
        else:
            assert ("small" in str(await asked(world))) == ("small" in line)
        assert done == crossings


async def test_an_inlet_may_route_to_another_model() -> None:
    source = """
    class Filter:
        def inlet(self, body):
            return {**body, "model": "n"}
    """
    async with function_world(function("f", source)) as world:
        assert (await asked(world))["model"] == "up-n"


RAISING = """
class HTTPException(Exception):
    def __init__(self, status_code, detail):
        self.status_code, self.detail = status_code, detail

class Filter:
    def inlet(self, body):
        raise {error}
"""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ('Exception("Too rude.")', ErrorKind.INVALID_REQUEST, "Too rude."),
        ('ValueError("no\\nway")', ErrorKind.INVALID_REQUEST, "no\nway"),
        ('HTTPException(429, "Slow down")', ErrorKind.RATE_LIMITED, "Slow down"),
        ('HTTPException(403, "Not you")', ErrorKind.FORBIDDEN, "Not you"),
        ('HTTPException(401, "Who?")', ErrorKind.UNAUTHENTICATED, "Who?"),
        ('HTTPException(404, "Where?")', ErrorKind.NOT_FOUND, "Where?"),
        ('HTTPException(418, "Tea")', ErrorKind.INVALID_REQUEST, "Tea"),
        ('HTTPException(500, "Broken")', ErrorKind.PLUGIN_FAILED, "Broken"),
        ("KeyError()", ErrorKind.INVALID_REQUEST, "filter f: KeyError"),
    ],
)
async def test_what_an_inlet_raises_refuses_the_request(error: str, kind: ErrorKind, message: str) -> None:
    async with function_world(function("f", RAISING.format(error=error))) as world:
        failure = await refused(world)
        assert (failure.kind, failure.message) == (kind, message)


async def test_a_refusal_tells_how_long_to_wait() -> None:
    source = """
        class HTTPException(Exception):
            status_code, detail, headers = 429, "Slow down", {"Retry-After": "7"}

        class Filter:
            def inlet(self, body):
                raise HTTPException()
    """
    async with function_world(function("f", source)) as world:
        assert (await refused(world)).retry_after == 7


@pytest.mark.parametrize("value", ["7", "'body'", "[body]", "{}", "{**body, 'x': object()}"])
async def test_a_body_that_is_none_fails_the_plugin(value: str) -> None:
    source = f"class Filter:\n    def inlet(self, body):\n        return {value}\n"
    async with function_world(function("f", source)) as world:
        failure = await refused(world)
        assert failure.kind is ErrorKind.PLUGIN_FAILED
        assert "'f'" in failure.message


@pytest.mark.parametrize("source", ["class Filter:\n  x = nothing\n", "class Filter(\n"])
async def test_a_filter_that_does_not_load_refuses_the_request(source: str) -> None:
    async with function_world(function("policy", source)) as world:
        failure = await refused(world)
        assert failure.kind is ErrorKind.PLUGIN_FAILED
        assert "'policy'" in failure.message
        assert "does not load" in failure.message


async def test_a_filter_that_does_not_load_leaves_models_without_it_alone() -> None:
    async with function_world(function("policy", "class Filter(\n", is_global=False)) as world:
        await world.attach("m", filterIds=["policy"])
        assert await question(world, model="n") == "hi"
        with pytest.raises(GatewayError):
            await world.pipeline.run(ask(), ADMIN)


HANDLER = """
{module}
class Filter:
    {cls}
    def __init__(self):
        {instance}
        self.x = 1
    def inlet(self, body):
        assert body["files"] == [{{"type": "file", "id": "f1"}}]
        return body
"""


@pytest.mark.parametrize("where", ["module", "cls", "instance"])
async def test_a_filter_that_handles_files_takes_them_away(where: str) -> None:
    places = dict.fromkeys(("module", "cls", "instance"), "")
    places[where] = "self.file_handler = True" if where == "instance" else "file_handler = True"
    async with function_world(function("a", HANDLER.format(**places)), noting("b")) as world:
        request = ask(files=[{"type": "file", "id": "f1"}])
        answer = await world.pipeline.run(request, ADMIN)
        assert request.files == []
        assert answer.warnings == []
        assert request.scope is not None
        assert request.scope.metadata["files"] is None


STREAM = """
class Filter:
    def __init__(self):
        self.seen = 0

    {prefix}def stream(self, event, __body__, __metadata__):
        assert __body__["stream"] is True and __metadata__["user_id"] == "u1"
        self.seen += 1
        if event.get("n") == 2:
            event["n"] = "spoilt"
            raise ValueError("not this one")
        if event.get("n") == 3:
            return None
        if event.get("n") == 4:
            return {{"x": object()}}
        event["seen"] = self.seen
        return event
"""


@pytest.mark.parametrize("prefix", ["", "async "])
async def test_each_event_of_a_stream_is_filtered_and_failures_pass_unchanged(
    prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with function_world(function("f", STREAM.format(prefix=prefix))) as world:
        frames = b"".join(b'data: {"n":%d}\n\n' % number for number in range(1, 6))
        world.source.script = lambda _: [CompletionChunk(raw=frames)]
        answer = await world.pipeline.run(ask(stream=True), ADMIN)
        assert answer.chunks is not None
        [chunk] = [chunk async for chunk in answer.chunks]
        events = [orjson.loads(frame[6:]) for frame in chunk.raw.split(b"\n\n") if frame]
        assert events == [{"n": 1, "seen": 1}, {"n": 2}, {"n": 3}, {"n": 4}, {"n": 5, "seen": 5}]
        assert caplog.text.count("chunks pass unchanged") == 1


async def test_a_filter_stays_to_the_end_of_an_answer_although_it_is_switched_off_meanwhile() -> None:
    filtered = function("f", STREAM.format(prefix="async "))
    async with function_world(filtered) as world:
        world.source.script = lambda _: [
            CompletionChunk(raw=b'data: {"n":%d}\n\n' % number) for number in (6, 7)
        ]
        answer = await world.pipeline.run(ask(stream=True), ADMIN)
        assert answer.chunks is not None
        first = await anext(answer.chunks)
        await world.registry.update(replace(filtered, is_active=False))
        [retired] = [task for task, name in world.tasks.list().items() if name == "unload plugin"]
        for _ in range(20):
            await asyncio.sleep(0.005)
        last = [chunk async for chunk in answer.chunks]
        seen = [orjson.loads(chunk.raw[6:])["seen"] for chunk in (first, *last)]
        assert seen == [1, 2]
        answer.chunks = None
        while retired in world.tasks.list():
            await asyncio.sleep(0.001)


IDLE = """
class Filter:
    def stream(self, event: dict) -> dict:
        return event
"""


@pytest.mark.parametrize("filtered", [noting("f"), function("f", IDLE)])
async def test_without_stream_filters_that_do_something_bytes_pass_undecoded(filtered: Plugin) -> None:
    async with function_world(filtered) as world:
        chunk = CompletionChunk(raw=b"data: {not json}\n\n")
        world.source.script = lambda _: [chunk]
        answer = await world.pipeline.run(ask(stream=True), ADMIN)
        assert answer.chunks is not None
        assert [item async for item in answer.chunks] == [chunk]


async def test_a_chunk_that_no_filter_changes_is_the_same_object() -> None:
    source = """
    class Filter:
        def stream(self, event):
            if "usage" in event:
                event["usage"] = None
            return event
    """
    async with function_world(function("f", source)) as world:
        before = [CompletionChunk(raw=b'data: {"n": 1}\n\n'), CompletionChunk(raw=b'data: {"usage": 1}\n\n')]
        world.source.script = lambda _: before
        answer = await world.pipeline.run(ask(stream=True), ADMIN)
        assert answer.chunks is not None
        after = [item async for item in answer.chunks]
        assert after[0] is before[0]
        assert after[0].raw == b'data: {"n": 1}\n\n'
        assert after[1].raw == b'data: {"usage":null}\n\n'


OUTLET = """
class Filter:
    def outlet(self, body):
        assert [message["role"] for message in body["messages"]] == ["user", "assistant"]
        body["messages"][-1]["content"] += " {mark}"
        {end}
"""


async def test_outlets_of_direct_calls_run_when_the_setting_is_on() -> None:
    plugins = [
        function("a", OUTLET.format(mark="a", end="return body")),
        function("b", OUTLET.format(mark="b", end='raise ValueError("no")')),
        function("c", OUTLET.format(mark="c", end="return None")),
    ]
    async with function_world(*plugins) as world:
        before = await world.pipeline.run(ask(), ADMIN)
        world.runs_outlets = True
        after = await world.pipeline.run(ask(), ADMIN)
        assert before.completion is not None
        assert after.completion is not None
        assert before.completion.body["choices"][0]["message"]["content"] == "hello"
        assert after.completion.body["choices"][0]["message"]["content"] == "hello a c"


async def test_answers_to_messages_of_chats_are_left_to_those_who_keep_them() -> None:
    async with function_world(function("a", OUTLET.format(mark="a", end="return body"))) as world:
        world.runs_outlets = True
        answer = await world.pipeline.run(ask(options={"chat_id": "c1", "id": "m1"}), ADMIN)
        assert answer.completion is not None
        assert answer.completion.body["choices"][0]["message"]["content"] == "hello"


async def test_a_request_in_another_dialect_is_filtered_like_any_other() -> None:
    async with function_world(noting("f")) as world:
        native = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
        answer = await world.pipeline.run(ask(native=native), ADMIN)
        assert not answer.is_native
        assert world.source.asked[-1]["messages"][0]["content"] == "hi f"


async def test_function_models_are_filtered_like_any_other() -> None:
    source = "class Pipe:\n    def pipe(self, body):\n        return body['messages'][0]['content']\n"
    async with function_world(noting("f"), function("p", source)) as world:
        answer = await world.pipeline.run(ask("p"), ADMIN)
        assert answer.completion is not None
        assert answer.completion.body["choices"][0]["message"]["content"] == "hi f"
