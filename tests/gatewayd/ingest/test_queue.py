"""The queue: what becomes of failures, clean stops and kills."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest import queue as queue_module
from gatewayd.ingest import size_classes
from gatewayd.ingest.interfaces import OUT_OF_TIME, WORKER_DIED
from gatewayd.ingest.job_leases import JobLease
from gatewayd.ingest.queue import MAX_LEASES, IngestQueue, QueueOptions, QueueState
from gatewayd.ingest.records import EmbeddingPurpose, File, FileStatus, IngestJob
from gatewayd.ingest.size_classes import ClassLimit, QueueKey, SizeClass
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.ingest_services import NOON, Ingest, ingesting
from tests.fakes.documents.memory_stores import HashEmbedder, Library

TEXTS = {"one.txt": "one " * 100, "two.txt": "two " * 300, "three.txt": "three"}


def failure(kind: ErrorKind, message: str = "cannot read it", code: str | None = None) -> GatewayError:
    return GatewayError(kind, message, code=code)


async def test_files_are_processed_to_the_end(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "one two three " * 50)
    assert (file.status, file.error) == (FileStatus.COMPLETED, None)
    assert file.chunks == len(ingest.texts(file.id)) == await ingest.vectors(file.id) == 4
    assert await ingest.jobs.list() == []
    assert await ingest.queue.state() == QueueState(0, 0, 0)


async def test_a_document_that_cannot_be_read_fails_at_once_and_alone(ingest: Ingest) -> None:
    ingest.extractor.failures = [failure(ErrorKind.INVALID_REQUEST, "the document is encrypted")]
    bad, good = await ingest.upload("bad.txt", "bad"), await ingest.upload("good.txt", "good")
    failed, fine = [await ingest.files.finished(file.id, 10) for file in (bad, good)]
    assert (failed.status, failed.error) == (FileStatus.FAILED, "the document is encrypted")
    assert fine.status is FileStatus.COMPLETED
    assert await ingest.queue.state() == QueueState(0, 0, 1)
    assert ingest.extractor.names == ["bad.txt", "good.txt"]


async def test_an_empty_file_fails_without_a_reader(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", b"")
    assert (file.status, file.error) == (FileStatus.FAILED, "the file is empty")
    assert ingest.extractor.names == []


async def test_failures_that_may_pass_are_tried_again(ingest: Ingest) -> None:
    ingest.extractor.failures = [failure(ErrorKind.UNAVAILABLE)] * 4
    file = await ingest.completed("a.txt", "text")
    assert file.status is FileStatus.COMPLETED
    assert len(ingest.extractor.names) == 5


async def test_the_fifth_failure_is_the_last(ingest: Ingest) -> None:
    ingest.extractor.failures = [failure(ErrorKind.TIMEOUT, "it took too long")] * 9
    file = await ingest.completed("a.txt", "text")
    assert file.error == "gave up after 5 attempts: it took too long"
    assert len(ingest.extractor.failures) == 4


@pytest.mark.parametrize("code", [WORKER_DIED, OUT_OF_TIME])
async def test_a_document_whose_reading_is_costly_is_given_up_with_the_second_attempt(
    ingest: Ingest, code: str
) -> None:
    ingest.extractor.failures = [failure(ErrorKind.UNAVAILABLE, code=code)] * 9
    file = await ingest.completed("a.txt", "text")
    assert file.error == "gave up after 2 attempts: cannot read it"
    assert len(ingest.extractor.failures) == 7


async def test_kills_of_the_gateway_leave_a_costly_document_its_second_attempt(tmp_path: Path) -> None:
    library = Library()
    async with ingesting(tmp_path, library=library) as ingest:
        await ingest.queue.close()
        file = await ingest.upload("a.txt", "text")
        await ingest.jobs.put(IngestJob(file.id, attempts=7, lease_owner="dead", lease_until=NOON + 60))
    async with ingesting(tmp_path, library=library) as ingest:
        ingest.extractor.failures = [failure(ErrorKind.TIMEOUT, code=OUT_OF_TIME)]
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


async def test_a_file_waits_for_its_pause_when_the_clock_was_set_back_before_the_start(
    tmp_path: Path,
) -> None:
    library = Library()
    async with ingesting(tmp_path, library=library) as ingest:
        await ingest.queue.close()
        late, later = await ingest.upload("a.txt", "a"), await ingest.upload("b.txt", "b")
        await ingest.jobs.put(IngestJob(late.id, attempts=1, not_before=NOON + 3605, error="away"))
        await ingest.jobs.put(IngestJob(later.id, attempts=3, not_before=NOON + 3680, error="away"))
    async with ingesting(tmp_path, library=library) as ingest:
        await ingest.queue.state()
        while not any(job.not_before < NOON + 3600 for job in await ingest.jobs.list()):
            await asyncio.sleep(0)
        waiting = {job.file_id: job.not_before - NOON for job in await ingest.jobs.list()}
        assert waiting[late.id] <= 7
        assert waiting[later.id] <= 100


def test_the_pauses_of_the_queue_do_not_follow_the_wall_clock(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = IngestQueue(ingest.stores, ingest.processor, ingest.tasks, QueueOptions())
    before = queue._clock()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert before <= queue._clock() <= before + 60


class Reading:
    """Holds what is read until it is let go."""

    def __init__(self, ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self._held: dict[str, asyncio.Event] = {}
        self._plain = ingest.extractor.extract
        monkeypatch.setattr(ingest.extractor, "extract", self._extract)

    async def begun(self, *names: str) -> None:
        async with asyncio.timeout(10):
            while not set(names) <= set(self.names):
                await asyncio.sleep(0)

    def let_go(self, name: str) -> None:
        self._held[name].set()

    async def _extract(self, path: Path, name: str, *others: Any) -> Any:
        self.names.append(name)
        self._held[name] = asyncio.Event()
        await self._held[name].wait()
        return await self._plain(path, name, *others)


async def test_the_files_of_one_owner_do_not_delay_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = QueueOptions(workers=2, others=1)
    async with ingesting(tmp_path, options=options) as ingest:
        reading = Reading(ingest, monkeypatch)
        for number in range(6):
            await ingest.upload(f"a{number}", "text", user_id="a")
        await reading.begun("a0", "a1")
        # Nothing more of one owner is begun, though there is room.
        for name in ("b0", "b1", "c0"):
            await ingest.upload(name, "text", user_id=name[0])
        ingest.time += 1
        ingest.queue.wake()
        await reading.begun("b0")
        assert reading.names == ["a0", "a1", "b0"]
        reading.let_go("a0")
        await reading.begun("c0")
        # All have one under way: whose last turn is longest ago is next.
        for left, following in (("b0", "b1"), ("c0", "a2"), ("a1", "a3")):
            reading.let_go(left)
            await reading.begun(following)
        assert reading.names == ["a0", "a1", "b0", "c0", "b1", "a2", "a3"]


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 10 bytes or 1 passage be the most of a small file, and 100 or 2 of a middle one."""
    limits = (ClassLimit(SizeClass.SMALL, 10, 1), ClassLimit(SizeClass.MIDDLE, 100, 2))
    monkeypatch.setattr(size_classes, "CLASS_LIMITS", limits)


