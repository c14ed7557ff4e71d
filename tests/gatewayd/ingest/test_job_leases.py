"""Tests for gatewayd.ingest.job_leases: a worker that lost its file writes nothing."""

from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.job_leases import JOB_TAKEN, JobLease, leased_step
from gatewayd.ingest.records import FileStatus, IngestJob
from gatewayd.ingest.size_classes import SizeClass
from tests.fakes.documents.ingest_services import NOON, Ingest, ingesting


async def lease_of(ingest: Ingest, owner: str) -> JobLease:
    """Upload a file, and lease its job."""
    await ingest.queue.close()
    file = await ingest.upload("a.txt", "one two three " * 50)
    [job] = await ingest.jobs.lease(owner, [file.id], now=NOON, until=NOON + 60)
    return JobLease(ingest.jobs, job)


async def take_over(ingest: Ingest, job: IngestJob) -> JobLease:
    later = NOON + 60
    [taken] = await ingest.jobs.lease("n2", [job.file_id], now=later, until=later + 60)
    assert taken.fence > job.fence
    return JobLease(ingest.jobs, taken)


async def test_without_a_lease_nothing_is_checked(ingest: Ingest) -> None:
    async with leased_step(ingest.stores.transactor, None):
        assert await ingest.jobs.list() == []


async def test_the_holder_processes_the_file(tmp_path: Path) -> None:
    async with ingesting(tmp_path) as ingest:
        lease = await lease_of(ingest, "n1")
        assert await ingest.processor.process(lease.job.file_id, SizeClass.LARGE, lease)
        assert len(ingest.texts(lease.job.file_id)) == 4
        assert await ingest.jobs.list() == []


@pytest.mark.parametrize("step", ["stage", "add_vectors", "publish"])
async def test_a_worker_that_lost_the_file_meanwhile_writes_nothing_more(tmp_path: Path, step: str) -> None:
    """Another node takes over right before a step, and finishes the file first."""
    async with ingesting(tmp_path) as ingest:
        lease = await lease_of(ingest, "n1")
        file_id = lease.job.file_id
        inner = ingest.passages

        class Overtaken:
            is_overtaken = False

            def __getattr__(self, name: str) -> object:
                return getattr(inner, name)

        async def overtake() -> None:
            if not overtaken.is_overtaken:
                overtaken.is_overtaken = True
                other = await take_over(ingest, lease.job)
                assert await ingest.processor.process(file_id, SizeClass.LARGE, other)

        overtaken = Overtaken()
        before = {"stage": "stage", "add_vectors": "missing", "publish": "prepare"}[step]

        async def call(*args: object) -> object:
            await overtake()
            return await getattr(inner, before)(*args)

        setattr(overtaken, before, call)
        object.__setattr__(ingest.stores, "passages", overtaken)
        with pytest.raises(GatewayError, match="another node processes it") as caught:
            await ingest.processor.process(file_id, SizeClass.LARGE, lease)
        assert (caught.value.kind, caught.value.code) == (ErrorKind.CONFLICT, JOB_TAKEN)
        assert len(ingest.texts(file_id)) == await ingest.vectors(file_id) == 4
        assert not await inner.is_staged(file_id)
        file = await ingest.files_store.find(file_id)
        assert file is not None
        assert file.status is FileStatus.COMPLETED


async def test_a_worker_that_lost_the_file_cannot_fail_it(tmp_path: Path) -> None:
    async with ingesting(tmp_path) as ingest:
        lease = await lease_of(ingest, "n1")
        other = await take_over(ingest, lease.job)
        with pytest.raises(GatewayError, match="another node processes it"):
            await ingest.processor.fail(lease.job.file_id, "it cannot be read", lease)
        file = await ingest.files_store.find(lease.job.file_id)
        assert file is not None
        assert file.status is FileStatus.PENDING
        await ingest.processor.fail(lease.job.file_id, "it cannot be read", other)
        file = await ingest.files_store.find(lease.job.file_id)
        assert file is not None
        assert file.status is FileStatus.FAILED
