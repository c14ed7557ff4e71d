"""All functions replaced at once, over plugins in memory and over a real database."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.function_sync import FunctionSync, WantedFunction
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind, PluginOrigin
from gatewayd.plugins.registry import PluginManager, PluginSources
from gatewayd.plugins.runtime.arguments import CallServices
from gatewayd.plugins.runtime.loader import LoadingOptions
from gatewayd.plugins.service import NewPlugin
from gatewayd.plugins.source.requirements import InstallationOptions, RequirementsInstaller
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import sqlite
from gatewayd.storage.plugins import TortoisePlugins
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import CallbackTransactor
from tests.fakes.plugins.memory import MemoryUserValves, NotedEvents, actor_of, plugin_of, scope_of

pytestmark = pytest.mark.timeout(60)

ADMIN = actor_of("u-admin", Role.ADMIN)
PIPE = "class Pipe:\n    def pipe(self, body): return 1\n"
OTHER = "class Pipe:\n    async def pipe(self, body): return 2\n"
COUNTING = """
from pydantic import BaseModel
class Filter:
    class Valves(BaseModel):
        start: int = 0
    def __init__(self):
        self.valves = self.Valves()
        self.count = 0
    def inlet(self, body):
        self.count += 1
        return self.valves.start + self.count
"""
TOOL = "class Tools:\n    def run(self): return 1\n"


@dataclass
class World:
    store: TortoisePlugins
    registry: PluginManager
    sync: FunctionSync

    async def replace_all(self, *wanted: WantedFunction) -> Sequence[Plugin]:
        return await self.sync.replace_all(ADMIN, wanted)

    async def refused(self, kind: ErrorKind, *wanted: WantedFunction) -> str:
        """Sync what has to be refused, and check that nothing has changed; return the sentence."""
        before, known = list(await self.store.list()), list(self.registry.list())
        with pytest.raises(GatewayError) as caught:
            await self.replace_all(*wanted)
        assert caught.value.kind is kind, caught.value
        assert list(await self.store.list()) == before
        assert list(self.registry.list()) == known
        return caught.value.message

    async def call(self, plugin_id: str, method: str = "inlet") -> Any:
        loaded = await self.registry.loaded(PluginFamily.FUNCTION, plugin_id)
        return await loaded.call(method, scope_of(), {"body": {}})


@pytest.fixture
def folder(migrated_copy: Path, tmp_path: Path) -> Path:
    (tmp_path / "plugins.d").mkdir()
    return tmp_path


@asynccontextmanager
async def world(
    folder: Path, *plugins: Plugin, is_safe: bool = False, access: PluginAccess | None = None
) -> AsyncIterator[World]:
    async with Database.open(sqlite(folder / "gatewayd.db")) as database:
        store, tasks = TortoisePlugins(), TaskRegistry()
        for plugin in plugins:
            await store.put(plugin)
        around = CallServices(asyncio.get_running_loop(), NotedEvents(), MemoryUserValves(), None)
        loading = LoadingOptions(RequirementsInstaller(InstallationOptions(folder / "none")), 20.0)
        sources = PluginSources(folder / "plugins.d", has_builtin=False, is_safe=is_safe)
        registry = PluginManager(store, around, loading, sources, tasks)
        await registry.open()
        try:
            sync = FunctionSync(
                registry, store, CallbackTransactor(database), access or PluginAccess(), lambda: 77
            )
            yield World(store, registry, sync)
        finally:
            await registry.close()
            await tasks.close()


def wanted(plugin_id: str, content: str = PIPE, **more: Any) -> WantedFunction:
    return WantedFunction(NewPlugin(plugin_id, content), **more)


async def test_an_administrator_that_was_demoted_replaces_nothing(folder: Path) -> None:
    async def demoted(actor: Actor) -> Actor:
        return replace(actor, user=replace(actor.user, role=Role.USER))

    async with world(folder, plugin_of("old", PIPE), access=PluginAccess(current=demoted)) as site:
        with pytest.raises(GatewayError, match="only administrators may"):
            await site.replace_all(wanted("new", OTHER))
        assert [one.id for one in await site.store.list()] == ["old"]


async def test_what_is_new_comes_what_is_left_out_goes_and_tools_stay(folder: Path) -> None:
    tool = plugin_of("t", TOOL)
    async with world(folder, plugin_of("old", PIPE), plugin_of("same", PIPE), tool) as site:
        synced = await site.replace_all(wanted("New", OTHER, is_active=True), wanted("same", OTHER))
        assert [(one.id, one.is_active, one.kind) for one in synced] == [
            ("new", True, PluginKind.PIPE),
            ("same", False, PluginKind.PIPE),
        ]
        stored = {(one.family, one.id): one for one in await site.store.list()}
        assert set(stored) == {
            (PluginFamily.FUNCTION, "new"),
            (PluginFamily.FUNCTION, "same"),
            (PluginFamily.TOOL, "t"),
        }
        assert stored[PluginFamily.TOOL, "t"] == tool
        assert stored[PluginFamily.FUNCTION, "new"].created_at == 77
        # Who installed it, and when, is not what is replaced.
        assert stored[PluginFamily.FUNCTION, "same"].user_id == plugin_of("same", PIPE).user_id
        assert await site.call("new", "pipe") == 2
        assert await site.call("same", "pipe") == 2
        with pytest.raises(GatewayError, match="cannot find function 'old'"):
            await site.call("old", "pipe")


async def test_an_instance_whose_source_stays_lives_on_and_takes_its_valves(folder: Path) -> None:
    async with world(folder, plugin_of("c", COUNTING, valves={"start": 10})) as site:
        assert await site.call("c") == 11
        content = plugin_of("c", COUNTING).content
        await site.replace_all(wanted("c", content, is_active=True))
        assert await site.call("c") == 12
        await site.replace_all(wanted("c", content, is_active=True, valves={"start": 100}))
        assert await site.call("c") == 103
        await site.replace_all(wanted("c", content, is_active=True, valves={}))
        assert await site.call("c") == 4
        await site.replace_all(wanted("c", content + "# new\n", is_active=True))
        assert await site.call("c") == 1


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (wanted("b", PIPE + "x = missing\n"), r"cannot load pipe b: NameError: .* \(line 3\)"),
        (wanted("b", "class Pipe:\n  def"), "SyntaxError in line 2"),
        (wanted("b-c"), "cannot accept id 'b-c'"),
        (wanted("A"), "'a' is listed twice"),
        (wanted("b", COUNTING, valves={"start": "late"}), "field 'start'"),
        (wanted("b", PIPE, valves={"start": 1}), "it has none"),
    ],
)
async def test_one_that_cannot_be_kept_leaves_everything_as_it_was(
    folder: Path, bad: WantedFunction, sentence: str
) -> None:
    async with world(folder, plugin_of("old", PIPE)) as site:
        refused = await site.refused(ErrorKind.INVALID_REQUEST, wanted("a", OTHER), bad)
        assert re.search(sentence, refused), refused
        assert await site.call("old", "pipe") == 1


async def test_what_the_database_refuses_leaves_everything_as_it_was(folder: Path) -> None:
    async with world(folder, plugin_of("old", PIPE)) as site:
        nul = WantedFunction(NewPlugin("b", PIPE, name="a\x00b"))
        await site.refused(ErrorKind.INVALID_REQUEST, wanted("a", OTHER), nul)
        assert await site.call("old", "pipe") == 1


async def test_files_are_neither_replaced_nor_removed(folder: Path) -> None:
    (folder / "plugins.d" / "f.py").write_text(PIPE)
    async with world(folder) as site:
        assert "it comes from the file" in await site.refused(ErrorKind.CONFLICT, wanted("f", OTHER))
        assert await site.replace_all() == []
        found = site.registry.find(PluginFamily.FUNCTION, "f")
        assert found is not None
        assert found.origin is PluginOrigin.FILE


async def test_only_administrators_may(folder: Path) -> None:
    async with world(folder, plugin_of("old", PIPE)) as site:
        with pytest.raises(GatewayError) as caught:
            await site.sync.replace_all(actor_of("u1"), [])
        assert caught.value.kind is ErrorKind.FORBIDDEN
        assert len(await site.store.list()) == 1


async def test_in_safe_mode_functions_are_kept_and_not_run(folder: Path) -> None:
    async with world(folder, plugin_of("old", PIPE), is_safe=True) as site:
        [made] = await site.replace_all(wanted("b", "raise SystemExit\nclass Pipe: pass", valves={"a": 1}))
        assert (made.kind, made.valves) == (PluginKind.PIPE, {"a": 1})
        assert site.registry.find_loaded(PluginFamily.FUNCTION, "b") is None


async def test_what_is_locked_stays_so_until_it_gets_valves(folder: Path) -> None:
    async with Database.open(sqlite(folder / "gatewayd.db")):
        await TortoisePlugins(b"a key").put(plugin_of("c", COUNTING, valves={"start": 10}))
    async with world(folder) as site:
        content = plugin_of("c", COUNTING).content
        [kept] = await site.replace_all(wanted("c", content, is_active=True))
        assert kept.locked is not None
        assert kept.problem is not None
        with pytest.raises(GatewayError, match="cannot read the valves of function c"):
            await site.call("c")
        stored = await TortoisePlugins(b"a key").find(PluginFamily.FUNCTION, "c")
        assert stored is not None
        assert stored.valves == {"start": 10}
        [free] = await site.replace_all(wanted("c", content, is_active=True, valves={"start": 5}))
        assert free.locked is None
        assert free.problem is None
        assert await site.call("c") == 6
        assert await TortoisePlugins().find(PluginFamily.FUNCTION, "c") == replace(free, problem=None)
