"""Calling plugins: the reserved parameters, where code runs, events, attributes."""

import asyncio
import inspect
import re
import textwrap
import threading
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.events.records import EventTarget
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime import instance as loaded_module
from gatewayd.plugins.runtime import runner as running_module
from gatewayd.plugins.runtime.invoke import PluginError
from tests.fakes.plugins.loaded import result_of, running
from tests.fakes.plugins.memory import actor_of, make_registry, plugin_of, scope_of

pytestmark = pytest.mark.timeout(30)


# Parameters -----------------------------------------------------------------------------------------------


RESERVED = re.findall(
    r"\w+",
    "__user__ __request__ __event_emitter__ __event_call__ __metadata__ __model__ __files__ __messages__"
    " __task__ __task_body__ __chat_id__ __message_id__ __session_id__ __tools__ __id__ __pipe_id__"
    " __oauth_token__ __valves__ __body__ __features__",
)

EVERYTHING = f"""
    class Filter:
        def inlet(self, body, {", ".join(RESERVED)}):
            return {{name: value for name, value in locals().items() if name != "self"}}
    class Tools:
        def run(self, {", ".join(RESERVED)}):
            return {{name: value for name, value in locals().items() if name != "self"}}
    class Pipe:
        async def pipe(self, body, {", ".join(RESERVED)}):
            return {{name: value for name, value in locals().items() if name != "self"}}
    class Action:
        async def action(self, body, {", ".join(RESERVED)}):
            return {{name: value for name, value in locals().items() if name != "self"}}
"""


@pytest.mark.parametrize(
    ("name", "method"), [("Tools", "run"), ("Pipe", "pipe"), ("Filter", "inlet"), ("Action", "action")]
)
async def test_every_kind_may_require_every_reserved_parameter(name: str, method: str) -> None:
    whole = textwrap.dedent(EVERYTHING).strip()
    content = "class " + next(part for part in whole.split("class ") if part.startswith(name))
    metadata = {"chat_id": "c1", "features": {"web_search": True}}
    seen = await result_of(content, method, {"body": {}}, metadata=metadata, model={"id": "m"})
    assert set(RESERVED) <= set(seen)
    assert seen["__metadata__"] is metadata
    assert (seen["__chat_id__"], seen["__message_id__"], seen["__session_id__"]) == ("c1", "m1", "s1")
    assert seen["__model__"] == {"id": "m"}
    assert seen["__features__"] == {"web_search": True}
    assert seen["__id__"] == "p"
    assert seen["__tools__"] == {}
    assert seen["__user__"]["id"] == "u1"
    nothing = ("__files__", "__messages__", "__task__", "__task_body__", "__oauth_token__", "__request__")
    assert [seen[one] for one in nothing] == [None] * len(nothing)


async def test_a_plugin_that_names_it_gets_the_token_of_the_caller() -> None:
    content = """
        class Filter:
            def inlet(self, body, __oauth_token__):
                token, __oauth_token__["access_token"] = __oauth_token__["access_token"], "spoiled"
                return token

            def outlet(self, body):
                return body
    """
    asked, kept = list[str](), {"access_token": "at"}

    async def find(actor: Actor) -> dict[str, Any]:
        asked.append(actor.user_id)
        return kept

    async with make_registry(plugin_of("p", content), provider_token=find) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("outlet", scope_of(), {"body": {}}) == {}
        assert asked == []
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == "at"
    assert asked == ["u1"]
    assert kept == {"access_token": "at"}


async def test_only_named_parameters_are_given() -> None:
    content = """
        class Filter:
            def inlet(self, body, user=None, **kwargs):
                return [body, user, kwargs]
    """
    given = {"body": {"a": 1}, "other": 2}
    assert await result_of(content, "inlet", given) == [{"a": 1}, None, {}]


async def test_a_required_parameter_that_nobody_knows_is_a_type_error() -> None:
    with pytest.raises(PluginError, match=r"filter p: TypeError: .*'response'"):
        await result_of("class Filter:\n    def inlet(self, body, response): pass", "inlet", {"body": {}})


