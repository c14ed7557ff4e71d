"""The choice of jobs: what fails to be leased is no turn, and what is new is seen in time."""

from collections.abc import Sequence

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.backlog import MAX_PAUSE_SECONDS, PAUSE_FACTOR, WAITING_JOBS_PER_SECOND, JobBacklog
from gatewayd.ingest.records import IngestJob
from gatewayd.ingest.size_classes import QueueKey, SizeClass
from tests.fakes.documents.memory_stores import Library, MemoryFiles, MemoryJobs
from tests.fakes.documents.records import file, job

FILES = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"}
SMALL = {owner: QueueKey(owner, SizeClass.SMALL) for owner in "ab"}


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
async def jobs(library: Library) -> MemoryJobs:
    store = MemoryJobs(library)
    for number, (name, user_id) in enumerate(FILES.items()):
        await MemoryFiles(library).add(file(name, user_id=user_id))
        await store.put(job(name, created_at=number))
    return store


async def leased(backlog: JobBacklog, now: int = 10) -> list[str]:
    return [each.file_id for _, each in await backlog.lease(now=now, until=now + 5)]


async def test_owners_take_turns_and_none_has_more_than_its_share(jobs: MemoryJobs) -> None:
    backlog = JobBacklog(jobs, "d1", 2, 9)
    assert await leased(backlog) == ["a1", "b1", "a2", "b2"]
    assert await leased(backlog) == []
    backlog.end(SMALL["a"])
    assert await leased(backlog, 11) == ["a3"]


async def test_every_size_class_has_its_own_room(jobs: MemoryJobs, library: Library) -> None:
    for number in range(3):
        for size in (100 << 10, 2 << 20):
            name = f"{size}-{number}"
            await MemoryFiles(library).add(file(name, user_id="a", size=size))
            await jobs.put(job(name, created_at=0))
    backlog = JobBacklog(jobs, "d1", 1, 2)
    assert await leased(backlog) == ["a1", "b1", f"{100 << 10}-0", f"{2 << 20}-0"]
    assert backlog.has_room
    backlog.end(SMALL["b"])
    assert await leased(backlog) == ["b2"]
    backlog.end(QueueKey("a", SizeClass.LARGE))
    assert await leased(backlog, 11) == [f"{2 << 20}-1"]


async def test_there_is_no_room_when_every_class_is_full(jobs: MemoryJobs, library: Library) -> None:
    for name, size in (("middle", 100 << 10), ("large", 2 << 20)):
        await MemoryFiles(library).add(file(name, user_id="c", size=size))
        await jobs.put(job(name, created_at=0))
    backlog = JobBacklog(jobs, "d1", 9, 1)
    assert await leased(backlog) == ["a1", "middle", "large"]
    assert not backlog.has_room
    backlog.end(SMALL["a"])
    assert backlog.has_room


async def test_what_could_not_be_leased_is_no_turn(jobs: MemoryJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    backlog = JobBacklog(jobs, "d1", 1, 9)

    async def away(*_: object, **__: object) -> list[IngestJob]:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot take jobs")

    with monkeypatch.context() as patch, pytest.raises(GatewayError):
        patch.setattr(jobs, "lease", away)
        await leased(backlog)
    # Another daemon has taken one since it was read.
    await jobs.lease("d2", ["a2"], now=10, until=99)
    assert await leased(backlog) == ["b2"]
    assert await leased(backlog, now=11) == ["a1"]


async def test_what_is_new_is_seen_when_nothing_is_left_or_a_second_later(jobs: MemoryJobs) -> None:
    backlog = JobBacklog(jobs, "d1", 2, 2)
    assert await leased(backlog) == ["a1", "b1"]
    await jobs.put(job("a1", created_at=0))
    backlog.end(SMALL["b"])
    assert await leased(backlog) == ["b2"]
    assert backlog.is_stale
    backlog.end(SMALL["a"])
    assert await leased(backlog, now=11) == ["a1"]
    assert not backlog.is_stale
    backlog.end(SMALL["a"])
    backlog.end(SMALL["b"])
    assert await leased(backlog, now=11) == ["a2", "a3"]
    backlog.end(SMALL["a"])
    await jobs.put(job("a1", created_at=0))
    assert await leased(backlog, now=11) == ["a1"]


class SlowJobs(MemoryJobs):
    """A queue whose readings take `seconds` each of a clock of their own."""

    def __init__(self, library: Library, seconds: float) -> None:
        super().__init__(library)
        self.seconds = seconds
        self.clock = 0.0
        self.limits: list[int] = []

    async def waiting(self, now: int, limit: int) -> Sequence[tuple[QueueKey, str]]:
        self.clock += self.seconds
        self.limits.append(limit)
        return await super().waiting(now, limit)


async def test_what_takes_long_to_read_is_read_less_often(jobs: MemoryJobs, library: Library) -> None:
    slow = SlowJobs(library, 0.5)
    backlog = JobBacklog(slow, "d1", 1, 9, lambda: slow.clock)
    assert await leased(backlog) == ["a1", "b1"]
    for second in range(1, 10):
        slow.clock = 0.5 + second
        await leased(backlog, 10 + second)
        assert backlog.is_stale
    slow.clock = 0.5 + PAUSE_FACTOR * 0.5
    await leased(backlog, 20)
    assert not backlog.is_stale
    # More at once, as more will be done until the next time.
    assert slow.limits == [WAITING_JOBS_PER_SECOND, WAITING_JOBS_PER_SECOND * 10]


async def test_a_reading_that_hung_does_not_stop_the_queue(jobs: MemoryJobs, library: Library) -> None:
    slow = SlowJobs(library, 1000)
    backlog = JobBacklog(slow, "d1", 1, 9, lambda: slow.clock)
    await leased(backlog)
    slow.clock += MAX_PAUSE_SECONDS
    await leased(backlog, 11)
    assert len(slow.limits) == 2
