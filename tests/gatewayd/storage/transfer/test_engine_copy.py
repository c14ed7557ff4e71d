"""A database with a row in every table goes to PostgreSQL and back, and nothing is lost or changed."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gatewayd.backup.schema_changes import copy_database
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation, parse
from gatewayd.storage.engine.migrate import INCOMPLETE, check, read_status
from gatewayd.storage.transfer import engine_copy, sqlite_files
from gatewayd.storage.transfer.postgres_tables import PostgresTables
from gatewayd.storage.transfer.row_sums import canonical_json, is_content
from tests.fakes.storage.gateway_place import columns, insert_of, make_place, row_of, rows, run
from tests.fakes.storage.postgres import Postgres

pytestmark = pytest.mark.real("PostgreSQL")
ODD = '{"favorite":true,"n":[1.0,1e22,1e23,1.8446744073709552e19,-0.5,12345678901234567890,"\\u0001ä😀"]}'


def silent(words: str) -> None:
    pass


def fill(path: Path) -> None:
    """Insert a row, with a reference to itself and odd values, into every table that there is."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        for table in sqlite_files.in_order(connection):
            given: dict[str, Any] = {"id": "1"}
            for _, name, kind, _, _, key in columns(path, table):
                if kind == "BLOB":
                    given[name] = bytes(range(256))
                elif "INT" in kind:
                    given[name] = 7 if key or name == "number" else 1
            for _, _, _, here, *_ in connection.execute(f'PRAGMA foreign_key_list("{table}")'):
                given[here] = "1" if text(path, table, here) else 7
            if not text(path, table, "id"):
                given["id"] = 7
            connection.execute(insert_of(path, table), row_of(path, table, **given))
        connection.execute("UPDATE chat_messages SET attributes = ?", (ODD,))
        connection.execute("UPDATE passages SET text = 'how many days of leave', staged = 0")
        connection.execute("UPDATE sqlite_sequence SET seq = 41 WHERE name = 'passages'")
        connection.execute("PRAGMA foreign_keys=ON")
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def text(path: Path, table: str, column: str) -> bool:
    return any(row[1] == column and "CHAR" in row[2] for row in columns(path, table))


def contents(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        return {table: rows(path, f'SELECT * FROM "{table}"') for table in sqlite_files.tables(connection)}


async def fetch(location: DatabaseLocation, query: str) -> Any:
    names = ("host", "port", "user", "password", "database")
    connection = await asyncpg.connect(**{name: location.credentials[name] for name in names})
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def test_a_round_trip_gives_the_same_rows(tmp_path: Path, postgres: Postgres, monkeypatch: Any) -> None:
    place = make_place(tmp_path)
    source = place.location.path
    assert source is not None
    fill(source)
    before = contents(source)
    assert all(before.values())
    url = postgres.create_database()
    there = parse(url)

    # Killed in the middle, the target is no database for a daemon, and the next copy begins anew.
    real = PostgresTables.insert

    async def die(self: PostgresTables, table: str, names: Sequence[str], some: Sequence[Any]) -> None:
        if table == "passages":
            raise KeyboardInterrupt
        await real(self, table, names, some)

    monkeypatch.setattr(PostgresTables, "insert", die)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(copy_database(place, url, silent))
    monkeypatch.undo()

    async def refused() -> GatewayError:
        async with Database.open(there) as database:
            with pytest.raises(GatewayError) as refusal:
                check(await read_status(database))
        return refusal.value

    error = asyncio.run(refused())
    assert (error.kind, error.code) == (ErrorKind.NOT_CONFIGURED, "database_incomplete")
    # Nor is it copied, for a backup or as the former state.
    with pytest.raises(GatewayError, match="a copy into it was interrupted"):
        asyncio.run(engine_copy.fill_sqlite(there, tmp_path / "half.db", progress=silent))

    sums = asyncio.run(copy_database(place, url, silent))
    assert set(sums) == set(before)
    assert asyncio.run(fetch(there, f"SELECT to_regclass('{INCOMPLETE}')")) is None
    assert asyncio.run(fetch(there, "SELECT nextval(pg_get_serial_sequence('passages', 'id'))")) == 42
    assert asyncio.run(fetch(there, "SELECT count(*) FROM passages WHERE words @@ to_tsquery('leave')")) == 1
    with pytest.raises(GatewayError, match="not empty") as refusal:
        asyncio.run(copy_database(place, url, silent))
    assert refusal.value.kind is ErrorKind.CONFLICT

    target = tmp_path / "back.db"
    other = make_place(tmp_path / "other", is_migrated=False, location=there)
    assert asyncio.run(copy_database(other, f"sqlite:///{target}", silent)) == sums
    # JSON keeps its value and its compact form, not the order of its names.
    [[attributes]] = rows(target, "SELECT attributes FROM chat_messages")
    assert canonical_json(attributes) == canonical_json(ODD)
    assert '"favorite":true' in attributes
    run(target, "UPDATE chat_messages SET attributes = ?", (ODD,))
    assert contents(target) == before
    assert rows(target, "SELECT rowid FROM words_7 WHERE words_7 MATCH 'leave'") == [(7,)]
    assert rows(target, "SELECT seq FROM sqlite_sequence WHERE name = 'passages'") == [(42,)]
    assert sqlite_files.find_damage(target) == []
    with pytest.raises(GatewayError, match="there is a file"):
        asyncio.run(engine_copy.fill_sqlite(there, target, progress=silent))


def test_one_engine_twice_and_a_daemon_are_refused(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    with pytest.raises(GatewayError, match="of one engine"):
        asyncio.run(copy_database(place, f"sqlite:///{tmp_path}/x.db", silent))


def test_every_table_of_the_schema_is_copied_or_derived(tmp_path: Path) -> None:
    path = make_place(tmp_path).location.path
    assert path is not None
    names = {row[0] for row in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    with closing(sqlite3.connect(path)) as connection:
        copied = set(sqlite_files.tables(connection))
    assert {name for name in names if is_content(name)} == copied
    assert names - copied == {"sqlite_sequence", "tortoise_migrations"}
