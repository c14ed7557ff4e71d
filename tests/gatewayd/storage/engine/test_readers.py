import asyncio
from pathlib import Path

import pytest

from gatewayd.errors import GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.readers import SqliteReader, open_ping, open_reader
from gatewayd.storage.tables.accounts import ValueRow

COUNT = "SELECT COUNT(*) FROM stored_values"


async def add(name: str) -> None:
    await ValueRow(name=name, value="1", updated_at=0, updated_by="x").save(force_create=True)


async def test_a_reader_reads_by_position(database: Database) -> None:
    await add("one")
    async with open_reader(database.location) as reader:
        [row] = await reader.rows("SELECT name, updated_at FROM stored_values WHERE name = $1", "one")
        assert (row[0], row[1]) == ("one", 0)
        assert list(await reader.rows("SELECT name FROM stored_values WHERE name = $1", "two")) == []


async def test_what_is_committed_is_read_at_once(database: Database) -> None:
    async with open_reader(database.location) as reader:
        for number in range(5):
            await add(f"name {number}")
            assert (await reader.rows(COUNT))[0][0] == number + 1


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_a_reader_neither_waits_for_a_change_nor_sees_it(database: Database) -> None:
    async with open_reader(database.location) as reader:
        async with database.transaction():
            await add("one")
            assert (await reader.rows(COUNT))[0][0] == 0
        assert (await reader.rows(COUNT))[0][0] == 1


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_a_reader_cannot_write(database: Database) -> None:
    async with open_reader(database.location) as reader:
        with pytest.raises(GatewayError, match="may not be written"), translate_errors("write"):
            await reader.rows("DELETE FROM stored_values")


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_a_long_read_keeps_nobody_waiting(database: Database) -> None:
    """The read ends only after the write."""
    async with open_reader(database.location) as reader:
        assert isinstance(reader, SqliteReader)
        loop = asyncio.get_running_loop()
        written = asyncio.Event()

        def slow(_: object) -> bool:
            return asyncio.run_coroutine_threadsafe(written.wait(), loop).result(30)

        reading = loop.create_task(reader.run(slow))
        await add("x")
        written.set()
        assert await reading


async def test_a_reader_that_was_never_used_is_closed(database: Database) -> None:
    async with open_reader(database.location):
        pass


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_a_failed_query_leaves_the_reader_usable(database: Database) -> None:
    async with open_reader(database.location) as reader:
        with pytest.raises(GatewayError), translate_errors("read"):
            await reader.rows("SELECT nothing FROM nowhere")
        assert (await reader.rows(COUNT))[0][0] == 0


async def test_a_probe_waits_for_no_change(database: Database) -> None:
    async with open_ping(database) as ping, database.transaction():
        await add("one")
        # A task that is no part of the transaction.
        await asyncio.wait_for(asyncio.get_running_loop().create_task(ping()), 5)


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_file_that_is_gone_is_a_problem(database: Database, is_replaced: bool) -> None:
    path = database.location.path
    assert isinstance(path, Path)
    async with open_ping(database) as ping:
        await ping()
        path.rename(path.with_name("elsewhere"))
        if is_replaced:
            path.touch()
        with pytest.raises(GatewayError, match="its file was moved or deleted"):
            await ping()


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_a_file_that_cannot_be_opened_is_a_problem(database: Database) -> None:
    path = database.location.path
    assert isinstance(path, Path)
    async with open_ping(database) as ping:
        path.unlink()
        with pytest.raises(GatewayError, match="cannot reach the database"):
            await ping()
