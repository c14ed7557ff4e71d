"""Calling plugins: the reserved parameters, threads, generators, valves, failures and their ends."""

import asyncio
import inspect
import re
import textwrap
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.events.records import Target
from gatewayd.plugins.invoke import PluginError
from gatewayd.plugins.items import Items
from gatewayd.plugins.loaded import Loaded
from gatewayd.plugins.records import Family
from tests.fakes.plugins import Plugged, actor_of, make_registry, plugin_of, scope_of

pytestmark = pytest.mark.timeout(30)


@asynccontextmanager
async def running(content: str, plugin_id: str = "p", **fields: Any) -> AsyncIterator[tuple[Loaded, Plugged]]:
    plugin = plugin_of(plugin_id, content, **fields)
    async with make_registry(plugin) as plugged:
        yield await plugged.registry.loaded(plugin.family, plugin_id), plugged


async def result_of(content: str, method: str, arguments: dict[str, Any] | None = None, **scope: Any) -> Any:
    async with running(content) as (loaded, _):
        return await loaded.call(method, scope_of(**scope), arguments or {})


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
    assert await result_of(content, "run", target=Target("u1")) == ["", None, None]


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
        blocked = await plugged.registry.loaded(Family.FUNCTION, "slow")
        waiting = asyncio.ensure_future(blocked.call("inlet", scope_of(), {"body": {}}))
        await asyncio.to_thread(blocked.value("entered").wait)
        other = await plugged.registry.loaded(Family.FUNCTION, "fast")
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
        assert plugged.events.emitted[0][0] == Target("u1", "c1", "m1", "s1")


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


# Generators -----------------------------------------------------------------------------------------------

ASYNC_GENERATOR = """
    import asyncio
    class Pipe:
        ended = False
        async def pipe(self, body):
            task = asyncio.current_task()
            try:
                for part in "abc":
                    assert asyncio.current_task() is task
                    yield part
            finally:
                await asyncio.sleep(0)
                type(self).ended = True
"""
PLAIN_GENERATOR = """
    import threading
    class Pipe:
        ended = False
        def pipe(self, body):
            thread = threading.get_ident()
            try:
                for part in "abc":
                    assert threading.get_ident() == thread
                    yield part
            finally:
                type(self).ended = True
"""


@pytest.mark.parametrize("content", [ASYNC_GENERATOR, PLAIN_GENERATOR])
async def test_a_generator_is_read_item_by_item(content: str) -> None:
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert isinstance(items, Items)
        assert [item async for item in items] == ["a", "b", "c"]
        assert loaded.value("ended")
        with pytest.raises(StopAsyncIteration):
            await anext(items)


@pytest.mark.parametrize("content", [ASYNC_GENERATOR, PLAIN_GENERATOR])
async def test_a_generator_that_is_closed_early_runs_its_finally(content: str) -> None:
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert await anext(items) == "a"
        await items.aclose()
        assert loaded.value("ended")


@pytest.mark.parametrize(
    "body",
    [
        "def pipe(self, body): return iter(['a', 'b'])",
        "def pipe(self, body): return (x for x in 'ab')",
        "async def pipe(self, body): return (x for x in 'ab')",
        "async def pipe(self, body): return map(str, 'ab')",
        "def pipe(self, body): return self.parts()",
        "async def pipe(self, body): return self.parts()",
    ],
)
async def test_iterators_that_are_returned_are_read_too(body: str) -> None:
    content = f"class Pipe:\n    {body}\n    async def parts(self):\n        yield 'a'\n        yield 'b'\n"
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert [item async for item in items] == ["a", "b"]


@pytest.mark.parametrize("start", ["async def", "def"])
async def test_an_error_between_two_items_is_a_failure(start: str) -> None:
    content = (
        f"class Pipe:\n    {start} pipe(self, body):\n        yield 'a'\n        raise ValueError('half')\n"
    )
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        assert await anext(items) == "a"
        with pytest.raises(PluginError, match="pipe p: ValueError: half"):
            await anext(items)


