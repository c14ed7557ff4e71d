import asyncio
import inspect
import logging
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.instance import PluginInstance
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.iterators import PluginIterator
from tests.fakes.plugins.isolated import Isolating, isolated, result_of
from tests.fakes.plugins.memory import make_registry, plugin_of, scope_of

PIPE = """
    class Pipe:
        def pipe(self, body, __user__):
            return __user__["name"] + ": " + body["text"]
"""


async def test_a_pipe_answers(isolating: Isolating) -> None:
    assert await result_of(PIPE, isolating, "pipe", {"body": {"text": "å"}}) == "U1: å"


async def test_a_filter_changes_the_body_in_place_and_the_metadata(isolating: Isolating) -> None:
    content = """
        class Filter:
            def inlet(self, body, __metadata__):
                body["messages"].append({"role": "user", "content": "more"})
                assert body["metadata"] is __metadata__
                __metadata__["seen"] = True
                del __metadata__["gone"]

            def outlet(self, body):
                return {**body, "new": 1}
    """
    scope = scope_of(metadata={"gone": 1, "kept": 2})
    body = {"messages": [], "metadata": scope.metadata}
    async with isolated(content, isolating) as (loaded, _):
        assert await loaded.call("inlet", scope, {"body": body}) is None
        assert body["messages"] == [{"role": "user", "content": "more"}]
        assert body["metadata"] is scope.metadata
        assert scope.metadata == {"kept": 2, "seen": True}
        after = await loaded.call("outlet", scope, {"body": body})
        assert after == {**body, "new": 1}
        assert after["metadata"] is scope.metadata


async def test_the_token_of_the_caller_crosses_for_a_method_that_names_it(isolating: Isolating) -> None:
    content = "class Pipe:\n    def pipe(self, body, __oauth_token__): return __oauth_token__['access_token']"

    async def find(actor: Actor) -> dict[str, Any]:
        return {"access_token": f"at of {actor.user_id}"}

    plugin = plugin_of("p", content)
    async with make_registry(plugin, isolation=isolating, provider_token=find) as plugged:
        loaded = await plugged.registry.loaded(plugin.family, "p")
        assert await loaded.call("pipe", scope_of(), {"body": {}}) == "at of u1"


async def test_a_stream_is_pulled_item_by_item(isolating: Isolating) -> None:
    content = """
        class Pipe:
            async def pipe(self, body):
                yield "one"
                yield {"two": 2}
                yield b"three"
                raise ValueError("enough")
    """
    async with isolated(content, isolating) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert isinstance(items, PluginIterator)
        assert [await anext(items), await anext(items), await anext(items)] == ["one", {"two": 2}, b"three"]
        with pytest.raises(PluginError, match="ValueError: enough"):
            await anext(items)
        assert [item async for item in items] == []


async def test_an_exception_is_told_with_its_line(isolating: Isolating) -> None:
    content = """
        class Pipe:
            def pipe(self, body):
                raise KeyError("no")
    """
    async with isolated(content, isolating) as (loaded, plugged):
        with pytest.raises(PluginError) as caught:
            await loaded.call("pipe", scope_of(), {"body": {}})
        problem = plugged.registry.list()[0].problem
    error = caught.value
    assert (error.message, error.exception, error.line) == ("pipe p: KeyError: 'no'", "KeyError", 3)
    assert problem is not None
    assert (problem.doing, problem.sentence) == ("pipe", error.message)


async def test_events_are_sent_and_answered(isolating: Isolating) -> None:
    content = """
        class Pipe:
            async def pipe(self, body, __event_emitter__, __event_call__):
                await __event_emitter__({"type": "status", "data": {"description": "here"}})
                return await __event_call__({"type": "input", "data": {}})
    """
    async with isolated(content, isolating) as (loaded, plugged):
        plugged.events.answers.append({"value": "yes"})
        assert await loaded.call("pipe", scope_of(), {"body": {}}) == {"value": "yes"}
        assert plugged.events.texts() == ["here"]
        assert plugged.events.emitted[0][0] == scope_of().target


async def test_a_cancelled_call_is_cancelled_in_the_process(isolating: Isolating) -> None:
    content = """
        import asyncio
        class Pipe:
            seen = "nothing"
            async def pipe(self, body, __event_emitter__):
                if body:
                    return self.seen
                try:
                    await __event_emitter__({"type": "status", "data": {"description": "begun"}})
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    self.seen = "cancelled"
                    raise
    """
    async with isolated(content, isolating) as (loaded, plugged):
        call = asyncio.ensure_future(loaded.call("pipe", scope_of(), {"body": {}}))
        await plugged.events.arrived.wait()
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        while await loaded.call("pipe", scope_of(), {"body": {"again": 1}}) != "cancelled":
            await asyncio.sleep(0.01)


