"""The pool and its claim."""

import asyncio
import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, cast
from unittest.mock import AsyncMock

import asyncpg
import pytest
from tortoise.connection import get_connection

from gatewayd.deadlines import PAUSE_THRESHOLD_SECONDS
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine import postgres as engine_module
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.transactions import lock_key, write_transaction
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.fakes.daemons import paused_processes as standstill
from tests.fakes.storage.postgres import Postgres

pytestmark = pytest.mark.parametrize("location", ["postgres"], indirect=True)


def limited(location: DatabaseLocation, pool_size: int) -> DatabaseLocation:
    return replace(location, credentials={**location.credentials, "maxsize": pool_size})


def terminate_all(postgres: Postgres, location: DatabaseLocation) -> None:
    """Cut every connection to the database, as a restart of the server would."""
    name = location.credentials["database"]
    postgres.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")


async def show(name: str) -> Any:
    rows = await get_connection("postgresql").execute_query_dict(f"SHOW {name}")
    return rows[0][name]


async def test_names_of_locks_are_numbers_that_fit(location: DatabaseLocation) -> None:
    keys = {lock_key(name) for name in ("daemon", "exclusive:daemon", "x")}
    assert len(keys) == 3
    assert all(-(2**63) <= key < 2**63 for key in keys)
    assert lock_key("x") == lock_key("x")


async def test_the_server_gives_up_on_what_takes_too_long(database: Database) -> None:
    assert await show("statement_timeout") == "8s"
    assert await show("lock_timeout") == "5s"
    async with database.engine.migrating():
        assert await show("statement_timeout") == "0"
        assert await show("lock_timeout") == "0"
    assert await show("statement_timeout") == "8s"