class Vectors:
    """Holds the vectors of texts that have a word until they are let go."""

    def __init__(self, ingest: Ingest, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
        self.keys: list[QueueKey] = []
        self.is_held = asyncio.Event()
        self.let_go = asyncio.Event()
        self._word = word
        assert ingest.configured is not None
        self._plain = ingest.configured.embed
        monkeypatch.setattr(ingest.configured, "embed", self._embed)

    async def _embed(self, texts: Sequence[str], purpose: EmbeddingPurpose, key: QueueKey) -> bytes:
        self.keys.append(key)
        if any(self._word in text for text in texts):
            self.is_held.set()
            await self.let_go.wait()
        return await self._plain(texts, purpose, key)


async def completed(ingest: Ingest, file_id: str) -> None:
    """Let time go on until a file is completed."""
    async with asyncio.timeout(10):
        while (await ingest.files.finished(file_id, 0)).status is not FileStatus.COMPLETED:
            ingest.time += 1
            ingest.queue.wake()
            await asyncio.sleep(0)


@pytest.mark.usefixtures("low_limits")
async def test_a_small_file_waits_for_no_larger_one_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ingesting(tmp_path, options=QueueOptions(workers=1, others=0)) as ingest:
        reading = Reading(ingest, monkeypatch)
        for name, size in (("large0", 101), ("large1", 101), ("middle0", 11), ("middle1", 11)):
            await ingest.upload(name, "x" * size)
        small = await ingest.upload("small", "x")
        ingest.time += 1
        ingest.queue.wake()
        await reading.begun("small")
        reading.let_go("small")
        assert (await ingest.files.finished(small.id, 10)).status is FileStatus.COMPLETED
        assert sorted(reading.names) == ["large0", "middle0", "small"]
        assert await ingest.queue.state() == QueueState(2, 2, 0)


@pytest.mark.usefixtures("low_limits")
async def test_a_small_file_waits_for_no_vectors_of_larger_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ingesting(tmp_path, options=QueueOptions(workers=1, others=0)) as ingest:
        vectors = Vectors(ingest, monkeypatch, "held")
        large = [await ingest.upload(f"large{number}", f"held {number} " * 50) for number in range(3)]
        await vectors.is_held.wait()
        small = await ingest.upload("small", "x")
        ingest.time += 1
        ingest.queue.wake()
        assert (await ingest.files.finished(small.id, 10)).status is FileStatus.COMPLETED
        assert vectors.keys == [QueueKey("owner", SizeClass.LARGE), QueueKey("owner", SizeClass.SMALL)]
        vectors.let_go.set()
        for file in large:
            ingest.time += 1
            ingest.queue.wake()
            assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


async def test_a_file_of_few_bytes_and_many_passages_is_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = (ClassLimit(SizeClass.SMALL, 10_000, 1), ClassLimit(SizeClass.MIDDLE, 10_000, 2))
    monkeypatch.setattr(size_classes, "CLASS_LIMITS", limits)
    async with ingesting(tmp_path, options=QueueOptions(workers=1, others=0)) as ingest:
        vectors = Vectors(ingest, monkeypatch, "held")
        bombs = [await ingest.upload(f"bomb{number}", f"held {number} " * 100) for number in range(3)]
        await vectors.is_held.wait()
        small = await ingest.upload("small", "x")
        await completed(ingest, small.id)
        # Each was read once, as a small one, and the vectors of one are made at a time, as of a large one.
        assert ingest.extractor.names == ["bomb0", "bomb1", "bomb2", "small"]
        assert vectors.keys == [QueueKey("owner", SizeClass.LARGE), QueueKey("owner", SizeClass.SMALL)]
        attempts = {job.file_id: job.attempts for job in await ingest.jobs.list()}
        assert attempts == {file.id: number for file, number in zip(bombs, (1, 0, 0), strict=True)}
        vectors.let_go.set()
        for file in bombs:
            ingest.time += 1
            ingest.queue.wake()
            assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED
        assert ingest.extractor.names == ["bomb0", "bomb1", "bomb2", "small"]


async def test_a_file_may_be_leased_again_before_its_return_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size_classes, "CLASS_LIMITS", (ClassLimit(SizeClass.SMALL, 10_000, 1),))
    async with ingesting(tmp_path) as ingest:
        plain = ingest.queue._release

        async def free(file_id: str, lease: JobLease | None, **changes: Any) -> bool:
            is_freed = await plain(file_id, lease, **changes)
            ingest.time += 1
            await ingest.queue._round()
            job = await ingest.jobs.find(file_id)
            assert job is None or job.lease_owner
            return is_freed

        monkeypatch.setattr(ingest.queue, "_release", free)
        file = await ingest.upload("a.txt", "text " * 200)
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED
        while ingest.queue._releasing or ingest.queue._working:
            await asyncio.sleep(0)
        assert await ingest.queue.state() == QueueState(0, 0, 0)


