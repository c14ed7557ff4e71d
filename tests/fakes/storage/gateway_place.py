"""A gateway on disk, without a daemon: state directory, database, settings and secrets."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from gatewayd.backup.places import SIGNING_FILE, GatewayPlace
from gatewayd.storage.engine.location import sqlite
from tests.fakes.storage.migrated import NAME, migrated_copy

SECRET = "the-signing-secret-of-this-gateway"
KEY = "sk-key-of-a-provider"
PASSPHRASE = "correct horse battery"


def make_place(folder: Path, *, is_migrated: bool = True, **changes: Any) -> GatewayPlace:
    """Make the directories of a gateway below a folder and return its places."""
    data_dir = folder / "state"
    data_dir.mkdir(parents=True)
    plugins = folder / "plugins.d"
    plugins.mkdir()
    settings = folder / "gatewayd.toml"
    settings.write_text(f'webui_name = "Ours"\nopenai_api_keys = ["{KEY}"]\n')
    place = GatewayPlace(
        data_dir=data_dir,
        backup_dir=data_dir / "backups",
        location=sqlite(data_dir / NAME),
        plugins_dir=plugins,
        settings_files={settings.name: settings},
        secrets={"openai_api_keys": KEY},
        secret_values=frozenset({KEY}),
        secret_files=frozenset({data_dir / SIGNING_FILE}),
    )
    if is_migrated:
        migrated_copy(data_dir)
        (data_dir / SIGNING_FILE).write_text(f"{SECRET}\n")
        (plugins / "loud.py").write_text("class Filter: pass\n")
    return replace(place, **changes)


def add_user(path: Path, user_id: str) -> None:
    """Insert a user, committed when this returns."""
    run(path, insert_of(path, "users"), row_of(path, "users", id=user_id, name=user_id, name_key=user_id))


def add_file(place: GatewayPlace, file_id: str, data: bytes = b"bytes", *, blob: str = "") -> Path:
    """Store a file as the daemon does, its bytes first; return the path of these."""
    key = blob or file_id
    path = place.data_dir / "files" / key[-2:] / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    database = place.location.path
    assert database is not None
    run(database, insert_of(database, "files"), row_of(database, "files", id=file_id, blob=blob))
    return path


def insert_of(path: Path, table: str) -> str:
    """Return the statement that inserts one row with every column."""
    names = [row[1] for row in columns(path, table)]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def row_of(path: Path, table: str, **given: Any) -> list[Any]:
    """Return a row: what is given, else a value that the column takes."""
    row = []
    for _, name, kind, not_null, _, _ in columns(path, table):
        plain = (
            0
            if "INT" in kind
            else b""
            if "BLOB" in kind
            else "{}"
            if kind == "TEXT"
            else f"{name}-{given.get('id', 1)}"
        )
        row.append(given.get(name, plain if not_null else None))
    return row


def columns(path: Path, table: str) -> list[Any]:
    return rows(path, f"PRAGMA table_info({table})")


def rows(path: Path, query: str) -> list[Any]:
    """Return the rows of a query."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def run(path: Path, statement: str, values: Any = ()) -> None:
    """Run one statement and commit."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)