@pytest.mark.parametrize("error", [asyncpg.InternalClientError("cannot switch"), ConnectionResetError()])
async def test_a_connection_that_breaks_when_it_is_put_back_takes_no_change_with_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def reset(_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(asyncpg.Connection, "_reset", reset)
        await TortoiseUsers().add(user("u1"), None)
        assert await show("lock_timeout") == "5s"
    assert await TortoiseUsers().find("u1") is not None


async def test_a_connection_whose_end_the_driver_has_yet_to_notice_is_lost(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def execute(*_: Any, **__: Any) -> str:
        raise asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress")

    with monkeypatch.context() as broken:
        broken.setattr(asyncpg.Connection, "execute", execute)
        with pytest.raises(GatewayError) as caught:
            async with database.transaction():
                raise AssertionError("nothing can be begun")
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    async with database.transaction():
        assert await TortoiseUsers().find("nobody") is None


async def test_the_connections_say_whose_they_are(database: Database) -> None:
    assert await show("application_name") == f"gatewayd (pid {os.getpid()})"


async def test_a_second_daemon_learns_who_the_first_is(location: DatabaseLocation) -> None:
    async with Database.open(location) as first, Database.open(location) as second:
        await first.own()
        with pytest.raises(GatewayError) as caught:
            await second.own()
        assert caught.value.kind is ErrorKind.CONFLICT
        assert f"another gatewayd (pid {os.getpid()})" in caught.value.message


async def test_shared_daemons_tolerate_each_other_only(location: DatabaseLocation) -> None:
    async with Database.open(location) as alone:
        async with Database.open(location) as first, Database.open(location) as second:
            await first.own(shared=True)
            await second.own(shared=True)
            with pytest.raises(GatewayError, match="another gatewayd"):
                await alone.own()
        await alone.own()
        async with Database.open(location) as third:
            with pytest.raises(GatewayError, match="another gatewayd"):
                await third.own(shared=True)


async def test_a_restarted_server_is_claimed_again(location: DatabaseLocation, postgres: Postgres) -> None:
    async with Database.open(location) as first:
        await first.own()
        terminate_all(postgres, location)
        await recovered(first)
        async with Database.open(location) as second:
            with pytest.raises(GatewayError, match="another gatewayd"):
                await second.own()


async def test_a_claim_that_somebody_took_meanwhile_is_said_so(
    location: DatabaseLocation, postgres: Postgres
) -> None:
    async with Database.open(location) as first:
        await first.own()
        terminate_all(postgres, location)
        async with Database.open(location) as second:
            await second.own()
            for _ in range(2):
                with pytest.raises(GatewayError) as caught:
                    await recovered(first)
                assert caught.value.kind is ErrorKind.CONFLICT
        await first.ping()
        async with Database.open(location) as third:
            with pytest.raises(GatewayError, match="another gatewayd"):
                await third.own()


async def recovered(database: Database) -> None:
    """Ask until the database answers; every refusal on the way must be one that passes."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await database.ping()
            except GatewayError as error:
                if error.kind is not ErrorKind.UNAVAILABLE:
                    raise
            await asyncio.sleep(0)


async def test_a_connection_lost_in_mid_transaction_is_unavailable(
    database: Database, postgres: Postgres
) -> None:
    with pytest.raises(GatewayError) as caught:
        async with database.transaction():
            await TortoiseUsers().add(user("u1"), None)
            terminate_all(postgres, database.location)
            await TortoiseUsers().add(user("u2"), None)
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    await recovered(database)
    assert await TortoiseUsers().count() == 0


async def test_a_commit_on_a_lost_connection_is_no_success(database: Database, postgres: Postgres) -> None:
    with pytest.raises(GatewayError) as caught:
        async with database.transaction():
            await TortoiseUsers().add(user("u1"), None)
            terminate_all(postgres, database.location)
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    await recovered(database)
    assert await TortoiseUsers().count() == 0


async def test_an_exhausted_pool_is_unavailable_in_time(
    location: DatabaseLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "ACQUIRE_SECONDS", 0.05)
    async with Database.open(limited(location, 1)) as database:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with database.transaction():
                entered.set()
                await leave.wait()

        holder = asyncio.create_task(hold())
        await entered.wait()
        for attempt in (TortoiseUsers().count, database.ping):
            with pytest.raises(GatewayError, match="in time") as caught:
                await attempt()
            assert caught.value.kind is ErrorKind.UNAVAILABLE
        leave.set()
        await holder
        assert await TortoiseUsers().count() == 0


async def test_a_lock_that_is_held_too_long_is_unavailable(database: Database) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with database.exclusive("x"):
            entered.set()
            await leave.wait()

    holder = asyncio.create_task(hold())
    await entered.wait()
    with pytest.raises(GatewayError, match="locked") as caught:
        async with database.transaction():
            await get_connection("postgresql").execute_query("SET LOCAL lock_timeout = 1")
            async with database.exclusive("x"):
                raise AssertionError
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    leave.set()
    await holder


async def test_changes_that_wait_for_each_other_end_in_one_retry(database: Database) -> None:
    """A real deadlock: each task holds what the other wants."""
    for name in ("A", "B"):
        await TortoiseValues().put({name: 0}, at=1, by="me")
    both = asyncio.Barrier(2)

    async def change(first: str, second: str) -> None:
        async with database.transaction():
            await TortoiseValues().put({first: 1}, at=1, by="me")
            await both.wait()
            await TortoiseValues().put({second: 1}, at=1, by="me")

    results = await asyncio.gather(change("A", "B"), change("B", "A"), return_exceptions=True)
    lost = [result for result in results if result is not None]
    assert len(lost) == 1
    assert isinstance(lost[0], GatewayError)
    assert lost[0].kind is ErrorKind.UNAVAILABLE
    assert await TortoiseValues().load() == {"A": 1, "B": 1}


async def test_a_database_that_is_not_there_is_a_matter_of_configuration(location: DatabaseLocation) -> None:
    missing = replace(location, credentials={**location.credentials, "database": "missing"})
    with pytest.raises(GatewayError) as caught:
        async with Database.open(missing):
            pass
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED


async def test_the_server_makes_its_own_copies(database: Database) -> None:
    assert await database.engine.snapshot("copy") is None


@contextmanager
def stopped(postgres: Postgres, location: DatabaseLocation) -> Iterator[None]:
    """Let every connection to the database hang, as on a network that takes packets and brings none."""
    name = location.credentials["database"]
    shown = postgres.psql(f"SELECT 'pid ' || pid FROM pg_stat_activity WHERE datname = '{name}'")
    pids = [int(found) for found in re.findall(r"pid (\d+)", shown)]
    with standstill.stopped(*pids):
        yield


@pytest.mark.parametrize("step", ["statement", "transaction", "commit", "claim"])
async def test_a_server_that_hangs_is_given_up_with_its_connections(
    step: str,
    location: DatabaseLocation,
    database: Database,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await database.own()
    assert await TortoiseUsers().find("u1") is None
    for limit in ("STATEMENT_SECONDS", "CLAIM_SECONDS"):
        monkeypatch.setattr(engine_module, limit, 0.1)
    with pytest.raises(GatewayError) as caught:
        match step:
            case "statement":
                with stopped(postgres, location):
                    await TortoiseUsers().find("u1")
            case "transaction":
                async with database.transaction():
                    with stopped(postgres, location):
                        await TortoiseUsers().add(user("u1"), None)
            case "commit":
                with ExitStack() as stack:
                    async with database.transaction():
                        await TortoiseUsers().add(user("u1"), None)
                        stack.enter_context(stopped(postgres, location))
            case _:
                with stopped(postgres, location):
                    await database.ping()
    assert caught.value.kind in {ErrorKind.UNAVAILABLE, ErrorKind.CONFLICT}
    monkeypatch.undo()
    assert await TortoiseUsers().find("u2") is None


async def test_what_takes_its_time_is_not_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "STATEMENT_SECONDS", 0.05)
    engine = cast(engine_module.PostgresEngine, database.engine)
    await engine.run_alone("SELECT pg_sleep(0.2)")
    async with database.engine.migrating() as transaction:
        await transaction.execute_query("SELECT pg_sleep(0.2)")
    with pytest.raises(GatewayError, match="cannot be reached"):
        async with write_transaction("wait"):
            await get_connection("postgresql").execute_query("SELECT pg_sleep(1)")


async def test_a_pause_of_the_daemon_is_not_the_servers(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await TortoiseUsers().find("u1") is None
    monkeypatch.setattr(engine_module, "STATEMENT_SECONDS", 0.1)
    async with database.transaction():
        asyncio.get_running_loop().call_later(0.05, time.sleep, 0.1 + PAUSE_THRESHOLD_SECONDS)
        await get_connection("postgresql").execute_query("SELECT pg_sleep(0.2)")
        await TortoiseUsers().add(user("u1"), None)
    assert await TortoiseUsers().find("u1") is not None


@pytest.mark.parametrize("cancellations", [1, 2])
async def test_a_cancelled_transaction_is_rolled_back_before_its_connection_is_put_back(
    database: Database, cancellations: int
) -> None:
    """Cancel at every step; the driver reports each connection that comes back with an open transaction."""
    reports: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context["message"]))

    async def change(number: int) -> None:
        async with database.transaction():
            await TortoiseUsers().add(user(f"u{number}"), None)

    for steps in range(40):
        task = asyncio.create_task(change(steps))
        for _ in range(steps):
            await asyncio.sleep(0)
        for _ in range(cancellations):
            task.cancel()
            await asyncio.sleep(0.001 if steps % 2 else 0)
        await asyncio.wait([task])
    assert reports == []


async def test_errors_of_a_server_that_is_away_name_it_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(engine: engine_module.PostgresEngine) -> None:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    monkeypatch.setattr(engine_module.PostgresEngine, "take_connection", refuse)
    monkeypatch.setattr(engine_module.PostgresEngine, "keep_claim", AsyncMock())
    with pytest.raises(GatewayError) as caught:
        await database.ping()
    told = "cannot reach the database: the database cannot be reached (connection refused)"
    assert caught.value.message == told
    assert caught.value.full_message == f"{told} at {database.location.address}"
    monkeypatch.undo()
