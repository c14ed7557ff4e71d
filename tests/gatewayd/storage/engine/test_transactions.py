"""What the services rely on when several changes are one."""

import asyncio
import contextvars
from contextlib import AbstractAsyncContextManager

import pytest
from tortoise.connection import get_connection
from tortoise.exceptions import OperationalError

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.transactions import placeholder, write_transaction
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import key, user
from tests.gatewayd.storage.conftest import Stores


class MadeUpError(Exception):
    """Raised by tests inside transactions."""


async def fail_after_changes(stores: Stores, block: AbstractAsyncContextManager[None]) -> None:
    async with block:
        await stores.users.add(user("u1"), None)
        await stores.values.put({"A": 1}, at=1, by="me")
        assert await stores.users.count() == 1
        raise MadeUpError


@pytest.mark.parametrize("kind", ["transaction", "exclusive", "rehearsal"])
async def test_a_block_that_raises_leaves_nothing(stores: Stores, kind: str) -> None:
    blocks = {
        "transaction": stores.transactor.transaction,
        "exclusive": lambda: stores.transactor.exclusive("x"),
        "rehearsal": stores.transactor.rehearsal,
    }
    with pytest.raises(MadeUpError):
        await fail_after_changes(stores, blocks[kind]())
    assert await stores.users.count() == 0
    assert await stores.values.load() == {}


async def test_a_block_commits_at_its_end(stores: Stores) -> None:
    async with stores.transactor.transaction():
        await stores.users.add(user("u1"), None)
        await stores.keys.add(key("k1", "u1"))
    assert await stores.keys.find("k1") is not None


async def test_a_rehearsal_shows_its_changes_inside_only(stores: Stores) -> None:
    await stores.values.put({"A": 1}, at=1, by="me")
    async with stores.transactor.rehearsal():
        await stores.values.put({"A": 2, "B": 3}, at=2, by="me")
        async with stores.transactor.transaction():
            await stores.users.add(user("u1"), None)
        assert await stores.values.load() == {"A": 2, "B": 3}
    assert await stores.values.load() == {"A": 1}
    assert await stores.users.count() == 0


async def test_a_nested_block_can_fail_alone(stores: Stores) -> None:
    async with stores.transactor.transaction():
        await stores.users.add(user("u1"), None)
        with pytest.raises(MadeUpError):
            async with stores.transactor.transaction():
                await stores.users.add(user("u2"), None)
                raise MadeUpError
        async with stores.transactor.rehearsal():
            await stores.users.add(user("u3"), None)
        await stores.users.add(user("u4"), None)
    found, _ = await stores.users.list()
    assert [each.id for each in found] == ["u1", "u4"]


async def test_a_part_that_fails_takes_along_what_ended_well_inside_it_alone(stores: Stores) -> None:
    async with stores.transactor.transaction():
        await stores.users.add(user("u1"), None)
        with pytest.raises(MadeUpError):
            async with stores.transactor.transaction():
                await stores.users.add(user("u2"), None)
                await stores.users.add(user("u3"), None)
                raise MadeUpError
        await stores.users.add(user("u4"), None)
        with pytest.raises(GatewayError, match="is taken"):
            await stores.users.add(user("u4"), None)
        await stores.users.add(user("u5"), None)
    found, _ = await stores.users.list()
    assert [each.id for each in found] == ["u1", "u4", "u5"]


async def test_an_outer_failure_undoes_nested_blocks(stores: Stores) -> None:
    with pytest.raises(MadeUpError):
        async with stores.transactor.transaction():
            async with stores.transactor.transaction():
                await stores.users.add(user("u1"), None)
            raise MadeUpError
    assert await stores.users.count() == 0


async def test_a_conflict_that_is_caught_spoils_nothing(stores: Stores) -> None:
    await stores.users.add(user("u1"), None)
    async with stores.transactor.transaction():
        await stores.users.add(user("u2"), None)
        with pytest.raises(GatewayError, match="is taken"):
            await stores.users.add(user("u1"), None)
        await stores.users.add(user("u3"), None)
    assert await stores.users.count() == 3