@pytest.mark.usefixtures("low_limits")
async def test_many_small_files_of_one_owner_delay_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ingesting(tmp_path, options=QueueOptions(workers=2, others=1)) as ingest:
        reading = Reading(ingest, monkeypatch)
        for number in range(200):
            await ingest.upload(f"a{number}", "x", user_id="a")
        await ingest.upload("large", "x" * 101, user_id="a")
        await ingest.upload("b0", "x", user_id="b")
        ingest.time += 1
        ingest.queue.wake()
        await reading.begun("large", "b0")
        assert sorted(reading.names) == ["a0", "a1", "b0", "large"]


@pytest.mark.usefixtures("low_limits")
async def test_the_class_of_a_file_that_was_read_is_known_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library()
    async with ingesting(tmp_path, library=library) as ingest:
        vectors = Vectors(ingest, monkeypatch, "held")
        held = await ingest.upload("held", "held " * 100)
        await vectors.is_held.wait()
    async with ingesting(tmp_path, library=library) as ingest:
        vectors = Vectors(ingest, monkeypatch, "nothing")
        assert (await ingest.files.finished(held.id, 10)).status is FileStatus.COMPLETED
        assert vectors.keys == [QueueKey("owner", SizeClass.LARGE)]
        assert ingest.extractor.names == []


