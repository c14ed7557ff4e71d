"""The lease under which a file is processed: nothing is written without it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.interfaces import JobStore
from gatewayd.ingest.records import IngestJob
from gatewayd.transactions import Transactor

JOB_TAKEN: Final = "job_taken"
"""Code of the conflict of a worker whose file another node has taken over."""


LOOK_SECONDS: Final = 1.0
"""Interval at which `wait_for_leases` looks."""


class ProcessingLease(Protocol):
    """What the steps of processing ask before they write."""

    async def check(self) -> None:
        """Lock the job for the transaction of the caller; conflict when another node has taken the file."""
        ...


class JobLease:
    """The lease of a node.

    A takeover waits for the transactions that have checked it, and makes later ones fail.
    """

    def __init__(self, jobs: JobStore, job: IngestJob) -> None:
        self._jobs = jobs
        self.job = job

    async def check(self) -> None:
        """Lock the job for the transaction of the caller; conflict when another node has taken the file."""
        if not await self._jobs.hold(self.job):
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot go on with file {self.job.file_id!r}: it is gone, or another node processes it",
                code=JOB_TAKEN,
            )


async def wait_for_leases(jobs: JobStore) -> None:
    """Return when no lease of now is held any more."""
    held = {(job.file_id, job.fence) for job in await jobs.list(leased=True)}
    while held:
        await asyncio.sleep(LOOK_SECONDS)
        held &= {(job.file_id, job.fence) for job in await jobs.list(leased=True)}


@asynccontextmanager
async def leased_step(transactor: Transactor, lease: ProcessingLease | None) -> AsyncIterator[None]:
    """Run a block in a transaction that has checked the lease, without one when there is no lease to lose."""
    if lease is None:
        yield
        return
    async with transactor.transaction():
        await lease.check()
        yield
