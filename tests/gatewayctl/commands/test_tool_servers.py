"""gatewayctl tool-server."""

import json
from pathlib import Path

import pytest

from tests.fakes.daemons.control_plugins import SPEC
from tests.fakes.daemons.control_socket import Control, Ctl

URL = ("--url", "http://127.0.0.1:9")


@pytest.fixture
async def maps(ctl: Ctl, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hush\n")
    (tmp_path / "header").write_text("quiet\n")
    more = ["--key-file", str(tmp_path / "key"), "--header", f"X-Token=@{tmp_path}/header", "--spec", "-"]
    rest = ["--header", "X-Chat={{CHAT_ID}}", "--function", "find", "--timeout", "5", "--name", "Maps"]
    done = await ctl("tool-server", "add", "maps", *URL, *more, *rest, stdin=json.dumps(SPEC))
    assert done.out == "created tool server maps\n"


async def test_list_and_show(ctl: Ctl, maps: None, control: Control) -> None:
    listed = await ctl("tool-server", "list")
    assert listed.out.splitlines()[0].split() == ["ID", "NAME", "TYPE", "URL", "ACTIVE", "ORIGIN", "ACCESS"]
    assert listed.err == "cannot use tool_server_connections[1]\n"
    shown = await ctl("tool-server", "show", "maps")
    lines = dict(line.split(None, 1) for line in shown.out.splitlines())
    assert (lines["KEY"], lines["HEADERS"], lines["TIMEOUT"], lines["PATH"]) == (
        "yes",
        "X-Token, X-Chat",
        "5 s",
        "kept here",
    )
    assert "hush" not in shown.out
    kept = control.plugins.servers.rows["maps"]
    assert (kept.key, kept.headers) == ("hush", {"X-Token": "quiet", "X-Chat": "{{CHAT_ID}}"})
    assert (await ctl("tool-server", "show", "none")).code == 5


async def test_add_refuses(ctl: Ctl) -> None:
    dry = await ctl("tool-server", "add", "maps", *URL, "--dry-run")
    assert dry.out == "dry run: created tool server maps\n"
    assert (await ctl("tool-server", "add", "maps")).code == 2
    assert (await ctl("tool-server", "add", "maps", "--url", "nonsense")).code == 1
    assert (await ctl("tool-server", "add", "maps", *URL, "--type", "soap")).code == 2
    assert (await ctl("tool-server", "add", "maps", *URL, "--spec", "-", stdin="[]")).code == 2
    assert (await ctl("tool-server", "add", "maps", *URL, "--timeout", "0")).code == 2
    assert (await ctl("tool-server", "add", "fixed", *URL)).code == 6


async def test_check(ctl: Ctl, maps: None) -> None:
    told = await ctl("tool-server", "check", "maps")
    assert told.out.splitlines()[1].split() == ["find", "town", "Find", "a", "place."]
    assert told.err == "Maps 3 offers 1 tool\n"
    assert json.loads((await ctl("tool-server", "check", "maps", "-o", "json")).out)["version"] == "3"
    assert (await ctl("tool-server", "check", "maps", "-o", "name")).out == "find\n"
    assert (await ctl("tool-server", "check", "fixed")).code == 1


async def test_access_and_remove(ctl: Ctl, maps: None) -> None:
    assert (await ctl("tool-server", "grant", "maps")).code == 2
    assert (await ctl("tool-server", "grant", "maps", "--everyone")).out == "changed tool server maps\n"
    assert (await ctl("tool-server", "list")).out.splitlines()[2].split()[-2:] == ["database", "*"]
    gone = await ctl("tool-server", "revoke-access", "maps", "--everyone", "-o", "json")
    assert json.loads(gone.out)["grants"] == []
    assert (await ctl("tool-server", "remove", "maps")).code == 2
    assert (await ctl("tool-server", "remove", "maps", "--yes")).out == "removed tool server maps\n"
    assert (await ctl("tool-server", "remove", "maps", "--yes")).code == 5
    assert (await ctl("tool-server", "remove", "fixed", "--yes")).code == 6