async def test_a_queue_with_more_than_an_owner_may_have_under_way_rests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ingesting(tmp_path, options=QueueOptions(workers=1)) as ingest:
        reading = Reading(ingest, monkeypatch)
        for name in ("a0", "a1"):
            await ingest.upload(name, "text", user_id="a")
        await reading.begun("a0")
        await ingest.queue._round()
        # It looks again in a second, and then has nothing to do but to renew the lease of the first.
        assert await ingest.queue._round() == 1
        ingest.time += 1
        assert await ingest.queue._round() == 19


async def test_what_was_embedded_is_not_embedded_again(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    async with ingesting(tmp_path, configured=embedder) as ingest:
        ingest.extractor.failures = [failure(ErrorKind.UNAVAILABLE)]
        text = " ".join(f"word{number}" for number in range(3000))
        embedder.failures = [failure(ErrorKind.UPSTREAM_UNREACHABLE)] * 2
        file = await ingest.completed("a.txt", text)
        assert file.status is FileStatus.COMPLETED
        assert len(embedder.texts) == file.chunks > 64
        assert ingest.extractor.names == ["a.txt"] * 2


async def test_pauses_grow_and_heed_what_the_provider_asks_for(tmp_path: Path) -> None:
    async with ingesting(tmp_path, options=QueueOptions(pause=5)) as ingest:
        slow = GatewayError(ErrorKind.RATE_LIMITED, "slow down", retry_after=90)
        ingest.extractor.failures = [failure(ErrorKind.TIMEOUT), failure(ErrorKind.TIMEOUT), slow]
        file = await ingest.upload("a.txt", "text")
        for attempts, pause in ((1, 5), (2, 20), (3, 90)):
            job = await postponed(ingest, file.id, attempts)
            assert job.not_before == ingest.time + pause
            ingest.time = job.not_before
            ingest.queue.wake()
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


async def postponed(ingest: Ingest, file_id: str, attempts: int) -> IngestJob:
    """Wait until a file's attempt has failed."""
    async with asyncio.timeout(10):
        while True:
            job = await ingest.jobs.find(file_id)
            assert job is not None
            if job.attempts == attempts and not job.lease_owner:
                return job
            await asyncio.sleep(0)


async def test_a_file_removed_while_it_is_processed_ends_quietly(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = ingest.configured
    assert isinstance(embedder, HashEmbedder)
    begun, go_on = asyncio.Event(), asyncio.Event()
    plain = embedder.embed

    async def embed(*args: Any) -> bytes:
        begun.set()
        await go_on.wait()
        return await plain(*args)

    monkeypatch.setattr(embedder, "embed", embed)
    file = await ingest.upload("a.txt", "text " * 200)
    await begun.wait()
    assert await ingest.files_store.remove(file.id)
    go_on.set()
    other = await ingest.completed("b.txt", "more")
    assert other.status is FileStatus.COMPLETED
    assert ingest.library.tables.rows(file.id, staged=True) == []
    assert caplog.records == []


async def test_a_file_removed_while_it_is_read_ends_quietly(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reading = Reading(ingest, monkeypatch)
    file = await ingest.upload("a.txt", "text " * 200)
    await reading.begun("a.txt")
    assert await ingest.files_store.remove(file.id)
    reading.let_go("a.txt")
    other = await ingest.upload("b.txt", "more")
    await reading.begun("b.txt")
    reading.let_go("b.txt")
    assert (await ingest.files.finished(other.id, 10)).status is FileStatus.COMPLETED
    assert ingest.library.tables.rows(file.id, staged=True) == []
    assert caplog.records == []


async def test_a_clean_stop_gives_the_lease_and_the_attempt_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library()
    async with ingesting(tmp_path, library=library) as ingest:
        never = asyncio.Event()
        monkeypatch.setattr(ingest.extractor, "extract", lambda *_: never.wait())
        file = await ingest.upload("a.txt", "text")
        while not (await ingest.jobs.list())[0].lease_owner:
            await asyncio.sleep(0)
        assert await ingest.queue.state() == QueueState(0, 1, 0)
        await ingest.queue.close()
        assert await ingest.jobs.find(file.id) == IngestJob(file.id, created_at=NOON)
    async with ingesting(tmp_path, library=library) as ingest:
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


async def test_leases_are_renewed_while_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ingesting(tmp_path) as ingest:
        go_on = asyncio.Event()
        plain = ingest.extractor.extract

        async def extract(*args: Any) -> Any:
            await go_on.wait()
            return await plain(*args)

        monkeypatch.setattr(ingest.extractor, "extract", extract)
        file = await ingest.upload("a.txt", "text")
        for seconds in (25, 50, 75, 100):
            ingest.time = NOON + seconds
            ingest.queue.wake()
            while (job := await ingest.jobs.find(file.id)) is None or job.lease_until != ingest.time + 60:
                await asyncio.sleep(0)
            assert job.attempts == 1
        go_on.set()
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


async def test_an_unforeseen_error_is_logged_and_leaves_the_lease(
    ingest: Ingest, caplog: pytest.LogCaptureFixture
) -> None:
    ingest.extractor.failures = [ZeroDivisionError("a bug")]
    bad = await ingest.upload("bad.txt", "bad")
    good = await ingest.completed("good.txt", "good")
    assert good.status is FileStatus.COMPLETED
    job = await ingest.jobs.find(bad.id)
    assert job is not None
    assert job.lease_owner
    assert "background task failed" in caplog.text
    caplog.clear()
    ingest.time = job.lease_until
    ingest.queue.wake()
    assert (await ingest.files.finished(bad.id, 10)).status is FileStatus.COMPLETED


async def test_a_failure_is_kept_when_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with ingesting(tmp_path, options=QueueOptions(pause=8)) as ingest:
        away = [failure(ErrorKind.UNAVAILABLE, "cannot reach the database")] * 3
        plain = ingest.jobs.find

        async def find(file_id: str) -> IngestJob | None:
            if away:
                raise away.pop()
            return await plain(file_id)

        monkeypatch.setattr(ingest.jobs, "find", find)
        ingest.extractor.failures = [failure(ErrorKind.UNAVAILABLE, "cannot read a file")]
        file = await ingest.upload("a.txt", "text")
        async with asyncio.timeout(10):
            while len(away) == 3:
                await asyncio.sleep(0)
            while away:
                ingest.queue.wake()
                await asyncio.sleep(0)
            while (job := await plain(file.id)) is None or job.lease_owner:
                await asyncio.sleep(0)
        assert (job.attempts, job.not_before, job.error) == (1, NOON + 8, "cannot read a file")
        assert "background task failed" not in caplog.text
        ingest.time = job.not_before
        ingest.queue.wake()
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


async def test_a_job_that_was_begun_too_often_is_given_up(tmp_path: Path) -> None:
    library = Library()
    async with ingesting(tmp_path, library=library) as ingest:
        await ingest.queue.close()
        file = await ingest.upload("a.txt", "text")
        await ingest.jobs.put(
            IngestJob(file.id, attempts=MAX_LEASES, lease_owner="dead", lease_until=NOON + 60)
        )
        queue = IngestQueue(
            ingest.stores, ingest.processor, ingest.tasks, ingest.options, lambda: ingest.time
        )
        queue.start()
        failed = await ingest.files.finished(file.id, 10)
        assert failed.error == "gave up: processing it was begun 20 times and never ended"
        await queue.close()


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_stop_without_a_database_ends_well_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, hangs: bool
) -> None:
    async with ingesting(tmp_path) as ingest:

        async def fail(_: str) -> None:
            if hangs:
                await asyncio.Event().wait()
            raise failure(ErrorKind.UNAVAILABLE)

        monkeypatch.setattr(ingest.jobs, "release", fail)
        monkeypatch.setattr(queue_module, "RELEASE_SECONDS", 0.01)
        await ingest.queue.close()
        assert "cannot release the leases of the ingest queue" in caplog.text


async def test_kills_are_no_failures(tmp_path: Path) -> None:
    library = Library()
    async with ingesting(tmp_path, library=library) as ingest:
        await ingest.queue.close()
        file = await ingest.upload("a.txt", "text")
        await ingest.jobs.put(IngestJob(file.id, attempts=7, lease_owner="dead", lease_until=NOON + 60))
    options = QueueOptions(pause=8)
    async with ingesting(tmp_path, library=library, options=options) as ingest:
        ingest.extractor.failures = [failure(ErrorKind.UNAVAILABLE)]
        while (job := await ingest.jobs.find(file.id)) is None or job.lease_owner:
            await asyncio.sleep(0)
        assert (job.attempts, job.not_before) == (7, NOON + 8)
        ingest.time += 8
        ingest.queue.wake()
        while (job := await ingest.jobs.find(file.id)) is None or not job.error:
            await asyncio.sleep(0)
        assert (job.attempts, job.lease_owner) == (8, "")
        ingest.time = job.not_before
        ingest.queue.wake()
        assert (await ingest.files.finished(file.id, 10)).status is FileStatus.COMPLETED


class KilledError(asyncio.CancelledError):
    """The process ended here."""


class Death:
    """Ends a process at one call of a store, before it or when it has committed, and at each one after."""

    def __init__(self, at: int, *, after: bool) -> None:
        self._at = at
        self._after = after
        self.calls = 0
        self.came = asyncio.Event()

    def wrap(self, store: Any) -> Any:
        return Mortal(store, self)

    async def around(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls < self._at:
            return await method(*args, **named)
        if self._after and self.calls == self._at:
            await method(*args, **named)
        self.came.set()
        raise KilledError


class Mortal:
    """A store whose calls a Death counts."""

    def __init__(self, store: Any, death: Death) -> None:
        self._store = store
        self._death = death

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        return lambda *args, **named: self._death.around(method, *args, **named)


async def run_until(death: Death, folder: Path, library: Library) -> None:
    """Process what waits until death comes, or everything is done."""
    tasks = TaskRegistry()
    ingest = Ingest(folder, tasks, library=library, wrap=death.wrap)
    ingest.queue.start()
    async with asyncio.timeout(20):
        while library.tables.jobs and not death.came.is_set():
            await asyncio.sleep(0)
    await tasks.close()


async def accepted(folder: Path) -> tuple[Library, list[File]]:
    library = Library()
    async with ingesting(folder, library=library) as ingest:
        await ingest.queue.close()
        files = [await ingest.upload(name, text) for name, text in TEXTS.items()]
        for file in files:
            await ingest.link("c", file.id)
    return library, files


@pytest.mark.usefixtures("low_limits")
@pytest.mark.parametrize("after", [False, True])
async def test_a_kill_at_any_moment_loses_and_doubles_nothing(tmp_path: Path, after: bool) -> None:
    at = 0
    while True:
        at += 1
        library, files = await accepted(tmp_path)
        death = Death(at, after=after)
        await run_until(death, tmp_path, library)
        if not death.came.is_set():
            break
        async with ingesting(tmp_path, library=library) as ingest:
            for file, text in zip(files, TEXTS.values(), strict=True):
                done = await ingest.files.finished(file.id, 10)
                assert (done.status, done.error) == (FileStatus.COMPLETED, None), at
                rows = library.tables.rows(file.id, staged=False)
                assert [row.passage.number for _, row in rows] == list(range(done.chunks)), at
                assert await ingest.vectors(file.id) == done.chunks > 0, at
                assert await ingest.passages.find_text(file.id) == text
        tables = library.tables
        assert not tables.jobs
        assert {row.staged for row in tables.passages.values()} == {False}
        assert set(tables.texts) == {(file.id, False) for file in files}
        assert len(tables.vectors) == len(tables.passages)
    assert at > 30
