"""The processes that read documents: started when they are needed, bounded, and ended when they rest.

A document may take over the process that reads it, which could read and change those that come after. So a
process reads the documents of one owner only.
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
from gatewayd.extract.records import MB, OVER_MEMORY
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
"""Of a manual page."""
NICENESS: Final = 10
# The ends that a document brings about, each time that it is read: faults in a reader, mostly for want of
# memory.
FAULTS: Final = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP}


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How many processes there are and what a document may take in one.

    One more is for small documents. There are `spare` processes more for small documents and for owners who
    have none at work, while others have been read for more than `turn` seconds. `memory` is the bytes of
    address space of a process. `seconds` is processor time for a document; by the clock it may take
    `patience` times that, for the machine may be busy. `text_limit` is the characters of its text. A process
    is for one owner; it is replaced after `documents` of them or when it holds `resident` bytes, and ended
    when it had nothing to do for `idle` seconds or another owner's turn comes. `folder` is where the
    processes find their documents: on the file system that these are on. `sandbox` says how they are
    confined.
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
class _Resting:
    """A process without work, for documents of an owner, since a time of the loop."""

    reader: ReaderProcess
    owner: str
    since: float


class ExtractorPool:
    """Reads documents in worker processes, one in each at a time. An `ingest.interfaces.Extractor`."""

    def __init__(self, options: PoolOptions, tasks: TaskRegistry) -> None:
        self._options = options
        self._tasks = tasks
        self._slots = ReaderSlots(options.workers, options.spare, options.turn)
        # The one that has rested longest first.
        self._resting: list[_Resting] = []
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

    async def extract(
        self, path: Path, name: str, content_type: str | None, key: QueueKey
    ) -> ExtractionResult:
        """Return the text and the chunks of the document at `path`; waits while no process is free for it."""
        message = {"name": name, "content_type": content_type}
        async with self._slots.held(key):
            reader = await self._take(key.owner)
            is_good = False
            try:
                header, blob = await self._read(reader, path, message)
                is_good = True
            except GatewayError as error:
                is_good = error.kind is not ErrorKind.TIMEOUT and error.code != OVER_MEMORY
                raise
            finally:
                self._give_back(reader, key.owner, is_good=is_good)
        return await asyncio.to_thread(unpack_answer, header, blob, self._answer_limits)

    async def close(self) -> None:
        """End all processes; who waits for one gets unavailable."""
        self._is_closed = True
        if self._reaper is not None:
            await self._tasks.stop(self._reaper)
        readers = [*self._busy, *(each.reader for each in self._resting)]
        self._resting.clear()
        for reader in readers:
            reader.worker.kill()
        for worker in self._formatters:
            worker.kill()
        for reader in readers:
            await reader.close()

    async def _take(self, owner: str) -> ReaderProcess:
        """Return a process that has read nothing of another owner; it replaces one that rests."""
        if self._is_closed:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read documents: the gateway is stopping")
        while (resting := self._pop(owner)) is not None:
            if resting.owner == owner and resting.reader.is_usable:
                self._busy.add(resting.reader)
                return resting.reader
            self._end(resting.reader)
            if resting.owner != owner:
                break
        reader = await ReaderProcess.start(self._options.folder, self._worker_options, self._tasks)
        if self._is_closed:
            reader.worker.kill()
        self._busy.add(reader)
        return reader

    def _pop(self, owner: str) -> _Resting | None:
        """Take the process of an owner that has rested shortest, or else the one that has rested longest."""
        if not self._resting:
            return None
        own = [each for each in self._resting if each.owner == owner]
        found = own[-1] if own else self._resting[0]
        self._resting.remove(found)
        return found

    def _end(self, reader: ReaderProcess) -> None:
        """End a process at once: a document may have taught it to wait."""
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
        """Return a manual page as HTML: mandoc makes it, in a process of its own for each page."""
        program = shutil.which("mandoc")
        if program is None:
            sentence = "cannot read the manual page: mandoc is not installed"
            raise GatewayError(ErrorKind.INVALID_REQUEST, sentence)
        options = replace(
            self._worker_options,
            module=MANDOC,
            arguments=(program, self._options.sandbox, str(MAX_HTML_BYTES)),
            cpu_seconds=math.ceil(self._options.seconds),
            answer_bytes=MAX_HEADER_BYTES + MAX_HTML_BYTES,
            has_children=True,
        )
        worker = await WorkerProcess.start(options, self._tasks)
        self._formatters.add(worker)
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
            seconds = math.ceil(self._options.seconds)
            return GatewayError(
                ErrorKind.INVALID_REQUEST,
                f"cannot read the file: it takes more than {seconds} seconds of processor time; "
                "split it, or raise ingest_timeout",
            )
        if death.ended_by in FAULTS:
            return GatewayError(
                ErrorKind.INVALID_REQUEST,
                f"cannot read the file: its reader {death.reason}; it is damaged, or it takes more than "
                f"{self._options.memory // MB} MB of memory (ingest_memory_limit)",
            )
        sentence = f"cannot read the file: its reader {death.reason}"
        return GatewayError(ErrorKind.UNAVAILABLE, sentence, code=WORKER_DIED)

    def _give_back(self, reader: ReaderProcess, owner: str, *, is_good: bool) -> None:
        """Keep a process for the next document of its owner, or end it."""
        worker = reader.worker
        self._busy.discard(reader)
        is_worn = worker.calls >= self._options.documents or worker.resident > self._options.resident
        if self._is_closed or not is_good or is_worn or not worker.is_alive:
            self._end(reader)
            return
        self._resting.append(_Resting(reader, owner, asyncio.get_running_loop().time()))
        if self._reaper is None:
            self._reaper = self._tasks.spawn("end of workers without work", self._reap())

    async def _reap(self) -> None:
        """End the processes that rest for too long, until none rests."""
        loop = asyncio.get_running_loop()
        try:
            while self._resting:
                longest = self._resting[0]
                left = longest.since + self._options.idle - loop.time()
                if left > 0:
                    await asyncio.sleep(left)
                else:
                    del self._resting[0]
                    await longest.reader.close()
        finally:
            self._reaper = None
