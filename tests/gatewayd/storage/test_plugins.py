import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import GatewayError, Kind
from gatewayd.plugins.records import Family, Origin, PluginKind, Problem
from gatewayd.storage.engine.database import Database
from gatewayd.storage.plugins import PluginRows, UserValvesRows
from gatewayd.storage.tables.accounts import (
    GrantRow,
)
from gatewayd.storage.tables.plugins import PluginRow, UserValvesRow
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.chatting import plugin
from tests.fakes.records import user

FULL = plugin(
    "weather",
    Family.TOOL,
    name="Wetter ☀",
    content='"""\ntitle: Wetter\n"""\n\n\nclass Tools:\n    x = "\\x00"\n' + "#" * 100_000,
    description="says\nmore",
    manifest={"title": "Wetter", "version": "1.0"},
    meta={"description": "d", "more": None},
    specs=[{"name": "f", "parameters": {"type": "object"}}],
    valves={"key": "secret", "n": 1.5},
    is_active=True,
    is_global=True,
    origin=Origin.FILE,
    path="/etc/gatewayd/plugins.d/weather.py",
    missing=("open_webui.x.Y", "open_webui.z"),
    problem=Problem(7, "inlet", "filter x: ValueError: no"),
    grants=(Grant("user", "*", "read"), Grant("group", "g1", "write")),
    updated_at=2,
    created_at=1,
)
SECRET = b"a secret key"


@pytest.fixture
def plugins(database: Database) -> PluginRows:
    return PluginRows()


@pytest.fixture
async def user_valves(database: Database) -> UserValvesRows:
    for user_id in ("u1", "u2"):
        await TortoiseUsers().add(user(user_id), None)
    return UserValvesRows()


async def test_a_plugin_comes_back_as_it_was(plugins: PluginRows) -> None:
    await plugins.put(FULL)
    assert await plugins.find(Family.TOOL, "weather") == FULL
    assert list(await plugins.list()) == [FULL]


async def test_what_is_absent_is_none_or_false(plugins: PluginRows) -> None:
    await plugins.put(FULL)
    for family, plugin_id in ((Family.FUNCTION, "weather"), (Family.TOOL, "\x00"), (Family.TOOL, "x" * 256)):
        assert await plugins.find(family, plugin_id) is None
        assert not await plugins.remove(family, plugin_id)
        await plugins.note(family, plugin_id, FULL.problem)
    assert list(await plugins.list(Family.FUNCTION)) == []
    assert list(await plugins.list()) == [FULL]


async def test_an_id_is_one_plugin_in_each_family(plugins: PluginRows) -> None:
    function = plugin("weather", kind=PluginKind.PIPE, grants=(Grant("user", "u9", "read"),))
    other = plugin("a")
    for each in (FULL, function, other, function):
        await plugins.put(each)
    assert list(await plugins.list()) == [other, function, FULL]
    assert list(await plugins.list(Family.TOOL)) == [FULL]
    assert list(await plugins.list(Family.FUNCTION)) == [other, function]
    assert await plugins.remove(Family.FUNCTION, "weather")
    assert not await plugins.remove(Family.FUNCTION, "weather")
    assert list(await plugins.list()) == [other, FULL]


async def test_a_plugin_is_replaced_with_its_grants(plugins: PluginRows) -> None:
    await plugins.put(FULL)
    fresh = replace(plugin("weather", Family.TOOL), grants=(Grant("user", "u2", "read"),), created_at=9)
    await plugins.put(fresh)
    assert list(await plugins.list()) == [fresh]
    assert await GrantRow.all().count() == 1


async def test_a_problem_is_noted_alone(plugins: PluginRows) -> None:
    await plugins.put(FULL)
    problem = Problem(9, "load", "a\x00b \ud800")
    await plugins.note(Family.TOOL, "weather", problem)
    noted = replace(FULL, problem=Problem(9, "load", "a\ufffdb \ufffd"))
    assert await plugins.find(Family.TOOL, "weather") == noted
    await plugins.note(Family.TOOL, "weather", None)
    assert await plugins.find(Family.TOOL, "weather") == replace(FULL, problem=None)


