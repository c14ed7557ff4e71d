import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.records import PluginFamily, PluginKind, PluginOrigin, PluginProblem
from gatewayd.storage.engine.database import Database
from gatewayd.storage.plugins import TortoisePlugins, TortoiseUserValves
from gatewayd.storage.tables.accounts import GrantRow
from gatewayd.storage.tables.plugins import PluginRow, UserValvesRow
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.fakes.storage.records import plugin

FULL = plugin(
    "weather",
    PluginFamily.TOOL,
    name="Wetter ☀",
    content='"""\ntitle: Wetter\n"""\n\n\nclass Tools:\n    x = "\\x00"\n' + "#" * 100_000,
    description="says\nmore",
    manifest={"title": "Wetter", "version": "1.0"},
    meta={"description": "d", "more": None},
    specs=[{"name": "f", "parameters": {"type": "object"}}],
    valves={"key": "secret", "n": 1.5},
    is_active=True,
    is_global=True,
    origin=PluginOrigin.FILE,
    path="/etc/gatewayd/plugins.d/weather.py",
    missing=("open_webui.x.Y", "open_webui.z"),
    problem=PluginProblem(7, "inlet", "filter x: ValueError: no"),
    grants=(Grant("user", "*", "read"), Grant("group", "g1", "write")),
    updated_at=2,
    created_at=1,
)
SECRET = b"a secret key"


@pytest.fixture
def plugins(database: Database) -> TortoisePlugins:
    return TortoisePlugins()


@pytest.fixture
async def user_valves(database: Database) -> TortoiseUserValves:
    for user_id in ("u1", "u2"):
        await TortoiseUsers().add(user(user_id), None)
    return TortoiseUserValves()


async def test_a_plugin_comes_back_as_it_was(plugins: TortoisePlugins) -> None:
    await plugins.put(FULL)
    assert await plugins.find(PluginFamily.TOOL, "weather") == FULL
    assert list(await plugins.list()) == [FULL]


async def test_what_is_absent_is_none_or_false(plugins: TortoisePlugins) -> None:
    await plugins.put(FULL)
    for family, plugin_id in (
        (PluginFamily.FUNCTION, "weather"),
        (PluginFamily.TOOL, "\x00"),
        (PluginFamily.TOOL, "x" * 256),
    ):
        assert await plugins.find(family, plugin_id) is None
        assert not await plugins.remove(family, plugin_id)
        await plugins.note(family, plugin_id, FULL.problem)
    assert list(await plugins.list(PluginFamily.FUNCTION)) == []
    assert list(await plugins.list()) == [FULL]


async def test_an_id_is_one_plugin_in_each_family(plugins: TortoisePlugins) -> None:
    function = plugin("weather", kind=PluginKind.PIPE, grants=(Grant("user", "u9", "read"),))
    other = plugin("a")
    for each in (FULL, function, other, function):
        await plugins.put(each)
    assert list(await plugins.list()) == [other, function, FULL]
    assert list(await plugins.list(PluginFamily.TOOL)) == [FULL]
    assert list(await plugins.list(PluginFamily.FUNCTION)) == [other, function]
    assert await plugins.remove(PluginFamily.FUNCTION, "weather")
    assert not await plugins.remove(PluginFamily.FUNCTION, "weather")
    assert list(await plugins.list()) == [other, FULL]


async def test_a_plugin_is_replaced_with_its_grants(plugins: TortoisePlugins) -> None:
    await plugins.put(FULL)
    fresh = replace(plugin("weather", PluginFamily.TOOL), grants=(Grant("user", "u2", "read"),), created_at=9)
    await plugins.put(fresh)
    assert list(await plugins.list()) == [fresh]
    assert await GrantRow.all().count() == 1


async def test_a_problem_is_noted_alone(plugins: TortoisePlugins) -> None:
    await plugins.put(FULL)
    problem = PluginProblem(9, "load", "a\x00b \ud800")
    await plugins.note(PluginFamily.TOOL, "weather", problem)
    noted = replace(FULL, problem=PluginProblem(9, "load", "a\ufffdb \ufffd"))
    assert await plugins.find(PluginFamily.TOOL, "weather") == noted
    await plugins.note(PluginFamily.TOOL, "weather", None)
    assert await plugins.find(PluginFamily.TOOL, "weather") == replace(FULL, problem=None)


async def test_racing_replacements_leave_one_whole_plugin(plugins: TortoisePlugins) -> None:
    versions = [
        replace(FULL, name=str(number), grants=(Grant("user", str(number), "read"),)) for number in range(8)
    ]
    await asyncio.gather(*(plugins.put(version) for version in versions))
    [found] = await plugins.list()
    assert found in versions


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "x" * 256),
        ("name", "\ud800"),
        ("content", "a\x00"),
        ("valves", {"a": "\x00"}),
        ("meta", {"a": float("nan")}),
        ("manifest", {"a": "\x00"}),
    ],
)
async def test_what_cannot_be_stored_is_refused_by_name(
    plugins: TortoisePlugins, field: str, value: Any
) -> None:
    with pytest.raises(GatewayError) as caught:
        await plugins.put(replace(FULL, **{field: value}))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, field)
    assert list(await plugins.list()) == []


async def test_what_a_plugin_says_of_its_functions_is_mended(plugins: TortoisePlugins) -> None:
    await plugins.put(replace(FULL, specs=[{"description": "a\x00"}], missing=("a\x00",)))
    found = await plugins.find(PluginFamily.TOOL, "weather")
    assert found == replace(FULL, specs=[{"description": "a\ufffd"}], missing=("a\ufffd",))