async def test_exclusive_blocks_exclude_each_other(stores: Stores) -> None:
    inside = 0

    async def first_or_not(number: int) -> None:
        nonlocal inside
        async with stores.transactor.exclusive("first"):
            inside += 1
            assert inside == 1
            if await stores.users.count() == 0:
                await stores.users.add(user(f"u{number}"), None)
            inside -= 1

    await asyncio.gather(*(first_or_not(number) for number in range(16)))
    assert await stores.users.count() == 1


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_exclusive_blocks_exclude_other_processes(location: DatabaseLocation) -> None:
    """Two databases that know nothing of each other are as good as two processes."""
    tasks_inside: set[str] = set()
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold(name: str) -> None:
        async with Database.open(location) as database, database.exclusive(name):
            tasks_inside.add(name)
            entered.set()
            await leave.wait()

    async def add_user() -> None:
        async with Database.open(location) as database, database.exclusive("first"):
            assert leave.is_set()
            await TortoiseUsers().add(user("u1"), None)

    holder = asyncio.create_task(hold("first"))
    await entered.wait()
    async with Database.open(location) as database, database.exclusive("another name"):
        assert await TortoiseUsers().count() == 0
    waiter = asyncio.create_task(add_user())
    done, _ = await asyncio.wait([waiter], timeout=0.3)
    assert not done
    leave.set()
    await asyncio.gather(holder, waiter)


async def test_a_task_that_outlives_its_block_is_outside(database: Database) -> None:
    leave = asyncio.Event()

    async def late() -> None:
        await leave.wait()
        async with database.transaction():
            await TortoiseUsers().add(user("late"), None)
        await TortoiseValues().put({"A": 1}, at=1, by="me")
        assert await TortoiseUsers().count() == 1

    with pytest.raises(MadeUpError):
        async with database.transaction():
            task = asyncio.create_task(late())
            await TortoiseUsers().add(user("early"), None)
            raise MadeUpError
    leave.set()
    await task
    assert await TortoiseUsers().find("late") is not None


async def test_cancellation_gives_everything_back(database: Database) -> None:
    """Cancel at every step of a transaction; more often than there are connections or locks to lose."""

    async def change(number: int) -> None:
        async with database.exclusive("x"):
            await TortoiseUsers().add(user(f"u{number}"), None)
            async with database.transaction():
                await TortoiseKeys().add(key(f"k{number}", f"u{number}"))

    for steps in range(40):
        task = asyncio.create_task(change(steps))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await asyncio.wait_for(change(100), timeout=20)
    found, total = await TortoiseUsers().list()
    assert total >= 1
    keys = {each.user_id for each in await TortoiseKeys().list()}
    assert keys == {each.id for each in found}


async def test_waiters_that_are_cancelled_leave_the_queue(database: Database) -> None:
    async def change() -> None:
        async with database.exclusive("x"):
            await TortoiseUsers().add(user("u1"), None)

    outside = contextvars.copy_context()
    async with database.exclusive("x"):
        waiters = [asyncio.create_task(change(), context=outside.copy()) for _ in range(8)]
        done, _ = await asyncio.wait(waiters, timeout=0.1)
        assert not done
        for waiter in waiters:
            waiter.cancel()
        await asyncio.wait(waiters)
    await asyncio.wait_for(change(), timeout=20)


async def test_foreign_errors_of_a_block_pass_as_they_are(database: Database) -> None:
    with pytest.raises(OSError, match="not the database"):
        async with database.transaction():
            raise OSError("not the database")


async def test_a_write_can_use_sql_of_its_own(database: Database) -> None:
    await TortoiseUsers().add(user("u1"), None)
    async with write_transaction("rename users") as client:
        one = placeholder(client, 1)
        await client.execute_query(f"UPDATE users SET name = {one}", ["x"])
    found = await TortoiseUsers().find("u1")
    assert found is not None
    assert found.name == "x"


async def test_a_failed_write_says_what_it_was_for(database: Database) -> None:
    with pytest.raises(GatewayError, match="cannot do this") as caught:
        async with write_transaction("do this") as client:
            await client.execute_query("SELECT * FROM nowhere")
    assert caught.value.kind is ErrorKind.INTERNAL
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_a_commit_that_the_server_turns_into_a_rollback_is_an_error(database: Database) -> None:
    with pytest.raises(GatewayError, match="cannot commit"):
        async with database.transaction():
            await TortoiseUsers().add(user("u1"), None)
            # A query that no part of its own protects.
            with pytest.raises(OperationalError):
                await get_connection(database.location.connection).execute_query("SELECT * FROM nowhere")
    assert await TortoiseUsers().count() == 0
