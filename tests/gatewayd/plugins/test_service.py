"""Installing, changing and setting up plugins, and who may."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Outcome, Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import GatewayError, Kind
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.records import Family, Origin, PluginKind
from gatewayd.plugins.registry import Sources
from gatewayd.plugins.service import NewPlugin, PluginChange, Plugins
from tests.fakes.plugins import Plugged, actor_of, make_registry, plugin_of, readable_by, scope_of

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
async def service(*plugins: Any, **options: Any) -> AsyncIterator[tuple[Plugins, Plugged]]:
    async with make_registry(*plugins, **options) as plugged:
        yield Plugins(plugged.registry, plugged.store, Plain(), PluginAccess(), lambda: 77), plugged


async def refused(kind: Kind, work: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    assert caught.value.kind is kind, caught.value
    return caught.value


async def test_a_new_function_is_inactive_and_for_no_model() -> None:
    async with service() as (plugins, plugged):
        made = await plugins.create(ADMIN, Family.FUNCTION, NewPlugin("Seen", FILTER))
        assert (made.id, made.kind, made.name, made.description) == (
            "seen",
            PluginKind.FILTER,
            "Seen",
            "Sees",
        )
        assert (made.is_active, made.is_global, made.user_id) == (False, False, "u-admin")
        assert (made.created_at, made.updated_at) == (77, 77)
        assert plugged.store.rows[Family.FUNCTION, "seen"].manifest == {
            "title": "Seen",
            "description": "Sees",
        }
        on = await plugins.set_active(ADMIN, Family.FUNCTION, "seen")
        assert on.is_active
        assert plugged.store.rows[Family.FUNCTION, "seen"].is_active
        assert (await plugins.set_global(ADMIN, Family.FUNCTION, "seen")).is_global
        assert not (await plugins.set_active(ADMIN, Family.FUNCTION, "seen")).is_active


@pytest.mark.parametrize("family", Family)
async def test_what_the_source_says_is_not_kept_as_what_a_client_says(family: Family) -> None:
    flags = {"toggle": True, "has_user_valves": True}
    shown = {**flags, "description": "x", "manifest": {"title": "x"}, "more": 1}
    async with service() as (plugins, _):
        content = TOOL if family is Family.TOOL else FILTER
        made = await plugins.create(ADMIN, family, NewPlugin("one", content, meta=shown))
        assert made.meta == {"more": 1}
        changed = await plugins.change(ADMIN, family, "one", PluginChange(meta=shown))
        assert changed.meta == {"more": 1}


async def test_a_new_tool_has_its_specs_and_belongs_to_who_made_it() -> None:
    async with service() as (plugins, _):
        made = await plugins.create(MAKER, Family.TOOL, NewPlugin("t", TOOL, name="Mine"))
        assert (made.user_id, made.name, made.is_active) == ("u-maker", "Mine", True)
        assert [one["name"] for one in made.specs] == ["run"]
        changed = await plugins.change(
            MAKER, Family.TOOL, "t", PluginChange(TOOL.replace("run", "go"), meta={"x": 1})
        )
        assert [one["name"] for one in changed.specs] == ["go"]
        assert changed.meta == {"x": 1}


async def test_functions_are_the_administrators() -> None:
    async with service(plugin_of("p", VALVES)) as (plugins, _):
        for work in (
            plugins.create(MAKER, Family.FUNCTION, NewPlugin("q", FILTER)),
            plugins.change(MAKER, Family.FUNCTION, "p", PluginChange(name="x")),
            plugins.remove(MAKER, Family.FUNCTION, "p"),
            plugins.set_active(MAKER, Family.FUNCTION, "p"),
            plugins.set_global(MAKER, Family.FUNCTION, "p"),
            plugins.set_valves(MAKER, Family.FUNCTION, "p", {}),
            plugins.valves_schema(MAKER, Family.FUNCTION, "p"),
            plugins.reload(MAKER),
        ):
            await refused(Kind.FORBIDDEN, work)
        with pytest.raises(GatewayError):
            plugins.get(MAKER, Family.FUNCTION, "p")
        with pytest.raises(GatewayError):
            plugins.valves(MAKER, Family.FUNCTION, "p")
        assert [one.id for one in plugins.list(MAKER, Family.FUNCTION)] == ["p"]


async def test_tools_are_known_to_who_may_use_them() -> None:
    mine = plugin_of("t", TOOL, user_id="u-maker", grants=readable_by("u-reader"))
    reader = actor_of("u-reader")
    async with service(mine) as (plugins, _):
        assert [one.id for one in plugins.list(reader, Family.TOOL)] == ["t"]
        assert plugins.list(OTHER, Family.TOOL) == []
        assert plugins.get(reader, Family.TOOL, "t").id == "t"
        with pytest.raises(GatewayError) as caught:
            plugins.get(OTHER, Family.TOOL, "t")
        assert caught.value.kind is Kind.NOT_FOUND
        await refused(Kind.FORBIDDEN, plugins.change(reader, Family.TOOL, "t", PluginChange(name="x")))
        await refused(Kind.NOT_FOUND, plugins.remove(OTHER, Family.TOOL, "t"))
        await refused(Kind.FORBIDDEN, plugins.create(OTHER, Family.TOOL, NewPlugin("u", TOOL)))
        await plugins.remove(ADMIN, Family.TOOL, "t")
        assert plugins.list(ADMIN, Family.TOOL) == []


async def test_grants_that_the_actor_may_not_give_are_dropped() -> None:
    public = Grant("user", "*", "read")
    async with service(plugin_of("t", TOOL, user_id="u-maker")) as (plugins, _):
        assert (await plugins.set_grants(MAKER, Family.TOOL, "t", [public])).grants == ()
        assert (await plugins.set_grants(ADMIN, Family.TOOL, "t", [public])).grants == (public,)
        assert (await plugins.set_grants(MAKER, Family.TOOL, "t", [public])).grants == (public,)
        changed = await plugins.change(ADMIN, Family.TOOL, "t", PluginChange(grants=()))
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
            await plugins.create(ADMIN, Family.FUNCTION, NewPlugin(plugin_id, content))
        assert caught.value.kind is Kind.INVALID_REQUEST
        assert plugged.store.rows == {}
        assert plugged.registry.list() == []


async def test_a_taken_id_is_a_conflict_whatever_its_case() -> None:
    async with service(plugin_of("p", FILTER)) as (plugins, _):
        await refused(Kind.CONFLICT, plugins.create(ADMIN, Family.FUNCTION, NewPlugin("P", FILTER)))
        made = await plugins.create(ADMIN, Family.TOOL, NewPlugin("p", TOOL))
        assert made.family is Family.TOOL


async def test_a_change_that_does_not_load_leaves_the_former_at_work() -> None:
    async with service(plugin_of("p", FILTER)) as (plugins, plugged):
        change = PluginChange("class Filter:\n    x = y")
        await refused(Kind.INVALID_REQUEST, plugins.change(ADMIN, Family.FUNCTION, "p", change))
        loaded = await plugged.registry.loaded(Family.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 1


async def test_a_changed_name_keeps_the_instance_and_a_changed_source_does_not() -> None:
    async with service(plugin_of("p", FILTER)) as (plugins, plugged):
        before = await plugged.registry.loaded(Family.FUNCTION, "p")
        named = await plugins.change(ADMIN, Family.FUNCTION, "p", PluginChange(name="Other"))
        assert named.name == "Other"
        assert await plugged.registry.loaded(Family.FUNCTION, "p") is before
        await plugins.change(ADMIN, Family.FUNCTION, "p", PluginChange(FILTER.replace("1", "2")))
        after = await plugged.registry.loaded(Family.FUNCTION, "p")
        assert await after.call("inlet", scope_of(), {"body": {}}) == 2


async def test_a_plugin_that_failed_is_tried_again_when_it_is_saved(tmp_path: Path) -> None:
    content = f"open({str(tmp_path / 'needed')!r}).close()\nclass Filter:\n    pass\n"
    async with service(plugin_of("p", content)) as (plugins, plugged):
        with pytest.raises(GatewayError):
            await plugged.registry.loaded(Family.FUNCTION, "p")
        (tmp_path / "needed").write_text("")
        saved = await plugins.change(ADMIN, Family.FUNCTION, "p", PluginChange(content))
        assert saved.problem is None
        assert await plugged.registry.loaded(Family.FUNCTION, "p")


async def test_valves_are_checked_kept_and_used() -> None:
    async with service(plugin_of("p", VALVES)) as (plugins, plugged):
        assert plugins.valves(ADMIN, Family.FUNCTION, "p") == {}
        schema = await plugins.valves_schema(ADMIN, Family.FUNCTION, "p")
        assert schema is not None
        assert schema["properties"]["limit"]["type"] == "integer"
        assert await plugins.set_valves(ADMIN, Family.FUNCTION, "p", {"limit": 4}) == {"limit": 4}
        assert plugged.store.rows[Family.FUNCTION, "p"].valves == {"limit": 4}
        loaded = await plugged.registry.loaded(Family.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 4
        error = await refused(
            Kind.INVALID_REQUEST, plugins.set_valves(ADMIN, Family.FUNCTION, "p", {"limit": "x"})
        )
        assert error.param == "limit"
        assert plugins.valves(ADMIN, Family.FUNCTION, "p") == {"limit": 4}


async def test_the_id_of_a_file_that_is_gone_is_free(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text(VALVES)
    async with service(directory=tmp_path) as (plugins, _):
        await plugins.set_valves(ADMIN, Family.FUNCTION, "p", {"limit": 5})
        path.unlink()
        await plugins.reload(ADMIN)
        made = await plugins.create(ADMIN, Family.FUNCTION, NewPlugin("p", VALVES))
        assert (made.origin, made.valves) == (Origin.DATABASE, {})
        with pytest.raises(GatewayError, match="the id is taken"):
            await plugins.create(ADMIN, Family.FUNCTION, NewPlugin("p", VALVES))


async def test_a_file_keeps_its_source_and_takes_valves_and_switches(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(VALVES)
    async with service(directory=tmp_path) as (plugins, plugged):
        for work in (
            plugins.change(ADMIN, Family.FUNCTION, "p", PluginChange(FILTER)),
            plugins.change(ADMIN, Family.FUNCTION, "p", PluginChange(name="x")),
            plugins.remove(ADMIN, Family.FUNCTION, "p"),
            plugins.create(ADMIN, Family.FUNCTION, NewPlugin("p", FILTER)),
        ):
            error = await refused(Kind.CONFLICT, work)
            assert f"it comes from the file {tmp_path / 'p.py'}" in error.message
        await plugins.set_valves(ADMIN, Family.FUNCTION, "p", {"limit": 9})
        await plugins.set_active(ADMIN, Family.FUNCTION, "p", False)
        row = plugged.store.rows[Family.FUNCTION, "p"]
        assert (row.origin, row.content, row.valves) == (Origin.FILE, "", {"limit": 9})
        await plugins.reload(ADMIN)
        plugin = plugins.get(ADMIN, Family.FUNCTION, "p")
        assert (plugin.is_active, plugin.is_global, plugin.valves) == (False, True, {"limit": 9})
        assert plugin.content == VALVES


async def test_install_tells_the_family_and_what_it_did() -> None:
    async with service() as (plugins, _):
        first = await plugins.install(ADMIN, NewPlugin("t", TOOL))
        again = await plugins.install(ADMIN, NewPlugin("t", TOOL))
        changed = await plugins.install(ADMIN, NewPlugin("t", TOOL + "# more\n"))
        assert [done for _, done in (first, again, changed)] == [
            Outcome.CREATED,
            Outcome.UNCHANGED,
            Outcome.CHANGED,
        ]
        assert first[0].family is Family.TOOL


async def test_in_safe_mode_plugins_are_changed_and_not_run() -> None:
    sources = Sources(has_builtin=False, is_safe=True)
    async with service(sources=sources) as (plugins, plugged):
        content = "class Filter:\n    x = y"
        made = await plugins.create(ADMIN, Family.FUNCTION, NewPlugin("p", content))
        assert made.kind is PluginKind.FILTER
        assert (await plugins.set_active(ADMIN, Family.FUNCTION, "p")).is_active
        await plugins.change(ADMIN, Family.FUNCTION, "p", PluginChange(FILTER))
        assert plugged.store.rows[Family.FUNCTION, "p"].content == FILTER
        await refused(Kind.NOT_CONFIGURED, plugins.set_valves(ADMIN, Family.FUNCTION, "p", {}))


async def test_without_plugins_none_is_installed() -> None:
    async with service(sources=Sources(is_enabled=False)) as (plugins, _):
        await refused(Kind.NOT_CONFIGURED, plugins.create(ADMIN, Family.FUNCTION, NewPlugin("p", FILTER)))


async def test_an_unknown_plugin_is_not_found() -> None:
    async with service() as (plugins, _):
        await refused(Kind.NOT_FOUND, plugins.set_active(ADMIN, Family.FUNCTION, "none"))


async def test_valves_that_cannot_be_read_are_told_replaced_and_never_forgotten() -> None:
    sentence = "cannot read the valves of function p: they are encrypted, and there is no secret key"
    async with service(plugin_of("p", VALVES, locked=sentence)) as (plugins, plugged):
        with pytest.raises(GatewayError) as caught:
            plugins.valves(ADMIN, Family.FUNCTION, "p")
        assert (caught.value.kind, caught.value.message) == (Kind.NOT_CONFIGURED, sentence)
        await plugins.set_global(ADMIN, Family.FUNCTION, "p", is_global=True)
        await plugins.change(ADMIN, Family.FUNCTION, "p", PluginChange(VALVES + "# new\n"))
        assert plugged.store.rows[Family.FUNCTION, "p"].locked == sentence
        await refused(Kind.PLUGIN_FAILED, plugged.registry.loaded(Family.FUNCTION, "p"))
        await refused(Kind.INVALID_REQUEST, plugins.set_valves(ADMIN, Family.FUNCTION, "p", {"limit": "x"}))
        assert plugged.store.rows[Family.FUNCTION, "p"].locked == sentence
        assert await plugins.set_valves(ADMIN, Family.FUNCTION, "p", {"limit": 8}) == {"limit": 8}
        assert plugged.store.rows[Family.FUNCTION, "p"].locked is None
        loaded = await plugged.registry.loaded(Family.FUNCTION, "p")
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == 8
