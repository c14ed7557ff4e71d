"""A page of the SQLite database is overwritten with zeroes."""

import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.storage.migrated import NAME
from tests.faults.acknowledged import Chats, Uploads
from tests.faults.lines import Line, line_of

pytestmark = [pytest.mark.faults, pytest.mark.short]

HEALTH = ("/health", "/health/db", "/readyz")
AUTHS = "/api/v1/auths"


@dataclass
class Page:
    """A page of a file, which can be taken away and put back."""

    path: Path
    start: int
    content: bytes

    def write(self, content: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(self.start)
            file.write(content)


def root_pages(path: Path, table: str) -> list[Page]:
    """Return the first pages of a table and of its indexes."""
    connection = sqlite3.connect(path)
    try:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE tbl_name = ?", (table,))
        starts = [(page - 1) * size for (page,) in found if page]
    finally:
        connection.close()
    content = path.read_bytes()
    return [Page(path, start, content[start : start + size]) for start in starts]


@dataclass
class Damaged:
    """A daemon on a database without the pages of its chats, and what it keeps for an administrator."""

    daemon: Daemon
    credential: str
    pages: list[Page]
    chats: Chats
    uploads: Uploads

    @property
    def line(self) -> Line:
        return line_of(self.daemon, self.credential)


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Damaged]:
    with running_daemon(tmp_path) as daemon:
        account = {"email": "ada@example.org", "password": "correct-horse", "name": "Ada"}
        status, signed = daemon.call("POST", f"{AUTHS}/signup", account)
        assert status == 200
        chats = Chats()
        chats.make(line_of(daemon, signed["token"]), 0)
    pages = root_pages(tmp_path / NAME, "chats")
    for page in pages:
        page.write(bytes(len(page.content)))
    with running_daemon(tmp_path) as daemon:
        yield Damaged(daemon, signed["token"], pages, chats, Uploads())


def checked(daemon: Daemon) -> tuple[int, dict[str, Any]]:
    ended = daemon.run_ctl("database", "check", "-o", "json")
    return ended.returncode, json.loads(ended.stdout)


def test_damage_is_told_until_a_check_finds_none(damaged: Damaged) -> None:
    daemon, headers = damaged.daemon, {"Authorization": f"Bearer {damaged.credential}"}
    for path in HEALTH:
        assert daemon.call("GET", path)[0] == 200
    for number in range(3):
        named = {**headers, "X-Request-Id": f"request-{number}"}
        status, body = daemon.call("GET", "/api/v1/chats/", None, named)
        assert (status, "damaged" in body["detail"]) == (500, True)
    # What does not need the pages is stored.
    damaged.uploads.make(damaged.line, 0)
    log = daemon.wait_for("request_id=request-2")
    lines = [line for line in log.splitlines() if "request_id=request-" in line]
    assert [line.partition("request_id=request-")[2][0] for line in lines] == ["0", "1", "2"]
    assert log.count("DatabaseError: database disk image is malformed") <= 2

    code, found = checked(daemon)
    assert (code, found["status"], bool(found["problems"])) == (1, "damaged", True)
    for path in HEALTH:
        wait_status(daemon, path, 503)
        assert "damaged" in daemon.call("GET", path)[1]["detail"]
    assert json.loads(daemon.run_ctl("health", "-o", "json").stdout)["status"] == "fail"
    assert daemon.call("GET", "/livez")[0] == 200

    for page in damaged.pages:
        page.write(page.content)
    assert checked(daemon) == (0, {"status": "sound", "problems": []})
    for path in HEALTH:
        wait_status(daemon, path, 200)
    assert daemon.stop() == 0
    with running_daemon(daemon.state) as damaged.daemon:
        for kept in (damaged.chats, damaged.uploads):
            assert (kept.count, kept.missing(damaged.line)) == (1, [])


def wait_status(daemon: Daemon, path: str, status: int) -> None:
    """Wait until what was found last is asked for anew."""
    deadline = time.monotonic() + 30
    while daemon.call("GET", path)[0] != status:
        assert time.monotonic() < deadline
        time.sleep(0.1)
