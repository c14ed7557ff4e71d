import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tortoise.connection import get_connections

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import File, IngestJob
from gatewayd.ingest.size_classes import QueueKey, SizeClass, size_class_of
from gatewayd.nodes.records import Node
from gatewayd.storage.engine.database import Database
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.nodes.nodes import TortoiseNodes
from tests.fakes.documents.records import file, job

FULL = IngestJob(
    "f1", attempts=2, not_before=5, lease_owner="d1", lease_until=9, error="no answer", created_at=3
)


@pytest.fixture
async def jobs(database: Database) -> TortoiseJobs:
    for number in range(20):
        await TortoiseFiles().add(file(f"f{number}"))
    return TortoiseJobs()


async def waiting(jobs: TortoiseJobs, now: int, limit: int = 9) -> list[tuple[str, str]]:
    """Return the owners and ids of the files that wait."""
    return [(key.owner, file_id) for key, file_id in await jobs.waiting(now, limit)]


async def add_large(file_id: str, user_id: str) -> File:
    large = file(file_id, user_id=user_id, size=2 << 20)
    await TortoiseFiles().add(large)
    return large


async def test_a_job_comes_back_as_it_was_and_can_be_replaced(jobs: TortoiseJobs) -> None:
    await jobs.put(FULL)
    assert await jobs.find("f1") == FULL
    await jobs.put(job("f1", created_at=7))
    assert await jobs.list() == [job("f1", created_at=7)]
    assert await jobs.list(leased=True) == []
    assert await jobs.count() == 1


async def test_what_is_absent_is_none_or_false(jobs: TortoiseJobs) -> None:
    for file_id in ("f1", "x", "\x00"):
        assert await jobs.find(file_id) is None
        assert not await jobs.remove(file_id)
        assert not await jobs.renew(file_id, "d1", 9)
    assert await jobs.next_due(1) is None
    assert await jobs.waiting(1, 5) == []
    assert await jobs.lease("d1", ["f1", "x"], now=1, until=2) == []
    await jobs.release("d1")


async def test_a_job_needs_its_file(jobs: TortoiseJobs) -> None:
    with pytest.raises(GatewayError) as caught:
        await jobs.put(job("gone"))
    assert caught.value.kind is ErrorKind.CONFLICT
    assert await jobs.list() == []


async def test_only_due_and_free_jobs_are_taken(jobs: TortoiseJobs) -> None:
    await jobs.put(job("f1", created_at=3))
    await jobs.put(job("f2", created_at=1))
    await jobs.put(job("f3", created_at=2, not_before=11))
    await jobs.put(job("f4", created_at=0, lease_owner="d2", lease_until=11))
    await jobs.put(job("f5", created_at=2, not_before=10, lease_owner="d2", lease_until=10, attempts=1))
    assert await waiting(jobs, 10) == [("owner", "f2"), ("owner", "f5"), ("owner", "f1")]
    taken = await jobs.lease("d1", ["f5", "f4", "f3", "f2", "f0", "gone"], now=10, until=40)
    assert taken == [
        job("f2", created_at=1, lease_owner="d1", lease_until=40, attempts=1),
        job("f5", created_at=2, not_before=10, lease_owner="d1", lease_until=40, attempts=2),
    ]
    assert [await jobs.find(each.file_id) for each in taken] == taken
    assert await waiting(jobs, 10) == [("owner", "f1")]
    assert await jobs.lease("d1", ["f2", "f5"], now=10, until=40) == []
    assert await jobs.lease("d1", [], now=99, until=100) == []


async def test_every_owner_of_files_has_its_oldest_jobs_among_those_that_wait(jobs: TortoiseJobs) -> None:
    for number in range(20):
        await jobs.put(job(f"f{number}", created_at=number))
    for name, user_id in (("x1", "x"), ("y1", "y"), ("x2", "x")):
        await TortoiseFiles().add(file(name, user_id=user_id))
        await jobs.put(job(name, created_at=99))
    found = await waiting(jobs, 99, 2)
    assert [pair for pair in found if pair[0] == "owner"] == [("owner", "f0"), ("owner", "f1")]
    assert [pair for pair in found if pair[0] != "owner"] == [("x", "x1"), ("y", "y1"), ("x", "x2")]


