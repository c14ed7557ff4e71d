"""gatewayctl ingest."""

import asyncio
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayctl.wire import routes
from tests.fakes.daemons.control_socket import Control, Ctl
from tests.fakes.documents.site import LIMIT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a directory of two documents and some things that are none."""
    top = tmp_path / "docs"
    (top / "sub").mkdir(parents=True)
    (top / "a.md").write_text("all about tar")
    (top / "sub" / "b.txt").write_text("gzip compresses")
    (top / ".hidden").write_text("no")
    (top / "link.txt").symlink_to("/etc/hostname")
    os.mkfifo(top / "pipe")
    return top


def counts(line: str) -> list[int]:
    """Return added, changed, removed, unchanged, failed and pending of a summary line."""
    words = line.removeprefix("dry run: ").split(" in ")[0].split(", ")
    assert [word.split()[1] for word in words] == [
        "added",
        "changed",
        "removed",
        "unchanged",
        "failed",
        "pending",
    ]
    return [int(word.split()[0]) for word in words]


async def held(ctl: Ctl) -> dict[str, str]:
    """Return the ids of the collection's files by path."""
    rows = json.loads((await ctl("collection", "files", "c", "-o", "json")).out)
    return {row["path"]: row["file"]["id"] for row in rows}


async def test_a_directory_goes_in_once(ctl: Ctl, owner: None, folder: Path) -> None:
    first = await ctl("ingest", str(folder), "--collection", "c")
    assert (first.code, first.err) == (0, "")
    assert counts(first.out) == [2, 0, 0, 0, 0, 0]
    ids = await held(ctl)
    assert sorted(ids) == ["a.md", "sub/b.txt"]
    again = await ctl("ingest", str(folder), "--collection", "c")
    assert (again.code, counts(again.out)) == (0, [0, 0, 0, 2, 0, 0])
    assert await held(ctl) == ids
    found = json.loads((await ctl("collection", "query", "c", "tar", "-o", "json")).out)
    assert found["passages"][0]["file"] == "a.md"


async def test_changes_and_removals(ctl: Ctl, owner: None, folder: Path) -> None:
    await ctl("ingest", str(folder), "-c", "c")
    before = await held(ctl)
    (folder / "a.md").write_text("all about cpio")
    (folder / "sub" / "b.txt").unlink()
    (folder / "new.md").write_text("xz")
    kept = await ctl("ingest", str(folder), "-c", "c")
    assert counts(kept.out) == [1, 1, 0, 0, 0, 0]
    after = await held(ctl)
    assert sorted(after) == ["a.md", "new.md", "sub/b.txt"]
    assert after["a.md"] != before["a.md"]
    gone = await ctl("ingest", str(folder), "-c", "c", "--delete")
    assert (gone.code, counts(gone.out)) == (0, [0, 0, 1, 2, 0, 0])
    assert sorted(await held(ctl)) == ["a.md", "new.md"]
    assert (await ctl("file", "show", before["sub/b.txt"])).code == 5
    assert (await ctl("file", "show", before["a.md"])).code == 5


async def test_a_dry_run_changes_nothing(ctl: Ctl, owner: None, folder: Path) -> None:
    fresh = await ctl("ingest", str(folder), "-c", "c", "--dry-run")
    assert fresh.code == 0
    lines = fresh.out.splitlines()
    assert lines[:2] == ["added a.md", "added sub/b.txt"]
    assert lines[2].startswith("dry run: 2 added")
    assert (await ctl("collection", "show", "c")).code == 5
    await ctl("ingest", str(folder), "-c", "c")
    ids = await held(ctl)
    (folder / "a.md").write_text("other")
    (folder / "sub" / "b.txt").unlink()
    told = await ctl("ingest", str(folder), "-c", "c", "--delete", "--dry-run")
    assert told.out.splitlines()[:2] == ["changed a.md", "removed sub/b.txt"]
    assert await held(ctl) == ids


async def test_nothing_is_removed_when_the_directory_is_empty(ctl: Ctl, owner: None, folder: Path) -> None:
    await ctl("ingest", str(folder), "-c", "c")
    (folder / "a.md").unlink()
    (folder / "sub" / "b.txt").unlink()
    refused = await ctl("ingest", str(folder), "-c", "c", "--delete")
    assert refused.code == 3
    assert "the directory holds no files; --force removes" in refused.err
    assert len(await held(ctl)) == 2
    forced = await ctl("ingest", str(folder), "-c", "c", "--delete", "--force")
    assert (forced.code, counts(forced.out)) == (0, [0, 0, 2, 0, 0, 0])
    assert await held(ctl) == {}


async def test_bad_names_fail_and_the_rest_goes_in(ctl: Ctl, owner: None, folder: Path) -> None:
    (folder / "new\nline.txt").write_text("x")
    (folder / os.fsdecode(b"bad\xff.txt")).write_text("y")
    told = await ctl("ingest", str(folder), "-c", "c", "--delete")
    assert (told.code, counts(told.out)) == (3, [2, 0, 0, 0, 2, 0])
    assert sorted(told.err.splitlines()) == [
        r"gatewayctl: bad\xff.txt: cannot take the file: its name holds control characters or is no UTF-8",
        r"gatewayctl: new\nline.txt: cannot take the file: its name holds control characters or is no UTF-8",
    ]
    whole = json.loads((await ctl("ingest", str(folder), "-c", "c", "-o", "json")).out)
    assert [each["path"] for each in whole["failures"]] == ["bad\\xff.txt", "new\nline.txt"]
    assert whole["failed"] == 2


