"""What gatewayctl function and gatewayctl tool have in common."""

import json
from pathlib import Path

import pytest

from gatewayctl.commands.plugins.common import id_of, read_source, sources
from gatewayctl.failures import CommandError
from tests.fakes.daemons.control_plugins import BROKEN, FILTER, TOOL
from tests.fakes.daemons.control_socket import Control, Ctl

pytestmark = pytest.mark.usefixtures("owner")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "sources"
    made.mkdir()
    (made / "loud.py").write_text(FILTER)
    return made


async def test_a_directory_installs_all_that_load(ctl: Ctl, folder: Path) -> None:
    (folder / "a-broken.py").write_text(BROKEN)
    (folder / "weather.py").write_text(TOOL)
    (folder / "_helper.py").write_text("x = 1")
    (folder / "notes.txt").write_text("x = 1")
    done = await ctl("function", "install", str(folder))
    assert (done.code, done.out) == (1, "created filter function loud\n")
    first, second = done.err.splitlines()
    assert first.startswith(
        f"gatewayctl: {folder}/a-broken.py: cannot load filter a_broken: ZeroDivisionError"
    )
    assert "weather.py: cannot load the source: it has a class Tools" in second
    again = await ctl("function", "install", str(folder), "-o", "json")
    assert (again.code, [row["outcome"] for row in json.loads(again.out)]) == (1, ["unchanged"])
    assert [json.loads(line)["error"]["kind"] for line in again.err.splitlines()] == ["invalid_request"] * 2


async def test_several_files(ctl: Ctl, folder: Path) -> None:
    other = folder / "other.py"
    other.write_text(FILTER)
    done = await ctl("function", "install", str(folder / "loud.py"), str(other), "-o", "json")
    assert [row["id"] for row in json.loads(done.out)] == ["loud", "other"]
    named = await ctl("function", "install", str(folder), "--id", "x")
    assert (named.code, "several files" in named.err) == (2, True)
    absent = await ctl("function", "install", str(folder / "loud.py"), str(folder / "none.py"))
    assert (absent.code, absent.out) == (1, "unchanged filter function loud\n")
    assert "no such file" in absent.err


async def test_one_file_that_fails(ctl: Ctl, folder: Path) -> None:
    (folder / "broken.py").write_text(BROKEN)
    failed = await ctl("function", "install", str(folder / "broken.py"))
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("gatewayctl: cannot load filter broken: ZeroDivisionError: division by zero")
    assert (await ctl("function", "install", str(folder / "none.py"))).code == 2
    (folder / "empty").mkdir()
    empty = await ctl("function", "install", str(folder / "empty"))
    assert (empty.code, "there is no *.py file" in empty.err) == (2, True)


async def test_show_and_its_source(ctl: Ctl, folder: Path) -> None:
    await ctl("function", "install", str(folder / "loud.py"))
    shown = await ctl("function", "show", "loud")
    assert "REQUIRES     pydantic" in shown.out
    assert "ISOLATION    thread" in shown.out
    assert (await ctl("function", "show", "loud", "--source")).out == FILTER
    as_json = json.loads((await ctl("function", "show", "loud", "--source", "-o", "json")).out)
    assert as_json["content"] == FILTER
    assert json.loads((await ctl("function", "show", "loud", "-o", "json")).out)["content"] is None
    assert (await ctl("function", "show", "none")).code == 5


async def test_check(ctl: Ctl, folder: Path) -> None:
    told = await ctl("function", "check", str(folder / "loud.py"))
    lines = {line.split("  ")[0]: line for line in told.out.splitlines()}
    assert told.code == 0
    assert lines["METHODS"].endswith("inlet(body, __user__=, __event_emitter__=)")
    assert lines["VALVES"].endswith("priority, words, api_key, mark")
    assert lines["EVENTS"].endswith("status")
    (folder / "broken.py").write_text(BROKEN)
    both = await ctl("function", "check", str(folder), "-o", "json")
    assert (both.code, [row["loads"] for row in json.loads(both.out)]) == (1, [False, True])
    bad = await ctl("function", "check", str(folder / "broken.py"), "-o", "name")
    assert (bad.code, bad.out) == (1, "fails\n")
    assert (await ctl("function", "check", str(folder), "--id", "x")).code == 2
    assert (await ctl("function", "list", "-o", "name")).out == ""


async def test_remove(ctl: Ctl, folder: Path) -> None:
    await ctl("function", "install", str(folder / "loud.py"))
    assert (await ctl("function", "remove", "loud")).code == 2
    dry = await ctl("function", "remove", "loud", "--dry-run")
    assert dry.out == "dry run: removed function loud\n"
    assert (await ctl("function", "remove", "loud", "--yes")).out == "removed function loud\n"
    assert (await ctl("function", "remove", "loud", "--yes")).code == 5


async def test_reload(ctl: Ctl, control: Control) -> None:
    (control.plugins.directory / "loud.py").write_text(FILTER)
    done = await ctl("tool", "reload")
    assert (done.code, done.out.splitlines()[0]) == (0, "LOADED     filter loud")
    (control.plugins.directory / "bad.py").write_text("x = 1")
    bad = await ctl("function", "reload", "-o", "name")
    assert (bad.code, bad.out) == (1, "failed\n")
    refused = await ctl("function", "remove", "loud", "--yes")
    assert (refused.code, "it comes from the file" in refused.err) == (6, True)


def test_ids_of_files() -> None:
    assert id_of(Path("x/Rate-Limit v2.py")) == "rate_limit_v2"


def test_sources_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    assert read_source(path) == "x = 1\r\n"
    path.write_bytes(b"\xff")
    with pytest.raises(CommandError, match="not UTF-8"):
        read_source(path)
    assert list(sources([path, tmp_path])) == [path, path]
