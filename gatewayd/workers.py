"""Worker processes that answer framed messages over their standard input and output.

A frame is two 32-bit big-endian lengths, a JSON object and raw bytes. The child dies with its parent. What a
child is for stands in the module that it runs; both ends of the protocol stand here.
"""

import asyncio
import contextlib
import ctypes
import itertools
import logging
import os
import re
import resource
import signal
import struct
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import orjson

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError, shorten
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

FRAME_LENGTHS: Final = struct.Struct(">II")
MAX_FRAME_BYTES: Final = 1 << 30
MAX_ANSWER_BYTES: Final = 64 << 20
"""Of an answer, unless the options of a worker say otherwise."""
MAX_ANSWER_SECONDS: Final = 600.0
"""Of a call, unless the call says otherwise."""
MAX_READING_SECONDS: Final = 60.0
"""For a child to read what it is told, unless the message says otherwise."""
MAX_HEADER_BYTES: Final = 1 << 20
"""Of an answer, whose header is read on the event loop."""
PR_SET_PDEATHSIG: Final = 1
MAX_NICENESS: Final = 19
MAX_STDERR_BYTES: Final = 1 << 16
"""Of the messages of a worker: the last ones."""
MAX_LINE_CHARACTERS: Final = 400
MAX_ERROR_CHARACTERS: Final = 4096
CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
EXIT_SECONDS: Final = 5.0
ROOT: Final = Path(__file__).parents[1]

Header = Mapping[str, Any]

Hearing = Callable[[dict[str, Any], bytes], Awaitable[None]]
"""Is given each message of a process, and awaited before the next one is read."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What to start: `python -m module arguments...`.

    `memory` bounds the address space, `data_memory` the memory that the process may write to, and
    `cpu_seconds` its processor time, 0 for no bound. `nice` is added to its niceness. An answer of more than
    `answer_bytes`, or with a header of more than `header_bytes`, is none. `environment` is all that it sees
    besides PATH and LANG: the daemon's own holds secrets. With `has_children` the processes that it starts
    end with it, those excepted that make a group of their own.
    """

    module: str
    arguments: Sequence[str] = ()
    memory: int = 0
    data_memory: int = 0
    cpu_seconds: int = 0
    nice: int = 0
    answer_bytes: int = MAX_ANSWER_BYTES
    header_bytes: int = MAX_HEADER_BYTES
    has_children: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    def with_argument(self, argument: str) -> "WorkerOptions":
        """Return the same with one more argument."""
        return replace(self, arguments=(*self.arguments, argument))


