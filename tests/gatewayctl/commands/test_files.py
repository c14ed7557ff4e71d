"""gatewayctl file."""

import json
import os
from pathlib import Path

import pytest

from tests.fakes.daemons.control_socket import Control, Ctl, Terminal


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "note.md"
    path.write_text("all about tar")
    return path


async def add(ctl: Ctl, *paths: Path) -> list[str]:
    """Upload files and return their ids once they are processed."""
    made = await ctl("file", "add", *map(str, paths), "--wait", "-o", "name")
    return made.out.split()


async def test_add_show_list(ctl: Ctl, owner: None, note: Path) -> None:
    made = await ctl("file", "add", str(note))
    assert (made.code, made.err) == (0, "")
    assert made.out.startswith("created file note.md ")
    [waited] = json.loads((await ctl("file", "add", str(note), "--wait", "-o", "json")).out)
    assert (waited["name"], waited["status"], waited["size"]) == ("note.md", "completed", 13)
    shown = await ctl("file", "show", waited["id"], "-o", "name")
    assert shown.out == f"{waited['id']}\n"
    assert "completed" in (await ctl("file", "show", waited["id"])).out
    listed = (await ctl("file", "list", "--query", "*.md", "-o", "name")).out.split()
    assert waited["id"] in listed
    assert len(listed) == 2
    assert (await ctl("file", "list", "--query", "*.pdf", "-o", "json")).out == "[]\n"
    few = await ctl("file", "list", "--limit", "1")
    assert few.err == "1 of 2\n"
    assert (await ctl("file", "show", "none")).code == 5


async def test_pages_without_text_are_told(ctl: Ctl, owner: None, tmp_path: Path) -> None:
    scan = tmp_path / "scan.pdf"
    scan.write_text("\f" * 9 + "the only text")
    told = "9 of its 10 pages have no text (scanned?)"
    assert told in (await ctl("file", "add", str(scan), "--wait")).out
    assert told in (await ctl("file", "list")).out
    [listed] = json.loads((await ctl("file", "list", "-o", "json")).out)
    assert (listed["status"], listed["pages"], listed["blank_pages"]) == ("completed", 10, 9)
    await ctl("collection", "create", "c")
    await ctl("collection", "add", "c", listed["id"])
    assert told in (await ctl("collection", "files", "c")).out


async def test_add_into_a_collection_under_another_name(ctl: Ctl, owner: None, note: Path) -> None:
    await ctl("collection", "create", "c")
    added = await ctl("file", "add", str(note), "-c", "c", "--name", "about.md", "--wait")
    assert added.code == 0
    assert "about.md" in (await ctl("collection", "files", "c")).out
    assert (await ctl("file", "add", str(note), "-c", "none")).code == 5
    assert (await ctl("file", "add", str(note), str(note), "--name", "x")).code == 2
    assert (await ctl("file", "add", str(note), "--name", "a\nb")).code == 1