async def test_ids_are_empty_where_there_is_no_chat() -> None:
    content = """
        class Tools:
            def run(self, __chat_id__, __message_id__, __session_id__):
                return [__chat_id__, __message_id__, __session_id__]
    """
    assert await result_of(content, "run", target=EventTarget("u1")) == ["", None, None]


async def test_explicit_arguments_go_before_reserved_ones() -> None:
    content = "class Action:\n    async def action(self, body, __id__): return __id__"
    assert await result_of(content, "action", {"body": {}, "__id__": "sub"}) == "sub"


async def test_each_call_has_a_user_of_its_own() -> None:
    content = """
        class Filter:
            def inlet(self, body, __user__):
                __user__["settings"]["spoiled"] = True
                return __user__
    """
    actor = actor_of()
    object.__setattr__(actor.user, "settings", {"ui": {}})
    async with running(content) as (loaded, _):
        first = await loaded.call("inlet", scope_of(actor), {"body": {}})
        second = await loaded.call("inlet", scope_of(actor), {"body": {}})
    assert first is not second
    assert actor.user.settings == {"ui": {}}
    expected = {"id", "name", "email", "role", "username", "profile_image_url", "bio", "timezone", "settings"}
    assert expected <= set(first)
    assert "valves" not in first


# Where code runs ------------------------------------------------------------------------------------------


async def test_plugins_never_run_on_the_loop_of_the_gateway() -> None:
    content = """
        import threading
        class Filter:
            def __init__(self):
                self.made = threading.get_ident()
            async def inlet(self, body):
                return [self.made, threading.get_ident()]
            def outlet(self, body):
                return [self.made, threading.get_ident()]
    """
    async with running(content) as (loaded, _):
        made, ran = await loaded.call("inlet", scope_of(), {"body": {}})
        assert made == ran != threading.get_ident()
        _, plain = await loaded.call("outlet", scope_of(), {"body": {}})
        assert plain not in (made, threading.get_ident())


async def test_the_instance_is_made_on_a_running_loop_and_lives_on() -> None:
    content = """
        import asyncio
        class Pipe:
            def __init__(self):
                self.count = 0
                self.task = asyncio.get_running_loop().create_task(self.work())
            async def work(self):
                return "worked"
            async def pipe(self, body):
                self.count += 1
                return [self.count, await self.task]
    """
    async with running(content) as (loaded, _):
        await loaded.call("pipe", scope_of(), {"body": {}})
        assert await loaded.call("pipe", scope_of(), {"body": {}}) == [2, "worked"]


async def test_plain_code_may_run_a_loop_of_its_own() -> None:
    content = """
        import asyncio
        class Tools:
            def run(self, __event_emitter__, __event_call__):
                asyncio.run(__event_emitter__({"type": "status", "data": {"description": "here"}}))
                return asyncio.run(__event_call__({"type": "input", "data": {}}))
    """
    async with running(content) as (loaded, plugged):
        plugged.events.answers.append("yes")
        assert await loaded.call("run", scope_of(), {}) == "yes"
        assert plugged.events.texts() == ["here"]


async def test_a_plugin_that_blocks_its_loop_stops_only_itself() -> None:
    slow = """
        import threading
        class Filter:
            let_go = threading.Event()
            entered = threading.Event()
            async def inlet(self, body):
                self.entered.set()
                self.let_go.wait()
                return body
    """
    fast = "class Filter:\n    async def inlet(self, body): return 'fast'"
    plugins = [plugin_of("slow", slow), plugin_of("fast", fast)]
    async with make_registry(*plugins) as plugged:
        blocked = await plugged.registry.loaded(PluginFamily.FUNCTION, "slow")
        waiting = asyncio.ensure_future(blocked.call("inlet", scope_of(), {"body": {}}))
        await asyncio.to_thread(blocked.value("entered").wait)
        other = await plugged.registry.loaded(PluginFamily.FUNCTION, "fast")
        assert await other.call("inlet", scope_of(), {"body": {}}) == "fast"
        assert not waiting.done()
        blocked.value("let_go").set()
        assert await waiting == {}


