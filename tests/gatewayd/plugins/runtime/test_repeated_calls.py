"""Methods that are called for many values: one crossing, results in order, no value after a stop."""

import asyncio
import threading
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError
from gatewayd.plugins.runtime.repeated_calls import MAX_ABANDONED_RUNS, CallBatch, Result
from gatewayd.plugins.runtime.runner import PluginRunner
from tests.fakes.plugins.memory import Plugged, make_registry, plugin_of, scope_of

pytestmark = pytest.mark.timeout(30)
VALUES = [b'{"n":%d}' % number for number in range(5)]

TROUBLE = """
class Filter:
    {prefix}def stream(self, event, mark="?"):
        if event["n"] == 1:
            raise ValueError("not this one")
        if event["n"] == 2:
            return None
        if event["n"] == 3:
            return {{"x": object()}} if mark == "!" else 7
        return {{**event, "mark": mark}}
"""

RETURNED = """
class Filter:
    async def _later(self, event):
        if event["n"] == 2:
            raise ValueError("later")
        return event

    def stream(self, event):
        return self._later(event) if event["n"] else event
"""


async def results(plugged: Plugged, values: list[bytes], **arguments: Any) -> list[Result]:
    loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "f")
    return list(await loaded.repeated("stream", "event", scope_of()).run(values, lambda: arguments))


@pytest.mark.parametrize("prefix", ["", "async "])
async def test_each_value_has_its_result_or_its_problem(prefix: str) -> None:
    async with make_registry(plugin_of("f", TROUBLE.format(prefix=prefix))) as plugged:
        found = await results(plugged, VALUES, mark="!", other=1)
        assert found[0] == b'{"n":0,"mark":"!"}'
        assert found[1] == "filter f: ValueError: not this one"
        assert found[2] == "it returned nothing"
        assert isinstance(found[3], str)
        assert found[3].startswith("it returned a value that is not JSON")
        assert found[4] == b'{"n":4,"mark":"!"}'
        assert (await results(plugged, VALUES))[3] == "it returned a int"


async def test_what_a_plain_method_gives_to_be_awaited_is_awaited() -> None:
    async with make_registry(plugin_of("f", RETURNED)) as plugged:
        found = await results(plugged, VALUES[:3])
        assert found == [VALUES[0], VALUES[1], "filter f: ValueError: later"]


@pytest.fixture
def crossings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is done in plugins from now on, by crossing."""
    done: list[str] = []
    run = PluginRunner.run

    async def counted(self: PluginRunner, doing: str, *rest: Any) -> Any:
        done.append(doing)
        return await run(self, doing, *rest)

    monkeypatch.setattr(PluginRunner, "run", counted)
    return done


@pytest.mark.parametrize("prefix", ["", "async "])
async def test_all_values_go_in_one_crossing(prefix: str, crossings: list[str]) -> None:
    async with make_registry(plugin_of("f", TROUBLE.format(prefix=prefix))) as plugged:
        assert len(await results(plugged, VALUES * 10)) == 50
        assert crossings == ["stream"]


SMALL = """
class Filter:
    def __init__(self):
        self.seen = 0

    def stream(self, event, __body__):
        self.seen += 1
        if event["n"] == 3:
            event["seen"] = self.seen
        if event["n"] == 7:
            return __body__
        return event