async def test_valves_are_set_and_checked(isolating: Isolating) -> None:
    content = """
        from pydantic import BaseModel
        class Filter:
            class Valves(BaseModel):
                priority: int = 3
            class UserValves(BaseModel):
                loud: bool = False
            def __init__(self):
                self.valves = self.Valves()
            def inlet(self, body, __user__):
                return {"priority": self.valves.priority, "loud": __user__["valves"].loud}
    """
    async with isolated(content, isolating) as (loaded, plugged):
        assert loaded.priority() == 3
        assert await loaded.changed_valves({}, {"priority": 7}) == {"priority": 7}
        with pytest.raises(GatewayError) as caught:
            await loaded.changed_valves({}, {"priority": "x"})
        assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "priority")
        schema = await loaded.valves_schema()
        assert schema is not None
        assert set(schema["properties"]) == {"priority"}
        assert await loaded.take(replace(loaded.plugin, valves={"priority": 7}))
        assert loaded.priority() == 7
        plugged.user_valves.values["u1", PluginFamily.FUNCTION, "p"] = {"loud": True}
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == {"priority": 7, "loud": True}
        assert loaded.has_user_valves()


async def test_a_tool_has_its_specifications_and_may_return_anything(isolating: Isolating) -> None:
    content = """
        class Tools:
            citation = False
            def add(self, a: int, b: int = 1) -> int:
                "Add."
                return a + b
            def odd(self):
                return {"set": {1}, "bytes": b"x"}
    """
    async with isolated(content, isolating) as (loaded, _):
        assert [spec["name"] for spec in loaded.plugin.specs] == ["add", "odd"]
        assert loaded.methods() == ["add", "odd"]
        assert loaded.parameters("add").names == {"a", "b"}
        assert loaded.flag("citation", default=True) is False
        assert await loaded.call("add", scope_of(), {"a": 2}) == 3
        assert await loaded.call("odd", scope_of(), {}) == {"set": "{1}", "bytes": "x"}


async def test_what_it_prints_is_in_the_log(isolating: Isolating, caplog: pytest.LogCaptureFixture) -> None:
    content = """
        class Pipe:
            def pipe(self, body):
                print("hello from the process")
                return "done"
    """
    with caplog.at_level(logging.INFO):
        assert await result_of(content, isolating, "pipe", {"body": {}}) == "done"
    lines = [record for record in caplog.records if getattr(record, "text", "") == "hello from the process"]
    assert [(line.levelno, line.__dict__["plugin"]) for line in lines] == [(logging.INFO, "p")]


async def test_a_stream_filter_gets_the_pieces_of_a_chunk_at_once(isolating: Isolating) -> None:
    content = """
        class Filter:
            def stream(self, event, __metadata__, __body__):
                if event["n"] == 0:
                    return event
                __metadata__["count"] = __metadata__.get("count", 0) + 1
                if event["n"] == 2:
                    raise ValueError("two")
                return {**event, "model": __body__["model"]} if event["n"] != 3 else None
    """
    scope = scope_of()
    async with isolated(content, isolating) as (loaded, _):
        calls = loaded.repeated("stream", "event", scope)
        values = [b'{"n":0}', b'{"n":1}', b'{"n":2}', b'{"n":3}']
        body = {"model": "m", "metadata": scope.metadata}
        results = await calls.run(values, lambda: {"__body__": body})
        assert results == [
            b'{"n":0}',
            b'{"n":1,"model":"m"}',
            "filter p: ValueError: two",
            "it returned nothing",
        ]
        assert scope.metadata == {"count": 3}


async def test_a_stream_filter_that_does_nothing_is_known_for_it(isolating: Isolating) -> None:
    content = """
        class Filter:
            def stream(self, event):
                return event
    """
    async with isolated(content, isolating) as (loaded, _):
        assert loaded.is_idle("stream")
        assert not loaded.is_idle("inlet")


def test_both_kinds_of_plugins_have_the_same_methods() -> None:
    names = [name for name, one in vars(PluginHandle).items() if inspect.isfunction(one) and name[0] != "_"]
    assert len(names) > 15
    for name in names:
        wanted = inspect.signature(getattr(PluginHandle, name)).parameters
        for made in (PluginInstance, IsolatedPlugin):
            assert list(inspect.signature(getattr(made, name)).parameters) == list(wanted), (made, name)