class WorkerDiedError(Exception):
    """The process ended before it answered; `reason` completes "the worker ...".

    `ended_by` is the signal that ended it, None when it ended by itself.
    """

    def __init__(self, reason: str, ended_by: signal.Signals | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ended_by = ended_by


class WorkerLateError(WorkerDiedError):
    """The process did not answer, or did not read what it was told, in time, and was killed."""

    def __init__(self, seconds: float, what: str = "answer") -> None:
        super().__init__(f"did not {what} within {seconds:g} s", signal.SIGKILL)


class WorkerProcess:
    """A started worker process. Calls may overlap; what it answers them with may come in any order."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        tasks: TaskRegistry,
        options: WorkerOptions,
        hear: Hearing | None = None,
    ) -> None:
        self._process = process
        self._options = options
        self._hear = hear
        # The library's own way to send a signal may take the exit status from whoever waits for it.
        self._handle: int | None = os.pidfd_open(process.pid)
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[tuple[Header, bytes]]] = {}
        self._said = b""
        self._ended = asyncio.Event()
        self._told = asyncio.Event()
        self.calls = 0
        self._answers = tasks.spawn(f"answers of worker {process.pid}", self._read())
        if options.has_children:
            tasks.spawn(f"end of worker {process.pid}", self._notice_end())
        self._talk = tasks.spawn(f"messages of worker {process.pid}", self._listen())
        self._tasks = tasks

    @classmethod
    async def start(cls, options: WorkerOptions, tasks: TaskRegistry, hear: "Hearing | None" = None) -> Self:
        """Start the process; unavailable when that is not possible.

        `hear` is given what the process says without being asked; what it raises ends the process, and
        nothing more is read meanwhile.
        """
        environment = {
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            **options.environment,
        }
        # -P: no module is taken from the folder that the daemon happens to be in.
        command = [sys.executable, "-P", "-m", options.module, *options.arguments]
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
            )
            worker = cls(process, tasks, options, hear)
        except OSError as error:
            raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot start a worker process: {error}") from error
        try:
            _bound(process.pid, options)
        except OSError as error:
            worker.kill()
            raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot bound a worker process: {error}") from error
        return worker

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be called."""
        return not self._ended.is_set()

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds, 0 when it has ended."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * resource.getpagesize()

    async def call(
        self, header: Header, blob: bytes = b"", seconds: float | None = MAX_ANSWER_SECONDS
    ) -> tuple[Header, bytes]:
        """Return the answer to one message.

        Raises the GatewayError that the child answers with, or WorkerDiedError; WorkerLateError when there is
        no answer within `seconds`, None for any, and then the process is killed. A caller that is cancelled
        leaves the child at work.
        """
        try:
            async with TimeLimit(seconds):
                return await self._called(header, blob)
        except TimeoutError as error:
            self.kill()
            raise WorkerLateError(seconds or 0.0) from error

    async def _called(self, header: Header, blob: bytes) -> tuple[Header, bytes]:
        pipe = self._pipe()
        if pipe is None:
            await self._see_end(EXIT_SECONDS)
            raise self._death()
        number = next(self._numbers)
        answer: asyncio.Future[tuple[Header, bytes]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self.calls += 1
        try:
            pipe.write(encode_frame({**header, "number": number}, blob))
            with contextlib.suppress(ConnectionError):
                # A broken pipe means that it has ended, which its answers tell.
                await pipe.drain()
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def tell(self, header: Header, blob: bytes = b"", seconds: float = MAX_READING_SECONDS) -> None:
        """Send a message that has no answer; one that has ended does not get it.

        Raises WorkerLateError when the pipe is full for longer than `seconds`, and then the process is
        killed.
        """
        pipe = self._pipe()
        if pipe is None:
            return
        pipe.write(encode_frame(header, blob))
        try:
            async with TimeLimit(seconds):
                with contextlib.suppress(ConnectionError):
                    await pipe.drain()
        except TimeoutError as error:
            self.kill()
            raise WorkerLateError(seconds, "read what it was told") from error

    def kill(self) -> None:
        """End the process at once; what waits for answers gets WorkerDiedError."""
        if self._handle is None:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        if self._options.has_children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def close(self, seconds: float = 1.0) -> None:
        """Let the process end, and see that it does."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._see_end(seconds)
        await self._tasks.stop(self._talk)

    def _pipe(self) -> asyncio.StreamWriter | None:
        """Return what the process reads; None when it has ended, or its end of the pipe is closed.

        The pipe may be known to be broken before the process is known to have ended; uvloop raises
        RuntimeError for what is written to it then.
        """
        pipe = self._process.stdin
        return None if pipe is None or pipe.is_closing() or not self.is_alive else pipe

    async def _see_end(self, seconds: float) -> None:
        """Wait until the process has ended; kill it after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            self.kill()
            await self._ended.wait()

    async def _read(self) -> None:
        reader = self._process.stdout
        if reader is None:
            raise RuntimeError("the worker was started with a pipe for its answers")
        options = self._options
        try:
            while True:
                sizes = FRAME_LENGTHS.unpack(await reader.readexactly(FRAME_LENGTHS.size))
                if sum(sizes) > options.answer_bytes or sizes[0] > options.header_bytes:
                    raise ValueError("an answer is too long")
                header = orjson.loads(await reader.readexactly(sizes[0]))
                blob = await reader.readexactly(sizes[1])
                if self._hear is not None:
                    await self._hear(header, blob)
                if self._hear is None or "number" in header:
                    self._deliver(header, blob)
        except asyncio.IncompleteReadError:
            # It closes its end a little before it ends; without that its exit status would be ours.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EXIT_SECONDS):
                    await self._process.wait()
        except (ValueError, LookupError, TypeError, AttributeError, ConnectionError) as error:
            log.warning("a worker process answered with what is no answer", extra={"error": repr(error)})
        finally:
            self.kill()
            await self._end()

    async def _notice_end(self) -> None:
        """Stop to read when the process has ended, although one that it started has its end of the pipe."""
        await _wait_exited(self.pid)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                await self._ended.wait()
                return
        await self._tasks.stop(self._answers)

    async def _end(self) -> None:
        with contextlib.suppress(TimeoutError):
            # It was killed. The library waits for its pipes, too, which another process may have.
            async with asyncio.timeout(EXIT_SECONDS):
                await self._process.wait()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        with contextlib.suppress(TimeoutError):
            # What it said last may say why. A process that it started can keep the pipe open.
            async with asyncio.timeout(EXIT_SECONDS):
                await self._told.wait()
        self._ended.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self._death())

    def _deliver(self, header: dict[str, Any], blob: bytes) -> None:
        answer = self._waiting.get(header.pop("number", -1))
        if answer is None or answer.done():
            return
        if "error" in header:
            answer.set_exception(_read_error(header["error"]))
        else:
            answer.set_result((header, blob))

    async def _listen(self) -> None:
        reader = self._process.stderr
        if reader is None:
            raise RuntimeError("the worker was started with a pipe for its messages")
        try:
            while block := await reader.read(MAX_STDERR_BYTES):
                self._said = (self._said + block)[-MAX_STDERR_BYTES:]
        finally:
            self._told.set()

    def _death(self) -> WorkerDiedError:
        status = self._process.returncode
        if status is None:
            return WorkerDiedError("does not answer")
        line = _one_line(self._said.rstrip().rpartition(b"\n")[2].decode(errors="replace"))
        said = f": {shorten(line, MAX_LINE_CHARACTERS)}" if line else ""
        if status < 0:
            with contextlib.suppress(ValueError):
                ended_by = signal.Signals(-status)
                return WorkerDiedError(f"was ended by {ended_by.name}{said}", ended_by)
        return WorkerDiedError(f"ended with status {status}{said}")


async def _wait_exited(pid: int) -> None:
    """Wait until a process of ours has ended, whoever has its pipes."""
    loop, exited = asyncio.get_running_loop(), asyncio.Event()
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop.add_reader(handle, exited.set)
    try:
        await exited.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def encode_frame(header: Header, blob: bytes = b"") -> bytes:
    """Return one message."""
    text = orjson.dumps(header)
    return FRAME_LENGTHS.pack(len(text), len(blob)) + text + blob


class ParentPipe:
    """The child's view of the process that started it."""

    def __init__(self) -> None:
        self._source: BinaryIO = sys.stdin.buffer
        # Libraries print to standard output: what they say belongs to the messages.
        self._answers: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._writing = threading.Lock()
        # The keys of a terminal are for the parent, which ends this process in its own order. It cannot make
        # the group: uvloop does not know how.
        os.setpgid(0, 0)
        die_with_parent()

    def messages(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield what is asked until the parent closes the pipe."""
        while head := self._source.read(FRAME_LENGTHS.size):
            sizes = FRAME_LENGTHS.unpack(head)
            if sum(sizes) > MAX_FRAME_BYTES:
                raise ValueError("a message is too long")
            yield orjson.loads(self._source.read(sizes[0])), self._source.read(sizes[1])

    def answer(self, message: Header, header: Header, blob: bytes = b"") -> None:
        """Answer a message; from any thread."""
        self.say({**header, "number": message["number"]}, blob)

    def say(self, header: Header, blob: bytes = b"") -> None:
        """Write a message that nobody asked for; from any thread."""
        with self._writing:
            self._answers.write(encode_frame(header, blob))
            self._answers.flush()

    def refuse(self, message: Header, error: GatewayError) -> None:
        """Answer a message with a failure."""
        told = {"kind": error.kind, "message": error.message, "param": error.param, "code": error.code}
        self.answer(message, {"error": told})


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends, however that happens.

    A parent that has ended before leaves a closed pipe, which ends the messages.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def make_nice(task: int, steps: int) -> None:
    """Add to the niceness of a process or thread of ours, as far as the service manager permits that."""
    niceness = min(os.getpriority(os.PRIO_PROCESS, task) + steps, MAX_NICENESS)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, task, niceness)


def _read_error(told: Mapping[str, Any]) -> GatewayError:
    """Return the failure that a child answers with; ValueError or TypeError when it is none."""
    message, param, code = (told[name] for name in ("message", "param", "code"))
    if not isinstance(message, str) or not all(isinstance(text, str | None) for text in (param, code)):
        raise TypeError("message, param and code are texts")
    if len(message) + len(param or "") + len(code or "") > MAX_ERROR_CHARACTERS:
        raise ValueError("an error is too long")
    return GatewayError(ErrorKind(told["kind"]), _one_line(message), param=param, code=code)


def _one_line(text: str) -> str:
    """Return what a child says on one line, with U+FFFD for control characters: no database keeps NUL."""
    return CONTROLS.sub("\ufffd", " ".join(text.split()))


def _bound(pid: int, options: WorkerOptions) -> None:
    try:
        if options.memory:
            _lower(pid, resource.RLIMIT_AS, options.memory)
        if options.data_memory:
            _lower(pid, resource.RLIMIT_DATA, options.data_memory)
        if options.cpu_seconds:
            _lower(pid, resource.RLIMIT_CPU, options.cpu_seconds)
        _lower(pid, resource.RLIMIT_CORE, 0)
        if options.nice:
            make_nice(pid, options.nice)
    except ProcessLookupError:
        # It has ended already, which the first call tells.
        return


def _lower(pid: int, what: int, limit: int) -> None:
    """Set a limit of a process; one that the daemon itself is under and that is lower stays."""
    hard = resource.prlimit(pid, what)[1]
    lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.prlimit(pid, what, (lowest, lowest))
