"""gatewayctl function."""

import json
from pathlib import Path

import pytest

from tests.fakes.daemons.control_plugins import BROKEN, FILTER
from tests.fakes.daemons.control_socket import Control, Ctl

pytestmark = pytest.mark.usefixtures("owner")


@pytest.fixture
def loud(tmp_path: Path) -> str:
    (tmp_path / "loud.py").write_text(FILTER)
    return str(tmp_path / "loud.py")


async def test_install_is_idempotent(ctl: Ctl, loud: str) -> None:
    dry = await ctl("function", "install", loud, "--enable", "--dry-run")
    assert dry.out == "dry run: created filter function loud\n"
    assert (await ctl("function", "install", loud)).out == "created filter function loud\n"
    assert (await ctl("function", "install", loud)).out == "unchanged filter function loud\n"
    assert (await ctl("function", "install", loud, "--enable", "--global")).out == (
        "changed filter function loud\n"
    )
    row = json.loads((await ctl("function", "install", loud, "--no-global", "-o", "json")).out)
    assert (row["outcome"], row["is_active"], row["is_global"]) == ("changed", True, False)
    named = await ctl("function", "install", loud, "--id", "other", "--name", "Other", "-o", "json")
    assert (json.loads(named.out)["id"], json.loads(named.out)["name"]) == ("other", "Other")


async def test_list(ctl: Ctl, loud: str) -> None:
    await ctl("function", "install", loud)
    listed = await ctl("function", "list")
    headings = "ID KIND NAME ACTIVE GLOBAL ORIGIN PROBLEM"
    assert " ".join(listed.out.splitlines()[0].split()) == headings
    assert (await ctl("function", "list", "--kind", "filter", "-o", "name")).out == "loud\n"
    assert (await ctl("function", "list", "--kind", "pipe", "-o", "name")).out == ""
    assert (await ctl("function", "list", "--kind", "tool")).code == 2


async def test_enable_and_disable(ctl: Ctl, loud: str) -> None:
    await ctl("function", "install", loud)
    dry = await ctl("function", "enable", "loud", "--global", "--dry-run")
    assert dry.out == "dry run: changed function loud\n"
    on = json.loads((await ctl("function", "enable", "loud", "--global", "-o", "json")).out)
    assert (on["outcome"], on["is_active"], on["is_global"]) == ("changed", True, True)
    assert (await ctl("function", "enable", "loud")).out == "unchanged function loud\n"
    off = json.loads((await ctl("function", "disable", "loud", "-o", "json")).out)
    assert (off["is_active"], off["is_global"]) == (False, True)
    assert (await ctl("function", "enable", "none")).code == 5


async def test_one_that_is_on_and_does_not_load(ctl: Ctl, control: Control) -> None:
    (control.plugins.directory / "broken.py").write_text(
        BROKEN.replace("class", '"""\nactive: no\n"""\nclass', 1)
    )
    assert (await ctl("function", "reload")).code == 0
    on = await ctl("function", "enable", "broken")
    assert (on.code, on.out) == (1, "changed function broken\n")
    assert "It is on, but does not load: filter broken: ZeroDivisionError" in on.err
    assert "ZeroDivisionError" in (await ctl("function", "list")).out
