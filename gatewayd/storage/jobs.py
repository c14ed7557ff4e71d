"""Store of ingest jobs."""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.ingest.records import IngestJob
from gatewayd.ingest.size_classes import CLASS_LIMITS, QueueKey, SizeClass
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.statements import SqlStatement, stored_values
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.nodes.nodes import ALIVE, NOW
from gatewayd.storage.tables.documents import JobRow

MAX_WAITING_ROWS: Final = 2000
"""Maximum number of waiting jobs of a size class that one query returns."""

# One user may have most of the jobs of a size class: the first job of each user precedes any second one.
SELECT_WAITING: Final = (
    "WITH due AS (SELECT files.user_id, jobs.file_id, jobs.created_at, jobs.id, {size} AS size "
    "FROM ingest_jobs AS jobs JOIN files ON files.id = jobs.file_id "
    "WHERE jobs.not_before <= {now} AND jobs.lease_until <= {now}), "
    "placed AS (SELECT due.*, "
    "ROW_NUMBER() OVER (PARTITION BY user_id, size ORDER BY created_at, id) AS place FROM due), "
    "ranked AS (SELECT placed.*, "
    "ROW_NUMBER() OVER (PARTITION BY size ORDER BY place, created_at, id) AS place_in_class "
    "FROM placed WHERE place <= {limit}) "
    "SELECT user_id, file_id, size FROM ranked WHERE place_in_class <= {rows} ORDER BY size, place_in_class"
)
# The result of `size_class_of` in SQL.
SIZE_CLASS_CASE: Final = (
    "CASE "
    + " ".join(
        f"WHEN files.size <= {limit.max_bytes} AND files.chunks <= {limit.max_passages} THEN {limit.size:d}"
        for limit in CLASS_LIMITS
    )
    + f" ELSE {SizeClass.LARGE:d} END"
)
# MATERIALIZED: the free jobs are selected once. On PostgreSQL jobs that another daemon has locked are
# skipped.
LEASE_JOBS: Final = (
    "WITH free AS MATERIALIZED (SELECT id FROM ingest_jobs "
    "WHERE file_id {files} AND not_before <= {now} AND lease_until <= {now}{skipping}) "
    "UPDATE ingest_jobs SET attempts = attempts + 1, lease_owner = {owner}, lease_until = {until}, "
    "fence = {greatest}(fence, {now}) + 1 "
    "WHERE id IN (SELECT id FROM free) RETURNING *"
)
SKIP_LOCKED: Final = " FOR UPDATE SKIP LOCKED"
RELEASE_JOBS: Final = (
    "UPDATE ingest_jobs SET lease_owner = '', lease_until = 0, "
    "attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END WHERE lease_owner = {owner}"
)
SELECT_NEXT_DUE: Final = (
    "SELECT MIN(CASE WHEN lease_until > not_before THEN lease_until ELSE not_before END) AS due"
    " FROM ingest_jobs WHERE not_before > {now} OR lease_until > {now}"
)


HOLD_JOB: Final = (
    "SELECT id FROM ingest_jobs WHERE file_id = {file} AND lease_owner = {owner} AND fence = {fence}{locking}"
)
SELECT_ABANDONED: Final = (
    "SELECT * FROM ingest_jobs WHERE lease_owner <> '' "  # noqa: S608 - constants
    f"AND (lease_until * 1000 <= {NOW} OR lease_owner NOT IN {ALIVE}) ORDER BY created_at, id"
    " FOR UPDATE SKIP LOCKED"
)


