"""Installing, changing and setting up plugins, and who may."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import EnsureOutcome, Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.records import PluginFamily, PluginKind, PluginOrigin
from gatewayd.plugins.registry import PluginSources
from gatewayd.plugins.service import NewPlugin, PluginChange, PluginService
from tests.fakes.plugins.memory import Plugged, actor_of, make_registry, plugin_of, readable_by, scope_of

pytestmark = pytest.mark.timeout(30)

ADMIN = actor_of("u-admin", Role.ADMIN, permissions={"workspace": {"tools": True}})
MAKER = actor_of("u-maker", permissions={"workspace": {"tools": True}})
OTHER = actor_of("u-other")

FILTER = '"""\ntitle: Seen\ndescription: Sees\n"""\nclass Filter:\n    def inlet(self, body): return 1\n'
TOOL = "class Tools:\n    def run(self, a: int):\n        '''Run.'''\n        return a\n"
VALVES = """
from pydantic import BaseModel
class Filter:
    class Valves(BaseModel):
        limit: int = 1
    def __init__(self): self.valves = self.Valves()
    def inlet(self, body): return self.valves.limit
"""


class Plain:
    """A transactor that keeps nothing apart."""

    def transaction(self) -> AbstractAsyncContextManager[None]:
        return _block()

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        return _block()

    def rehearsal(self) -> AbstractAsyncContextManager[None]:
        return _block()


@asynccontextmanager
async def _block() -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def service(*plugins: Any, **options: Any) -> AsyncIterator[tuple[PluginService, Plugged]]:
    async with make_registry(*plugins, **options) as plugged:
        yield PluginService(plugged.registry, plugged.store, Plain(), PluginAccess(), lambda: 77), plugged


async def refused(kind: ErrorKind, work: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    assert caught.value.kind is kind, caught.value
    return caught.value


async def test_a_new_function_is_inactive_and_for_no_model() -> None:
    async with service() as (plugins, plugged):
        made = await plugins.create(ADMIN, PluginFamily.FUNCTION, NewPlugin("Seen", FILTER))
        assert (made.id, made.kind, made.name, made.description) == (
            "seen",
            PluginKind.FILTER,
            "Seen",
            "Sees",
        )
        assert (made.is_active, made.is_global, made.user_id) == (False, False, "u-admin")
        assert (made.created_at, made.updated_at) == (77, 77)
        assert plugged.store.rows[PluginFamily.FUNCTION, "seen"].manifest == {
            "title": "Seen",
            "description": "Sees",
        }
        on = await plugins.set_active(ADMIN, PluginFamily.FUNCTION, "seen")
        assert on.is_active
        assert plugged.store.rows[PluginFamily.FUNCTION, "seen"].is_active
        assert (await plugins.set_global(ADMIN, PluginFamily.FUNCTION, "seen")).is_global
        assert not (await plugins.set_active(ADMIN, PluginFamily.FUNCTION, "seen")).is_active


@pytest.mark.parametrize("family", PluginFamily)
async def test_what_the_source_says_is_not_kept_as_what_a_client_says(family: PluginFamily) -> None:
    flags = {"toggle": True, "has_user_valves": True}
    shown = {**flags, "description": "x", "manifest": {"title": "x"}, "more": 1}
    async with service() as (plugins, _):
        content = TOOL if family is PluginFamily.TOOL else FILTER
        made = await plugins.create(ADMIN, family, NewPlugin("one", content, meta=shown))
        assert made.meta == {"more": 1}
        changed = await plugins.change(ADMIN, family, "one", PluginChange(meta=shown))
        assert changed.meta == {"more": 1}


async def test_a_new_tool_has_its_specs_and_belongs_to_who_made_it() -> None:
    async with service() as (plugins, _):
        made = await plugins.create(MAKER, PluginFamily.TOOL, NewPlugin("t", TOOL, name="Mine"))
        assert (made.user_id, made.name, made.is_active) == ("u-maker", "Mine", True)
        assert [one["name"] for one in made.specs] == ["run"]
        changed = await plugins.change(
            MAKER, PluginFamily.TOOL, "t", PluginChange(TOOL.replace("run", "go"), meta={"x": 1})
        )
        assert [one["name"] for one in changed.specs] == ["go"]
        assert changed.meta == {"x": 1}


async def test_functions_are_the_administrators() -> None:
    async with service(plugin_of("p", VALVES)) as (plugins, _):
        for work in (
            plugins.create(MAKER, PluginFamily.FUNCTION, NewPlugin("q", FILTER)),
            plugins.change(MAKER, PluginFamily.FUNCTION, "p", PluginChange(name="x")),
            plugins.remove(MAKER, PluginFamily.FUNCTION, "p"),
            plugins.set_active(MAKER, PluginFamily.FUNCTION, "p"),
            plugins.set_global(MAKER, PluginFamily.FUNCTION, "p"),
            plugins.set_valves(MAKER, PluginFamily.FUNCTION, "p", {}),
            plugins.valves_schema(MAKER, PluginFamily.FUNCTION, "p"),
            plugins.reload(MAKER),
        ):
            await refused(ErrorKind.FORBIDDEN, work)
        with pytest.raises(GatewayError):
            plugins.get(MAKER, PluginFamily.FUNCTION, "p")
        with pytest.raises(GatewayError):
            plugins.valves(MAKER, PluginFamily.FUNCTION, "p")
        assert [one.id for one in plugins.list(MAKER, PluginFamily.FUNCTION)] == ["p"]


async def test_tools_are_known_to_who_may_use_them() -> None:
    mine = plugin_of("t", TOOL, user_id="u-maker", grants=readable_by("u-reader"))
    reader = actor_of("u-reader")
    async with service(mine) as (plugins, _):
        assert [one.id for one in plugins.list(reader, PluginFamily.TOOL)] == ["t"]
        assert plugins.list(OTHER, PluginFamily.TOOL) == []
        assert plugins.get(reader, PluginFamily.TOOL, "t").id == "t"
        with pytest.raises(GatewayError) as caught:
            plugins.get(OTHER, PluginFamily.TOOL, "t")
        assert caught.value.kind is ErrorKind.NOT_FOUND
        await refused(
            ErrorKind.FORBIDDEN, plugins.change(reader, PluginFamily.TOOL, "t", PluginChange(name="x"))
        )
        await refused(ErrorKind.NOT_FOUND, plugins.remove(OTHER, PluginFamily.TOOL, "t"))
        await refused(ErrorKind.FORBIDDEN, plugins.create(OTHER, PluginFamily.TOOL, NewPlugin("u", TOOL)))
        await plugins.remove(ADMIN, PluginFamily.TOOL, "t")
        assert plugins.list(ADMIN, PluginFamily.TOOL) == []


async def test_grants_that_the_actor_may_not_give_are_dropped() -> None:
    public = Grant("user", "*", "read")
    async with service(plugin_of("t", TOOL, user_id="u-maker")) as (plugins, _):
        assert (await plugins.set_grants(MAKER, PluginFamily.TOOL, "t", [public])).grants == ()
        assert (await plugins.set_grants(ADMIN, PluginFamily.TOOL, "t", [public])).grants == (public,)
        assert (await plugins.set_grants(MAKER, PluginFamily.TOOL, "t", [public])).grants == (public,)
        changed = await plugins.change(ADMIN, PluginFamily.TOOL, "t", PluginChange(grants=()))
        assert changed.grants == ()


@pytest.mark.parametrize(
    ("plugin_id", "content", "sentence"),
    [
        ("a-b", FILTER, "cannot accept id"),
        ("p", "class Filter:\n    x = y", r"cannot load filter p: NameError: .* \(line 2\)"),
        ("p", "class Filter(", "SyntaxError in line 1"),
        ("p", "class Pipeline: pass", "Pipelines server"),
        ("p", TOOL, "it is a tool and not a function"),
    ],
)
async def test_what_cannot_be_loaded_is_not_kept(plugin_id: str, content: str, sentence: str) -> None:
    async with service() as (plugins, plugged):
        with pytest.raises(GatewayError, match=sentence) as caught:
            await plugins.create(ADMIN, PluginFamily.FUNCTION, NewPlugin(plugin_id, content))
        assert caught.value.kind is ErrorKind.INVALID_REQUEST
        assert plugged.store.rows == {}
        assert plugged.registry.list() == []


async def test_a_taken_id_is_a_conflict_whatever_its_case() -> None:
    async with service(plugin_of("p", FILTER)) as (plugins, _):
        await refused(
            ErrorKind.CONFLICT, plugins.create(ADMIN, PluginFamily.FUNCTION, NewPlugin("P", FILTER))
        )
        made = await plugins.create(ADMIN, PluginFamily.TOOL, NewPlugin("p", TOOL))
        assert made.family is PluginFamily.TOOL


async def test_a_change_that_does_not_load_leaves_the_former_at_work() -> None:
    async with service(plugin_of("p", FILTER)) as (plugins, plugged):
        change = PluginChange("class Filter:\n    x = y")
        await refused(ErrorKind.INVALID_REQUEST, plugins.change(ADMIN, PluginFamily.FUNCTION, "p", change))
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 1


async def test_a_changed_name_keeps_the_instance_and_a_changed_source_does_not() -> None:
    async with service(plugin_of("p", FILTER)) as (plugins, plugged):
        before = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        named = await plugins.change(ADMIN, PluginFamily.FUNCTION, "p", PluginChange(name="Other"))
        assert named.name == "Other"
        assert await plugged.registry.loaded(PluginFamily.FUNCTION, "p") is before
        await plugins.change(ADMIN, PluginFamily.FUNCTION, "p", PluginChange(FILTER.replace("1", "2")))
        after = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await after.call("inlet", scope_of(), {"body": {}}) == 2


async def test_a_plugin_that_failed_is_tried_again_when_it_is_saved(tmp_path: Path) -> None:
    content = f"open({str(tmp_path / 'needed')!r}).close()\nclass Filter:\n    pass\n"
    async with service(plugin_of("p", content)) as (plugins, plugged):
        with pytest.raises(GatewayError):
            await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        (tmp_path / "needed").write_text("")
        saved = await plugins.change(ADMIN, PluginFamily.FUNCTION, "p", PluginChange(content))
        assert saved.problem is None
        assert await plugged.registry.loaded(PluginFamily.FUNCTION, "p")


async def test_valves_are_checked_kept_and_used() -> None:
    async with service(plugin_of("p", VALVES)) as (plugins, plugged):
        assert plugins.valves(ADMIN, PluginFamily.FUNCTION, "p") == {}
        schema = await plugins.valves_schema(ADMIN, PluginFamily.FUNCTION, "p")
        assert schema is not None
        assert schema["properties"]["limit"]["type"] == "integer"
        assert await plugins.set_valves(ADMIN, PluginFamily.FUNCTION, "p", {"limit": 4}) == {"limit": 4}
        assert plugged.store.rows[PluginFamily.FUNCTION, "p"].valves == {"limit": 4}
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 4
        error = await refused(
            ErrorKind.INVALID_REQUEST, plugins.set_valves(ADMIN, PluginFamily.FUNCTION, "p", {"limit": "x"})
        )
        assert error.param == "limit"
        assert plugins.valves(ADMIN, PluginFamily.FUNCTION, "p") == {"limit": 4}


async def test_the_id_of_a_file_that_is_gone_is_free(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text(VALVES)
    async with service(directory=tmp_path) as (plugins, _):
        await plugins.set_valves(ADMIN, PluginFamily.FUNCTION, "p", {"limit": 5})
        path.unlink()
        await plugins.reload(ADMIN)
        made = await plugins.create(ADMIN, PluginFamily.FUNCTION, NewPlugin("p", VALVES))
        assert (made.origin, made.valves) == (PluginOrigin.DATABASE, {})
        with pytest.raises(GatewayError, match="the id is taken"):
            await plugins.create(ADMIN, PluginFamily.FUNCTION, NewPlugin("p", VALVES))


async def test_a_file_keeps_its_source_and_takes_valves_and_switches(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(VALVES)
    async with service(directory=tmp_path) as (plugins, plugged):
        for work in (
            plugins.change(ADMIN, PluginFamily.FUNCTION, "p", PluginChange(FILTER)),
            plugins.change(ADMIN, PluginFamily.FUNCTION, "p", PluginChange(name="x")),
            plugins.remove(ADMIN, PluginFamily.FUNCTION, "p"),
            plugins.create(ADMIN, PluginFamily.FUNCTION, NewPlugin("p", FILTER)),
        ):
            error = await refused(ErrorKind.CONFLICT, work)
            assert f"it comes from the file {tmp_path / 'p.py'}" in error.message
        await plugins.set_valves(ADMIN, PluginFamily.FUNCTION, "p", {"limit": 9})
        await plugins.set_active(ADMIN, PluginFamily.FUNCTION, "p", False)
        row = plugged.store.rows[PluginFamily.FUNCTION, "p"]
        assert (row.origin, row.content, row.valves) == (PluginOrigin.FILE, "", {"limit": 9})
        await plugins.reload(ADMIN)
        plugin = plugins.get(ADMIN, PluginFamily.FUNCTION, "p")
        assert (plugin.is_active, plugin.is_global, plugin.valves) == (False, True, {"limit": 9})
        assert plugin.content == VALVES


async def test_install_tells_the_family_and_what_it_did() -> None:
    async with service() as (plugins, _):
        first = await plugins.install(ADMIN, NewPlugin("t", TOOL))
        again = await plugins.install(ADMIN, NewPlugin("t", TOOL))
        changed = await plugins.install(ADMIN, NewPlugin("t", TOOL + "# more\n"))
        assert [done for _, done in (first, again, changed)] == [
            EnsureOutcome.CREATED,
            EnsureOutcome.UNCHANGED,
            EnsureOutcome.CHANGED,
        ]
        assert first[0].family is PluginFamily.TOOL


async def test_in_safe_mode_plugins_are_changed_and_not_run() -> None:
    sources = PluginSources(has_builtin=False, is_safe=True)
    async with service(sources=sources) as (plugins, plugged):
        content = "class Filter:\n    x = y"
        made = await plugins.create(ADMIN, PluginFamily.FUNCTION, NewPlugin("p", content))
        assert made.kind is PluginKind.FILTER
        assert (await plugins.set_active(ADMIN, PluginFamily.FUNCTION, "p")).is_active
        await plugins.change(ADMIN, PluginFamily.FUNCTION, "p", PluginChange(FILTER))
        assert plugged.store.rows[PluginFamily.FUNCTION, "p"].content == FILTER
        await refused(ErrorKind.NOT_CONFIGURED, plugins.set_valves(ADMIN, PluginFamily.FUNCTION, "p", {}))


async def test_without_plugins_none_is_installed() -> None:
    async with service(sources=PluginSources(is_enabled=False)) as (plugins, _):
        await refused(
            ErrorKind.NOT_CONFIGURED, plugins.create(ADMIN, PluginFamily.FUNCTION, NewPlugin("p", FILTER))
        )


async def test_an_unknown_plugin_is_not_found() -> None:
    async with service() as (plugins, _):
        await refused(ErrorKind.NOT_FOUND, plugins.set_active(ADMIN, PluginFamily.FUNCTION, "none"))


async def test_valves_that_cannot_be_read_are_told_replaced_and_never_forgotten() -> None:
    sentence = "cannot read the valves of function p: they are encrypted, and there is no secret key"
    async with service(plugin_of("p", VALVES, locked=sentence)) as (plugins, plugged):
        with pytest.raises(GatewayError) as caught:
            plugins.valves(ADMIN, PluginFamily.FUNCTION, "p")
        assert (caught.value.kind, caught.value.message) == (ErrorKind.NOT_CONFIGURED, sentence)
        await plugins.set_global(ADMIN, PluginFamily.FUNCTION, "p", is_global=True)
        await plugins.change(ADMIN, PluginFamily.FUNCTION, "p", PluginChange(VALVES + "# new\n"))
        assert plugged.store.rows[PluginFamily.FUNCTION, "p"].locked == sentence
        await refused(ErrorKind.PLUGIN_FAILED, plugged.registry.loaded(PluginFamily.FUNCTION, "p"))
        await refused(
            ErrorKind.INVALID_REQUEST, plugins.set_valves(ADMIN, PluginFamily.FUNCTION, "p", {"limit": "x"})
        )
        assert plugged.store.rows[PluginFamily.FUNCTION, "p"].locked == sentence
        assert await plugins.set_valves(ADMIN, PluginFamily.FUNCTION, "p", {"limit": 8}) == {"limit": 8}
        assert plugged.store.rows[PluginFamily.FUNCTION, "p"].locked is None
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 8


async def test_a_change_by_another_process_in_the_meantime_is_not_overwritten() -> None:
    class Late(Plain):
        """A lock that another process had until now, which has changed the plugin."""

        def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
            return self._block()

        @asynccontextmanager
        async def _block(self) -> AsyncIterator[None]:
            await plugged.registry.update(replace(held, name="of another"))
            yield

    async with make_registry(plugin_of("p", FILTER)) as plugged:
        held = plugged.registry.find(PluginFamily.FUNCTION, "p")
        assert held is not None
        plugins = PluginService(plugged.registry, plugged.store, Late(), PluginAccess())
        for work in (
            plugins.set_global(ADMIN, PluginFamily.FUNCTION, "p", is_global=True),
            plugins.remove(ADMIN, PluginFamily.FUNCTION, "p"),
        ):
            await plugged.registry.update(held)
            error = await refused(ErrorKind.CONFLICT, work)
            assert error.code == "revision_changed"
            assert "another process" in error.message
        found = plugged.registry.find(PluginFamily.FUNCTION, "p")
        assert found is not None
        assert (found.name, found.is_global) == ("of another", held.is_global)
