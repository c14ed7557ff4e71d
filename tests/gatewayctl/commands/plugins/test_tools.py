"""gatewayctl tool."""

import json
from pathlib import Path

import pytest

from tests.fakes.daemons.control_plugins import TOOL
from tests.fakes.daemons.control_socket import Control, Ctl

pytestmark = pytest.mark.usefixtures("owner")

ANN = "ann@example.org"


@pytest.fixture
async def weather(ctl: Ctl, control: Control, tmp_path: Path) -> str:
    await control.accounts.add_user("ann")
    path = tmp_path / "weather.py"
    path.write_text(TOOL)
    assert (await ctl("tool", "install", str(path), "--user", ANN)).out == "created tool weather\n"
    return str(path)


async def test_install_and_list(ctl: Ctl, weather: str) -> None:
    assert (await ctl("tool", "install", weather)).out == "unchanged tool weather\n"
    listed = await ctl("tool", "list")
    assert " ".join(listed.out.splitlines()[0].split()) == "ID NAME METHODS USER ACTIVE ORIGIN PROBLEM"
    assert listed.out.splitlines()[1].split() == [
        "weather",
        "Weather",
        "forecast",
        ANN,
        "yes",
        "database",
        "-",
    ]
    assert (await ctl("tool", "install", weather, "--user", "zoe@example.org")).code == 5
    checked = json.loads((await ctl("tool", "check", weather, "-o", "json")).out)
    assert [one["name"] for one in checked["methods"][0]["parameters"]] == ["town", "days"]


async def test_switches(ctl: Ctl, weather: str) -> None:
    assert (await ctl("tool", "enable", "weather")).out == "unchanged tool weather\n"
    assert (await ctl("tool", "disable", "weather")).out == "changed tool weather\n"
    assert (await ctl("tool", "disable", "none")).code == 5


async def test_access(ctl: Ctl, weather: str) -> None:
    assert (await ctl("tool", "grant", "weather")).code == 2
    assert (await ctl("tool", "grant", "weather", "--user", ANN, "--permission", "write")).code == 0
    dry = await ctl("tool", "grant", "weather", "--everyone", "--dry-run", "-o", "json")
    assert [one["principal"] for one in json.loads(dry.out)["grants"]] == [ANN, "*"]
    assert f"ACCESS       user {ANN} (write)\n" in (await ctl("tool", "show", "weather")).out
    done = await ctl("tool", "revoke-access", "weather", "--user", ANN, "--permission", "write")
    assert done.out == "changed tool weather\n"
    again = await ctl("tool", "revoke-access", "weather", "--user", ANN)
    assert again.out == "unchanged tool weather\n"
    assert (await ctl("tool", "grant", "none", "--everyone")).code == 5