async def test_an_asynchronous_iterable_of_a_result_is_read_at_home() -> None:
    content = """
        class Body:
            async def __aiter__(self):
                yield b"a"
                yield b"b"
        class Pipe:
            def pipe(self, body):
                return {"body": Body()}
    """
    async with running(content) as (loaded, _):
        result = await loaded.call("pipe", scope_of(), {"body": {}})
        assert [item async for item in loaded.items(result["body"])] == [b"a", b"b"]


# Stopping -------------------------------------------------------------------------------------------------


async def test_stopping_reaches_asynchronous_code() -> None:
    content = """
        import asyncio, threading
        class Pipe:
            entered = threading.Event()
            ended = threading.Event()
            async def pipe(self, body):
                self.entered.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.ended.set()
    """
    async with running(content) as (loaded, _):
        call = asyncio.ensure_future(loaded.call("pipe", scope_of(), {"body": {}}))
        await asyncio.to_thread(loaded.value("entered").wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(loaded.value("ended").wait, 10)


async def test_stopping_between_items_reaches_the_generator() -> None:
    content = """
        import asyncio, threading
        class Pipe:
            entered = threading.Event()
            ended = threading.Event()
            async def pipe(self, body):
                try:
                    yield "a"
                    self.entered.set()
                    await asyncio.Event().wait()
                finally:
                    self.ended.set()
    """
    async with running(content) as (loaded, _):
        items = await loaded.call("pipe", scope_of(), {"body": {}})
        await anext(items)
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.to_thread(loaded.value("entered").wait)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(loaded.value("ended").wait, 10)


async def test_plain_code_that_was_stopped_is_counted_until_it_ends() -> None:
    content = """
        import threading
        class Tools:
            entered = threading.Event()
            let_go = threading.Event()
            def run(self):
                self.entered.set()
                self.let_go.wait()
    """
    async with running(content) as (loaded, plugged):
        call = asyncio.ensure_future(loaded.call("run", scope_of(), {}))
        await asyncio.to_thread(loaded.value("entered").wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert loaded.left_behind == 1
        while (found := plugged.registry.find(Family.TOOL, "p")) is None or found.problem is None:
            await asyncio.sleep(0.001)
        assert found.problem.sentence == "1 call still runs after it was stopped"
        loaded.value("let_go").set()
        while loaded.left_behind:
            await asyncio.sleep(0.001)


async def test_code_that_cancels_itself_does_not_cancel_the_caller() -> None:
    content = """
        import asyncio
        class Filter:
            async def inlet(self, body):
                raise asyncio.CancelledError
            async def outlet(self, body):
                asyncio.current_task().cancel()
                await asyncio.sleep(0)
    """
    async with running(content) as (loaded, _):
        with pytest.raises(PluginError, match="CancelledError"):
            await loaded.call("inlet", scope_of(), {"body": {}})
        with pytest.raises(PluginError, match="stopped"):
            await loaded.call("outlet", scope_of(), {"body": {}})


# Failures -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["async def", "def"])
@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        ("ValueError('bad')", "ValueError: bad"),
        ("SystemExit(3)", "SystemExit: 3"),
        ("KeyboardInterrupt()", "KeyboardInterrupt"),
        ("GeneratorExit()", "GeneratorExit"),
        ("BaseException('base')", "BaseException: base"),
        ("StopIteration('x')", "(StopIteration|RuntimeError)"),
    ],
)
async def test_whatever_is_raised_is_a_failure_of_the_plugin(start: str, raised: str, shown: str) -> None:
    inlet = f"{start} inlet(self, body):\n        raise {raised}"
    content = f"class Filter:\n    {inlet}\n    async def ok(self): return 1"
    async with running(content) as (loaded, _):
        with pytest.raises(PluginError, match=f"^filter p: {shown}") as caught:
            await loaded.call("inlet", scope_of(), {"body": {}})
        assert caught.value.kind is Kind.PLUGIN_FAILED
        assert caught.value.plugin_id == "p"
        assert await loaded.call("ok", scope_of(), {}) == 1