async def test_what_is_no_file_is_refused(ctl: Ctl, owner: None, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    folder = await ctl("file", "add", str(tmp_path))
    assert (folder.code, "gatewayctl ingest takes directories" in folder.err) == (2, True)
    assert (await ctl("file", "add", str(tmp_path / "pipe"))).code == 2
    assert (await ctl("file", "add", str(tmp_path / "absent"))).code == 2
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("x")
    assert (await ctl("file", "add", str(tmp_path / os.fsdecode(b"\xff.txt")))).code == 1


async def test_one_that_fails_does_not_keep_the_others(ctl: Ctl, owner: None, note: Path) -> None:
    absent, other = note.with_name("absent"), note.with_name("other.md")
    other.write_text("x")
    told = await ctl("file", "add", str(absent), str(note), str(other))
    assert told.code == 1
    assert len(told.out.splitlines()) == 2
    assert told.err.startswith(f"gatewayctl: {absent}: cannot upload")
    empty = note.with_name("empty.txt")
    empty.write_text("")
    failed = await ctl("file", "add", str(note), str(empty), "--wait", "-o", "json")
    assert failed.code == 1
    assert [row["status"] for row in json.loads(failed.out)] == ["completed", "failed"]
    as_json = await ctl("file", "add", str(absent), str(note), "-o", "json")
    assert json.loads(as_json.err)["error"]["kind"] == "usage"
    assert len(json.loads(as_json.out)) == 1


async def test_text(ctl: Ctl, owner: None, note: Path) -> None:
    [file_id] = await add(ctl, note)
    assert (await ctl("file", "text", file_id)).out == "all about tar\n"
    told = json.loads((await ctl("file", "text", file_id, "-o", "json")).out)
    assert told == {"id": file_id, "text": "all about tar"}
    assert (await ctl("file", "text", "none")).code == 5


async def test_delete(ctl: Ctl, owner: None, note: Path) -> None:
    first, second = await add(ctl, note), await add(ctl, note)
    ids = [*first, *second]
    assert (await ctl("file", "delete", *ids)).code == 2
    assert (await ctl("file", "delete", *ids, stdin=Terminal("n\n"))).code == 1
    dry = await ctl("file", "delete", *ids, "--dry-run")
    assert dry.out.splitlines() == [f"dry run: removed file note.md {each}" for each in ids]
    gone = await ctl("file", "delete", *ids, stdin=Terminal("y\n"))
    assert (gone.code, len(gone.out.splitlines())) == (0, 2)
    assert "Delete 2 files?" in gone.err
    assert (await ctl("file", "delete", ids[0], "--yes")).code == 5


async def test_retry(ctl: Ctl, owner: None, note: Path) -> None:
    empty = note.with_name("empty.txt")
    empty.write_text("")
    [_, failed] = await add(ctl, note, empty)
    assert (await ctl("file", "retry")).code == 2
    assert (await ctl("file", "retry", failed, "--failed")).code == 2
    dry = await ctl("file", "retry", "--failed", "--dry-run", "-o", "name")
    assert dry.out == f"{failed}\n"
    again = await ctl("file", "retry", "--failed", "--wait", "-o", "json")
    assert again.code == 1
    assert [row["id"] for row in json.loads(again.out)] == [failed]
    assert (await ctl("file", "retry", failed)).out == f"changed file empty.txt {failed}\n"
    assert (await ctl("file", "retry", "none")).code == 5


async def test_a_file_that_is_deleted_is_not_waited_for(ctl: Ctl, idle: Control, note: Path) -> None:
    ctl.socket = idle.socket
    file_id = (await ctl("file", "add", str(note), "-o", "name")).out.strip()
    assert (await ctl("file", "list", "--status", "pending", "-o", "name")).out == f"{file_id}\n"
    await ctl("file", "delete", file_id, "--yes")
    gone = await ctl("collection", "create", "c")
    assert gone.code == 0
    told = await ctl("collection", "add", "c", file_id, "--wait")
    assert told.code == 1


async def test_the_queue_is_counted(ctl: Ctl) -> None:
    shown = json.loads((await ctl("file", "queue", "-o", "json")).out)
    assert shown == {"waiting": 0, "working": 0, "failed": 0}
    assert (await ctl("file", "queue", "-o", "name")).out == "0\n"


async def test_what_a_removed_user_left(ctl: Ctl, owner: None, note: Path) -> None:
    assert (await ctl("user", "create", "--email", "ann@example.org", "--generate")).code == 0
    [kept] = (await ctl("file", "add", str(note), "-o", "name")).out.split()
    [left] = (await ctl("file", "add", str(note), "--user", "ann@example.org", "-o", "name")).out.split()
    assert (await ctl("user", "remove", "ann@example.org", "--yes")).code == 0
    assert (await ctl("file", "list", "--orphaned", "-o", "name")).out.split() == [left]
    assert (await ctl("file", "list", "--orphaned", "--user", "boss@example.org")).code == 2
    given = await ctl("file", "give", left, kept, "--to", "boss@example.org")
    assert given.out == f"changed file note.md {left}\nunchanged file note.md {kept}\n"
    assert (await ctl("file", "list", "--orphaned", "-o", "name")).out == ""
    assert (await ctl("file", "give", left, "--to", "zoe@example.org")).code == 5
    assert (await ctl("file", "give", left)).code == 2
