"""Plugins of the store, of a directory and of the gateway itself, and their loading."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock, patch

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins import registry as registry_module
from gatewayd.plugins.records import SWITCHES_KEY, PluginFamily, PluginKind, PluginOrigin
from gatewayd.plugins.registry import PluginSources
from gatewayd.plugins.runtime.invoke import PluginError
from tests.fakes.plugins.memory import make_registry, plugin_of, scope_of

pytestmark = pytest.mark.timeout(30)

FILTER = """
    class Filter:
        def inlet(self, body):
            body["seen"] = True
            return body
"""


async def test_a_stored_plugin_is_loaded_and_called() -> None:
    async with make_registry(plugin_of("seen", FILTER)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "seen")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == {"seen": True}


async def test_an_unknown_plugin_is_not_found() -> None:
    async with make_registry() as plugged:
        with pytest.raises(GatewayError) as caught:
            await plugged.registry.loaded(PluginFamily.TOOL, "none")
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_one_broken_plugin_leaves_the_others_alone(tmp_path: Path) -> None:
    broken = plugin_of("broken", "class Filter:\n    x = missing\n")
    async with make_registry(broken, plugin_of("seen", FILTER)) as plugged:
        with pytest.raises(PluginError, match=r"filter broken: NameError: .*\(line 2\)"):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "broken")
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "seen")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == {"seen": True}
        found = plugged.registry.find(PluginFamily.FUNCTION, "broken")
        assert found is not None
        assert found.problem is not None
        assert found.problem.doing == "load"


async def test_active_plugins_are_loaded_at_the_start_and_their_hooks_run() -> None:
    content = """
        import threading
        STARTED, ENDED = threading.Event(), threading.Event()
        class Pipe:
            async def on_startup(self):
                STARTED.set()
            def on_shutdown(self):
                ENDED.set()
    """
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await asyncio.to_thread(loaded.value("STARTED").wait, 10)
        ended = loaded.value("ENDED")
        assert not ended.is_set()
    assert ended.is_set()


async def test_a_hook_that_fails_is_noted_and_nothing_else() -> None:
    content = FILTER + "\n        async def on_startup(self):\n            raise ValueError('no')\n"
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == {"seen": True}
        while (found := plugged.registry.find(PluginFamily.FUNCTION, "p")) and found.problem is None:
            await asyncio.sleep(0)
        assert found is not None
        assert found.problem is not None
        assert (found.problem.doing, found.problem.sentence) == ("on_startup", "filter p: ValueError: no")


async def test_lists_are_by_family_and_kind() -> None:
    tool = plugin_of("a", "class Tools: pass")
    pipe = plugin_of("b", "class Pipe: pass")
    async with make_registry(pipe, tool, plugin_of("a", FILTER)) as plugged:
        registry = plugged.registry
        assert [(one.id, one.family) for one in registry.list()] == [
            ("a", PluginFamily.FUNCTION),
            ("a", PluginFamily.TOOL),
            ("b", PluginFamily.FUNCTION),
        ]
        assert [one.id for one in registry.list(PluginFamily.TOOL)] == ["a"]
        assert [one.id for one in registry.list(PluginFamily.FUNCTION, PluginKind.PIPE)] == ["b"]


async def test_a_failure_is_kept_until_something_changes() -> None:
    content = "import gatewayd_absent_module\nclass Filter:\n    class Valves: pass"
    async with make_registry(plugin_of("p", content)) as plugged:
        registry = plugged.registry
        failures = []
        for _ in range(2):
            with pytest.raises(PluginError) as caught:
                await registry.loaded(PluginFamily.FUNCTION, "p")
            failures.append(caught.value)
        assert failures[0] is failures[1]
        assert plugged.store.rows[PluginFamily.FUNCTION, "p"].problem is not None
        changed = replace(plugged.store.rows[PluginFamily.FUNCTION, "p"], valves={"a": 1})
        await registry.update(changed)
        with pytest.raises(PluginError) as caught:
            await registry.loaded(PluginFamily.FUNCTION, "p")
        assert caught.value is not failures[0]


async def test_reload_notices_files_that_come_change_and_go(tmp_path: Path) -> None:
    def write(name: str, result: str) -> None:
        content = f"class Filter:\n    def inlet(self, body):\n        return {result}\n"
        (tmp_path / f"{name}.py").write_text(content)

    write("stays", "1")
    write("changes", "1")
    write("goes", "1")
    async with make_registry(directory=tmp_path) as plugged:
        registry = plugged.registry

        async def answer(name: str) -> object:
            loaded = await registry.loaded(PluginFamily.FUNCTION, name)
            return await loaded.call("inlet", scope_of(), {"body": {}})

        assert [await answer(name) for name in ("stays", "changes", "goes")] == [1, 1, 1]
        kept = await registry.loaded(PluginFamily.FUNCTION, "stays")
        write("changes", "2")
        write("comes", "3")
        write("broken", "x(")
        (tmp_path / "goes.py").unlink()
        told = await registry.reload()
        assert sorted(told["loaded"]) == ["filter changes", "filter comes"]
        assert told["removed"] == ["filter goes"]
        assert told["unchanged"] == 1
        assert "SyntaxError in line 3" in told["failed"]["filter broken"]
        assert [await answer(name) for name in ("stays", "changes", "comes")] == [1, 2, 3]
        assert await registry.loaded(PluginFamily.FUNCTION, "stays") is kept
        with pytest.raises(GatewayError):
            await answer("goes")
        write("broken", "4")
        assert (await registry.reload())["loaded"] == ["filter broken"]
        assert await answer("broken") == 4


async def test_a_replaced_plugin_ends_when_its_calls_are_over() -> None:
    content = """
        import asyncio, threading
        class Pipe:
            entered, ended = threading.Event(), threading.Event()
            async def pipe(self, body):
                self.entered.set()
                await asyncio.to_thread(body["go"].wait)
                return "old"
            def on_shutdown(self):
                self.ended.set()
    """
    plugin = plugin_of("p", content)
    async with make_registry(plugin) as plugged:
        registry = plugged.registry
        old = await registry.loaded(PluginFamily.FUNCTION, "p")
        go = threading.Event()
        call = asyncio.ensure_future(old.call("pipe", scope_of(), {"body": {"go": go}}))
        await asyncio.to_thread(old.value("entered").wait)
        new = plugin_of("p", "class Pipe:\n    def pipe(self, body): return 'new'")
        await registry.adopt(new, await registry.probe(new))
        loaded = await registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("pipe", scope_of(), {"body": {}}) == "new"
        assert not old.value("ended").is_set()
        go.set()
        assert await call == "old"
        assert await asyncio.to_thread(old.value("ended").wait, 10)


async def test_the_database_goes_before_a_file_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("class Filter: pass")
    async with make_registry(plugin_of("p", FILTER), directory=tmp_path) as plugged:
        (plugin,) = plugged.registry.list()
        assert plugin.origin is PluginOrigin.DATABASE
        (fault,) = (await plugged.registry.reload())["failed"].values()
        assert "of the database precedes it" in fault


async def test_what_is_kept_about_a_file_is_put_over_it(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("class Filter: pass")
    row = plugin_of(
        "p",
        "class Filter: pass",
        origin=PluginOrigin.FILE,
        valves={"a": 1},
        meta={SWITCHES_KEY: {"is_active": False}},
    )
    row = replace(row, content="")
    gone = replace(row, id="gone")
    async with make_registry(row, gone, directory=tmp_path) as plugged:
        (plugin,) = plugged.registry.list()
        assert (plugin.is_active, plugin.is_global, plugin.valves) == (False, True, {"a": 1})
        assert plugin.content == "class Filter: pass"


async def test_switching_off_ends_a_plugin_and_on_starts_it_again() -> None:
    content = """
        import threading
        class Pipe:
            ended = threading.Event()
            def on_shutdown(self):
                self.ended.set()
    """
    plugin = plugin_of("p", content)
    async with make_registry(plugin) as plugged:
        registry = plugged.registry
        first = await registry.loaded(PluginFamily.FUNCTION, "p")
        await registry.update(replace(plugin, is_active=False))
        assert await asyncio.to_thread(first.value("ended").wait, 10)
        await registry.update(replace(plugin, is_active=True))
        assert await registry.loaded(PluginFamily.FUNCTION, "p") is not first


async def test_new_valves_reach_the_hook_and_the_priority() -> None:
    content = """
        import queue
        from pydantic import BaseModel
        class Filter:
            class Valves(BaseModel):
                priority: int = 0
            def __init__(self):
                self.valves, self.heard = self.Valves(), queue.SimpleQueue()
            def on_valves_updated(self):
                self.heard.put(self.valves.priority)
    """
    plugin = plugin_of("p", content)
    async with make_registry(plugin) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        await plugged.registry.update(replace(plugin, valves={"priority": 4}))
        await plugged.registry.update(replace(plugin, valves={"priority": 4}, name="Other"))
        assert loaded.priority() == 4
        heard = loaded.value("heard")
        assert await asyncio.to_thread(heard.get, timeout=10) == 4
        assert heard.empty()


@pytest.mark.parametrize(
    ("sources", "count", "sentence"),
    [
        (PluginSources(is_enabled=False), 0, "enable_plugins is off"),
        (PluginSources(is_safe=True), 1, "safe_mode is on"),
    ],
)
async def test_plugins_can_be_off(sources: PluginSources, count: int, sentence: str) -> None:
    async with make_registry(plugin_of("p", FILTER), sources=replace(sources, has_builtin=False)) as plugged:
        assert len(plugged.registry.list()) == count
        assert not plugged.registry.is_running
        with pytest.raises(GatewayError, match=sentence) as caught:
            await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert caught.value.kind is ErrorKind.NOT_CONFIGURED
        await plugged.registry.reload()


async def test_the_same_problem_is_not_written_over_and_over() -> None:
    content = "class Filter:\n    def inlet(self, body):\n        raise ValueError('again')\n"
    async with make_registry(plugin_of("p", content)) as plugged:
        written = []
        plugged.store.note = AsyncMock(side_effect=lambda *given: written.append(given))  # type: ignore[method-assign]
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        for _ in range(5):
            with pytest.raises(PluginError):
                await loaded.call("inlet", scope_of(), {"body": {}})
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(written) == 1


async def test_a_closed_registry_ends_plugins_that_do_not_want_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "END_SECONDS", 0.05)
    content = """
        import asyncio, threading
        class Pipe:
            let_go = threading.Event()
            async def on_shutdown(self):
                self.let_go.wait()
    """
    async with make_registry(plugin_of("p", content)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
    loaded.value("let_go").set()


SEALED = "cannot read the valves of function seen: they are encrypted, and there is no secret key"


async def test_a_locked_plugin_does_not_run_and_says_why() -> None:
    content = FILTER + "\n        def on_startup(self):\n            raise ValueError('it ran')\n"
    locked = plugin_of("seen", content, locked=SEALED)
    async with make_registry(locked, plugin_of("other", FILTER)) as plugged:
        with pytest.raises(PluginError) as caught:
            await plugged.registry.loaded(PluginFamily.FUNCTION, "seen")
        assert caught.value.text == SEALED
        assert plugged.registry.find_loaded(PluginFamily.FUNCTION, "seen") is None
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "other")
        assert plugged.registry.find_loaded(PluginFamily.FUNCTION, "other") is loaded
        # Not even where it is loaded already, and switched on.
        probed = await plugged.registry.probe(locked)
        await plugged.registry.adopt(locked, probed)
        with pytest.raises(PluginError):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "seen")
        assert plugged.registry.find_loaded(PluginFamily.FUNCTION, "seen") is None
        while plugged.tasks.list():
            await asyncio.sleep(0)
        found = plugged.registry.find(PluginFamily.FUNCTION, "seen")
        assert found is not None
        assert found.problem is None


async def test_a_file_whose_kept_valves_cannot_be_read_is_locked(tmp_path: Path) -> None:
    (tmp_path / "seen.py").write_text("class Filter:\n    def inlet(self, body): return body\n")
    kept = plugin_of("seen", "class Filter: pass", origin=PluginOrigin.FILE, locked=SEALED)
    async with make_registry(kept, directory=tmp_path) as plugged:
        with pytest.raises(PluginError, match="cannot read the valves"):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "seen")


async def test_finding_what_is_loaded_loads_nothing() -> None:
    async with make_registry(plugin_of("seen", FILTER, is_active=False)) as plugged:
        assert plugged.registry.find_loaded(PluginFamily.FUNCTION, "seen") is None
        assert plugged.registry.find_loaded(PluginFamily.TOOL, "seen") is None
        assert "load plugin" not in plugged.tasks.list().values()


async def test_who_listens_hears_of_one_that_does_not_load() -> None:
    async with make_registry() as plugged:
        heard: list[str] = []
        await plugged.registry.adopt(plugin_of("broken", "class Filter:\n    x = missing\n"), None)
        plugged.registry.subscribe(lambda plugin: heard.append(str(plugin.problem)))
        with pytest.raises(PluginError):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "broken")
        assert len(heard) == 1
        assert "NameError" in heard[0]


async def test_a_reload_waits_for_a_change() -> None:
    async with make_registry() as plugged:
        async with plugged.registry.changing:
            reloading = asyncio.ensure_future(plugged.registry.reload())
            await asyncio.sleep(0)
            await plugged.store.put(plugin_of("seen", FILTER))
            assert not reloading.done()
        assert (await reloading)["loaded"] == ["filter seen"]


async def test_a_problem_that_could_not_be_written_is_written_when_it_comes_again() -> None:
    async with make_registry(plugin_of("p", FILTER)) as plugged:
        registry, store = plugged.registry, plugged.store
        plugin = registry.find(PluginFamily.FUNCTION, "p")
        assert plugin is not None
        away = GatewayError(ErrorKind.UNAVAILABLE, "cannot write: it is away")
        with patch.object(store, "note", AsyncMock(side_effect=[away, None, None])) as note:
            for _ in range(3):
                registry.note(plugin, "inlet", "it fails")
                registry.note(plugin, "inlet", "it fails")
                await asyncio.sleep(0.01)
        assert note.await_count == 2


async def test_changes_by_another_process_are_taken_from_the_store() -> None:
    function = PluginFamily.FUNCTION
    async with make_registry(plugin_of("kept", FILTER), plugin_of("gone", FILTER)) as plugged:
        registry, store = plugged.registry, plugged.store
        instance = await registry.loaded(function, "kept")
        await registry.loaded(function, "gone")
        heard: list[str] = []
        registry.subscribe(lambda plugin: heard.append(plugin.id))
        await registry.refresh()
        assert heard == []
        await store.put(replace(plugin_of("kept", FILTER), valves={"priority": 3}))
        await store.remove(function, "gone")
        await store.put(plugin_of("new", FILTER))
        await registry.refresh([(function, "kept")])
        assert heard == ["kept"]
        assert await registry.loaded(function, "kept") is instance
        await registry.refresh()
        assert [plugin.id for plugin in registry.list()] == ["kept", "new"]
        assert registry.is_current(replace(plugin_of("kept", FILTER), valves={"priority": 3}))
        assert not registry.is_current(plugin_of("kept", FILTER))
        assert not registry.is_current(plugin_of("gone", FILTER))


async def test_a_new_source_by_another_process_is_in_force_for_whoever_asks_next() -> None:
    other = FILTER.replace('"seen"', '"other"')
    async with make_registry(plugin_of("p", FILTER)) as plugged:
        await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        await plugged.store.put(plugin_of("p", other))
        await plugged.registry.refresh([(PluginFamily.FUNCTION, "p")])
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == {"other": True}


async def test_a_change_that_takes_effect_during_a_refresh_is_not_undone() -> None:
    function = PluginFamily.FUNCTION
    async with make_registry(plugin_of("p", FILTER)) as plugged:
        registry, store = plugged.registry, plugged.store
        changed = replace(plugin_of("p", FILTER), name="changed here")
        read = store.list

        async def list_slowly(*args: object) -> object:
            rows = await read()
            if registry.is_current(plugin_of("p", FILTER)):
                await store.put(changed)
                await registry.update(changed)
            return rows

        with patch.object(store, "list", list_slowly):
            await registry.refresh([(function, "p")])
        assert registry.is_current(changed)


async def test_the_stored_state_of_a_file_follows_and_the_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "seen.py"
    path.write_text("class Filter:\n    def inlet(self, body):\n        return body\n")
    function = PluginFamily.FUNCTION
    async with make_registry(directory=tmp_path) as plugged:
        registry = plugged.registry
        plugin = registry.find(function, "seen")
        assert plugin is not None
        path.unlink()
        await registry.refresh()
        assert registry.is_current(plugin)
        switched = replace(plugin, content="", meta={SWITCHES_KEY: {"is_global": True}})
        await plugged.store.put(switched)
        await registry.refresh([(function, "seen")])
        found = registry.find(function, "seen")
        assert found is not None
        assert (found.is_global, found.content) == (True, plugin.content)


async def test_without_plugins_nothing_is_refreshed() -> None:
    async with make_registry(sources=PluginSources(is_enabled=False)) as plugged:
        await plugged.store.put(plugin_of("p", FILTER))
        await plugged.registry.refresh()
        assert plugged.registry.list() == []
