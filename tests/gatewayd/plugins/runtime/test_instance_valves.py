"""Calling plugins: what administrators and users set in them."""

import asyncio
from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.invoke import PluginError
from tests.fakes.plugins.loaded import running
from tests.fakes.plugins.memory import scope_of

pytestmark = pytest.mark.timeout(30)


VALVES = """
    from typing import Literal
    from pydantic import BaseModel, Field
    class Filter:
        class Valves(BaseModel):
            priority: int = Field(default=3, description="order")
            limit: int = Field(default=10, ge=1)
            mode: str = Field("a", json_schema_extra={"input": {"type": "select", "options": "modes"}})
            @classmethod
            def modes(cls, __user__=None):
                return ["a", "b", __user__["id"]] if __user__ else ["a", "b"]
        class UserValves(BaseModel):
            tone: Literal["dry", "warm"] = "dry"
        def __init__(self):
            self.valves = self.Valves()
            self.updates = 0
        async def on_valves_updated(self):
            self.updates += 1
        def inlet(self, body, __user__=None):
            return [self.valves.limit, __user__ and __user__["valves"].tone]
"""


async def test_valves_are_assigned_before_each_call_and_none_means_the_default() -> None:
    async with running(VALVES, valves={"limit": 5, "mode": None}) as (loaded, _):
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == [5, "dry"]
        assert loaded.priority() == 3


async def test_stored_valves_that_do_not_fit_name_their_field() -> None:
    async with running(VALVES, valves={"limit": 0, "priority": 8}) as (loaded, _):
        with pytest.raises(PluginError, match="cannot use its valves: field 'limit'"):
            await loaded.call("inlet", scope_of(), {"body": {}})
        assert loaded.priority() == 0


async def test_small_methods_fail_too_with_valves_that_do_not_fit() -> None:
    source = """
    from pydantic import BaseModel
    class Filter:
        class Valves(BaseModel):
            limit: int = 10
        def __init__(self):
            self.valves = self.Valves()
        def inlet(self, body):
            if self.valves.limit > 5:
                body["is_long"] = True
            return body
    """
    async with running(source, valves={"limit": "many"}) as (loaded, _):
        with pytest.raises(PluginError, match="cannot use its valves: field 'limit'"):
            await loaded.call("inlet", scope_of(), {"body": {}})
        await loaded.take(replace(loaded.plugin, valves={"limit": 7}))
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == {"is_long": True}


async def test_user_valves_are_an_instance_of_the_loaded_class() -> None:
    async with running(VALVES) as (loaded, plugged):
        await plugged.user_valves.put("u1", PluginFamily.FUNCTION, "p", {"tone": "warm"})
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == [10, "warm"]
        await plugged.user_valves.put("u1", PluginFamily.FUNCTION, "p", {"tone": "loud"})
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == [10, "dry"]


async def test_the_schema_resolves_the_options_of_a_choice() -> None:
    async with running(VALVES) as (loaded, _):
        made = await loaded.valves_schema({"id": "u1"})
        assert made is not None
        assert made["properties"]["mode"]["input"] == {"type": "select", "options": ["a", "b", "u1"]}
        of_user = await loaded.user_valves_schema()
        assert of_user is not None
        assert of_user["properties"]["tone"]["enum"] == ["dry", "warm"]


async def test_valves_are_described_while_the_home_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    content = """
        import threading
        from pydantic import BaseModel, Field
        def choice(method):
            return Field("a", json_schema_extra={"input": {"type": "select", "options": method}})
        class Filter:
            entered, let_go = threading.Event(), threading.Event()
            class Valves(BaseModel):
                mode: str = choice("modes")
                @classmethod
                def modes(cls):
                    return ["a"]
            class UserValves(BaseModel):
                tone: str = choice("tones")
                @classmethod
                async def tones(cls):
                    return ["dry"]
            async def inlet(self, body):
                self.entered.set()
                self.let_go.wait()
    """
    async with running(content) as (loaded, _):
        waiting = asyncio.ensure_future(loaded.call("inlet", scope_of(), {"body": {}}))
        await asyncio.to_thread(loaded.value("entered").wait)
        try:
            made = await loaded.valves_schema()
            assert made is not None
            assert made["properties"]["mode"]["input"]["options"] == ["a"]
            monkeypatch.setattr("gatewayd.plugins.runtime.instance.ACCESSOR_SECONDS", 0.05)
            with pytest.raises(PluginError, match=r"^filter p: it did not answer within 0\.05 s$"):
                await loaded.user_valves_schema()
        finally:
            loaded.value("let_go").set()
            await waiting
        monkeypatch.undo()
        of_user = await loaded.user_valves_schema()
        assert of_user is not None
        assert of_user["properties"]["tone"]["input"]["options"] == ["dry"]


async def test_valves_are_merged_checked_and_stored_without_defaults() -> None:
    async with running(VALVES) as (loaded, _):
        assert await loaded.changed_valves({"mode": "b"}, {"limit": "7"}) == {"mode": "b", "limit": 7}
        assert await loaded.changed_valves({"mode": "b"}, {"mode": None, "unknown": 1}) == {}
        with pytest.raises(GatewayError, match="field 'limit'") as caught:
            await loaded.changed_valves({}, {"limit": 0})
        assert caught.value.kind is ErrorKind.INVALID_REQUEST
        assert caught.value.param == "limit"


async def test_a_plugin_without_valves_has_no_schema_and_takes_none() -> None:
    async with running("class Filter:\n    def inlet(self, body): return body") as (loaded, _):
        assert await loaded.valves_schema() is None
        with pytest.raises(GatewayError, match="it has none"):
            await loaded.changed_valves({}, {"a": 1})
