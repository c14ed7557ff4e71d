import asyncio
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine import checks
from gatewayd.storage.engine import postgres as engine_module
from gatewayd.storage.engine.checks import DatabaseCheck
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.readers import open_ping
from gatewayd.storage.tables.accounts import ValueRow
from tests.fakes.storage.postgres import Postgres

only_sqlite = pytest.mark.parametrize("location", ["sqlite"], indirect=True)
only_postgres = pytest.mark.parametrize("location", ["postgres"], indirect=True)
ROWS = 300


async def fill() -> None:
    for number in range(ROWS):
        await ValueRow(name=f"name {number}", value=f'"{"x" * 200}"', updated_at=0, updated_by="x").save()


def zero_page(path: Path, table: str) -> None:
    """Overwrite the root page of a table with zeroes, in the file alone."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


async def test_a_sound_database(database: Database) -> None:
    await fill()
    database.damage.note("the database's file is damaged")
    assert list(await DatabaseCheck(database).run(60)) == []
    assert database.damage.sentence is None


@only_sqlite
async def test_a_zeroed_page_shows_until_a_check_finds_none(location: DatabaseLocation) -> None:
    assert location.path is not None
    async with Database.open(location) as database:
        await fill()
    whole = location.path.read_bytes()
    zero_page(location.path, "stored_values")
    async with Database.open(location) as database, open_ping(database) as ping:
        await ping()
        with pytest.raises(GatewayError, match="damaged") as caught, translate_errors("read"):
            await ValueRow.all()
        assert caught.value.kind is ErrorKind.INTERNAL
        with pytest.raises(GatewayError, match=r"^the database's file is damaged$"):
            await ping()

        check = DatabaseCheck(database)
        problems = await check.run(60)
        assert problems
        assert all("\n" not in problem for problem in problems)
        with pytest.raises(GatewayError, match="damaged"):
            await ping()

        location.path.write_bytes(whole)
        assert list(await check.run(60)) == []
        await ping()


@only_sqlite
async def test_a_file_that_is_no_database_is_a_damage(location: DatabaseLocation) -> None:
    assert location.path is not None
    async with Database.open(location) as database:
        with location.path.open("r+b") as file:
            file.write(b"\xff" * 100)
        (problem,) = await DatabaseCheck(database).run(60)
    assert problem == "cannot check the database: the file is no SQLite database"


@only_sqlite
async def test_a_check_ends_in_time_and_forgets_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "PROGRESS_STEPS", 1)
    await fill()
    database.damage.note("the database's file is damaged")
    with pytest.raises(GatewayError, match=r"cannot check the database within 1e-09 s") as caught:
        await DatabaseCheck(database).run(1e-9)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert database.damage.sentence is not None


@only_sqlite
async def test_one_check_runs_at_a_time_and_a_cancelled_one_ends(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "PROGRESS_STEPS", 1)
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless(connection: sqlite3.Connection, clock: Any) -> list[str]:
        loop.call_soon_threadsafe(began.set)
        return real(connection, clock)

    real: Callable[[sqlite3.Connection, Any], list[str]] = checks._quick_check
    monkeypatch.setattr(checks, "_quick_check", endless)
    check = DatabaseCheck(database)
    first = asyncio.ensure_future(check.run(60))
    await began.wait()
    with pytest.raises(GatewayError, match="another check runs") as caught:
        await check.run(60)
    assert caught.value.kind is ErrorKind.CONFLICT
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert list(await check.run(60)) == []


@only_postgres
async def test_a_damaged_table_of_a_server_is_named(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class DamagedError(OSError):
        sqlstate = "XX001"

    real = checks._read_table

    async def read(table: str) -> None:
        if table == "stored_values":
            raise DamagedError
        await real(table)

    monkeypatch.setattr(checks, "_read_table", read)
    (problem,) = await DatabaseCheck(database).run(60)
    assert problem == "cannot read the table stored_values: the database's files are damaged"
    assert database.damage.sentence == problem


@only_postgres
async def test_tables_of_a_server_may_take_longer_than_a_statement(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await ValueRow.all().count() == 0
    monkeypatch.setattr(checks, "READ_ALL", f"{checks.READ_ALL}; SELECT pg_sleep(0.2) FROM stored_values")
    monkeypatch.setattr(database, "expected_columns", lambda: [("stored_values", "name")])
    await ValueRow(name="name", value="1", updated_at=0, updated_by="x").save()
    monkeypatch.setattr(engine_module, "STATEMENT_SECONDS", 0.1)
    assert list(await DatabaseCheck(database).run(60)) == []


@only_postgres
async def test_values_that_a_server_keeps_apart_are_read(
    location: DatabaseLocation, postgres: Postgres
) -> None:
    name = location.credentials["database"]
    async with Database.open(location) as database:
        # Too large for its row, even compressed.
        text = orjson.dumps(os.urandom(100_000).hex()).decode()
        await ValueRow(name="large", value=text, updated_at=0, updated_by="x").save()
        found = await database.engine.execute_query_dict(
            "SELECT current_setting('data_directory') || '/' || pg_relation_filepath(reltoastrelid) AS path"
            " FROM pg_class WHERE relname = 'stored_values'"
        )
    postgres.psql("CHECKPOINT")
    path = Path(found[0]["path"])
    path.write_bytes(bytes(path.stat().st_size))
    # The files are copied, as the server still has the pages of the first in its memory.
    postgres.psql(f"CREATE DATABASE {name}_copy TEMPLATE {name} STRATEGY file_copy")
    copy = replace(location, credentials={**location.credentials, "database": f"{name}_copy"})
    async with Database.open(copy) as database:
        (problem,) = await DatabaseCheck(database).run(60)
    assert problem == "cannot read the table stored_values: the database's files are damaged"
