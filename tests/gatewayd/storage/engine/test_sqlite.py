"""The file, its modes, its pragmas, and what it says when it cannot write."""

import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tortoise.connection import get_connection

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation, sqlite
from gatewayd.storage.engine.migrate import migrate
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gatewayd.db"


@pytest.fixture
def file(migrated_copy: Path) -> DatabaseLocation:
    """Return a migrated database that waits a twentieth of a second for a lock."""
    location = sqlite(migrated_copy)
    return replace(location, credentials=location.credentials | {"busy_timeout": 50})


@pytest.fixture
async def opened(file: DatabaseLocation) -> AsyncIterator[Database]:
    async with Database.open(file) as database:
        yield database


@contextmanager
def another_writer(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold the write lock as another program would: a backup, a shell."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("ROLLBACK")


async def run_pragma(text: str) -> object:
    rows = await get_connection("sqlite").execute_query_dict(f"PRAGMA {text}")
    return next(iter(rows[0].values())) if rows else None


async def test_commits_are_flushed_and_references_hold(path: Path) -> None:
    async with Database.open(sqlite(path)):
        found = {name: await run_pragma(name) for name in ("journal_mode", "synchronous", "foreign_keys")}
        assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        assert await run_pragma("busy_timeout") == 5000


async def test_references_hold_after_a_migration_too(path: Path) -> None:
    async with Database.open(sqlite(path)) as database:
        async with database.engine.migrating():
            pass
        assert await run_pragma("foreign_keys") == 1


async def test_nobody_else_can_read_the_file_or_its_logs(path: Path) -> None:
    before = os.umask(0)
    try:
        await migrate(sqlite(path))
        async with Database.open(sqlite(path)) as database:
            await database.own()
            await TortoiseUsers().add(user("a"), None)
            made = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    names = ["gatewayd.db", "gatewayd.db-shm", "gatewayd.db-wal", "gatewayd.db.lock"]
    assert made == dict.fromkeys(names, 0o600)


async def test_a_copy_is_whole_and_for_its_owner_alone(path: Path, opened: Database) -> None:
    await TortoiseUsers().add(user("a"), None)
    leftover = path.with_name("gatewayd.db.before-x.part")
    leftover.write_bytes(b"a copy that was killed")
    leftover.chmod(0o666)
    before = os.umask(0)
    try:
        copy = await opened.engine.snapshot("before-x")
    finally:
        os.umask(before)
    assert copy == path.with_name("gatewayd.db.before-x")
    assert not leftover.exists()
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT id FROM users").fetchall() == [("a",)]


async def test_a_database_that_another_program_locks_is_unavailable(path: Path, opened: Database) -> None:
    await TortoiseUsers().add(user("a"), None)
    with another_writer(path):
        with pytest.raises(GatewayError) as refused:
            await TortoiseUsers().add(user("b"), None)
        assert refused.value.kind is ErrorKind.UNAVAILABLE
        assert refused.value.retry_after == 2
        with pytest.raises(GatewayError, match="locked") as refused:
            async with opened.transaction():
                raise AssertionError
        assert refused.value.retry_after == 2
        # Reading goes on.
        assert await TortoiseUsers().count() == 1
        await opened.ping()
    await TortoiseUsers().add(user("b"), None)
    assert await TortoiseUsers().count() == 2


async def fill(database: Database) -> None:
    """Let the file grow no further."""
    await TortoiseUsers().add(user("a"), None)
    await run_pragma(f"max_page_count = {await run_pragma('page_count')}")


async def test_a_full_disk_is_never_success(opened: Database) -> None:
    await fill(opened)
    large = user("b", profile_image_url="x" * 1_000_000)
    with pytest.raises(GatewayError, match="disk is full") as refused:
        await TortoiseUsers().add(large, None)
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    assert refused.value.retry_after
    assert [each.id for each in (await TortoiseUsers().list())[0]] == ["a"]
    await run_pragma("max_page_count = 1000000")
    await TortoiseUsers().add(large, None)
    assert await TortoiseUsers().find("b") == large


async def test_a_block_that_goes_on_after_a_full_disk_is_all_or_nothing(opened: Database) -> None:
    await fill(opened)
    with pytest.raises(GatewayError, match="rolled back the whole change") as refused:
        async with opened.transaction():
            await TortoiseUsers().add(user("c"), None)
            with pytest.raises(GatewayError, match="disk is full"):
                await TortoiseUsers().add(user("b", profile_image_url="x" * 1_000_000), None)
            # SQLite has rolled back: in no way may this be a change by itself.
            with pytest.raises(GatewayError, match="rolled back the whole change"):
                await TortoiseUsers().touch({"a": 9})
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    stored = {each.id: each.last_active_at for each in (await TortoiseUsers().list())[0]}
    assert stored == {"a": 0}


async def test_a_transaction_that_sqlite_ended_itself_cannot_commit(opened: Database) -> None:
    with pytest.raises(GatewayError, match="cannot commit the change"):
        async with opened.transaction():
            await TortoiseUsers().add(user("a"), None)
            await get_connection("sqlite").execute_query("ROLLBACK")
    assert await TortoiseUsers().count() == 0
    await TortoiseUsers().add(user("a"), None)


async def test_a_file_that_may_not_be_written_is_unavailable(opened: Database) -> None:
    await run_pragma("query_only = 1")
    with pytest.raises(GatewayError, match="may not be written") as refused:
        await TortoiseUsers().add(user("a"), None)
    assert refused.value.kind is ErrorKind.UNAVAILABLE


async def test_the_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match=r"/missing/gatewayd\.db: no such file or directory"):
        async with Database.open(sqlite(tmp_path / "missing" / "gatewayd.db")):
            pass


async def test_a_file_has_no_second_connection(opened: Database) -> None:
    with pytest.raises(GatewayError, match="SQLite has one writer"):
        await opened.engine.reserve()


async def test_a_file_cannot_be_shared(opened: Database) -> None:
    with pytest.raises(GatewayError, match="use PostgreSQL") as refused:
        await opened.own(shared=True)
    assert refused.value.kind is ErrorKind.NOT_CONFIGURED


async def test_scripts_do_not_end_the_transaction(opened: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with opened.transaction():
            await TortoiseUsers().add(user("a"), None)
            script = "CREATE TABLE t (x TEXT DEFAULT ';'); INSERT INTO t VALUES ('a;b'); "
            await get_connection("sqlite").execute_script(script)
            raise ZeroDivisionError
    assert await TortoiseUsers().count() == 0
    rows = await get_connection("sqlite").execute_query_dict("SELECT * FROM sqlite_master WHERE name = 't'")
    assert rows == []