"""


async def test_a_small_method_needs_no_crossing(crossings: list[str]) -> None:
    async with make_registry(plugin_of("f", SMALL)) as plugged:
        found = await results(plugged, VALUES)
        assert found[3] == b'{"n":3,"seen":4}'
        assert all(found[place] is VALUES[place] for place in (0, 1, 2, 4))
        assert crossings == []


async def test_what_is_given_up_inline_crosses_with_all_that_follows_it(crossings: list[str]) -> None:
    async with make_registry(plugin_of("f", SMALL)) as plugged:
        found = await results(plugged, [VALUES[0], b'{"n":7}', *VALUES[1:]], __body__={"model": "m"})
        assert found[:2] == [VALUES[0], b'{"model":"m"}']
        assert found[4] == b'{"n":3,"seen":5}'
        assert crossings == ["stream"]


async def test_what_ran_inline_stays_although_the_crossing_for_the_rest_fails() -> None:
    source = """
    class Filter:
        def stream(self, event):
            event["seen"] = True
            if event["n"]:
                print(event)
            return event
    """
    async with make_registry(plugin_of("f", source)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        failure = PluginError("filter", "f", FailureDetails("it cannot be asked"))
        calls = loaded.repeated("stream", "event", scope_of())
        found = await calls.run(VALUES[:3], Mock(side_effect=failure))
        assert found == [b'{"n":0,"seen":true}', failure.message, failure.message]
        with pytest.raises(PluginError, match="cannot be asked"):
            await calls.run(VALUES[1:3], Mock(side_effect=failure))


async def test_a_method_that_gives_up_again_and_again_is_not_tried_any_more(crossings: list[str]) -> None:
    async with make_registry(plugin_of("f", SMALL)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        call = loaded.repeated("stream", "event", scope_of())
        for value in (b'{"n":7}', VALUES[0], *[b'{"n":7}'] * MAX_ABANDONED_RUNS, VALUES[0]):
            await call.run([value], lambda: {"__body__": {}})
        assert len(crossings) == 1 + MAX_ABANDONED_RUNS + 1


async def test_valves_that_are_set_count_inline_at_once(crossings: list[str]) -> None:
    source = """
    from pydantic import BaseModel

    class Filter:
        class Valves(BaseModel):
            word: str = "a"

        def __init__(self):
            self.valves = self.Valves()

        def stream(self, event):
            event["word"] = self.valves.word
            return event
    """
    plugin = plugin_of("f", source)
    async with make_registry(plugin) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        call = loaded.repeated("stream", "event", scope_of())
        assert await call.run([b"{}"], dict) == [b'{"word":"a"}']
        await loaded.take(replace(plugin, valves={"word": "b"}))
        assert await call.run([b"{}"], dict) == [b'{"word":"b"}']
        assert crossings == []


async def test_valves_that_a_plugin_changes_for_one_call_do_not_count_for_the_next() -> None:
    source = """
    from pydantic import BaseModel

    class Filter:
        class Valves(BaseModel):
            word: str = "a"

        def __init__(self):
            self.valves = self.Valves()

        def outlet(self, body):
            self.valves.word = "of another user"
            return body

        def stream(self, event):
            event["word"] = self.valves.word
            return event
    """
    async with make_registry(plugin_of("f", source, valves={"word": "b"})) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        await loaded.call("outlet", scope_of(), {"body": {}})
        assert await results(plugged, [b"{}"]) == [b'{"word":"b"}']


@pytest.mark.parametrize("more", ["", ", absent", ", *, absent", ", /"])
async def test_a_small_method_that_cannot_be_called_so_fails_as_a_large_one_does(more: str) -> None:
    source = f"class Filter:\n    def stream(self, event{more}):\n        return event\n"
    async with make_registry(plugin_of("f", source)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        found = await results(plugged, [b"{}"])
        assert [isinstance(one, str) for one in found] == [bool(more)]
        assert loaded.is_idle("stream") == (not more)


async def test_a_method_that_takes_no_value_is_called_without() -> None:
    source = "class Filter:\n    def stream(self):\n        return {'a': 1}\n"
    async with make_registry(plugin_of("f", source)) as plugged:
        assert await results(plugged, VALUES[:1]) == [b'{"a":1}']


async def test_what_cannot_be_called_at_all_raises() -> None:
    async with make_registry(plugin_of("f", "class Filter: pass")) as plugged:
        with pytest.raises(PluginError, match="has no method"):
            await results(plugged, VALUES)


STUCK = """
import threading, time

entered, seen = threading.Event(), []

class Filter:
    {prefix}def stream(self, event):
        seen.append(event["n"])
        try:
            while True:
                entered.set()
                {wait}
        except BaseException:
            if event["n"] == 0:
                {again}
            return event
"""


@pytest.mark.parametrize("again", ["raise", "pass"])
@pytest.mark.parametrize("prefix", ["", "async "])
async def test_a_stopped_method_gets_no_further_value(prefix: str, again: str) -> None:
    wait = "import asyncio; await asyncio.sleep(0)" if prefix else "time.sleep(0)"
    source = STUCK.format(prefix=prefix, again=again, wait=wait)
    async with make_registry(plugin_of("f", source)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "f")
        call = asyncio.ensure_future(loaded.repeated("stream", "event", scope_of()).run(VALUES, dict))
        entered: threading.Event = loaded.value("entered")
        await asyncio.to_thread(entered.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while loaded.left_behind:
            await asyncio.sleep(0.001)
        # What still ran would have got another value by now.
        await asyncio.sleep(0.02)
        assert loaded.value("seen") == [0]


async def test_a_task_that_cancels_itself_gets_no_further_value_and_no_value_is_lost() -> None:
    source = """
    import asyncio

    class Filter:
        async def stream(self, event):
            asyncio.current_task().cancel()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                return event
    """
    async with make_registry(plugin_of("f", source)) as plugged:
        found = await results(plugged, VALUES)
        assert found == [VALUES[0], *["it was stopped before it finished"] * 4]


def test_a_batch_that_was_stopped_calls_nothing() -> None:
    seen: list[Any] = []
    batch = CallBatch(seen.append, "event", dict, VALUES)
    batch.stop()
    batch.run()
    assert (seen, batch.outcomes) == ([], [])


def test_values_are_json_on_both_sides() -> None:
    def change(event: dict[str, Any]) -> dict[str, Any]:
        event["seen"] = True
        return event

    batch = CallBatch(change, "event", dict, [b' {"a": 1} '])
    batch.run()
    assert orjson.loads(batch.outcomes[0].value) == {"a": 1, "seen": True}
