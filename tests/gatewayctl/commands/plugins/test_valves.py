"""gatewayctl function valves."""

import json
from pathlib import Path

import pytest

from tests.fakes.daemons.control_plugins import BROKEN, FILTER, TOOL
from tests.fakes.daemons.control_socket import Control, Ctl

VALVES = ("function", "valves")


@pytest.fixture(autouse=True)
async def loud(ctl: Ctl, owner: None, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(FILTER)
    assert (await ctl("function", "install", str(tmp_path / "loud.py"))).code == 0


async def test_set_and_get(ctl: Ctl, tmp_path: Path) -> None:
    dry = await ctl(*VALVES, "set", "loud", "priority=3", "--dry-run")
    assert dry.out == "dry run: changed priority=3\n"
    (tmp_path / "key").write_text("hush\n")
    done = await ctl(*VALVES, "set", "loud", "priority=3", 'words=["x", "y"]', f"api_key=@{tmp_path}/key")
    assert done.out == 'changed priority=3\nchanged words=["x", "y"]\nchanged api_key=********\n'
    shown = await ctl(*VALVES, "get", "loud")
    rows = [line.split() for line in shown.out.splitlines()]
    assert rows[0] == ["VALVE", "VALUE", "STATE", "TYPE", "DESCRIPTION"]
    assert rows[1] == ["priority", "3", "set", "integer", "-"]
    assert rows[3][:3] == ["api_key", "********", "set"]
    assert rows[4] == ["mark", "!", "default", "string", "What", "is", "put", "behind", "it."]
    revealed = json.loads((await ctl(*VALVES, "get", "loud", "--reveal", "-o", "json")).out)
    assert {row["name"]: row["value"] for row in revealed}["api_key"] == "hush"
    names = await ctl(*VALVES, "set", "loud", "mark=x", "-o", "name")
    assert names.out == "mark\n"


async def test_from_standard_input_and_json(ctl: Ctl, tmp_path: Path) -> None:
    done = await ctl(*VALVES, "set", "loud", "api_key=@-", stdin="hush\n")
    assert done.out == "changed api_key=********\n"
    both = await ctl(
        *VALVES, "set", "loud", "priority=2", "--json", "-", stdin='{"mark": "=", "api_key": null}'
    )
    assert both.out == "changed priority=2\nchanged api_key=\nchanged mark==\n"
    for text in ("[]", "{", "", '{"priority": NaN}'):
        assert (await ctl(*VALVES, "set", "loud", "--json", "-", stdin=text)).code == 2


async def test_unset(ctl: Ctl) -> None:
    await ctl(*VALVES, "set", "loud", "mark=x")
    assert (await ctl(*VALVES, "unset", "loud", "mark")).out == "changed mark=!\n"
    assert (await ctl(*VALVES, "unset", "loud", "mark")).out == "unchanged mark=!\n"
    assert (await ctl(*VALVES, "unset", "loud", "marks")).code == 1


async def test_what_is_refused(ctl: Ctl) -> None:
    inline = await ctl(*VALVES, "set", "loud", "api_key=hush")
    assert (inline.code, inline.out) == (2, "")
    assert inline.err == "gatewayctl: cannot take the secret api_key as an argument: give api_key=@FILE\n"
    assert (await ctl(*VALVES, "set", "loud")).code == 2
    assert (await ctl(*VALVES, "set", "loud", "mark")).code == 2
    assert (await ctl(*VALVES, "set", "loud", "mark=@/nonexistent")).code == 2
    assert (await ctl(*VALVES, "set", "loud", "priority=many")).code == 1
    assert (await ctl(*VALVES, "set", "none", "mark=x")).code == 5
    assert (await ctl(*VALVES, "get", "none")).code == 5


async def test_schema(ctl: Ctl) -> None:
    told = await ctl(*VALVES, "get", "loud", "--schema")
    assert told.out.startswith('{\n  "properties": {\n')
    as_json = json.loads((await ctl(*VALVES, "get", "loud", "--schema", "-o", "jsonl")).out)
    assert json.loads(told.out) == as_json
    assert as_json["properties"]["priority"]["type"] == "integer"


async def test_one_that_does_not_load(ctl: Ctl, control: Control) -> None:
    (control.plugins.directory / "broken.py").write_text(BROKEN)
    await ctl("function", "reload")
    told = await ctl(*VALVES, "get", "broken")
    assert told.code == 0
    assert told.err.startswith("Only what was set can be shown: filter broken: ZeroDivisionError")
    assert (await ctl(*VALVES, "set", "broken", "a=b")).code == 1


async def test_tools_have_valves_too(ctl: Ctl, tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(TOOL)
    await ctl("tool", "install", str(tmp_path / "weather.py"))
    assert (await ctl("tool", "valves", "get", "weather", "-o", "name")).out == "unit\n"
    assert (await ctl("tool", "valves", "set", "weather", "unit=F")).out == "changed unit=F\n"
    assert (await ctl("tool", "valves", "unset", "weather", "unit")).out == "changed unit=C\n"