async def test_a_task_that_ends_the_program_ends_nothing() -> None:
    content = """
        import asyncio, sys
        class Pipe:
            async def pipe(self, body):
                async def leave():
                    sys.exit(1)
                self.task = asyncio.create_task(leave())
                await asyncio.sleep(0.01)
                return "still here"
    """
    assert await result_of(content, "pipe", {"body": {}}) == "still here"


async def test_a_failure_tells_text_line_and_status() -> None:
    content = """
        class HTTPException(Exception):
            def __init__(self, status_code, detail):
                self.status_code = status_code
                self.detail = detail
        class Filter:
            def inlet(self, body):
                raise HTTPException(429, "too many")
    """
    async with running(content) as (loaded, plugged):
        with pytest.raises(PluginError) as caught:
            await loaded.call("inlet", scope_of(), {"body": {}})
        failure = caught.value
        assert (failure.text, failure.status, failure.line) == ("too many", 429, 7)
        found = plugged.registry.find(Family.FUNCTION, "p")
        assert found is not None
        assert found.problem is not None
        assert found.problem.doing == "inlet"
        assert "too many" in found.problem.sentence


async def test_an_exception_whose_text_fails_is_a_failure_too() -> None:
    content = """
        class Odd(Exception):
            def __str__(self):
                raise ValueError
        class Filter:
            def inlet(self, body):
                raise Odd
    """
    with pytest.raises(PluginError, match=r"^filter p: Odd$"):
        await result_of(content, "inlet", {"body": {}})


# Valves ---------------------------------------------------------------------------------------------------

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


async def test_user_valves_are_an_instance_of_the_loaded_class() -> None:
    async with running(VALVES) as (loaded, plugged):
        await plugged.user_valves.put("u1", Family.FUNCTION, "p", {"tone": "warm"})
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == [10, "warm"]
        await plugged.user_valves.put("u1", Family.FUNCTION, "p", {"tone": "loud"})
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == [10, "dry"]


async def test_the_schema_resolves_the_options_of_a_choice() -> None:
    async with running(VALVES) as (loaded, _):
        made = await loaded.valves_schema({"id": "u1"})
        assert made is not None
        assert made["properties"]["mode"]["input"] == {"type": "select", "options": ["a", "b", "u1"]}
        of_user = await loaded.user_valves_schema()
        assert of_user is not None
        assert of_user["properties"]["tone"]["enum"] == ["dry", "warm"]


async def test_valves_are_merged_checked_and_stored_without_defaults() -> None:
    async with running(VALVES) as (loaded, _):
        assert await loaded.changed_valves({"mode": "b"}, {"limit": "7"}) == {"mode": "b", "limit": 7}
        assert await loaded.changed_valves({"mode": "b"}, {"mode": None, "unknown": 1}) == {}
        with pytest.raises(GatewayError, match="field 'limit'") as caught:
            await loaded.changed_valves({}, {"limit": 0})
        assert caught.value.kind is Kind.INVALID_REQUEST
        assert caught.value.param == "limit"


async def test_a_plugin_without_valves_has_no_schema_and_takes_none() -> None:
    async with running("class Filter:\n    def inlet(self, body): return body") as (loaded, _):
        assert await loaded.valves_schema() is None
        with pytest.raises(GatewayError, match="it has none"):
            await loaded.changed_valves({}, {"a": 1})


# Attributes -----------------------------------------------------------------------------------------------


async def test_values_come_from_instance_class_and_module() -> None:
    content = """
        file_handler = True
        class Filter:
            icon = "class"
            def __init__(self):
                self.toggle = True
            @property
            def name(self):
                return "computed"
            def inlet(self, body):
                return body
    """
    async with running(content) as (loaded, _):
        names = ("toggle", "icon", "file_handler", "name", "nothing")
        assert [loaded.value(name) for name in names] == [True, "class", True, "computed", None]
        assert loaded.has("inlet")
        assert not loaded.has("outlet")
        assert loaded.methods() == ["inlet"]
        with pytest.raises(PluginError, match="has no method 'outlet'"):
            await loaded.call("outlet", scope_of(), {})


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
