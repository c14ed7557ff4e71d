"""Pool of reader processes: they start on use, are limited in number, and end when idle.

A malicious document may control its reader process, which could then read and change later documents. So a
process reads documents of one owner only.
"""

import asyncio
import math
import shutil
import signal
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.messages import AnswerLimits, unpack_answer
from gatewayd.extract.reader_process import ReaderProcess
from gatewayd.extract.records import MB, OVER_MEMORY, out_of_processor_time
from gatewayd.extract.slots import ReaderSlots
from gatewayd.ingest.chunker import ChunkRules
from gatewayd.ingest.interfaces import OUT_OF_TIME, WORKER_DIED
from gatewayd.ingest.records import ExtractionResult
from gatewayd.ingest.size_classes import QueueKey
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import MAX_HEADER_BYTES, WorkerDiedError, WorkerLateError, WorkerOptions, WorkerProcess

CHILD: Final = "gatewayd.extract.child"
MANDOC: Final = "gatewayd.extract.mandoc"
MAX_HTML_BYTES: Final = 64 * MB
"""Maximum bytes of the HTML of a manual page."""
NICENESS: Final = 10
# Signals of crashes that a document causes each time it is read: faults in a reader, mostly from lack of
# memory.
FAULTS: Final = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP}


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Number of reader processes, and limits of a document in one.

    `workers` documents are read at a time, and one more if it is small. Up to `spare` further processes serve
    small documents and owners without a document in work, while others take more than `turn` seconds.
    `memory` is the maximum bytes of address space of a process. `seconds` is the maximum processor time of a
    document; its wall-clock limit is `patience` times that, as the machine may be busy. `text_limit` is the
    maximum characters of its text. A process serves one owner. It is replaced after `documents` documents or
    when it holds `resident` bytes, and ended when it was idle for `idle` seconds or another owner needs its
    place. `folder` holds the folders of the processes, on the same file system as the documents. `sandbox`
    confines the processes.
    """

    folder: Path
    sandbox: SandboxMode = SandboxMode.AUTO
    workers: int = 1
    spare: int = 3
    turn: float = 5.0
    memory: int = 2 << 30
    seconds: float = 300.0
    patience: float = 2.0
    text_limit: int = 32 << 20
    rules: ChunkRules = field(default_factory=ChunkRules)
    documents: int = 200
    resident: int = 500 * MB
    idle: float = 60.0


@dataclass(frozen=True, slots=True)
class _IdleReader:
    """An idle process of an owner; `since` is a time of the loop."""

    reader: ReaderProcess
    owner: str
    since: float


class ExtractorPool:
    """Reads documents in worker processes, one in each at a time. An `ingest.interfaces.Extractor`."""

    def __init__(self, options: PoolOptions, tasks: TaskRegistry) -> None:
        self._options = options
        self._tasks = tasks
        self._slots = ReaderSlots(options.workers, options.spare, options.turn)
        # Longest idle first.
        self._idle: list[_IdleReader] = []
        self._busy: set[ReaderProcess] = set()
        self._formatters: set[WorkerProcess] = set()
        self._reaper: str | None = None
        self._is_closed = False
        self._answer_limits = AnswerLimits(options.text_limit, options.rules.size)
        arguments = {
            "text": options.text_limit,
            "size": options.rules.size,
            "overlap": options.rules.overlap,
            "tokens": options.rules.tokens,
            "seconds": options.seconds,
            "sandbox": options.sandbox,
        }
        self._worker_options = WorkerOptions(
            CHILD,
            (orjson.dumps(arguments).decode(),),
            memory=options.memory,
            nice=NICENESS,
            answer_bytes=MAX_HEADER_BYTES + self._answer_limits.total,
        )

    @property
    def documents(self) -> tuple[int, int]:
        """Number of documents that wait for a process, and of those being read."""
        return self._slots.waiting, self._slots.active

    async def extract(
        self, path: Path, name: str, content_type: str | None, key: QueueKey
    ) -> ExtractionResult:
        """Return the text and the chunks of the document at `path`; wait for a free process."""
        message = {"name": name, "content_type": content_type}
        async with self._slots.held(key):
            reader = await self._acquire(key.owner)
            is_good = False
            try:
                header, blob = await self._read(reader, path, message)
                is_good = True
            except GatewayError as error:
                is_good = error.kind is not ErrorKind.TIMEOUT and error.code != OVER_MEMORY
                raise
            finally:
                self._release(reader, key.owner, is_good=is_good)
        return await asyncio.to_thread(unpack_answer, header, blob, self._answer_limits)

    async def close(self) -> None:
        """End all processes; waiting calls raise unavailable."""
        self._is_closed = True
        if self._reaper is not None:
            await self._tasks.stop(self._reaper)
        readers = [*self._busy, *(each.reader for each in self._idle)]
        self._idle.clear()
        for reader in readers:
            reader.worker.kill()
        for worker in self._formatters:
            worker.kill()
        for reader in readers:
            await reader.close()

    async def _acquire(self, owner: str) -> ReaderProcess:
        """Return an idle process of the owner, or a new one in place of the longest idle process."""
        if self._is_closed:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read documents: the gateway is stopping")
        while (idle := self._pop(owner)) is not None:
            if idle.owner == owner and idle.reader.is_usable:
                self._busy.add(idle.reader)
                return idle.reader
            self._end(idle.reader)
            if idle.owner != owner:
                break
        reader = await ReaderProcess.start(self._options.folder, self._worker_options, self._tasks)
        if self._is_closed:
            reader.worker.kill()
        self._busy.add(reader)
        return reader

    def _pop(self, owner: str) -> _IdleReader | None:
        """Remove and return the last used idle process of the owner, else the longest idle process."""
        if not self._idle:
            return None
        own = [each for each in self._idle if each.owner == owner]
        found = own[-1] if own else self._idle[0]
        self._idle.remove(found)
        return found

    def _end(self, reader: ReaderProcess) -> None:
        """Kill a process: one that a document controls may ignore a request to end."""
        reader.worker.kill()
        self._tasks.spawn(f"end of worker {reader.worker.pid}", reader.close())

    async def _read(
        self, reader: ReaderProcess, path: Path, message: dict[str, Any]
    ) -> tuple[Mapping[str, Any], bytes]:
        header, blob = await self._answer(reader.ask(path, message, self._patience))
        if not header.get("is_roff"):
            return header, blob
        html = await self._format(blob)
        return await self._answer(reader.worker.call({**message, "path": ""}, html, self._patience))

    async def _format(self, page: bytes) -> bytes:
        """Return a manual page as HTML; each page has a mandoc process of its own."""
        program = shutil.which("mandoc")
        if program is None:
            sentence = "cannot read the manual page: mandoc is not installed"
            raise GatewayError(ErrorKind.INVALID_REQUEST, sentence)
        options = replace(
            self._worker_options,
            module=MANDOC,
            arguments=(program, self._options.sandbox, str(MAX_HTML_BYTES)),
            # mandoc has a second less, see `mandoc`.
            cpu_seconds=math.ceil(self._options.seconds) + 1,
            answer_bytes=MAX_HEADER_BYTES + MAX_HTML_BYTES,
            has_children=True,
        )
        worker = await WorkerProcess.start(options, self._tasks)
        self._formatters.add(worker)
        if self._is_closed:
            worker.kill()
        try:
            return (await self._answer(worker.call({}, page, self._patience)))[1]
        finally:
            self._formatters.discard(worker)
            worker.kill()
            await worker.close()

    @property
    def _patience(self) -> float:
        return self._options.patience * self._options.seconds

    async def _answer(
        self, call: Awaitable[tuple[Mapping[str, Any], bytes]]
    ) -> tuple[Mapping[str, Any], bytes]:
        try:
            return await call
        except WorkerLateError as error:
            sentence = f"cannot read the file: it took more than {self._patience:g} seconds"
            raise GatewayError(ErrorKind.TIMEOUT, sentence, code=OUT_OF_TIME) from error
        except WorkerDiedError as error:
            raise self._failure(error) from error

    def _failure(self, death: WorkerDiedError) -> GatewayError:
        if death.ended_by is signal.SIGXCPU:
            sentence = out_of_processor_time(math.ceil(self._options.seconds))
            return GatewayError(ErrorKind.INVALID_REQUEST, sentence)
        if death.ended_by in FAULTS:
            return GatewayError(
                ErrorKind.INVALID_REQUEST,
                f"cannot read the file: its reader {death.reason}; it is damaged, or it takes more than "
                f"{self._options.memory // MB} MB of memory (ingest_memory_limit)",
            )
        sentence = f"cannot read the file: its reader {death.reason}"
        return GatewayError(ErrorKind.UNAVAILABLE, sentence, code=WORKER_DIED)

    def _release(self, reader: ReaderProcess, owner: str, *, is_good: bool) -> None:
        """Make a process idle for the next document of its owner, or end it."""
        worker = reader.worker
        self._busy.discard(reader)
        is_worn = worker.calls >= self._options.documents or worker.resident > self._options.resident
        if self._is_closed or not is_good or is_worn or not worker.is_alive:
            self._end(reader)
            return
        self._idle.append(_IdleReader(reader, owner, asyncio.get_running_loop().time()))
        if self._reaper is None:
            self._reaper = self._tasks.spawn("end of workers without work", self._reap())

    async def _reap(self) -> None:
        """End processes after `idle` seconds without work, until none is idle."""
        loop = asyncio.get_running_loop()
        try:
            while self._idle:
                longest = self._idle[0]
                left = longest.since + self._options.idle - loop.time()
                if left > 0:
                    await asyncio.sleep(left)
                else:
                    del self._idle[0]
                    await longest.reader.close()
        finally:
            self._reaper = None
