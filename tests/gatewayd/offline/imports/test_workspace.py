"""Functions, tools and models: those that cannot be used, and those that are here."""

import asyncio

from gatewayd.catalog.records import ModelRecord
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.plugins import TortoisePlugins
from tests.fakes.storage.open_webui import FILTER, TOOLS, household, times
from tests.gatewayd.offline.imports.conftest import Importing, numbers, reasons


def test_plugins_keep_their_switches_and_valves(importing: Importing) -> None:
    importing.rows(household())

    async def read() -> None:
        async with importing.open():
            shout = await TortoisePlugins().find(PluginFamily.FUNCTION, "shout")
            adder = await TortoisePlugins().find(PluginFamily.TOOL, "adder")
            assert shout is not None
            assert adder is not None
            assert (shout.kind, shout.valves, shout.is_active, shout.is_global) == (
                PluginKind.FILTER,
                {"mark": "?"},
                True,
                True,
            )
            assert (shout.manifest, shout.description) == ({"title": "Shout"}, "shouts")
            assert (adder.is_active, adder.specs, adder.valves) == (True, [{"name": "add"}], {})
            assert [each.principal_id for each in adder.grants] == ["*"]

    asyncio.run(read())


def test_sources_that_are_no_plugins_are_left_out(importing: Importing) -> None:
    rows = household()
    plugin = {"user_id": "u-ada", "name": "X", "type": "filter", **times()}
    rows["function"] += [
        {**plugin, "id": "cut", "content": "class Filter:\n  def"},
        {**plugin, "id": "tools", "content": TOOLS},
        {**plugin, "id": "not an id", "content": FILTER},
        {**plugin, "id": "nul", "content": f"{FILTER}\0"},
        {**plugin, "id": "SHOUT", "content": FILTER},
        {**plugin, "id": "sealed", "content": FILTER, "valves": "gAAAAABsecret", "meta": '{"cut'},
        {**plugin, "id": "broken", "content": FILTER, "valves": '{"cut'},
        {**plugin, "id": "listed", "content": FILTER, "valves": "[1]", "name": ""},
    ]
    rows["tool"].append({**plugin, "id": "odd", "content": TOOLS, "specs": "7"})
    del rows["tool"][1]["type"]
    report = importing.rows(rows)
    assert set(reasons(report, "function")) == {"cut", "tools", "not an id", "nul"}
    assert numbers(report)["function"] == (4, 1, 4)
    changed = [(each["id"], each["reason"]) for each in report["changed"] if each["kind"] == "function"]
    assert ("sealed", "its valves are encrypted with the WEBUI_SECRET_KEY there: enter them again") in changed
    assert ("broken", "cannot read valves: it is no JSON") in changed
    assert ("listed", "cannot read valves: it is no JSON object") in changed


def test_plugins_and_models_that_are_here_stay(importing: Importing) -> None:
    own = Plugin("shout", PluginFamily.FUNCTION, PluginKind.FILTER, "me", "Mine", "class Filter: pass")

    async def add() -> None:
        async with importing.open():
            await TortoisePlugins().put(own)
            await TortoiseModels().put(ModelRecord("helper", "me", "Mine", "m"))

    asyncio.run(add())
    report = importing.rows(household())
    assert (numbers(report)["function"], numbers(report)["model"]) == ((0, 1, 0), (0, 1, 0))

    async def read() -> None:
        async with importing.open():
            assert await TortoisePlugins().find(PluginFamily.FUNCTION, "shout") == own
            found = await TortoiseModels().find("helper")
            assert found is not None
            assert found.name == "Mine"

    asyncio.run(read())


def test_models_that_cannot_be_used_are_left_out(importing: Importing) -> None:
    rows = household()
    model = {"user_id": "u-ada", "name": "X", "is_active": True, **times()}
    huge = "data:image/png;base64," + "iVBORw0KGgo" + "A" * 262_000
    rows["model"] += [
        {**model, "id": "own-base", "base_model_id": "own-base"},
        {**model, "id": "upper", "base_model_id": "helper"},
        {**model, "id": "x" * 257},
        {**model, "id": "cut", "params": '{"cut'},
        {
            **model,
            "id": "pictured",
            "meta": {"profile_image_url": "javascript:x", "family": "a\n"},
            "params": None,
        },
        {**model, "id": "huge", "meta": {"profile_image_url": huge, "a": "b" * 200}, "is_active": False},
        {**model, "id": "larger", "meta": {"a": "b" * 300_000}},
    ]
    report = importing.rows(rows)
    assert set(reasons(report, "model")) == {"own-base", "upper", "x" * 257, "cut", "larger"}
    assert numbers(report)["model"] == (3, 0, 5)

    async def read() -> None:
        async with importing.open():
            found = {each.id: each for each in await TortoiseModels().list()}
            assert found["pictured"].meta == {}
            assert (found["huge"].meta, found["huge"].is_active) == ({"a": "b" * 200}, False)

    asyncio.run(read())