async def test_a_file_that_fails_is_told_each_time_but_not_sent_again(
    ctl: Ctl, owner: None, folder: Path
) -> None:
    (folder / "empty.txt").write_text("")
    first = await ctl("ingest", str(folder), "-c", "c")
    assert (first.code, counts(first.out)) == (3, [2, 0, 0, 0, 1, 0])
    assert first.err.startswith("gatewayctl: empty.txt: ")
    ids = await held(ctl)
    again = await ctl("ingest", str(folder), "-c", "c", "-o", "json")
    report = json.loads(again.out)
    assert (again.code, report["uploaded"], report["failed"]) == (3, 0, 1)
    assert "--retry tries again" in report["failures"][0]["error"]
    assert again.err == ""
    retried = await ctl("ingest", str(folder), "-c", "c", "--retry")
    assert (retried.code, counts(retried.out)) == (3, [0, 0, 0, 2, 1, 0])
    assert "--retry" not in retried.err
    assert await held(ctl) == ids


async def test_pages_without_text_are_told(ctl: Ctl, owner: None, folder: Path) -> None:
    (folder / "scan.pdf").write_text("\f" * 9 + "the only text")
    told = "9 of its 10 pages have no text (scanned?)"
    first = await ctl("ingest", str(folder), "-c", "docs")
    assert (first.code, f"scan.pdf: {told}" in first.err) == (0, True)
    report = json.loads((await ctl("ingest", str(folder), "-c", "more", "-o", "json")).out)
    assert [(each["path"], each["warning"]) for each in report["warnings"]] == [("scan.pdf", told)]
    assert report["failures"] == []


async def test_a_file_that_is_too_large_does_not_keep_the_others(ctl: Ctl, owner: None, folder: Path) -> None:
    with (folder / "big.txt").open("wb") as file:
        file.truncate(40 * LIMIT)
    for uploaded in (2, 0):
        told = await ctl("ingest", str(folder), "-c", "c", "-o", "json")
        report = json.loads(told.out)
        assert (told.code, report["uploaded"], report["failed"]) == (3, uploaded, 1)
        assert f"it is over the limit of {LIMIT} bytes" in report["failures"][0]["error"]


async def test_json_lines_tell_of_each_file(ctl: Ctl, owner: None, folder: Path) -> None:
    told = await ctl("ingest", str(folder), "-c", "c", "-o", "jsonl")
    lines = [json.loads(line) for line in told.out.splitlines()]
    assert [(line["path"], line["outcome"]) for line in lines[:-1]] == [
        ("a.md", "added"),
        ("sub/b.txt", "added"),
    ]
    assert {"added": 2, "uploaded": 2, "skipped": 2, "dry_run": False}.items() <= lines[-1].items()
    assert {line["path"]: line["id"] for line in lines[:-1]} == await held(ctl)
    (folder / "a.md").write_text("other")
    names = (await ctl("ingest", str(folder), "-c", "c", "-o", "name")).out.split()
    assert names == [(await held(ctl))["a.md"]]


async def test_patterns(ctl: Ctl, owner: None, folder: Path) -> None:
    (folder / ".gitignore").write_text("*.txt\n")
    (folder / "sub" / ".gatewayignore").write_text("!b.txt\n")
    (folder / "c.txt").write_text("c")
    assert (await ctl("ingest", str(folder), "-c", "c", "--dry-run")).out.splitlines()[:-1] == [
        "added a.md",
        "added sub/b.txt",
    ]
    every = await ctl("ingest", str(folder), "-c", "c", "--dry-run", "--no-ignore-files", "--hidden")
    assert [line.split()[1] for line in every.out.splitlines()[:-1]] == [
        ".hidden",
        "a.md",
        "c.txt",
        "sub/b.txt",
    ]
    some = await ctl(
        "ingest",
        str(folder),
        "-c",
        "c",
        "--dry-run",
        "--no-ignore-files",
        "--include",
        "*.txt",
        "--ignore",
        "sub/",
    )
    assert some.out.splitlines()[:-1] == ["added c.txt"]
    small = await ctl("ingest", str(folder), "-c", "c", "--dry-run", "--no-ignore-files", "--max-size", "1")
    assert small.out.splitlines()[:-1] == ["added c.txt"]
    assert (await ctl("ingest", str(folder), "-c", "c", "--ignore", "!")).code == 2
    assert (await ctl("ingest", str(folder), "-c", "c", "--max-size", "much")).code == 2


