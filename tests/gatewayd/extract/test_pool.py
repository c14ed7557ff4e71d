import asyncio
import gzip
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.pool import MANDOC, ExtractorPool, PoolOptions
from gatewayd.ingest.chunker import ChunkRules
from gatewayd.ingest.size_classes import QueueKey, SizeClass
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import WorkerProcess
from tests.fakes.documents import makers as documents


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[WorkerProcess]:
    """Return a list that workers enter when they are started."""
    workers: list[WorkerProcess] = []
    start = WorkerProcess.start

    async def noted(*arguments: Any) -> WorkerProcess:
        workers.append(await start(*arguments))
        return workers[-1]

    monkeypatch.setattr(WorkerProcess, "start", noted)
    return workers


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., ExtractorPool]]:
    tasks = TaskRegistry()
    pools: list[ExtractorPool] = []

    def made(**options: Any) -> ExtractorPool:
        pools.append(ExtractorPool(PoolOptions(tmp_path / "incoming", **options), tasks))
        return pools[-1]

    yield made
    for pool in pools:
        await pool.close()
    while tasks.list():
        await asyncio.sleep(0)


@pytest.fixture
def put(tmp_path: Path) -> Callable[[bytes], Path]:
    def kept(data: bytes) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        path.write_bytes(data)
        return path

    return kept


Make = Callable[..., ExtractorPool]
Put = Callable[[bytes], Path]


def key_of(owner: str) -> QueueKey:
    return QueueKey(owner, SizeClass.LARGE)


USER = key_of("u")


async def refused(pool: ExtractorPool, path: Path) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await pool.extract(path, "x", None, USER)
    return caught.value


async def working(started: list[WorkerProcess], count: int = 1) -> None:
    """Wait until so many workers have been asked something."""
    while sum(worker.calls for worker in started) < count:
        await asyncio.sleep(0)


async def test_a_document_becomes_a_text_and_chunks(make: Make, put: Put) -> None:
    pool = make(rules=ChunkRules(size=60, overlap=10))
    pages = [f"{documents.SENTENCE}\nAnd page {number}." for number in range(1, 4)]
    extraction = await pool.extract(put(documents.pdf(pages, title="Birds")), "x.pdf", None, USER)
    assert (extraction.pages, extraction.title) == (3, "Birds")
    assert [chunk.number for chunk in extraction.chunks] == list(range(len(extraction.chunks)))
    assert {chunk.page for chunk in extraction.chunks} == {1, 2, 3}
    third = [extraction.text[chunk.start : chunk.end] for chunk in extraction.chunks if chunk.page == 3]
    assert "And page 3." in "".join(third)


