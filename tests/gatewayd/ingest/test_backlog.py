"""The choice of jobs: what fails to be leased is no turn, and what is new is seen in time."""

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.ingest.backlog import Backlog
from gatewayd.ingest.records import Job
from tests.fakes.filing import file, job
from tests.fakes.ingest import Library, MemoryFiles, MemoryJobs

FILES = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"}


@pytest.fixture
async def jobs() -> MemoryJobs:
    library = Library()
    store = MemoryJobs(library)
    for number, (name, user_id) in enumerate(FILES.items()):
        await MemoryFiles(library).add(file(name, user_id=user_id))
        await store.put(job(name, created_at=number))
    return store


async def leased(backlog: Backlog, room: int, now: int = 10) -> list[str]:
    return [each.file_id for _, each in await backlog.lease(now=now, until=now + 5, room=room)]


async def test_owners_take_turns_and_none_has_more_than_its_share(jobs: MemoryJobs) -> None:
    backlog = Backlog(jobs, "d1", 2)
    assert await leased(backlog, 1) == ["a1"]
    assert await leased(backlog, 9) == ["b1", "a2", "b2"]
    assert await leased(backlog, 9) == []
    backlog.end("a")
    assert await leased(backlog, 9) == ["a3"]


async def test_what_could_not_be_leased_is_no_turn(jobs: MemoryJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    backlog = Backlog(jobs, "d1", 1)

    async def away(*_: object, **__: object) -> list[Job]:
        raise GatewayError(Kind.UNAVAILABLE, "cannot take jobs")

    with monkeypatch.context() as patch, pytest.raises(GatewayError):
        patch.setattr(jobs, "lease", away)
        await leased(backlog, 9)
    # Another daemon has taken one since it was read.
    await jobs.lease("d2", ["a2"], now=10, until=99)
    assert await leased(backlog, 9) == ["b2"]
    assert await leased(backlog, 9, now=11) == ["a1"]


async def test_what_is_new_is_seen_when_nothing_is_left_or_a_second_later(jobs: MemoryJobs) -> None:
    backlog = Backlog(jobs, "d1", 2)
    assert await leased(backlog, 2) == ["a1", "b1"]
    await jobs.put(job("a1", created_at=0))
    assert await leased(backlog, 1) == ["a2"]
    assert backlog.is_stale
    backlog.end("a")
    assert await leased(backlog, 1, now=11) == ["b2"]
    assert not backlog.is_stale
    assert await leased(backlog, 1, now=11) == ["a1"]
