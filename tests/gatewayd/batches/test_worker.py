"""Tests for gatewayd.batches.worker, over stores in memory."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.batches import run as run_module
from gatewayd.batches import worker as worker_module
from gatewayd.batches.files import BatchFiles, FileWishes
from gatewayd.batches.progress_file import FinishedLine, ProgressFile
from gatewayd.batches.records import Batch, BatchDialect, BatchFile, BatchStatus
from gatewayd.batches.run import LineServices
from gatewayd.batches.worker import MAX_CRASHES, BatchWorker
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.memory_answers import MemoryAnswers
from tests.fakes.providers.models import make_actor


class MemoryBatches:
    """A `BatchStore` of what the worker asks for."""

    def __init__(self) -> None:
        self.rows: dict[str, Batch] = {}

    async def find(self, batch_id: str) -> Batch | None:
        return self.rows.get(batch_id)

    async def unfinished(self) -> Sequence[Batch]:
        return [batch for batch in self.rows.values() if batch.is_unfinished]

    async def change(self, batch_id: str, states: Collection[BatchStatus], **columns: Any) -> bool:
        found = self.rows.get(batch_id)
        if found is None or found.status not in states:
            return False
        self.rows[batch_id] = replace(found, **columns)
        return True


class MemoryFiles:
    """A `BatchFileStore` of what the worker asks for."""

    def __init__(self) -> None:
        self.rows: dict[str, BatchFile] = {}

    async def add(self, file: BatchFile) -> None:
        self.rows[file.id] = file

    async def usage(self, user_id: str) -> tuple[int, int]:
        return 0, 0

    async def named(self, user_id: str, purpose: str, name: str) -> Sequence[str]:
        wanted = (user_id, purpose, name)
        return [each.id for each in self.rows.values() if (each.user_id, each.purpose, each.name) == wanted]

    async def remove(self, file_ids: Iterable[str]) -> None:
        for file_id in file_ids:
            self.rows.pop(file_id, None)


@dataclass
class Site:
    """A worker, and the user's side of it."""

    folder: Path
    act: Callable[[], None] = lambda: None
    batches: MemoryBatches = field(default_factory=MemoryBatches)
    rows: MemoryFiles = field(default_factory=MemoryFiles)
    tasks: TaskRegistry = field(default_factory=TaskRegistry)
    now: int = 5
    asked: int = 0

    def __post_init__(self) -> None:
        self.blobs = LocalBlobs(self.folder / "files")
        self.files = BatchFiles(self.rows, self.blobs, lambda: self.now)  # type: ignore[arg-type]
        lines = LineServices(
            self, self, self, lambda *_: (500, {}), asyncio.Semaphore(2), 2, lambda: self.now
        )
        folder = self.folder / "progress"
        self.worker = BatchWorker(
            self.batches,  # type: ignore[arg-type]
            self.files,
            lines,
            self.tasks,
            folder,
            lambda: self.now,
        )

    def begin_run(self, account: str) -> Callable[[], None]:
        return lambda: None

    async def of(self, batch: Batch) -> Actor:
        return make_actor(batch.user_id)

    async def run(self, batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        self.asked += 1
        self.act()
        return {"n": body["n"]}

    async def add(self, dialect: BatchDialect = BatchDialect.OPENAI, **changes: Any) -> str:
        async def lines() -> AsyncIterator[bytes]:
            for number in range(3):
                line = {"custom_id": f"c{number}", "body": {"n": number}, "params": {"n": number}}
                yield json.dumps({**line, "method": "POST", "url": "/v1/embeddings"}).encode() + b"\n"

        file = await self.files.upload("u1", "a", lines(), lambda: FileWishes("batch"))
        batch = Batch("b", "u1", dialect, "/v1/embeddings", file.id, BatchStatus.VALIDATING, 1, 9, total=3)
        self.batches.rows["b"] = replace(batch, **changes)
        return file.id

    async def finish(self) -> Batch | None:
        """Run the worker until nothing is left to do."""
        while True:
            await self.worker.start_waiting()
            if not self.tasks.list():
                return self.batches.rows.get("b")
            while self.tasks.list():
                await asyncio.sleep(0.001)

    def results(self, file_id: str | None) -> dict[str, Any]:
        assert file_id is not None
        lines = map(json.loads, self.blobs.path(file_id).read_text().splitlines())
        return {line["custom_id"]: line for line in lines}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def test_a_batch_from_its_lines_to_its_results(site: Site) -> None:
    await site.add()
    done = await site.finish()
    assert done is not None
    assert (done.status, done.completed, done.failed, done.error_file_id) == ("completed", 3, 0, None)
    found = site.results(done.output_file_id)
    assert [found[f"c{n}"]["response"]["body"] for n in range(3)] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert list((site.folder / "progress").iterdir()) == []


async def test_a_late_batch_says_what_did_not_run(site: Site) -> None:
    await site.add(status=BatchStatus.IN_PROGRESS, expires_at=5)
    done = await site.finish()
    assert done is not None
    assert (done.status, done.output_file_id, site.asked) == (BatchStatus.EXPIRED, None, 0)
    codes = {line["error"]["code"] for line in site.results(done.error_file_id).values()}
    assert codes == {"batch_expired"}


@pytest.mark.parametrize(
    ("changes", "kind", "status"),
    [
        ({"expires_at": 5, "status": BatchStatus.IN_PROGRESS}, "expired", "expired"),
        ({"status": BatchStatus.CANCELLING, "cancelled_at": 2}, "canceled", "cancelled"),
        ({"status": BatchStatus.FINALIZING, "cancelled_at": None}, "succeeded", "completed"),
    ],
)
async def test_the_results_of_messages_have_every_request(
    site: Site, changes: dict[str, Any], kind: str, status: str
) -> None:
    await site.add(BatchDialect.ANTHROPIC, **changes)
    done = await site.finish()
    assert done is not None
    assert done.status == status
    found = site.results(done.output_file_id)
    assert [found[f"c{n}"]["result"]["type"] for n in range(3)] == [kind] * 3


async def test_a_batch_that_crashes_is_given_up(site: Site) -> None:
    def crash() -> None:
        raise ZeroDivisionError

    site.act = crash
    await site.add()
    done = await site.finish()
    assert done is not None
    assert (done.status, done.errors[0]["code"]) == (BatchStatus.FAILED, "internal")
    assert 0 < site.asked <= 2 * MAX_CRASHES
    assert list((site.folder / "progress").iterdir()) == []


@pytest.mark.parametrize("dialect", list(BatchDialect))
async def test_a_batch_that_is_given_up_has_the_answers_that_it_got(
    site: Site, dialect: BatchDialect
) -> None:
    def crash() -> None:
        if site.asked > 2:
            raise ZeroDivisionError

    site.act = crash
    await site.add(dialect)
    done = await site.finish()
    assert done is not None
    assert (done.status, done.completed, done.failed) == (BatchStatus.FAILED, 2, 0)
    answers = site.results(done.output_file_id)
    rest = site.results(done.error_file_id) if dialect is BatchDialect.OPENAI else answers
    missing = [rest[f"c{n}"] for n in range(3) if "failed before" in json.dumps(rest.get(f"c{n}"))]
    assert len(missing) == 1
    assert len(answers) + (dialect is BatchDialect.OPENAI) == 3
    if dialect is BatchDialect.ANTHROPIC:
        assert missing[0]["result"]["type"] == "errored"
    assert list((site.folder / "progress").iterdir()) == []


async def test_a_batch_whose_answers_cannot_be_written_is_given_up_without_them(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ProgressFile, "open", crash)
    await site.add()
    done = await site.finish()
    assert done is not None
    assert (done.status, done.output_file_id, done.errors[0]["code"]) == (
        BatchStatus.FAILED,
        None,
        "internal",
    )


async def test_a_batch_of_a_deleted_user_leaves_nothing(site: Site) -> None:
    await site.add()
    site.act = lambda: site.batches.rows.clear()
    assert await site.finish() is None
    assert len(site.rows.rows) == 1
    assert list((site.folder / "progress").iterdir()) == []


async def test_a_batch_of_another_daemon_is_left_to_it(site: Site) -> None:
    file_id = await site.add()
    site.blobs.path(file_id).unlink()
    await site.worker.start_waiting()
    assert site.tasks.list() == {}
    assert site.batches.rows["b"].status is BatchStatus.VALIDATING
    site.now = 9 + worker_module.LOST_SECONDS + 1
    await site.worker.start_waiting()
    assert site.batches.rows["b"].status is BatchStatus.EXPIRED


@pytest.mark.parametrize("failure", [OSError("full"), GatewayError(ErrorKind.UNAVAILABLE, "cannot write")])
async def test_a_batch_waits_for_disk_and_database(
    site: Site, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    monkeypatch.setattr(worker_module, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(run_module, "MAX_PAUSE_SECONDS", 0.001)
    failures = [failure] * (2 * MAX_CRASHES)
    append = ProgressFile.append

    def fail(progress: ProgressFile, *records: FinishedLine) -> None:
        if failures:
            raise failures.pop()
        append(progress, *records)

    monkeypatch.setattr(ProgressFile, "append", fail)
    await site.add()
    done = await site.finish()
    assert done is not None
    assert (done.status, done.completed, failures) == (BatchStatus.COMPLETED, 3, [])


async def test_an_end_that_is_not_stored_leaves_one_file_of_results(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that is killed at this moment leaves the same."""
    monkeypatch.setattr(worker_module, "PAUSE_SECONDS", 0.001)
    failures = [GatewayError(ErrorKind.UNAVAILABLE, "cannot write")] * 2
    change = site.batches.change

    async def fail(batch_id: str, states: Collection[BatchStatus], **columns: Any) -> bool:
        if failures and "ended_at" in columns:
            raise failures.pop()
        return await change(batch_id, states, **columns)

    monkeypatch.setattr(site.batches, "change", fail)
    await site.add()
    done = await site.finish()
    assert done is not None
    assert failures == []
    results = [file.id for file in site.rows.rows.values() if file.purpose == "batch_output"]
    assert results == [done.output_file_id]
    stored = [path for path in (site.folder / "files").rglob("file-*") if path.is_file()]
    assert len(stored) == 2


async def test_answers_of_batches_that_are_gone_are_deleted_at_the_start(site: Site) -> None:
    await site.worker.sweep()
    progress = site.folder / "progress"
    progress.mkdir()
    for name in ("b", "gone"):
        (progress / name).write_bytes(b"")
    await site.add()
    await site.worker.sweep()
    assert [path.name for path in progress.iterdir()] == ["b"]


async def test_a_batch_that_another_node_cancels_begins_no_further_line(site: Site) -> None:
    """The other node changes the row, and cannot reach the run."""

    held = asyncio.Event()

    async def run(batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        site.asked += 1
        await held.wait()
        return {"n": body["n"]}

    site.run = run  # type: ignore[method-assign]
    await site.add()
    await site.worker.start_waiting()
    async with asyncio.timeout(5):
        while site.asked < 2:
            await asyncio.sleep(0.001)
    row = site.batches.rows["b"]
    site.batches.rows["b"] = replace(row, status=BatchStatus.CANCELLING, cancelled_at=site.now)
    await site.worker.start_waiting()
    held.set()
    done = await site.finish()
    assert done is not None
    assert (done.status, done.completed, site.asked) == (BatchStatus.CANCELLED, 2, 2)


async def test_another_worker_goes_on_from_the_rows(site: Site, tmp_path: Path) -> None:
    """The first node dies with one answer stored; the results are those of both nodes."""
    answers = MemoryAnswers()

    def worker(name: str) -> BatchWorker:
        lines = LineServices(
            site, site, site, lambda *_: (500, {}), asyncio.Semaphore(1), 1, lambda: site.now
        )
        return BatchWorker(
            site.batches,  # type: ignore[arg-type]
            site.files,
            lines,
            site.tasks,
            tmp_path / name,
            lambda: site.now,
            answers=answers,
        )

    stuck = asyncio.Event()
    run, asked = site.run, site.asked

    async def run_one(batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        if site.asked > asked:
            stuck.set()
            await asyncio.Event().wait()
        return await run(batch, body, actor, request_id)

    site.run = run_one  # type: ignore[method-assign]
    await site.add()
    await worker("one").start_waiting()
    await stuck.wait()
    await site.tasks.close()
    site.tasks, site.run = TaskRegistry(), run  # type: ignore[method-assign]
    site.worker = worker("two")
    await site.worker.sweep()
    done = await site.finish()
    assert done is not None
    assert (done.status, done.completed, site.asked) == (BatchStatus.COMPLETED, 3, 3)
    found = site.results(done.output_file_id)
    assert [found[f"c{n}"]["response"]["body"] for n in range(3)] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert (answers.pieces, list((tmp_path / "two").iterdir())) == ([], [])


async def test_a_worker_looks_as_often_as_it_is_told(site: Site) -> None:
    """Nobody wakes the worker of a node for the batches of others."""
    worker = BatchWorker(
        site.batches,  # type: ignore[arg-type]
        site.files,
        LineServices(site, site, site, lambda *_: (500, {}), asyncio.Semaphore(2), 2, lambda: site.now),
        site.tasks,
        site.folder / "progress",
        lambda: site.now,
        poll=0.01,
    )
    working = asyncio.ensure_future(worker.work())
    try:
        await asyncio.sleep(0.05)
        await site.add()
        async with asyncio.timeout(5):
            while site.batches.rows["b"].is_unfinished:
                await asyncio.sleep(0.001)
    finally:
        working.cancel()
    assert site.asked == 3


async def test_a_node_that_loses_the_duty_often_gives_no_batch_up(site: Site) -> None:
    begun = asyncio.Event()

    async def wait(*_: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    run, site.run = site.run, wait  # type: ignore[method-assign]
    await site.add()
    for _ in range(MAX_CRASHES + 1):
        begun.clear()
        working = asyncio.create_task(site.worker.work())
        await begun.wait()
        working.cancel()
        await asyncio.wait([working])
    site.run = run  # type: ignore[method-assign]
    done = await site.finish()
    assert done is not None
    assert (done.status, done.completed) == (BatchStatus.COMPLETED, 3)