async def test_wrong_calls(ctl: Ctl, owner: None, folder: Path) -> None:
    assert (await ctl("ingest", str(folder))).code == 2
    absent = await ctl("ingest", str(folder / "absent"), "-c", "c")
    assert (absent.code, "no such file or directory" in absent.err) == (2, True)
    assert (await ctl("ingest", str(folder / "a.md"), "-c", "c")).code == 2
    assert (await ctl("ingest", str(folder), "-c", "c", "--force")).code == 2
    assert (await ctl("ingest", str(folder), "-c", "c", "--watch", "--dry-run")).code == 2
    assert (await ctl("ingest", str(folder), "-c", "c", "--origin", "a\nb")).code == 2
    assert (await ctl("ingest", str(folder), "-c", "c", "--user", "nobody@example.org")).code == 5


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


async def test_two_runs_never_overlap(ctl: Ctl, owner: None, folder: Path) -> None:
    with locked(folder):
        refused = await ctl("ingest", str(folder), "-c", "c")
        assert (refused.code, refused.out) == (75, "")
        assert "another run is under way" in refused.err
        as_json = json.loads((await ctl("ingest", str(folder), "-c", "c", "-o", "json")).err)
        assert as_json["error"]["kind"] == "busy"
        # A dry run changes nothing and needs no lock.
        assert (await ctl("ingest", str(folder), "-c", "c", "--dry-run")).code == 0
    assert (await ctl("ingest", str(folder), "-c", "c")).code == 0


async def test_no_daemon_is_a_reason_to_try_later(ctl: Ctl, folder: Path, tmp_path: Path) -> None:
    ctl.socket = tmp_path / "absent.sock"
    told = await ctl("ingest", str(folder), "-c", "c")
    assert (told.code, told.out) == (75, "")
    assert "cannot reach the daemon" in told.err
    as_json = json.loads((await ctl("ingest", str(folder), "-c", "c", "-o", "json")).err)
    assert as_json["error"]["kind"] == "unreachable"


async def test_another_name_for_the_directory(ctl: Ctl, owner: None, folder: Path, tmp_path: Path) -> None:
    await ctl("ingest", str(folder), "-c", "c", "--origin", "handbook")
    moved = folder.rename(tmp_path / "moved")
    again = await ctl("ingest", str(moved), "-c", "c", "--origin", "handbook")
    assert counts(again.out) == [0, 0, 0, 2, 0, 0]
    rows = json.loads((await ctl("collection", "files", "c", "-o", "json")).out)
    assert {row["origin"] for row in rows} == {"handbook"}


async def test_the_collection_may_be_named_by_its_id(ctl: Ctl, owner: None, folder: Path) -> None:
    made = (await ctl("collection", "create", "c", "-o", "json")).out
    told = await ctl("ingest", str(folder), "-c", json.loads(made)["id"])
    assert told.code == 0
    assert (await ctl("collection", "list", "-o", "name")).out == "c\n"
    assert len(await held(ctl)) == 2


async def test_what_is_left_to_the_daemon_is_waited_for_by_the_next_run(
    ctl: Ctl, idle: Control, folder: Path
) -> None:
    ctl.socket = idle.socket
    left = await ctl("ingest", str(folder), "-c", "c", "--no-wait")
    assert (left.code, counts(left.out)) == (0, [0, 0, 0, 0, 0, 2])
    idle.documents.queue.start()
    again = await ctl("ingest", str(folder), "-c", "c", "-o", "json")
    report = json.loads(again.out)
    assert (again.code, report["uploaded"], report["pending"]) == (0, 0, 0)
    assert report["added"] + report["unchanged"] == 2


def start(control: Control, *args: str) -> subprocess.Popen[str]:
    """Run gatewayctl in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "gatewayctl", "--socket", str(control.socket), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def until_held(control: Control, count: int) -> Any:
    """Return the collection's files when it holds so many."""
    while True:
        found = await control.call(control.client.call, routes.LIST_FILES)
        if found.total >= count:
            return found
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_run_and_the_next_goes_on(
    ctl: Ctl, idle: Control, folder: Path, number: signal.Signals
) -> None:
    with start(idle, "ingest", str(folder), "--collection", "c") as process:
        await until_held(idle, 2)
        process.send_signal(number)
        out, err = await asyncio.to_thread(process.communicate)
    assert (process.returncode, out) == (130, "")
    assert re.fullmatch(r"gatewayctl: stopped: \d files were uploaded and stay; .*\n", err)
    idle.documents.queue.start()
    ctl.socket = idle.socket
    report = json.loads((await ctl("ingest", str(folder), "-c", "c", "-o", "json")).out)
    assert (report["uploaded"], report["added"] + report["unchanged"]) == (0, 2)


async def test_watching_takes_what_comes_and_ends_by_a_signal(
    control: Control, owner: None, folder: Path
) -> None:
    command = ["ingest", str(folder), "--collection", "c", "--watch", "--interval", "1", "-o", "jsonl"]
    with start(control, *command) as process:
        await until_held(control, 2)
        (folder / "new.md").write_text("xz")
        await until_held(control, 3)
        process.send_signal(signal.SIGTERM)
        out, err = await asyncio.to_thread(process.communicate)
    assert (process.returncode, err) == (0, "")
    reports = [line for line in map(json.loads, out.splitlines()) if "uploaded" in line]
    assert [report["uploaded"] for report in reports][:1] == [2]