async def test_when_very_many_jobs_wait_every_owner_has_some(
    jobs: TortoiseJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.storage.jobs.MAX_WAITING_ROWS", 3)
    for number in range(3):
        await jobs.put(job(f"f{number}", created_at=number))
    await TortoiseFiles().add(file("x1", user_id="x"))
    await jobs.put(job("x1", created_at=99))
    large = await add_large("large", "y")
    await jobs.put(job(large.id, created_at=100))
    small = [("owner", "f0"), ("x", "x1"), ("owner", "f1")]
    assert await waiting(jobs, 100) == [*small, ("y", "large")]


@pytest.mark.parametrize(
    ("size", "chunks", "expected"),
    [
        (0, 0, SizeClass.SMALL),
        (32 << 10, 32, SizeClass.SMALL),
        ((32 << 10) + 1, 0, SizeClass.MIDDLE),
        (34, 33, SizeClass.MIDDLE),
        (1 << 20, 1024, SizeClass.MIDDLE),
        (34, 1025, SizeClass.LARGE),
        ((1 << 20) + 1, 1, SizeClass.LARGE),
    ],
)
async def test_the_class_of_a_file_follows_its_bytes_and_passages(
    jobs: TortoiseJobs, size: int, chunks: int, expected: SizeClass
) -> None:
    await TortoiseFiles().add(file("x", size=size, chunks=chunks))
    await jobs.put(job("x"))
    assert await jobs.waiting(1, 9) == [(QueueKey("owner", expected), "x")]
    assert size_class_of(size, chunks) is expected


async def test_every_class_has_its_own_first_jobs_of_an_owner(jobs: TortoiseJobs) -> None:
    for number in range(3):
        large = await add_large(f"large{number}", "owner")
        await jobs.put(job(large.id, created_at=number))
        await jobs.put(job(f"f{number}", created_at=number + 50))
    small, large_key = (QueueKey("owner", size) for size in (SizeClass.SMALL, SizeClass.LARGE))
    expected = [(small, "f0"), (small, "f1"), (large_key, "large0"), (large_key, "large1")]
    assert await jobs.waiting(99, 2) == expected


async def test_jobs_of_one_second_are_taken_in_their_order(jobs: TortoiseJobs) -> None:
    for file_id in ("f9", "f3", "f7"):
        await jobs.put(job(file_id, created_at=1))
    assert [file_id for _, file_id in await waiting(jobs, 1)] == ["f9", "f3", "f7"]
    order = [each.file_id for each in await jobs.lease("d1", ["f3", "f7", "f9"], now=1, until=2)]
    assert order == [each.file_id for each in await jobs.list()] == ["f9", "f3", "f7"]


async def test_no_two_daemons_get_one_job(jobs: TortoiseJobs) -> None:
    for number in range(20):
        await jobs.put(job(f"f{number}", created_at=number))
    wanted = [[f"f{number}" for number in range(n, n + 10)] for n in (0, 3, 6, 9, 10, 10)]
    rounds = await asyncio.gather(*(jobs.lease(f"d{n}", wanted[n], now=50, until=90) for n in range(6)))
    taken = [each.file_id for one in rounds for each in one]
    assert len(taken) == len(set(taken)) == 20
    assert all(each.attempts == 1 for each in await jobs.list())
    assert len(await jobs.list(leased=True)) == 20
    await jobs.release(next(each.lease_owner for each in await jobs.list()))
    free = {each.file_id for each in await jobs.list() if not each.lease_owner}
    assert free
    assert {each.file_id for each in await jobs.list(leased=True)} == set(taken) - free
    assert await jobs.count() == 20


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_what_another_daemon_is_taking_is_not_waited_for(
    jobs: TortoiseJobs, database: Database
) -> None:
    for number in range(3):
        await jobs.put(job(f"f{number}", created_at=number))
    async with database.transaction():
        assert [each.file_id for each in await jobs.lease("d1", ["f0"], now=1, until=9)] == ["f0"]
        async with asyncio.timeout(30):
            other = await _lease_outside(database, jobs)
    assert [each.file_id for each in other] == ["f1", "f2"]


async def _lease_outside(database: Database, jobs: TortoiseJobs) -> list[IngestJob]:
    """Take jobs on another connection than that of the transaction."""
    engine: Any = database.engine
    token = get_connections().set(database.location.connection, engine)
    try:
        return list(await jobs.lease("d2", ["f0", "f1", "f2"], now=1, until=9))
    finally:
        get_connections().reset(token)


async def test_only_its_owner_keeps_a_lease(jobs: TortoiseJobs) -> None:
    await jobs.put(FULL)
    assert not await jobs.renew("f1", "d2", 50)
    assert await jobs.renew("f1", "d1", 50)
    assert await jobs.find("f1") == replace(FULL, lease_until=50)
    await jobs.lease("d2", ["f1"], now=60, until=70)
    assert not await jobs.renew("f1", "d1", 90)


async def test_a_clean_stop_takes_the_attempt_back(jobs: TortoiseJobs) -> None:
    await jobs.put(FULL)
    await jobs.put(job("f2", lease_owner="d1", lease_until=9))
    await jobs.put(job("f3", lease_owner="d2", lease_until=9, attempts=1))
    await jobs.put(job("f4", attempts=3))
    await jobs.release("")
    await jobs.release("d1")
    assert await jobs.find("f1") == replace(FULL, lease_owner="", lease_until=0, attempts=1)
    assert await jobs.find("f2") == job("f2")
    assert await jobs.find("f3") == job("f3", lease_owner="d2", lease_until=9, attempts=1)
    assert await jobs.find("f4") == job("f4", attempts=3)


async def test_a_removed_job_is_gone_and_its_file_stays(jobs: TortoiseJobs) -> None:
    await jobs.put(FULL)
    assert await jobs.remove("f1")
    assert not await jobs.remove("f1")
    assert await TortoiseFiles().find("f1") == file("f1")


async def test_free_jobs_of_so_many_attempts_are_due_earlier(jobs: TortoiseJobs) -> None:
    await jobs.put(job("f1", attempts=2, not_before=100))
    await jobs.put(job("f2", attempts=2, not_before=20))
    await jobs.put(job("f3", attempts=3, not_before=100))
    await jobs.put(job("f4", attempts=2, not_before=100, lease_owner="d1", lease_until=100))
    await jobs.hasten(2, 30)
    assert sorted((each.file_id, each.not_before) for each in await jobs.list()) == [
        ("f1", 30),
        ("f2", 20),
        ("f3", 100),
        ("f4", 100),
    ]


async def test_when_the_next_job_is_due(jobs: TortoiseJobs) -> None:
    await jobs.put(job("f1", not_before=20, lease_until=10))
    await jobs.put(job("f2", not_before=10, lease_owner="d1", lease_until=30))
    assert await jobs.next_due(5) == 20
    assert await jobs.lease("d1", ["f1", "f2"], now=19, until=99) == []
    # The first can be had already.
    assert await jobs.next_due(25) == 30
    assert await jobs.next_due(30) is None
    assert [each.file_id for each in await jobs.lease("d1", ["f1", "f2"], now=20, until=99)] == ["f1"]
    assert await jobs.next_due(20) == 30


async def test_a_lease_raises_the_fence_and_its_former_holder_holds_nothing(jobs: TortoiseJobs) -> None:
    await jobs.put(job("f1"))
    [first] = await jobs.lease("d1", ["f1"], now=5, until=9)
    assert first.fence == 6
    assert await jobs.hold(first)
    assert await jobs.count(leased=True) == 1
    [second] = await jobs.lease("d2", ["f1"], now=9, until=20)
    assert second.fence == 10
    assert not await jobs.hold(first)
    assert await jobs.hold(second)
    await jobs.put(replace(second, lease_owner="", lease_until=0, fence=0))
    assert not await jobs.hold(second)
    found = await jobs.find("f1")
    assert found is not None
    assert found.fence == 10, "only leases change it"


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_jobs_of_dead_nodes_and_past_leases_are_abandoned(
    jobs: TortoiseJobs, database: Database
) -> None:
    nodes = TortoiseNodes()
    await nodes.add(Node("alive", "alive"), 30)
    await nodes.add(Node("dead", "dead"), -1)
    until = {"alive": 2**40, "dead": 2**40, "gone": 2**40, "late": 5}
    for number, (name, end) in enumerate(until.items()):
        owner = "alive" if name == "late" else name
        await jobs.put(job(f"f{number}", lease_owner=owner, lease_until=end, created_at=number))
    await jobs.put(job("f9"))
    abandoned = [each.file_id for each in await jobs.list_abandoned()]
    assert abandoned == ["f1", "f2", "f3"]


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_a_takeover_waits_for_a_worker_that_holds_its_job(
    jobs: TortoiseJobs, database: Database
) -> None:
    await jobs.put(job("f1"))
    [first] = await jobs.lease("d1", ["f1"], now=5, until=9)
    started = asyncio.Event()

    async def take_over() -> object:
        await started.wait()
        return await jobs.lease("d2", ["f1"], now=20, until=30)

    taking = asyncio.ensure_future(take_over())
    async with database.transaction():
        assert await jobs.hold(first)
        started.set()
        assert await taking == []
    assert await jobs.lease("d2", ["f1"], now=20, until=30) != []
