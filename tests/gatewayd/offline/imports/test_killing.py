"""Killed before any of its writes and run again, an import ends as one that nobody disturbed."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from gatewayd.storage.transfer import sqlite_files
from tests.fakes.storage.migrated import migrated_copy
from tests.fakes.storage.open_webui import household, make_file, make_uploads
from tests.gatewayd.offline.imports import killed_import

MADE_HERE = {
    "api_keys": {"id"},
    "chat_message_items": {"id", "message_id"},
    "chat_messages": {"number"},
    "chat_tags": {"id"},
    "files": {"blob"},
    "group_members": {"created_at"},
    "stored_values": {"value", "updated_at"},
    "tool_servers": {"created_at", "updated_at"},
}
"""Columns with numbers, ids, keys of bytes and times that differ between two imports."""


def contents(state: Path) -> dict[str, Any]:
    with closing(sqlite_files.connect(state / "gatewayd.db")) as connection:
        found: dict[str, Any] = {}
        for table, columns in sqlite_files.tables(connection).items():
            kept = [each for each in columns if each not in MADE_HERE.get(table, set())]
            found[table] = sorted(map(repr, sqlite_files.rows_of(connection, table, kept)))
        return found


def run(folder: Path, name: str, calls: int) -> int:
    arguments = [str(folder / name), str(folder / "webui.db"), str(folder / "uploads"), str(calls)]
    done = subprocess.run([sys.executable, "-m", killed_import.__name__, *arguments], check=False)
    return done.returncode


def make(folder: Path, name: str) -> Path:
    state = folder / name
    state.mkdir()
    migrated_copy(state)
    (state / "secret-key").write_text("the-signing-secret-of-this-gateway\n")
    return state


def test_an_import_that_was_killed_goes_on(tmp_path: Path) -> None:
    make_file(tmp_path / "webui.db", household())
    make_uploads(tmp_path / "uploads")
    undisturbed = make(tmp_path, "undisturbed")
    assert run(tmp_path, "undisturbed", -1) == 0
    expected = contents(undisturbed)
    assert expected["chats"]
    assert expected["chat_message_items"]
    state = make(tmp_path, "killed")
    kills, calls = 0, 0
    while run(tmp_path, "killed", calls) != 0:
        kills += 1
        # Each run goes further than the one before, and dies at a later write of the same record.
        calls += 1
        assert kills < 50
    assert kills > 5
    assert contents(state) == expected
    stored = [path.name for path in (state / "files").rglob("*") if path.is_file()]
    with closing(sqlite_files.connect(state / "gatewayd.db")) as connection:
        assert [(key,) for key in stored] == list(connection.execute("SELECT blob FROM files"))
    assert sqlite_files.find_damage(state / "gatewayd.db") == []
    assert not any("UNFINISHED" in row for row in expected["chat_tags"])
