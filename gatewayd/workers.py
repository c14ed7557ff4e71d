"""Worker processes: start, calls, limits and end, and the protocol of framed messages.

A worker reads frames from its standard input and writes frames to its standard output. A frame is two 32-bit
big-endian lengths, a JSON object and raw bytes. A worker ends with its parent. This module has both ends of
the protocol; each kind of worker has a module of its own.
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
"""Maximum size of an answer; the options of a worker can change it."""
MAX_ANSWER_SECONDS: Final = 600.0
"""Maximum duration of a call; the call can change it."""
MAX_READING_SECONDS: Final = 60.0
"""Maximum time for a worker to read a message; the message can change it."""
MAX_HEADER_BYTES: Final = 1 << 20
"""Maximum size of the header of an answer, which is decoded on the event loop."""
PR_SET_PDEATHSIG: Final = 1
MAX_NICENESS: Final = 19
MAX_STDERR_BYTES: Final = 1 << 16
"""Bytes kept of the end of the standard error of a worker."""
MAX_LINE_CHARACTERS: Final = 400
MAX_ERROR_CHARACTERS: Final = 4096
CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
EXIT_SECONDS: Final = 5.0
ROOT: Final = Path(__file__).parents[1]

Header = Mapping[str, Any]

Hearing = Callable[[dict[str, Any], bytes], Awaitable[None]]
"""Receives each message of a worker; it is awaited before the next message is read."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Options of a worker process: the command `python -m module arguments...` and its limits.

    `memory` limits the address space, `data_memory` the writable memory, and `cpu_seconds` the processor
    time; 0 is no limit. `nice` is added to its niceness. An answer of more than `answer_bytes`, or with a
    header of more than `header_bytes`, is an error. Besides PATH and LANG the process receives only
    `environment`, because the environment of the daemon holds secrets. With `has_children` its child
    processes end with it, except those in process groups of their own.
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
        """Return the same options with one more argument."""
        return replace(self, arguments=(*self.arguments, argument))