async def test_the_sentence_about_a_document_comes_through(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(text_limit=100)
    error = await refused(pool, put(documents.pdf(password="x")))
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert error.message.startswith("cannot read the PDF: it is encrypted")
    assert "more than 100 characters" in (await refused(pool, put(b"x" * 200))).message
    # A bad document is no reason for another process.
    assert len(started) == 1


PAGE = b".TH PUMP 8\n.SH NAME\npump \\- moves w\xc3\xa4ter\n"


@pytest.mark.real("mandoc")
async def test_a_manual_page_is_formatted_by_mandoc(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(sandbox=SandboxMode.REQUIRE)
    for data in (PAGE, gzip.compress(PAGE)):
        extraction = await pool.extract(put(data), "pump.8", None, USER)
        assert extraction.title == "pump(8)"
        assert extraction.text == "# pump(8)\n\n## NAME\n\npump - moves wäter\n\n"
    # One that reads, and one for each page.
    assert len(started) == 3
    assert [worker.is_alive for worker in started] == [True, False, False]


async def test_a_manual_page_is_refused_without_mandoc(
    make: Make, put: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = await refused(make(), put(PAGE))
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert error.message == "cannot read the manual page: mandoc is not installed"


async def test_a_mandoc_that_hangs_is_ended(
    make: Make, put: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "mandoc"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec /bin/sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(folder))
    pid = tmp_path / "pid"
    # A busy machine may take long to start it.
    for seconds in (1.0, 4.0, 16.0):
        error = await refused(make(sandbox=SandboxMode.OFF, seconds=seconds, patience=0.5), put(PAGE))
        assert error.kind is ErrorKind.TIMEOUT
        if pid.exists():
            break
    stat = Path("/proc", pid.read_text().strip(), "stat")
    # It may wait for the process that adopts orphans.
    while stat.exists() and " Z " not in stat.read_text():
        await asyncio.sleep(0.01)


async def test_a_mandoc_that_starts_while_the_pool_closes_is_ended(
    make: Make, put: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "mandoc"
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    pool = make(sandbox=SandboxMode.OFF, seconds=30.0)
    start, formatters = WorkerProcess.start, list[WorkerProcess]()

    async def close_first(options: Any, tasks: TaskRegistry) -> WorkerProcess:
        worker = await start(options, tasks)
        if options.module == MANDOC:
            formatters.append(worker)
            await pool.close()
        return worker

    monkeypatch.setattr(WorkerProcess, "start", close_first)
    assert (await refused(pool, put(PAGE))).kind is ErrorKind.UNAVAILABLE
    assert [worker.is_alive for worker in formatters] == [False]


async def test_a_file_that_is_gone_can_be_tried_again(make: Make, tmp_path: Path) -> None:
    assert (await refused(make(), tmp_path / "nothing")).kind is ErrorKind.UNAVAILABLE


async def test_as_many_documents_as_workers_are_read_at_a_time(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(workers=2)
    path = put(b"some words")
    await asyncio.gather(*(pool.extract(path, "x", None, USER) for _ in range(9)))
    assert len(started) == 2
    assert sum(worker.calls for worker in started) == 9


async def test_a_worker_is_replaced_after_so_many_documents(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(documents=2)
    for _ in range(5):
        await pool.extract(put(b"some words"), "x", None, USER)
    assert [worker.calls for worker in started] == [2, 2, 1]


async def test_a_worker_reads_the_documents_of_one_owner(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(workers=2)
    path = put(b"some words")
    for owner in ("ann", "ann", "bob", "bob", "ann"):
        await pool.extract(path, "x", None, key_of(owner))
    assert [worker.calls for worker in started] == [2, 2, 1]
    # There are no more processes than documents that were read at a time.
    while any(worker.is_alive for worker in started[:2]):
        await asyncio.sleep(0.001)
    await asyncio.gather(*(pool.extract(path, "x", None, key_of(owner)) for owner in ("ann", "bob")))
    assert [worker.calls for worker in started] == [2, 2, 2, 1]
    for owner in ("ann", "bob", "ann"):
        await pool.extract(path, "x", None, key_of(owner))
    assert [worker.calls for worker in started] == [2, 2, 4, 2]


async def test_a_worker_that_holds_much_memory_is_replaced(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(resident=1)
    for _ in range(2):
        await pool.extract(put(b"some words"), "x", None, USER)
    assert [worker.calls for worker in started] == [1, 1]


async def test_workers_without_work_are_ended(make: Make, put: Put, started: list[WorkerProcess]) -> None:
    pool = make(idle=0.01)
    await pool.extract(put(b"some words"), "x", None, USER)
    while started[0].is_alive:
        await asyncio.sleep(0.005)
    await pool.extract(put(b"some words"), "x", None, USER)
    assert len(started) == 2


async def test_a_worker_that_died_at_rest_is_replaced(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make()
    await pool.extract(put(b"some words"), "x", None, USER)
    started[0].kill()
    while started[0].is_alive:
        await asyncio.sleep(0)
    assert (await pool.extract(put(b"some words"), "x", None, USER)).text == "some words\n"


async def test_a_worker_whose_folder_was_removed_is_replaced(
    make: Make, put: Put, started: list[WorkerProcess], tmp_path: Path
) -> None:
    pool = make()
    await pool.extract(put(b"some words"), "x", None, USER)
    shutil.rmtree(tmp_path / "incoming")
    assert (await pool.extract(put(b"some words"), "x", None, USER)).text == "some words\n"
    assert len(started) == 2


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (signal.SIGKILL, ErrorKind.UNAVAILABLE, "was ended by SIGKILL"),
        (signal.SIGSEGV, ErrorKind.INVALID_REQUEST, "was ended by SIGSEGV"),
        (signal.SIGXCPU, ErrorKind.INVALID_REQUEST, "more than 30 seconds of processor time"),
    ],
)
async def test_the_end_of_a_worker_says_whether_another_try_helps(
    make: Make, put: Put, started: list[WorkerProcess], number: int, kind: ErrorKind, words: str
) -> None:
    pool = make(seconds=30)
    waiting = asyncio.gather(refused(pool, put(endless())))
    await working(started)
    os.kill(started[0].pid, number)
    (error,) = await waiting
    assert error.kind is kind
    assert words in error.message
    assert (await pool.extract(put(b"some words"), "x", None, USER)).text == "some words\n"


async def test_a_document_that_takes_too_much_processor_time_is_refused(make: Make, put: Put) -> None:
    pool = make(seconds=1, patience=100)
    error = await refused(pool, put(endless()))
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert error.message == (
        "cannot read the file: it takes more than 1 seconds of processor time; "
        "split it, or raise ingest_timeout"
    )


async def test_a_document_that_takes_too_long_is_a_timeout(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(seconds=100, patience=0.01)
    waiting = asyncio.gather(refused(pool, put(endless())))
    await working(started)
    # As if the machine had no time for it.
    os.kill(started[0].pid, signal.SIGSTOP)
    (error,) = await waiting
    assert error.kind is ErrorKind.TIMEOUT


async def test_a_document_that_takes_long_does_not_delay_those_of_other_owners(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(workers=1, turn=0)
    path, good = put(endless()), put(b"some words")
    poisoned = [asyncio.ensure_future(pool.extract(path, "x", None, key_of("a"))) for _ in range(5)]
    await working(started)
    for owner in ("b", "c", "b"):
        assert (await pool.extract(good, "x", None, key_of(owner))).text == "some words\n"
    # There is one process for all of the first owner's, and one for each turn of the others.
    assert [worker.calls for worker in started] == [1, 1, 1, 1]
    assert not any(task.done() for task in poisoned)
    for task in poisoned:
        task.cancel()
    await asyncio.gather(*poisoned, return_exceptions=True)


async def test_a_document_that_takes_too_much_memory_is_refused(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(memory=300_000_000)
    error = await refused(pool, put(b"[" + b"[]," * 9_000_000 + b"1]"))
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert "more than 300 MB of memory; split it, or raise ingest_memory_limit" in error.message
    assert (await pool.extract(put(b"some words"), "x", None, USER)).text == "some words\n"
    assert len(started) == 2


async def test_the_library_of_a_format_is_loaded_when_it_is_needed(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make()
    await pool.extract(put(b"some words"), "x", None, USER)
    assert "mupdf" not in Path(f"/proc/{started[0].pid}/maps").read_text()
    await pool.extract(put(documents.pdf()), "x", None, USER)
    assert "mupdf" in Path(f"/proc/{started[0].pid}/maps").read_text()


async def test_a_caller_who_leaves_ends_the_work(make: Make, put: Put, started: list[WorkerProcess]) -> None:
    pool = make()
    path = put(endless())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await pool.extract(path, "x", None, USER)
    while started[0].is_alive:
        await asyncio.sleep(0)
    assert (await pool.extract(put(b"some words"), "x", None, USER)).text == "some words\n"


async def test_closing_ends_all_workers_and_refuses_more(
    make: Make, put: Put, started: list[WorkerProcess]
) -> None:
    pool = make(workers=2)
    await pool.extract(put(b"some words"), "x", None, USER)
    busy = asyncio.gather(*(refused(pool, put(endless())) for _ in range(3)))
    await working(started, 3)
    await pool.close()
    assert {error.kind for error in await busy} == {ErrorKind.UNAVAILABLE}
    assert [worker.is_alive for worker in started] == [False, False]
    assert (await refused(pool, put(b"x"))).kind is ErrorKind.UNAVAILABLE


def endless() -> bytes:
    """Return a document that takes hours."""
    return documents.pdf_of_forms()