class TortoiseJobs:
    """Implements `ingest.interfaces.JobStore`."""

    async def put(self, job: IngestJob) -> None:
        """Insert the job of a file, or replace it."""
        columns = {
            "file_id": job.file_id,
            "attempts": job.attempts,
            "not_before": job.not_before,
            "lease_owner": job.lease_owner,
            "lease_until": job.lease_until,
            "error": job.error,
            "created_at": job.created_at,
        }
        async with write_transaction("queue the file"):
            await upsert_rows(JobRow, [columns], ["file_id"])

    async def find(self, file_id: str) -> IngestJob | None:
        """Return the job of a file."""
        if not fits_columns(JobRow, file_id=file_id):
            return None
        with translate_errors("read a job"):
            row = await JobRow.get_or_none(file_id=file_id)
        return None if row is None else _job_of(row)

    async def waiting(self, now: int, limit: int) -> Sequence[tuple[QueueKey, str]]:
        """Return the due and free jobs, up to `limit` of each key, as (key, file id)."""
        statement = SqlStatement(JobRow._meta.db)
        places = {"limit": statement.bind(limit), "rows": statement.bind(MAX_WAITING_ROWS)}
        sql = SELECT_WAITING.format(now=statement.bind(now), size=SIZE_CLASS_CASE, **places)
        with translate_errors("read the queue"):
            rows = await statement.run(sql)
        return [(QueueKey(row["user_id"], SizeClass(row["size"])), row["file_id"]) for row in rows]

    async def lease(
        self, owner: str, file_ids: Sequence[str], *, now: int, until: int
    ) -> Sequence[IngestJob]:
        """Lease the due and free jobs of some files and count an attempt; two callers never get the same
        job."""
        if not file_ids:
            return []
        [holder] = stored_values(JobRow, {"lease_owner": owner})
        async with write_transaction("lease jobs") as client:
            statement = SqlStatement(client)
            places = {
                "now": statement.bind(now),
                "files": statement.among(file_ids),
                "owner": statement.bind(holder),
                "until": statement.bind(until),
                "skipping": SKIP_LOCKED if statement.is_postgres else "",
                # Not from 0 again for a job that was removed and queued again.
                "greatest": "GREATEST" if statement.is_postgres else "MAX",
            }
            taken = await statement.run(LEASE_JOBS.format(**places))
        rows = [JobRow._init_from_db(**row) for row in taken]
        return [_job_of(row) for row in sorted(rows, key=_age)]

    async def renew(self, file_id: str, owner: str, until: int) -> bool:
        """Extend a lease; False when `owner` no longer holds it."""
        if not fits_columns(JobRow, file_id=file_id, lease_owner=owner):
            return False
        async with write_transaction("renew the lease of the job"):
            mine = JobRow.filter(file_id=file_id, lease_owner=owner)
            return await mine.update(lease_until=until) > 0

    async def hold(self, job: IngestJob) -> bool:
        """Lock a job for the caller's transaction; False when its owner or its fence is another one now."""
        async with write_transaction("hold the job") as client:
            statement = SqlStatement(client)
            values = {
                "file": statement.bind(job.file_id),
                "owner": statement.bind(job.lease_owner),
                "fence": statement.bind(job.fence),
                "locking": " FOR UPDATE" if statement.is_postgres else "",
            }
            return bool(await statement.run(HOLD_JOB.format(**values)))

    async def list_abandoned(self) -> Sequence[IngestJob]:
        """Return the leased jobs of dead nodes, and those whose lease is over, locked for the transaction."""
        async with write_transaction("look for abandoned jobs") as client:
            rows = await SqlStatement(client).run(SELECT_ABANDONED)
        return [_job_of(JobRow._init_from_db(**row)) for row in rows]

    async def release(self, owner: str) -> None:
        """Release all leases of an owner and uncount their attempts."""
        if not owner or not fits_columns(JobRow, lease_owner=owner):
            return
        async with write_transaction("release jobs") as client:
            statement = SqlStatement(client)
            await statement.run(RELEASE_JOBS.format(owner=statement.bind(owner)))

    async def remove(self, file_id: str) -> bool:
        """Delete a job."""
        if not fits_columns(JobRow, file_id=file_id):
            return False
        async with write_transaction("remove the job"):
            return await JobRow.filter(file_id=file_id).delete() > 0

    async def hasten(self, attempts: int, latest: int) -> None:
        """Set `not_before` of the free jobs with this number of attempts to `latest` where it is later."""
        async with write_transaction("change jobs"):
            late = JobRow.filter(attempts=attempts, lease_owner="", not_before__gt=latest)
            await late.update(not_before=latest)

    async def list(self, *, leased: bool = False) -> Sequence[IngestJob]:
        """Return all jobs, or only the `leased` ones, oldest first."""
        wanted = JobRow.exclude(lease_owner="") if leased else JobRow.all()
        with translate_errors("list jobs"):
            rows = await wanted.order_by("created_at", "id")
        return [_job_of(row) for row in rows]

    async def count(self, *, leased: bool = False) -> int:
        """Return the number of jobs, or of the `leased` ones."""
        wanted = JobRow.exclude(lease_owner="") if leased else JobRow.all()
        with translate_errors("count jobs"):
            return await wanted.count()

    async def next_due(self, now: int) -> int | None:
        """Return the earliest time after `now` at which another job becomes due or free, None without one."""
        statement = SqlStatement(JobRow._meta.db)
        sql = SELECT_NEXT_DUE.format(now=statement.bind(now))
        with translate_errors("read the queue"):
            [row] = await statement.run(sql)
        due: int | None = row["due"]
        return due


def _age(row: JobRow) -> tuple[int, int]:
    return row.created_at, row.id


def _job_of(row: Any) -> IngestJob:
    return IngestJob(
        file_id=row.file_id,
        attempts=row.attempts,
        not_before=row.not_before,
        lease_owner=row.lease_owner,
        lease_until=row.lease_until,
        error=row.error,
        created_at=row.created_at,
        fence=row.fence,
    )
