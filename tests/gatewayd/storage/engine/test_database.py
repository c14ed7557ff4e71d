"""Transactions as the services use them, on every engine."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation, parse, sqlite
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.fakes.storage.postgres import Postgres
from tests.gatewayd.storage.conftest import Stores

Block = Callable[[Database], AbstractAsyncContextManager[None]]

BLOCKS = [
    pytest.param(lambda database: database.transaction(), id="transaction"),
    pytest.param(lambda database: database.exclusive("x"), id="exclusive"),
]
# Steps of the event loop at which a task is cancelled: before, in the middle of and after its commit.
STEPS = 60


async def ids() -> list[str]:
    found, _ = await TortoiseUsers().list(order_by="name")
    return [each.id for each in found]


@pytest.mark.parametrize("block", BLOCKS)
async def test_a_block_keeps_everything(database: Database, block: Block) -> None:
    async with block(database):
        await TortoiseUsers().add(user("a"), None)
        await TortoiseUsers().add(user("b"), None)
    assert await ids() == ["a", "b"]


@pytest.mark.parametrize("block", BLOCKS)
async def test_a_block_that_raises_keeps_nothing(database: Database, block: Block) -> None:
    with pytest.raises(ZeroDivisionError):
        async with block(database):
            await TortoiseUsers().add(user("a"), None)
            await TortoiseValues().put({"X": 1}, at=1, by="t")
            raise ZeroDivisionError
    assert await ids() == []
    assert await TortoiseValues().load() == {}


@pytest.mark.parametrize("failure", [TimeoutError("late"), ConnectionResetError(), OSError("disk")])
async def test_what_the_caller_raises_is_not_blamed_on_the_database(
    database: Database, failure: OSError
) -> None:
    with pytest.raises(type(failure)) as caught:
        async with database.transaction():
            raise failure
    assert caught.value is failure


async def test_a_rehearsal_keeps_nothing_and_shows_its_own_changes(stores: Stores) -> None:
    async with stores.transactor.rehearsal():
        await stores.users.add(user("a"), None)
        assert await stores.users.count() == 1
    assert await stores.users.count() == 0


async def test_a_rehearsal_raises_what_was_raised_inside(stores: Stores) -> None:
    await stores.users.add(user("a"), None)
    with pytest.raises(GatewayError, match="taken"):
        async with stores.transactor.rehearsal():
            await stores.users.add(user("a"), None)


async def test_a_rehearsal_inside_a_transaction_undoes_itself_only(stores: Stores) -> None:
    async with stores.transactor.transaction():
        await stores.users.add(user("a"), None)
        async with stores.transactor.rehearsal():
            await stores.users.add(user("b"), None)
    assert [each.id for each in (await stores.users.list())[0]] == ["a"]


async def test_an_inner_failure_that_is_caught_keeps_the_outer(stores: Stores) -> None:
    async with stores.transactor.transaction():
        await stores.users.add(user("a"), None)
        with pytest.raises(ZeroDivisionError):
            async with stores.transactor.transaction():
                await stores.users.add(user("b"), None)
                raise ZeroDivisionError
        await stores.users.add(user("c"), None)
    assert [each.id for each in (await stores.users.list(order_by="name"))[0]] == ["a", "c"]


async def test_an_outer_failure_takes_the_inner_along(stores: Stores) -> None:
    with pytest.raises(ZeroDivisionError):
        async with stores.transactor.transaction():
            async with stores.transactor.exclusive("x"):
                await stores.users.add(user("a"), None)
            raise ZeroDivisionError
    assert await stores.users.count() == 0


async def test_a_conflict_that_is_caught_inside_a_transaction_does_not_end_it(stores: Stores) -> None:
    await stores.users.add(user("a"), None)
    async with stores.transactor.transaction():
        with pytest.raises(GatewayError):
            await stores.users.add(user("b", email="a@example.org"), None)
        await stores.users.add(user("c"), None)
    assert [each.id for each in (await stores.users.list(order_by="name"))[0]] == ["a", "c"]


async def test_other_tasks_do_not_see_what_is_not_committed(database: Database) -> None:
    written, checked = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        async with database.transaction():
            await TortoiseUsers().add(user("a"), None)
            written.set()
            await checked.wait()

    writer = asyncio.create_task(write())
    await written.wait()
    reader = asyncio.create_task(ids())
    # PostgreSQL answers from the last commit; the one connection of SQLite answers after the writer.
    done, _ = await asyncio.wait([reader], timeout=None if not database.location.is_sqlite else 0.05)
    seen = [task.result() for task in done]
    assert seen == ([] if database.location.is_sqlite else [[]])
    checked.set()
    await writer
    assert await reader == (["a"] if database.location.is_sqlite else [])
    assert await ids() == ["a"]


async def test_a_task_that_outlives_its_transaction_is_outside_of_it(database: Database) -> None:
    ended = asyncio.Event()

    async def late() -> None:
        await ended.wait()
        await TortoiseUsers().add(user("late"), None)

    with pytest.raises(ZeroDivisionError):
        async with database.transaction():
            task = asyncio.create_task(late())
            await TortoiseUsers().add(user("a"), None)
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        async with database.transaction():
            ended.set()
            await TortoiseUsers().add(user("b"), None)
            if database.location.is_sqlite:
                await asyncio.sleep(0)
            else:
                await task
            raise ZeroDivisionError
    await task
    assert await ids() == ["late"]


@pytest.mark.parametrize("block", BLOCKS)
async def test_cancellation_at_any_step_keeps_all_or_nothing(database: Database, block: Block) -> None:
    async def work(name: str) -> None:
        async with block(database):
            await TortoiseUsers().add(user(f"{name}-1"), None)
            await TortoiseUsers().add(user(f"{name}-2"), None)

    finished = set()
    for steps in range(STEPS):
        task = asyncio.create_task(work(f"n{steps}"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        if not (await asyncio.gather(task, return_exceptions=True))[0]:
            finished.add(f"n{steps}")
    stored = await ids()
    names = {name.partition("-")[0] for name in stored}
    assert len(stored) == 2 * len(names)
    assert finished <= names
    # Nothing is held: every connection of the pool can still be used.
    await asyncio.gather(*(work(f"after{number}") for number in range(8)))


async def test_cancellation_inside_a_transaction_keeps_nothing(database: Database) -> None:
    inside = asyncio.Event()

    async def work() -> None:
        async with database.transaction():
            await TortoiseUsers().add(user("a"), None)
            inside.set()
            await asyncio.Event().wait()

    for _ in range(8):
        inside.clear()
        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await ids() == []
    await TortoiseUsers().add(user("b"), None)
    assert await ids() == ["b"]


async def test_waiting_for_a_turn_can_be_cancelled(database: Database) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with database.exclusive("x"):
            inside.set()
            await leave.wait()

    async def second() -> None:
        async with database.exclusive("x"):
            await TortoiseUsers().add(user("a"), None)

    holder = asyncio.create_task(first())
    await inside.wait()
    waiter = asyncio.create_task(second())
    for _ in range(20):
        await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    leave.set()
    await holder
    await second()
    assert await ids() == ["a"]


async def count_up(database: Database) -> None:
    async with database.exclusive("counter"):
        before = (await TortoiseValues().load()).get("N", 0)
        await asyncio.sleep(0)
        await TortoiseValues().put({"N": before + 1}, at=1, by="t")


async def test_exclusive_blocks_of_one_process_exclude_each_other(database: Database) -> None:
    await asyncio.gather(*(count_up(database) for _ in range(16)))
    assert (await TortoiseValues().load())["N"] == 16


async def test_exclusive_blocks_of_two_processes_exclude_each_other(location: DatabaseLocation) -> None:
    async def one_process(start: asyncio.Barrier) -> None:
        async with Database.open(location) as database:
            await start.wait()
            for _ in range(10):
                await count_up(database)

    start = asyncio.Barrier(2)
    await asyncio.gather(one_process(start), one_process(start))
    async with Database.open(location):
        assert (await TortoiseValues().load())["N"] == 20


async def test_of_sixteen_equal_additions_one_wins(database: Database) -> None:
    people = [user(f"u{number}", email="same@example.org") for number in range(16)]
    outcomes = await asyncio.gather(
        *(TortoiseUsers().add(person, None) for person in people), return_exceptions=True
    )
    assert outcomes.count(None) == 1
    refused = [outcome for outcome in outcomes if isinstance(outcome, GatewayError)]
    assert [(error.kind, error.param) for error in refused] == [(ErrorKind.CONFLICT, "email")] * 15


async def test_racing_changes_of_one_row_are_all_made_or_refused(database: Database) -> None:
    await TortoiseUsers().add(user("a"), None)

    async def rename(number: int) -> bool:
        return await TortoiseUsers().change(replace(user("a"), name=f"name {number}"))

    assert all(await asyncio.gather(*(rename(number) for number in range(16))))
    assert await TortoiseUsers().count() == 1


async def test_it_answers(database: Database) -> None:
    await database.ping()


async def test_a_second_owner_is_refused_until_the_first_has_gone(location: DatabaseLocation) -> None:
    async with Database.open(location) as first:
        await first.own()
        await first.ping()
        async with Database.open(location) as second:
            with pytest.raises(GatewayError, match="another gatewayd") as refused:
                await second.own()
            assert refused.value.kind is ErrorKind.CONFLICT
            assert refused.value.param == "database_url"
            await second.ping()
    async with Database.open(location) as third:
        await third.own()


async def test_owners_of_two_databases_do_not_meet(
    location: DatabaseLocation, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if location.is_sqlite:
        other = sqlite(tmp_path / "other.db")
    else:
        postgres: Postgres = request.getfixturevalue("postgres")
        other = parse(postgres.create_database())
    async with Database.open(location) as first, Database.open(other) as second:
        await first.own()
        await second.own()


@pytest.fixture
def nowhere(tmp_path: Path) -> list[DatabaseLocation]:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"no database at all" * 1000)
    return [
        sqlite(tmp_path / "missing" / "gatewayd.db"),
        sqlite(tmp_path),
        sqlite(garbage),
    ]


async def test_what_cannot_be_opened_is_a_matter_of_configuration(nowhere: list[DatabaseLocation]) -> None:
    for location in nowhere:
        with pytest.raises(GatewayError, match=r"^cannot open the database") as refused:
            async with Database.open(location):
                pass
        assert refused.value.kind is ErrorKind.NOT_CONFIGURED
        assert refused.value.param == "database_url"
        assert "Traceback" not in refused.value.message
        assert str(location.path) in refused.value.message


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ("localhost:1", "localhost:1/gatewayd: .*(connection refused)"),
        ("no-such-host.invalid:5433", "no-such-host.invalid:5433/gatewayd: .*(.*name.*)"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_named_with_the_cause(server: str, told: str) -> None:
    pattern = told.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(GatewayError, match=f"^cannot open the database {pattern}$") as refused:
        async with Database.open(parse(f"postgresql://ada:secret@{server}/gatewayd")):
            pass
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    assert "secret" not in refused.value.message


async def test_a_server_that_is_down_may_come_back(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match=r"^cannot open the database") as refused:
        async with Database.open(parse(f"postgresql://u@/gatewayd?host={tmp_path}")):
            pass
    assert refused.value.kind is ErrorKind.UNAVAILABLE
