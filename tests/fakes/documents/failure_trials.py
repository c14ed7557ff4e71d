"""A trial for each sentence with which a file ends as failed; @ stands for what differs."""

import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.messages import AnswerLimits, pack_answer, unpack_answer
from gatewayd.extract.pool import ExtractorPool, PoolOptions
from gatewayd.extract.records import ExtractedDocument
from gatewayd.ingest.queue import MAX_LEASES, IngestQueue
from gatewayd.ingest.records import File, IngestJob, TextChunk
from gatewayd.ingest.size_classes import OTHER_WORK
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import WorkerProcess
from tests.fakes.documents import makers as documents
from tests.fakes.documents.ingest_services import Ingest, ingesting


async def failed(folder: Path, *failures: GatewayError, data: bytes = b"text") -> str:
    """Return the sentence of a file whose attempts end with some failures."""
    async with ingesting(folder) as ingest:
        ingest.extractor.failures = list(failures)
        return (await ingest.completed("a.txt", data)).error or ""


async def begun_often(folder: Path) -> str:
    async with ingesting(folder) as ingest:
        await ingest.queue.close()
        file = await ingest.upload("a.txt", "text")
        await ingest.jobs.put(
            IngestJob(file.id, attempts=MAX_LEASES, lease_owner="dead", lease_until=1 << 40)
        )
        return await worked(ingest, file)


async def worked(ingest: Ingest, file: File) -> str:
    """Return the sentence of a file that a new queue finds."""
    queue = IngestQueue(ingest.stores, ingest.processor, ingest.tasks, ingest.options, ingest.clock)
    queue.start()
    sentence = (await ingest.files.finished(file.id, 10)).error or ""
    await queue.close()
    return sentence


async def refused_by_pool(folder: Path, data: bytes, *, ends: int = 0, **options: Any) -> str:
    """Return the sentence with which processes refuse a document; with `ends` a signal ends them."""
    path = folder / "blob"
    path.write_bytes(data)
    tasks = TaskRegistry()
    pool = ExtractorPool(PoolOptions(folder / "incoming", **options), tasks)
    call = WorkerProcess.call

    async def ended(worker: WorkerProcess, *arguments: Any, **named: Any) -> Any:
        os.kill(worker.pid, ends)
        return await call(worker, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(GatewayError) as caught:
        if ends:
            patch.setattr(WorkerProcess, "call", ended)
        await pool.extract(path, "x", None, OTHER_WORK)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    await pool.close()
    await tasks.close()
    return caught.value.message


async def disbelieved(_: Path) -> str:
    """Return the sentence about an answer that is none."""
    with pytest.raises(GatewayError) as caught:
        unpack_answer({}, b"", AnswerLimits(1000, 100))
    return caught.value.message


async def refused_by_packer(_: Path) -> str:
    """Return the sentence about a document whose chunks take too much."""
    chunks = [TextChunk(0, 0, 1, None, "x" * 1000)] * 1100
    with pytest.raises(GatewayError) as caught:
        pack_answer(ExtractedDocument("x", ()), chunks, AnswerLimits(1, 1))
    return caught.value.message


def away() -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, "cannot reach it")


def long() -> bytes:
    """Return JSON whose values take much memory."""
    return b"[" + b"[]," * 9_000_000 + b"1]"


FAILURES: Mapping[str, Callable[[Path], Awaitable[str]]] = {
    "the file is empty": lambda folder: failed(folder, data=b""),
    "cannot read the file: it takes more than @ seconds of processor time; split it, or raise "
    "ingest_timeout": lambda folder: refused_by_pool(
        folder, documents.pdf_of_forms(), seconds=1, patience=100
    ),
    "cannot read the file: it takes more than @ MB of memory; split it, or raise "
    "ingest_memory_limit": lambda folder: refused_by_pool(folder, long(), memory=300_000_000),
    "cannot read the file: its text and its chunks take more than @ MB; split it, or raise "
    "ingest_text_limit": refused_by_packer,
    "cannot read the file: its reader @; it is damaged, or it takes more than @ MB of memory "
    "(ingest_memory_limit)": lambda folder: refused_by_pool(folder, b"text", ends=signal.SIGSEGV),
    "cannot read the file: its reader sent an invalid reply; the file is damaged": disbelieved,
    "gave up after @ attempts: @": lambda folder: failed(folder, *[away()] * 9),
    "gave up: processing it was begun 20 times and never ended": begun_often,
}