class WorkerDiedError(Exception):
    """The process ended before it answered; `reason` completes "the worker ...".

    `ended_by` is the signal that ended it, None if it exited by itself.
    """

    def __init__(self, reason: str, ended_by: signal.Signals | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ended_by = ended_by


class WorkerLateError(WorkerDiedError):
    """The process did not answer or did not read a message in time, and was killed."""

    def __init__(self, seconds: float, what: str = "answer") -> None:
        super().__init__(f"did not {what} within {seconds:g} s", signal.SIGKILL)


class WorkerProcess:
    """A running worker process. Calls may overlap; answers may come in any order."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        tasks: TaskRegistry,
        options: WorkerOptions,
        hear: Hearing | None = None,
    ) -> None:
        self._process = process
        self._options = options
        self._on_message = hear
        # The signals of asyncio may reap the exit status before its waiter.
        self._pidfd: int | None = os.pidfd_open(process.pid)
        self._numbers = itertools.count()
        self._pending: dict[int, asyncio.Future[tuple[Header, bytes]]] = {}
        self._stderr_tail = b""
        self._ended = asyncio.Event()
        self._stderr_closed = asyncio.Event()
        self.calls = 0
        self._answers = tasks.spawn(f"answers of worker {process.pid}", self._read())
        if options.has_children:
            tasks.spawn(f"end of worker {process.pid}", self._watch_exit())
        self._stderr_task = tasks.spawn(f"messages of worker {process.pid}", self._read_stderr())
        self._tasks = tasks

    @classmethod
    async def start(cls, options: WorkerOptions, tasks: TaskRegistry, hear: "Hearing | None" = None) -> Self:
        """Start the process; raises unavailable if that fails.

        `hear` receives each message before it counts as an answer. Its errors end the process, and nothing is
        read until it returns.
        """
        environment = {
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            **options.environment,
        }
        # -P: no module is imported from the current directory of the daemon.
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
            _set_limits(process.pid, options)
        except OSError as error:
            worker.kill()
            raise GatewayError(ErrorKind.UNAVAILABLE, f"cannot limit a worker process: {error}") from error
        return worker

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and can be called."""
        return not self._ended.is_set()

    @property
    def resident(self) -> int:
        """Resident memory of the process in bytes, 0 if it has ended."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * resource.getpagesize()

    async def call(
        self, header: Header, blob: bytes = b"", seconds: float | None = MAX_ANSWER_SECONDS
    ) -> tuple[Header, bytes]:
        """Return the answer to one message.

        Raises the GatewayError in the answer, WorkerDiedError, or after `seconds` (None for no limit)
        WorkerLateError, with the process killed. If the caller is cancelled, the process goes on with the
        work.
        """
        try:
            async with TimeLimit(seconds):
                return await self._send_call(header, blob)
        except TimeoutError as error:
            self.kill()
            raise WorkerLateError(seconds or 0.0) from error

    async def _send_call(self, header: Header, blob: bytes) -> tuple[Header, bytes]:
        pipe = self._pipe()
        if pipe is None:
            await self._wait_for_end(EXIT_SECONDS)
            raise self._death()
        number = next(self._numbers)
        answer: asyncio.Future[tuple[Header, bytes]] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        self.calls += 1
        try:
            pipe.write(encode_frame({**header, "number": number}, blob))
            with contextlib.suppress(ConnectionError):
                # A broken pipe means that the process has ended, which the reader of its answers notices.
                await pipe.drain()
            return await answer
        finally:
            self._pending.pop(number, None)

    async def tell(self, header: Header, blob: bytes = b"", seconds: float = MAX_READING_SECONDS) -> None:
        """Send a message without an answer; it is dropped if the process has ended.

        Raises WorkerLateError if the pipe is full for more than `seconds`, with the process killed.
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
            raise WorkerLateError(seconds, "read a message") from error

    def kill(self) -> None:
        """Kill the process; pending calls raise WorkerDiedError."""
        if self._pidfd is None:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        if self._options.has_children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def close(self, seconds: float = 1.0) -> None:
        """Close the pipe, wait for the process to end, and kill it after `seconds`."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._wait_for_end(seconds)
        await self._tasks.stop(self._stderr_task)

    def _pipe(self) -> asyncio.StreamWriter | None:
        """Return the pipe to the process; None if the process has ended or closed its end.

        The pipe may be broken before the end of the process is noticed; uvloop raises RuntimeError for a
        write then.
        """
        pipe = self._process.stdin
        return None if pipe is None or pipe.is_closing() or not self.is_alive else pipe

    async def _wait_for_end(self, seconds: float) -> None:
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
                    raise ValueError("the answer is too long")
                header = orjson.loads(await reader.readexactly(sizes[0]))
                blob = await reader.readexactly(sizes[1])
                if self._on_message is not None:
                    await self._on_message(header, blob)
                if self._on_message is None or "number" in header:
                    self._deliver(header, blob)
        except asyncio.IncompleteReadError:
            # The pipe closes a little before the process ends; a kill now would replace its exit status.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EXIT_SECONDS):
                    await self._process.wait()
        except (ValueError, LookupError, TypeError, AttributeError, ConnectionError) as error:
            log.warning("cannot read the answer of a worker process", extra={"error": repr(error)})
        finally:
            self.kill()
            await self._end()

    async def _watch_exit(self) -> None:
        """Stop reading when the process has ended, even if one of its children holds the pipe open."""
        await _wait_exited(self.pid)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                await self._ended.wait()
                return
        await self._tasks.stop(self._answers)

    async def _end(self) -> None:
        with contextlib.suppress(TimeoutError):
            # The process is killed. asyncio waits for its pipes too, which another process may hold open.
            async with asyncio.timeout(EXIT_SECONDS):
                await self._process.wait()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        with contextlib.suppress(TimeoutError):
            # Its last line may hold the reason. A child of the process can keep the pipe open.
            async with asyncio.timeout(EXIT_SECONDS):
                await self._stderr_closed.wait()
        self._ended.set()
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(self._death())

    def _deliver(self, header: dict[str, Any], blob: bytes) -> None:
        answer = self._pending.get(header.pop("number", -1))
        if answer is None or answer.done():
            return
        if "error" in header:
            answer.set_exception(_read_error(header["error"]))
        else:
            answer.set_result((header, blob))

    async def _read_stderr(self) -> None:
        reader = self._process.stderr
        if reader is None:
            raise RuntimeError("the worker was started with a pipe for its messages")
        try:
            while block := await reader.read(MAX_STDERR_BYTES):
                self._stderr_tail = (self._stderr_tail + block)[-MAX_STDERR_BYTES:]
        finally:
            self._stderr_closed.set()

    def _death(self) -> WorkerDiedError:
        status = self._process.returncode
        if status is None:
            return WorkerDiedError("does not answer")
        line = _one_line(self._stderr_tail.rstrip().rpartition(b"\n")[2].decode(errors="replace"))
        detail = f": {shorten(line, MAX_LINE_CHARACTERS)}" if line else ""
        if status < 0:
            with contextlib.suppress(ValueError):
                ended_by = signal.Signals(-status)
                return WorkerDiedError(f"was ended by {ended_by.name}{detail}", ended_by)
        return WorkerDiedError(f"ended with status {status}{detail}")


async def _wait_exited(pid: int) -> None:
    """Wait until a child process has ended, even if another process holds its pipes open."""
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
    """Return the frame of one message."""
    text = orjson.dumps(header)
    return FRAME_LENGTHS.pack(len(text), len(blob)) + text + blob


class ParentPipe:
    """The connection of a worker to its parent process."""

    def __init__(self) -> None:
        self._source: BinaryIO = sys.stdin.buffer
        # Libraries print to standard output, which becomes standard error here.
        self._answers: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._writing = threading.Lock()
        # A group of its own keeps signals of the terminal away; the parent ends this process. The parent
        # cannot create the group, because uvloop has no option for it.
        os.setpgid(0, 0)
        die_with_parent()

    def messages(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield messages until the parent closes the pipe."""
        while head := self._source.read(FRAME_LENGTHS.size):
            sizes = FRAME_LENGTHS.unpack(head)
            if sum(sizes) > MAX_FRAME_BYTES:
                raise ValueError("the message is too long")
            yield orjson.loads(self._source.read(sizes[0])), self._source.read(sizes[1])

    def answer(self, message: Header, header: Header, blob: bytes = b"") -> None:
        """Answer a message; any thread may call this."""
        self.say({**header, "number": message["number"]}, blob)

    def say(self, header: Header, blob: bytes = b"") -> None:
        """Send a message that is no answer; any thread may call this."""
        with self._writing:
            self._answers.write(encode_frame(header, blob))
            self._answers.flush()

    def refuse(self, message: Header, error: GatewayError) -> None:
        """Answer a message with an error."""
        fields = {"kind": error.kind, "message": error.message, "param": error.param, "code": error.code}
        self.answer(message, {"error": fields})


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends for any reason.

    If the parent has ended before this call, its closed pipe ends the messages.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def make_nice(task: int, steps: int) -> None:
    """Add `steps` to the niceness of a child process or thread, if the service manager permits it."""
    niceness = min(os.getpriority(os.PRIO_PROCESS, task) + steps, MAX_NICENESS)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, task, niceness)


def _read_error(fields: Mapping[str, Any]) -> GatewayError:
    """Return the error in an answer; raises ValueError or TypeError if it is malformed."""
    message, param, code = (fields[name] for name in ("message", "param", "code"))
    if not isinstance(message, str) or not all(isinstance(text, str | None) for text in (param, code)):
        raise TypeError("message, param and code must be texts")
    if len(message) + len(param or "") + len(code or "") > MAX_ERROR_CHARACTERS:
        raise ValueError("the error is too long")
    return GatewayError(ErrorKind(fields["kind"]), _one_line(message), param=param, code=code)


def _one_line(text: str) -> str:
    """Return a text of a worker on one line, with U+FFFD for control characters (databases refuse NUL)."""
    return CONTROLS.sub("\ufffd", " ".join(text.split()))


def _set_limits(pid: int, options: WorkerOptions) -> None:
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
        # The process has ended already; the first call raises that.
        return


def _lower(pid: int, what: int, limit: int) -> None:
    """Set a resource limit of a process; a lower limit of the daemon itself stays."""
    hard = resource.prlimit(pid, what)[1]
    lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.prlimit(pid, what, (lowest, lowest))
