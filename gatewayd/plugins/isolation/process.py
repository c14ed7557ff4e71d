"""Connection to a plugin process: requests, host calls, notices, and a watchdog.

The process may be hostile. Its messages are limited in size, and reading them takes at most half of the time.
A process that does not answer pings, or that sends an invalid message, is killed.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.isolation.messages import (
    MAX_HEADER_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_QUESTION_ANSWER_BYTES,
    SPENT_FIELD,
    Headers,
    PipeData,
    pack,
    read_failure_details,
    render_error,
    render_exception,
    unpack,
)
from gatewayd.plugins.records import Plugin, log_fields
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError, PluginOutcome, run_guarded_async
from gatewayd.plugins.runtime.runner import HOOK_SECONDS
from gatewayd.tasks import TaskRegistry
from gatewayd.time_slices import SLICE_SECONDS
from gatewayd.workers import WorkerDiedError, WorkerLateError, WorkerOptions, WorkerProcess

log = logging.getLogger(__name__)

CHILD: Final = "gatewayd.plugins.isolation.child"
MAX_NOTICE_BYTES: Final = 2 << 20
"""Maximum size of a notice of a process."""
MAX_QUESTIONS: Final = 250
"""Maximum number of concurrent host calls of one process; further ones are refused."""
MAX_QUESTION_BYTES: Final = 64 << 20
"""Maximum total size of the concurrent host calls of one process, without the last one."""
REFUSABLE_REQUESTS: Final = frozenset({"load", "schema", "valves"})
"""Requests whose GatewayErrors are raised unchanged; in any other they become a PluginError."""
UNLIMITED_REQUESTS: Final = frozenset({"call", "repeat", "next"})
"""Requests without a time limit, as in a thread."""
MAX_ANSWER_SECONDS: Final = 2 * HOOK_SECONDS + 30.0
"""Time limit of the other requests; the process itself reports a timeout within two of its own limits."""
MAX_WATCH_SECONDS: Final = 5.0
"""Maximum interval between two pings."""
MAX_PAUSE_SECONDS: Final = 0.05
"""Maximum pause between two messages of a process that sends many."""
MALFORMED_ERRORS: Final = (ValueError, TypeError, LookupError, AttributeError)
"""Exceptions raised by reading an invalid message."""


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """Limits of a process: memory in bytes, seconds without an answer to a ping, and its environment."""

    memory: int
    seconds: float
    environment: Mapping[str, str]


class ProcessListener(Protocol):
    """Receiver of the host calls and notices of a process."""

    async def answer(self, asked: Mapping[str, Any], payload: PipeData) -> PipeData:
        """Return the answer to a host call; raises GatewayError."""
        ...

    async def drop(self, answer: PipeData) -> None:
        """Release the resources of an answer that was not delivered."""
        ...

    def hear(self, said: Mapping[str, Any], payload: PipeData) -> None:
        """Handle a notice; raises one of MALFORMED_ERRORS for an invalid one."""
        ...


class PluginProcess:
    """A plugin process and its connection."""

    def __init__(
        self, plugin: Plugin, options: ProcessOptions, listener: ProcessListener, tasks: TaskRegistry
    ) -> None:
        self._plugin = plugin
        self._options = options
        self._listener = listener
        self._tasks = tasks
        self._questions: dict[int, str] = {}
        self._question_bytes = 0
        self._open = 0
        self._reason: str | None = None
        self._worker: WorkerProcess | None = None
        self._watch = ""
        self._busy_seconds = 0.0
        self._writing = asyncio.Lock()

    async def start(self) -> None:
        """Start the process; unavailable when it cannot be started."""
        options = WorkerOptions(
            CHILD,
            data_memory=self._options.memory,
            answer_bytes=MAX_MESSAGE_BYTES,
            header_bytes=MAX_HEADER_BYTES,
            environment=self._options.environment,
            has_children=True,
        )
        self._worker = await WorkerProcess.start(options, self._tasks, self._hear)

    def watch(self) -> None:
        """Start the watchdog, once the plugin is loaded."""
        watching = self._keep_watch(self._started())
        self._watch = self._tasks.spawn(f"watch of plugin {self._plugin.id}", watching)

    @property
    def is_alive(self) -> bool:
        """Whether the process accepts requests; false as soon as its end was requested."""
        return self._reason is None and self._worker is not None and self._worker.is_alive

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started().pid

    @property
    def resident(self) -> int:
        """Resident memory in bytes."""
        return self._started().resident

    async def ask(
        self,
        header: Mapping[str, Any],
        payload: PipeData | None = None,
        seconds: float | None = None,
    ) -> PipeData:
        """Return the answer to a request.

        Raises PluginError for an exception of the plugin and when the process ends, and the GatewayError of
        one of REFUSABLE_REQUESTS. Without an answer within `seconds`, by default MAX_ANSWER_SECONDS, the
        process is killed and PluginError raised. A process whose memory is used up is killed as well.
        """
        worker = self._started()
        limit = None
        if header["do"] not in UNLIMITED_REQUESTS:
            limit = MAX_ANSWER_SECONDS if seconds is None else seconds
        more, blob = await pack(payload or PipeData())
        self._open += 1
        try:
            answer, data = await worker.call({**header, **more}, blob, limit)
            if SPENT_FIELD in answer:
                self._replace()
            if "failed" in answer:
                failed, kind = read_failure_details(answer["failed"])
                raise PluginError(self._plugin.kind.value, self._plugin.id, failed, kind=kind)
            return await unpack(answer, data)
        except WorkerDiedError as error:
            raise make_failure(self._plugin, self._why(error)) from error
        except PluginError:
            raise
        except GatewayError as error:
            if header["do"] in REFUSABLE_REQUESTS:
                raise
            raise make_failure(self._plugin, error.message) from error
        except MALFORMED_ERRORS as error:
            raise self.spoil(error) from error
        finally:
            self._open -= 1

    async def tell(self, header: Mapping[str, Any], payload: PipeData | None = None) -> None:
        """Send a message without an answer; a process that does not read it is killed."""
        more, blob = await pack(payload or PipeData())
        await self._write({**header, **more}, blob)

    def tell_soon(self, header: Mapping[str, Any]) -> None:
        """Send a message without an answer, in a task."""
        if self.is_alive:
            self._tasks.spawn("message to a plugin", self.tell(header))

    def spoil(self, error: Exception) -> PluginError:
        """Kill the process for an invalid message, and return the failure."""
        self._end(f"sent an invalid message ({error})")
        return make_failure(self._plugin, f"its process sent an invalid message ({error}), and was ended")

    async def close(self) -> None:
        """End the process and its children."""
        if self._worker is None:
            return
        await self._tasks.stop(self._watch)
        await self._worker.close()

    def kill(self) -> None:
        """Kill the process."""
        if self._worker is not None:
            self._worker.kill()

    def _started(self) -> WorkerProcess:
        if self._worker is None:
            raise RuntimeError("the process is not started")
        return self._worker

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason
        self.kill()

    def _replace(self) -> None:
        """Kill the process, in which every further call would fail; the next call restarts it."""
        self._end(f"used up its {self._options.memory >> 20} MiB of plugin_process_memory and was ended")
        fields = log_fields(self._plugin.family, self._plugin.id)
        log.warning("the process of a plugin %s", self._reason, extra=fields)

    async def _write(self, header: Headers, blob: bytes) -> None:
        try:
            await self._started().tell(header, blob)
        except WorkerLateError as error:
            self._reason = self._reason or error.reason

    def _why(self, error: WorkerDiedError) -> str:
        if isinstance(error, WorkerLateError) and self._reason is None:
            self._reason = error.reason
        return f"its process {self._reason or error.reason}; the next call starts it again"

    async def _keep_watch(self, worker: WorkerProcess) -> None:
        """Ping the process while requests are open."""
        limit = self._options.seconds
        pause = min(limit / 4, MAX_WATCH_SECONDS)
        while worker.is_alive:
            await asyncio.sleep(pause)
            if not self._open:
                continue
            try:
                await worker.call({"do": "ping"}, seconds=limit)
            except WorkerLateError:
                self._reason = self._reason or (
                    f"gave no sign of life for {limit:g} s and was ended: code of it held the interpreter"
                )
            except (WorkerDiedError, GatewayError):
                return

    async def _hear(self, header: dict[str, Any], blob: bytes) -> None:
        """Handle one message; reading takes at most half of the time."""
        began = time.perf_counter()
        if "number" not in header:
            try:
                await self._take(header, blob)
            except MALFORMED_ERRORS as error:
                self._reason = self._reason or f"sent an invalid message ({error}), and was ended"
                raise
        self._busy_seconds += time.perf_counter() - began + _MESSAGE_SECONDS
        if self._busy_seconds >= SLICE_SECONDS:
            pause, self._busy_seconds = min(self._busy_seconds, MAX_PAUSE_SECONDS), 0.0
            await asyncio.sleep(pause)

    async def _take(self, header: Mapping[str, Any], blob: bytes) -> None:
        if "ask" not in header and len(blob) > MAX_NOTICE_BYTES:
            raise ValueError("a notice is too large")
        if "ask" in header:
            await self._take_question(header, blob)
        elif header.get("tell") == "withdraw":
            await self._withdraw(header["of"])
        else:
            self._listener.hear(header, await unpack(header, blob))

    async def _take_question(self, header: Mapping[str, Any], blob: bytes) -> None:
        number = header["ask"]
        if not isinstance(number, int) or number in self._questions:
            raise ValueError("the number of a host call is invalid or in use")
        if len(self._questions) >= MAX_QUESTIONS or self._question_bytes > MAX_QUESTION_BYTES:
            error = GatewayError(
                ErrorKind.RATE_LIMITED, "cannot serve host call: the plugin makes too many at a time"
            )
            await self.tell({"do": "answer", "ask": number, **render_error(error)})
            return
        payload = await unpack(header, blob)
        self._question_bytes += len(blob)
        self._questions[number] = self._tasks.spawn(
            "host call of a plugin",
            self._answer(number, header, payload),
            at_end=lambda: self._forget(number, len(blob)),
        )

    def _forget(self, number: int, size: int) -> None:
        self._question_bytes -= size
        self._questions.pop(number, None)

    async def _withdraw(self, number: Any) -> None:
        task = self._questions.get(number)
        if task is not None:
            self._tasks.spawn("withdraw a host call", self._stopped(task))

    async def _stopped(self, task: str) -> None:
        await self._tasks.stop(task)

    async def _answer(self, number: int, header: Mapping[str, Any], payload: PipeData) -> None:
        outcome = await run_guarded_async(lambda: self._listener.answer(header, payload))
        is_written = False
        try:
            # Writing one answer at a time bounds the data that waits for a process that does not read.
            async with self._writing:
                await self._write_answer(number, outcome)
            is_written = True
        finally:
            if not is_written and outcome.error is None:
                await self._listener.drop(outcome.value)

    async def _write_answer(self, number: int, outcome: PluginOutcome) -> None:
        error = outcome.error
        if error is None:
            more, blob = await pack(outcome.value)
            if len(blob) <= MAX_QUESTION_ANSWER_BYTES:
                await self._write({"do": "answer", "ask": number, **more}, blob)
                return
            error = GatewayError(ErrorKind.TOO_LARGE, "cannot serve host call: the answer is too large")
        await self.tell({"do": "answer", "ask": number, **self._render_error(error)})

    def _render_error(self, error: BaseException) -> Headers:
        """Return the header fields of the error of a host call."""
        if isinstance(error, GatewayError):
            return render_error(error)
        fields = render_exception(error) if isinstance(error, Exception) else None
        if fields is None:
            log.warning("host call of a plugin failed", exc_info=error, extra={"plugin": self._plugin.id})
            return render_error(
                GatewayError(ErrorKind.INTERNAL, "cannot serve host call: the gateway failed")
            )
        return fields


def make_failure(plugin: Plugin, text: str) -> PluginError:
    """Return a failure of a plugin."""
    return PluginError(plugin.kind.value, plugin.id, FailureDetails(text))


_MESSAGE_SECONDS: Final = 0.00002
"""Seconds of overhead counted for each message, beyond handling it."""