async def test_a_plain_function_that_returns_an_awaitable_is_awaited() -> None:
    content = """
        class Pipe:
            def pipe(self, body):
                return self.later()
            async def later(self):
                return "later"
    """
    assert await result_of(content, "pipe", {"body": {}}) == "later"


# Events ---------------------------------------------------------------------------------------------------


async def test_the_emitter_closes_over_one_dict_with_the_ids() -> None:
    content = "class Pipe:\n    async def pipe(self, body, __event_emitter__): return __event_emitter__"
    emitter = await result_of(content, "pipe", {"body": {}})
    assert inspect.isfunction(emitter)
    assert emitter.__closure__ is not None
    dicts = [cell.cell_contents for cell in emitter.__closure__ if isinstance(cell.cell_contents, dict)]
    assert dicts == [{"chat_id": "c1", "message_id": "m1", "session_id": "s1", "user_id": "u1"}]


async def test_events_arrive_after_the_return_value_too() -> None:
    content = """
        import asyncio
        class Pipe:
            async def pipe(self, body, __event_emitter__):
                async def later():
                    await __event_emitter__({"type": "status", "data": {"description": "later"}})
                self.task = asyncio.create_task(later())
                return "now"
    """
    async with running(content) as (loaded, plugged):
        assert await loaded.call("pipe", scope_of(), {"body": {}}) == "now"
        await plugged.events.arrived.wait()
        assert plugged.events.emitted[0][0] == EventTarget("u1", "c1", "m1", "s1")


async def test_a_call_that_fails_raises_in_the_plugin() -> None:
    content = """
        class Filter:
            async def inlet(self, body, __event_call__):
                try:
                    return await __event_call__({"type": "confirmation", "data": {}})
                except TimeoutError as error:
                    return f"caught {error}"
    """
    async with running(content) as (loaded, plugged):
        plugged.events.answers.append(TimeoutError("nobody there"))
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == "caught nobody there"


async def test_threads_of_the_plugins_own_reach_the_gateway() -> None:
    content = """
        import asyncio, threading
        class Tools:
            def run(self, __event_emitter__):
                def work():
                    asyncio.run(__event_emitter__({"type": "message", "data": {"content": "mine"}}))
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
    """
    async with running(content) as (loaded, plugged):
        await loaded.call("run", scope_of(), {})
        assert plugged.events.texts() == ["mine"]


# Attributes -----------------------------------------------------------------------------------------------


async def test_values_come_from_instance_class_and_module() -> None:
    content = """
        file_handler = True
        class Filter:
            icon = "class"
            def __init__(self):
                self.toggle = True
            @property
            def citation(self):
                return "computed"
            def inlet(self, body):
                return body
    """
    async with running(content) as (loaded, _):
        names = ("toggle", "icon", "file_handler", "citation", "nothing")
        assert [loaded.value(name) for name in names] == [True, "class", True, "computed", None]
        assert loaded.has("inlet")
        assert not loaded.has("outlet")
        assert loaded.methods() == ["inlet"]
        with pytest.raises(PluginError, match="has no method 'outlet'"):
            await loaded.call("outlet", scope_of(), {})