async def test_racing_replacements_leave_one_whole_plugin(plugins: PluginRows) -> None:
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
async def test_what_cannot_be_stored_is_refused_by_name(plugins: PluginRows, field: str, value: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        await plugins.put(replace(FULL, **{field: value}))
    assert (caught.value.kind, caught.value.param) == (Kind.INVALID_REQUEST, field)
    assert list(await plugins.list()) == []


async def test_what_a_plugin_says_of_its_functions_is_mended(plugins: PluginRows) -> None:
    await plugins.put(replace(FULL, specs=[{"description": "a\x00"}], missing=("a\x00",)))
    found = await plugins.find(Family.TOOL, "weather")
    assert found == replace(FULL, specs=[{"description": "a\ufffd"}], missing=("a\ufffd",))


async def test_valves_are_sealed_with_a_secret(database: Database) -> None:
    await PluginRows(SECRET).put(FULL)
    [row] = await PluginRow.all()
    assert "secret" not in row.valves
    assert await PluginRows(SECRET).find(Family.TOOL, "weather") == FULL


async def test_sealing_may_be_switched_on_and_off(database: Database) -> None:
    await PluginRows().put(FULL)
    assert list(await PluginRows(SECRET).list()) == [FULL]
    await PluginRows(SECRET).put(FULL)
    off = PluginRows(SECRET, sealing=False)
    assert list(await off.list()) == [FULL]
    await off.put(FULL)
    assert list(await PluginRows().list()) == [FULL]


@pytest.mark.parametrize(
    ("secret", "reason"), [(b"another", "another secret key"), (None, "there is no secret key")]
)
async def test_what_cannot_be_opened_names_the_plugin(
    database: Database, secret: bytes | None, reason: str
) -> None:
    await PluginRows(SECRET).put(FULL)
    with pytest.raises(GatewayError, match=reason) as caught:
        await PluginRows(secret).find(Family.TOOL, "weather")
    assert caught.value.kind is Kind.NOT_CONFIGURED
    assert caught.value.message.startswith("cannot read the valves of tool weather: ")
    assert await PluginRows(secret).remove(Family.TOOL, "weather")


@pytest.mark.parametrize("secret", [b"another", None])
async def test_one_that_cannot_be_opened_is_locked_and_hides_no_other(
    database: Database, secret: bytes | None
) -> None:
    await PluginRows(SECRET).put(FULL)
    other = plugin("z", valves={"a": 1})
    await PluginRows().put(other)
    locked, free = await PluginRows(secret).list()
    assert free == other
    assert locked.locked is not None
    assert locked.locked.startswith("cannot read the valves of tool weather: ")
    problem = Problem(FULL.updated_at, "load", locked.locked)
    assert locked == replace(FULL, valves={}, problem=problem, locked=locked.locked)


async def test_what_is_sealed_outlives_changes_of_a_locked_plugin(database: Database) -> None:
    await PluginRows(SECRET).put(FULL)
    [locked] = await PluginRows(b"another").list()
    changed = replace(locked, name="changed", is_active=False)
    await PluginRows(b"another").put(changed)
    found = await PluginRows(SECRET).find(Family.TOOL, "weather")
    assert found == replace(FULL, name="changed", is_active=False, problem=locked.problem)
    await PluginRows(b"another").put(replace(changed, id="new"))
    made = await PluginRows().find(Family.TOOL, "new")
    assert made is not None
    assert made.valves == {}


async def test_users_have_values_of_their_own(user_valves: UserValvesRows) -> None:
    assert await user_valves.find("u1", Family.TOOL, "p") is None
    await user_valves.put("u1", Family.TOOL, "p", {"a": 1})
    await user_valves.put("u2", Family.TOOL, "p", {})
    await user_valves.put("u1", Family.FUNCTION, "p", {"b": None})
    await user_valves.put("u1", Family.TOOL, "p", {"a": [2]})
    found = [
        await user_valves.find(user_id, family, "p")
        for user_id in ("u1", "u2")
        for family in (Family.TOOL, Family.FUNCTION)
    ]
    assert found == [{"a": [2]}, {"b": None}, {}, None]
    assert await user_valves.find("\x00", Family.TOOL, "p") is None
    assert await user_valves.find("u1", Family.TOOL, "\x00") is None


async def test_a_removed_plugin_takes_the_values_of_every_user_along(
    user_valves: UserValvesRows, plugins: PluginRows
) -> None:
    await plugins.put(FULL)
    for user_id in ("u1", "u2"):
        await user_valves.put(user_id, Family.TOOL, "weather", {})
    await user_valves.put("u1", Family.FUNCTION, "weather", {})
    assert await plugins.remove(Family.TOOL, "weather")
    assert [row.family for row in await UserValvesRow.all()] == ["function"]
    assert await GrantRow.all().count() == 0


async def test_a_removed_user_takes_the_values_along(user_valves: UserValvesRows) -> None:
    for user_id in ("u1", "u2"):
        await user_valves.put(user_id, Family.TOOL, "p", {})
    await TortoiseUsers().remove("u1")
    assert await UserValvesRow.all().count() == 1
    with pytest.raises(GatewayError, match="does not exist"):
        await user_valves.put("u1", Family.TOOL, "p", {})


async def test_values_of_users_are_sealed_alike(user_valves: UserValvesRows) -> None:
    sealed = UserValvesRows(SECRET)
    await sealed.put("u1", Family.TOOL, "p", {"a": "secret"})
    [row] = await UserValvesRow.all()
    assert "secret" not in row.valves
    assert await sealed.find("u1", Family.TOOL, "p") == {"a": "secret"}
    with pytest.raises(GatewayError, match="user u1 in tool p"):
        await user_valves.find("u1", Family.TOOL, "p")
