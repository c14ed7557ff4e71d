"""Databases of other programs: in use, damaged, locked, on a server."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.location import parse
from gatewayd.storage.transfer import foreign_source, postgres_tables, sqlite_files
from gatewayd.storage.transfer.foreign_source import open_foreign_file, open_foreign_server
from tests.fakes.storage.open_webui import NEW, household, make_file, make_server
from tests.fakes.storage.postgres import Postgres


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_file(tmp_path / "webui" / "webui.db", household())


async def all_rows(source: Any, table: str, **choice: Any) -> list[Any]:
    return [row async for row in source.rows(table, **choice)]


async def check(source: Any) -> None:
    assert source.columns["auth"] == {"id", "email", "password", "active", "mfa"}
    users = await all_rows(source, "user", order_by=("email", "nothing"))
    assert [row["id"] for row in users] == ["u-ada", "u-bob"]
    [bob] = await all_rows(source, "user", where={"id": "u-bob", "role": "user"})
    assert (bob["email"], bob["created_at"]) == ("bob@example.org", 1_700_000_000)
    assert [await source.count(table) for table in ("user", "nothing")] == [2, 0]
    assert await all_rows(source, "nothing") == []


async def test_a_file_in_use_is_one_state(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("UPDATE user SET name = 'before'")
        with open_foreign_file(path) as source:
            await check(source)
            writer.execute("UPDATE user SET name = 'after'")
            writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
            assert {row["name"] for row in await all_rows(source, "user")} == {"before"}
        assert path.with_name("webui.db-wal").exists()


async def test_nothing_is_written(path: Path) -> None:
    before = path.read_bytes()
    with open_foreign_file(path) as source:
        await check(source)
        with pytest.raises(sqlite3.OperationalError):
            source._connection.execute("DELETE FROM user")
    assert path.read_bytes() == before


async def test_texts_need_not_be_utf_8(path: Path) -> None:
    with closing(sqlite3.connect(path)) as writer, writer:
        writer.execute("UPDATE user SET name = CAST(x'41ff42' AS TEXT)")
    with open_foreign_file(path) as source:
        assert {row["name"] for row in await all_rows(source, "user")} == {"A\ufffdB"}


def refuse_first(monkeypatch: pytest.MonkeyPatch, code: int) -> list[str]:
    """Let the first connection fail as SQLite does; return the addresses of the further ones."""
    addresses: list[str] = []
    begun: list[int] = []
    real_begin, real_connect = foreign_source._begin, sqlite3.connect

    def begin(connection: sqlite3.Connection) -> None:
        begun.append(1)
        if len(begun) == 1:
            error = sqlite3.OperationalError("as if")
            error.sqlite_errorcode = code
            raise error
        real_begin(connection)

    def connect(address: str, **options: Any) -> sqlite3.Connection:
        addresses.append(address)
        return real_connect(address, **options)

    monkeypatch.setattr(foreign_source, "_begin", begin)
    monkeypatch.setattr(foreign_source.sqlite3, "connect", connect)
    return addresses


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY | 5 << 8])
async def test_a_file_in_a_directory_of_somebody_else_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    addresses = refuse_first(monkeypatch, code)
    with open_foreign_file(path) as source:
        await check(source)
    assert addresses[-1].endswith("?mode=ro&immutable=1")


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_with_a_log_it_is_not_read_as_unchanging(
    path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path.with_name(f"webui.db{suffix}").write_bytes(b"")
    refuse_first(monkeypatch, sqlite3.SQLITE_CANTOPEN)
    with pytest.raises(GatewayError, match="copy the files") as caught, open_foreign_file(path):
        pass
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED


def test_a_locked_file_is_waited_for_and_then_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_files, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=DELETE")
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(GatewayError, match="the database is locked") as caught, open_foreign_file(path):
            pass
    assert caught.value.kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize(
    "content",
    [b"no database at all, but long enough to be looked at" * 50, b"SQLite format 3\0" + b"x" * 5000],
)
def test_what_is_no_database_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(GatewayError, match=f"cannot read the database {path}"), open_foreign_file(path):
        pass
    with pytest.raises(GatewayError, match="there is no such file"), open_foreign_file(tmp_path / "none"):
        pass


async def test_a_damaged_page_ends_the_import(path: Path) -> None:
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=DELETE")
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(GatewayError, match="damaged"), open_foreign_file(path) as source:
        for table in source.columns:
            await all_rows(source, table)


@pytest.mark.real("PostgreSQL")
def test_a_server_is_one_state(postgres: Postgres) -> None:
    url = postgres.create_database()

    async def run() -> None:
        await make_server(url, household(), NEW)
        async with open_foreign_server(parse(url)) as source:
            await check(source)
            async for chat in source.rows("chat"):
                [message] = await all_rows(source, "chat_message", where={"chat_id": chat["id"]})
                assert message["content"] == '"In a row alone"'
            with pytest.raises(Exception, match="read-only"):
                await source._connection.execute('DELETE FROM "user"')
        with pytest.raises(GatewayError, match="SQLSTATE 42703"):
            async with open_foreign_server(parse(url)) as source:
                await all_rows(source, "user", where={"nothing": "x"})

    asyncio.run(run())


async def test_a_server_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    location = parse("postgresql://u:secret@127.0.0.1:9/none")
    with pytest.raises(GatewayError) as caught:
        async with open_foreign_server(location):
            pass
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert "secret" not in caught.value.full_message
    monkeypatch.setattr(postgres_tables, "find_library", lambda extra: None)
    with pytest.raises(GatewayError, match=r"gatewayd\[postgres\]"):
        async with open_foreign_server(location):
            pass