async def test_no_property_runs_that_the_gateway_does_not_read() -> None:
    content = """
        import functools
        RUN = []
        class Tools:
            @property
            def account(self):
                RUN.append("account")
                raise ConnectionError("cannot fetch")
            @functools.cached_property
            def client(self):
                RUN.append("client")
                return self.search
            def __getattr__(self, name):
                RUN.append(name)
                return lambda: name
            def search(self, text):
                return text
            search_again = functools.partialmethod(search, "again")
            @staticmethod
            def plain(): return 1
            @classmethod
            def of_class(cls): return 2
            @property
            def citation(self):
                RUN.append("citation")
                return False
            @property
            def pipes(self):
                RUN.append("pipes")
                return len(RUN)
    """
    async with running(content) as (loaded, _):
        assert loaded.methods() == ["of_class", "plain", "search", "search_again"]
        assert [one["name"] for one in loaded.plugin.specs] == loaded.methods()
        assert (loaded.flag("citation", default=True), loaded.value("account"), loaded.has("client")) == (
            False,
            None,
            False,
        )
        assert set(loaded.value("RUN")) - {"valves"} == {"citation"}
        assert await loaded.call("search_again", scope_of(), {}) == "again"
        # One that is asked for has the value of the moment.
        assert await loaded.read("pipes") < await loaded.read("pipes")
        with pytest.raises(PluginError, match="cannot fetch"):
            await loaded.read("account")


async def test_a_property_that_takes_long_does_not_refuse_the_plugin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loaded_module, "ACCESSOR_SECONDS", 0.2)
    monkeypatch.setattr(running_module, "HOOK_SECONDS", 1.0)
    content = """
        import time
        class Filter:
            icon = "i"
            @property
            def toggle(self):
                for _ in range(3000): time.sleep(0.01)
            def inlet(self, body):
                return body
    """
    async with running(content) as (loaded, plugged):
        assert (loaded.flag("toggle"), loaded.value("icon")) == (False, "i")
        (kept,) = plugged.registry.list()
        assert kept.problem is None
        assert await loaded.call("inlet", scope_of(), {"body": 1}) == 1


async def test_no_descriptor_runs_on_the_loop_of_the_gateway() -> None:
    content = """
        import functools, threading
        RUN = {}
        class Computed:
            def __set_name__(self, owner, name):
                self.name = name
            def __get__(self, instance, owner=None):
                RUN[self.name] = threading.get_ident()
                return self.name
        class Truth:
            def __bool__(self):
                RUN["citation"] = threading.get_ident()
                return False
        class Wrapped:
            def __init__(self, function):
                self.function = function
            def __get__(self, instance, owner=None):
                RUN["inlet"] = threading.get_ident()
                return functools.partial(self.function, instance)
            def __call__(self, *arguments, **named):
                return self.function(*arguments, **named)
        class Filter:
            __slots__ = ("icon",)
            toggle, unread, pipes, citation = Computed(), Computed(), Computed(), Truth()
            def __init__(self):
                self.icon = "slot"
            @Wrapped
            def inlet(self, body):
                return [body, self.icon]
    """
    async with running(content) as (loaded, _):
        assert [loaded.value(name) for name in ("toggle", "icon", "unread")] == ["toggle", "slot", None]
        assert not loaded.flag("citation", default=True)
        assert loaded.methods() == ["inlet"]
        assert await loaded.call("inlet", scope_of(), {"body": 1}) == [1, "slot"]
        assert await loaded.read("pipes") == "pipes"
        run = loaded.value("RUN")
        assert run.keys() == {"toggle", "inlet", "pipes", "citation"}
        assert threading.get_ident() not in run.values()


async def test_attributes_that_cannot_be_read_are_not_there() -> None:
    content = """
        class Undecided:
            def __bool__(self):
                raise ValueError("neither")
        class Pipe:
            icon = "i"
            toggle = Undecided()
            citation = 0
            def __getattr__(self, name):
                return {}[name]
            def __getattribute__(self, name):
                if name == "icon":
                    raise RuntimeError("no icon")
                return object.__getattribute__(self, name)
            def pipe(self, body):
                return "answer"
    """
    async with running(content) as (loaded, _):
        assert loaded.value("icon", "none") == "none"
        assert [loaded.flag(name) for name in ("toggle", "citation", "pipe", "absent")] == [
            False,
            False,
            True,
            False,
        ]
        assert loaded.flag("toggle", default=True)
        assert not loaded.has_user_valves()
        assert loaded.priority() == 0
        assert await loaded.valves_schema() is None
        assert await loaded.call("pipe", scope_of(), {"body": {}}) == "answer"