async def test_valves_are_sealed_with_a_secret(database: Database) -> None:
    await TortoisePlugins(SECRET).put(FULL)
    [row] = await PluginRow.all()
    assert "secret" not in row.valves
    assert await TortoisePlugins(SECRET).find(PluginFamily.TOOL, "weather") == FULL


async def test_sealing_may_be_switched_on_and_off(database: Database) -> None:
    await TortoisePlugins().put(FULL)
    assert list(await TortoisePlugins(SECRET).list()) == [FULL]
    await TortoisePlugins(SECRET).put(FULL)
    off = TortoisePlugins(SECRET, encrypt=False)
    assert list(await off.list()) == [FULL]
    await off.put(FULL)
    assert list(await TortoisePlugins().list()) == [FULL]


@pytest.mark.parametrize(
    ("secret", "reason"), [(b"another", "another secret key"), (None, "there is no secret key")]
)
async def test_what_cannot_be_opened_names_the_plugin(
    database: Database, secret: bytes | None, reason: str
) -> None:
    await TortoisePlugins(SECRET).put(FULL)
    with pytest.raises(GatewayError, match=reason) as caught:
        await TortoisePlugins(secret).find(PluginFamily.TOOL, "weather")
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    assert caught.value.message.startswith("cannot read the valves of tool weather: ")
    assert await TortoisePlugins(secret).remove(PluginFamily.TOOL, "weather")


@pytest.mark.parametrize("secret", [b"another", None])
async def test_one_that_cannot_be_opened_is_locked_and_hides_no_other(
    database: Database, secret: bytes | None
) -> None:
    await TortoisePlugins(SECRET).put(FULL)
    other = plugin("z", valves={"a": 1})
    await TortoisePlugins().put(other)
    locked, free = await TortoisePlugins(secret).list()
    assert free == other
    assert locked.locked is not None
    assert locked.locked.startswith("cannot read the valves of tool weather: ")
    problem = PluginProblem(FULL.updated_at, "load", locked.locked)
    assert locked == replace(FULL, valves={}, problem=problem, locked=locked.locked)


async def test_what_is_sealed_outlives_changes_of_a_locked_plugin(database: Database) -> None:
    await TortoisePlugins(SECRET).put(FULL)
    [locked] = await TortoisePlugins(b"another").list()
    changed = replace(locked, name="changed", is_active=False)
    await TortoisePlugins(b"another").put(changed)
    found = await TortoisePlugins(SECRET).find(PluginFamily.TOOL, "weather")
    assert found == replace(FULL, name="changed", is_active=False, problem=locked.problem)
    await TortoisePlugins(b"another").put(replace(changed, id="new"))
    made = await TortoisePlugins().find(PluginFamily.TOOL, "new")
    assert made is not None
    assert made.valves == {}


async def test_users_have_values_of_their_own(user_valves: TortoiseUserValves) -> None:
    assert await user_valves.find("u1", PluginFamily.TOOL, "p") is None
    await user_valves.put("u1", PluginFamily.TOOL, "p", {"a": 1})
    await user_valves.put("u2", PluginFamily.TOOL, "p", {})
    await user_valves.put("u1", PluginFamily.FUNCTION, "p", {"b": None})
    await user_valves.put("u1", PluginFamily.TOOL, "p", {"a": [2]})
    found = [
        await user_valves.find(user_id, family, "p")
        for user_id in ("u1", "u2")
        for family in (PluginFamily.TOOL, PluginFamily.FUNCTION)
    ]
    assert found == [{"a": [2]}, {"b": None}, {}, None]
    assert await user_valves.find("\x00", PluginFamily.TOOL, "p") is None
    assert await user_valves.find("u1", PluginFamily.TOOL, "\x00") is None


async def test_a_removed_plugin_takes_the_values_of_every_user_along(
    user_valves: TortoiseUserValves, plugins: TortoisePlugins
) -> None:
    await plugins.put(FULL)
    for user_id in ("u1", "u2"):
        await user_valves.put(user_id, PluginFamily.TOOL, "weather", {})
    await user_valves.put("u1", PluginFamily.FUNCTION, "weather", {})
    assert await plugins.remove(PluginFamily.TOOL, "weather")
    assert [row.family for row in await UserValvesRow.all()] == ["function"]
    assert await GrantRow.all().count() == 0


async def test_a_removed_user_takes_the_values_along(user_valves: TortoiseUserValves) -> None:
    for user_id in ("u1", "u2"):
        await user_valves.put(user_id, PluginFamily.TOOL, "p", {})
    await TortoiseUsers().remove("u1")
    assert await UserValvesRow.all().count() == 1
    with pytest.raises(GatewayError, match="does not exist"):
        await user_valves.put("u1", PluginFamily.TOOL, "p", {})


async def test_values_of_users_are_sealed_alike(user_valves: TortoiseUserValves) -> None:
    sealed = TortoiseUserValves(SECRET)
    await sealed.put("u1", PluginFamily.TOOL, "p", {"a": "secret"})
    [row] = await UserValvesRow.all()
    assert "secret" not in row.valves
    assert await sealed.find("u1", PluginFamily.TOOL, "p") == {"a": "secret"}
    with pytest.raises(GatewayError, match="user u1 in tool p"):
        await user_valves.find("u1", PluginFamily.TOOL, "p")
