"""Process of the built-in model: one run from its start to its end."""

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

SERVER: Final = Path(__file__).with_name("server.py")

ENVIRONMENT: Final = {"PATH": os.defpath, "LANG": "C.UTF-8"}
"""The whole environment of the process; that of the daemon holds secrets."""

STOP_SECONDS = 5.0
"""Maximum time for the process to exit by itself."""

MAX_STDERR_LINES = 100
MAX_LINE_BYTES = 2000

_NO_LIBRARY = re.compile(r"ImportError: (?P<name>lib[\w.+-]+): cannot open shared object file")
_ENGINE_ERROR = re.compile(r"^[\d.]+ E (?:\w+ +)?\w+: (?P<message>.+)$")


class ChildError(Exception):
    """The process failed to start; the text completes "cannot run the built-in model ...: "."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of the process; `context` is in tokens for each of the `slots`, which answer in parallel."""

    weights: Path
    model_id: str
    threads: int
    slots: int = 4
    context: int = 4096

    def arguments(self, socket: Path) -> list[str]:
        """Return the command line of the process.

        Because of `-P` and the path of the file, the server imports installed libraries and nothing of the
        gateway.
        """
        return [
            *(sys.executable, "-P", str(SERVER)),
            *("--weights", str(self.weights.absolute())),
            *("--socket", str(socket.absolute())),
            *("--alias", self.model_id),
            *("--threads", str(self.threads)),
            *("--slots", str(self.slots)),
            *("--context", str(self.context)),
        ]


class BuiltinProcess:
    """A running process of the built-in model."""

    def __init__(self, options: EngineOptions, process: asyncio.subprocess.Process) -> None:
        self._options = options
        self._process = process
        self._ending = asyncio.Lock()
        self._lines: deque[str] = deque(maxlen=MAX_STDERR_LINES)
        # Set while the standard error of the process is not being read.
        self._stderr_closed = asyncio.Event()
        self._stderr_closed.set()

    @classmethod
    async def spawn(cls, options: EngineOptions, socket: Path, tasks: TaskRegistry) -> Self:
        """Start the process; raises ChildError."""
        try:
            process = await asyncio.create_subprocess_exec(
                *options.arguments(socket),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=ENVIRONMENT,
                cwd=socket.parent,
                # Signals of the terminal of the daemon do not reach a session of its own.
                start_new_session=True,
            )
        except OSError as error:
            raise ChildError(f"its process cannot be started: {error.strerror or error}") from error
        child = cls(options, process)
        tasks.spawn("log of the built-in model", child._read_stderr())
        return child

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    async def listening(self, deadline: float) -> None:
        """Wait until the process answers requests, at most `deadline` seconds; raises ChildError."""
        stdout = self._process.stdout
        if stdout is None:
            raise ChildError("its output cannot be read")
        try:
            async with asyncio.timeout(deadline):
                line = await stdout.readline()
        except TimeoutError as error:
            raise ChildError(f"it was not ready after {deadline:g} s") from error
        if not line:
            await self.wait()
            raise ChildError(f"cannot load {self._options.weights.name!r}: {self.failure_reason()}")
        try:
            json.loads(line)["listening"]
        except (ValueError, KeyError, TypeError) as error:
            raise ChildError("it did not report its socket") from error

    async def wait(self) -> None:
        """Wait until the process has ended and its standard error is read."""
        # This lets the reader start first, also if the process has already ended.
        await asyncio.sleep(0)
        await self._process.wait()
        await self._stderr_closed.wait()

    def kill(self) -> None:
        """Kill the process."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def end_process(self) -> None:
        """Terminate the process, kill it if it does not exit, and wait for its end; calls may overlap."""
        # A second signal could reap the exit status before the waiter.
        async with self._ending:
            if self._process.returncode is None:
                await self._end()

    async def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            log.warning("the built-in model does not exit, killing it")
            self._process.kill()
            await self._process.wait()

    async def close_pipes(self) -> None:
        """Close the pipes of the ended process."""
        stdin = self._process.stdin
        if stdin is not None:
            stdin.close()
            with contextlib.suppress(ConnectionError):
                await stdin.wait_closed()
        await self._stderr_closed.wait()
        # This reads the rest of both outputs, which closes them.
        await self._process.communicate()

    def failure_reason(self) -> str:
        """Return the first error of the engine, the cause of the later ones, or else how the process ended.

        The directory of the weights is removed, because callers may read the sentence.
        """
        weights = self._options.weights
        lines = [line.replace(str(weights.absolute()), weights.name) for line in self._lines]
        errors = (found["message"] for line in lines if (found := _ENGINE_ERROR.match(line)))
        last = next(reversed(lines), "")
        if missing := _NO_LIBRARY.match(last):
            return f"this machine lacks the library {missing['name']} (README.md, Try it, names its package)"
        return next(errors, None) or last or self.end()

    def end(self) -> str:
        """Return how the process ended, as a sentence."""
        code = self._process.returncode
        if code is None:
            return "it still runs"
        if code < 0:
            return f"it was ended by signal {-code} ({signal.strsignal(-code)})"
        return f"it ended with status {code}"

    async def _read_stderr(self) -> None:
        """Read the standard error of the process line by line, so that the process never blocks."""
        stderr = self._process.stderr
        rest = b""
        self._stderr_closed.clear()
        try:
            while stderr is not None and (part := await stderr.read(MAX_LINE_BYTES)):
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    self._add_line(line)
                rest = rest[:MAX_LINE_BYTES]
            self._add_line(rest)
        finally:
            self._stderr_closed.set()

    def _add_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()[:MAX_LINE_BYTES]
        if text:
            self._lines.append(text)
            log.debug("built-in model: %s", text)
