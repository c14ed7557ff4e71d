"""The process of one plugin, as the gateway sees it: it is asked, it asks, and it is watched.

It may be hostile. What it says is bounded and read for half of the time at most; when it does not answer that
it is alive, or says what has no meaning, it is ended.
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
from gatewayd.plugins.runtime.invoke import CallOutcome, FailureDetails, PluginError, run_guarded_async
from gatewayd.plugins.runtime.runner import HOOK_SECONDS
from gatewayd.tasks import TaskRegistry
from gatewayd.time_slices import SLICE_SECONDS
from gatewayd.workers import WorkerDiedError, WorkerLateError, WorkerOptions, WorkerProcess

log = logging.getLogger(__name__)

CHILD: Final = "gatewayd.plugins.isolation.child"
MAX_NOTICE_BYTES: Final = 2 << 20
"""Of what a process says of its own accord and is no question."""
MAX_QUESTIONS: Final = 250
"""Questions of one process that are being answered; a further one is refused."""
MAX_QUESTION_BYTES: Final = 64 << 20
"""Of the questions of one process that are being answered, beside the last one."""
REFUSABLE_REQUESTS: Final = frozenset({"load", "schema", "valves"})
"""What a process may refuse with an error of the gateway; anything else it fails at."""
UNLIMITED_REQUESTS: Final = frozenset({"call", "repeat", "next"})
"""What may take any time, as in a thread."""
MAX_ANSWER_SECONDS: Final = 2 * HOOK_SECONDS + 30.0
"""Of all else: after twice its patience the process itself answers that it takes too long."""
MAX_WATCH_SECONDS: Final = 5.0
"""Between two times that a process is asked whether it is alive."""
MAX_PAUSE_SECONDS: Final = 0.05
"""Between two messages of a process that says much."""
MALFORMED_ERRORS: Final = (ValueError, TypeError, LookupError, AttributeError)
"""What reading a message raises that a process should not have sent."""


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """The bounds of a process: bytes of memory, and seconds without a sign of life."""

    memory: int
    seconds: float
    environment: Mapping[str, str]


class ProcessListener(Protocol):
    """Hears what a process says of its own accord."""

    async def answer(self, asked: Mapping[str, Any], payload: PipeData) -> PipeData:
        """Return the answer to a question; raises GatewayError."""
        ...

    async def drop(self, answer: PipeData) -> None:
        """Let go of what an answer offers that the process does not get."""
        ...

    def hear(self, said: Mapping[str, Any], payload: PipeData) -> None:
        """Take a message that has no answer; raises one of MALFORMED for what is none."""
        ...


class PluginProcess:
    """A started process."""

    def __init__(
        self, plugin: Plugin, options: ProcessOptions, listener: ProcessListener, tasks: TaskRegistry
    ) -> None:
        self._plugin = plugin
        self._options = options
        self._listener = listener
        self._tasks = tasks
        self._questions: dict[int, str] = {}
        self._asked_bytes = 0
        self._open = 0
        self._reason: str | None = None
        self._worker: WorkerProcess | None = None
        self._watch = ""
        self._worked = 0.0
        self._writing = asyncio.Lock()

    async def start(self) -> None:
        """Start the process; unavailable when that is not possible."""
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
        """Begin to ask whether it is alive: it has been loaded."""
        watching = self._keep_watch(self._started())
        self._watch = self._tasks.spawn(f"watch of plugin {self._plugin.id}", watching)

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked; one that was told to end cannot, however long that takes."""
        return self._reason is None and self._worker is not None and self._worker.is_alive

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started().pid

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds."""
        return self._started().resident

    async def ask(
        self,
        header: Mapping[str, Any],
        payload: PipeData | None = None,
        seconds: float | None = None,
    ) -> PipeData:
        """Return the answer to a question.

        Raises PluginError for what the plugin raised and when the process ends, the GatewayError that the
        plugin's valves were refused with, and PluginError without an answer within `seconds`, in place of
        MAX_ANSWER_SECONDS; the process is ended then. So it is when it tells that its memory is used up.
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
        """Send a message that has no answer; a process that does not read it is ended."""
        more, blob = await pack(payload or PipeData())
        await self._write({**header, **more}, blob)

    def tell_soon(self, header: Mapping[str, Any]) -> None:
        """Send a message that has no answer, without waiting."""
        if self.is_alive:
            self._tasks.spawn("message to a plugin", self.tell(header))

    def spoil(self, error: Exception) -> PluginError:
        """End the process for what it said, and return the failure."""
        self._end(f"said what has no meaning ({error})")
        return make_failure(self._plugin, f"its process said what has no meaning ({error}), and was ended")

    async def close(self) -> None:
        """End the process, and what it has started."""
        if self._worker is None:
            return
        await self._tasks.stop(self._watch)
        await self._worker.close()

    def kill(self) -> None:
        """End the process at once."""
        if self._worker is not None:
            self._worker.kill()

    def _started(self) -> WorkerProcess:
        if self._worker is None:
            raise RuntimeError("the process is started first")
        return self._worker

    def _end(self, reason: str) -> None:
        self._reason = self._reason or reason
        self.kill()

    def _replace(self) -> None:
        """End the process: it would fail at every further call. The next one starts it again."""
        self._end(f"used up its {self._options.memory >> 20} MiB of plugin_process_memory and was ended")
        told = log_fields(self._plugin.family, self._plugin.id)
        log.warning("the process of a plugin %s", self._reason, extra=told)

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
        """Ask the process whether it is alive while somebody waits for it."""
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
        """Take one message; whoever says much is heard for half of the time."""
        began = time.perf_counter()
        if "number" not in header:
            try:
                await self._take(header, blob)
            except MALFORMED_ERRORS as error:
                self._reason = self._reason or f"said what has no meaning ({error}), and was ended"
                raise
        self._worked += time.perf_counter() - began + _A_MESSAGE
        if self._worked >= SLICE_SECONDS:
            pause, self._worked = min(self._worked, MAX_PAUSE_SECONDS), 0.0
            await asyncio.sleep(pause)

    async def _take(self, header: Mapping[str, Any], blob: bytes) -> None:
        if "ask" not in header and len(blob) > MAX_NOTICE_BYTES:
            raise ValueError("it tells too much at a time")
        if "ask" in header:
            await self._take_question(header, blob)
        elif header.get("tell") == "withdraw":
            await self._withdraw(header["of"])
        else:
            self._listener.hear(header, await unpack(header, blob))

    async def _take_question(self, header: Mapping[str, Any], blob: bytes) -> None:
        number = header["ask"]
        if not isinstance(number, int) or number in self._questions:
            raise ValueError("a question has a number of its own")
        if len(self._questions) >= MAX_QUESTIONS or self._asked_bytes > MAX_QUESTION_BYTES:
            error = GatewayError(ErrorKind.RATE_LIMITED, "cannot answer: the plugin asks too much at a time")
            await self.tell({"do": "answer", "ask": number, **render_error(error)})
            return
        payload = await unpack(header, blob)
        self._asked_bytes += len(blob)
        self._questions[number] = self._tasks.spawn(
            "question of a plugin",
            self._answer(number, header, payload),
            at_end=lambda: self._forget(number, len(blob)),
        )

    def _forget(self, number: int, size: int) -> None:
        self._asked_bytes -= size
        self._questions.pop(number, None)

    async def _withdraw(self, number: Any) -> None:
        task = self._questions.get(number)
        if task is not None:
            self._tasks.spawn("withdraw a question", self._stopped(task))

    async def _stopped(self, task: str) -> None:
        await self._tasks.stop(task)

    async def _answer(self, number: int, header: Mapping[str, Any], payload: PipeData) -> None:
        outcome = await run_guarded_async(lambda: self._listener.answer(header, payload))
        is_written = False
        try:
            # One answer at a time is written: whoever does not read has no more than that waiting for it.
            async with self._writing:
                await self._write_answer(number, outcome)
            is_written = True
        finally:
            if not is_written and outcome.error is None:
                await self._listener.drop(outcome.value)

    async def _write_answer(self, number: int, outcome: CallOutcome) -> None:
        error = outcome.error
        if error is None:
            more, blob = await pack(outcome.value)
            if len(blob) <= MAX_QUESTION_ANSWER_BYTES:
                await self._write({"do": "answer", "ask": number, **more}, blob)
                return
            error = GatewayError(ErrorKind.TOO_LARGE, "cannot answer: the answer is too large")
        await self.tell({"do": "answer", "ask": number, **self._told(error)})

    def _told(self, error: BaseException) -> Headers:
        """Return what the plugin is told of a question that failed."""
        if isinstance(error, GatewayError):
            return render_error(error)
        told = render_exception(error) if isinstance(error, Exception) else None
        if told is None:
            log.warning("a question of a plugin failed", exc_info=error, extra={"plugin": self._plugin.id})
            return render_error(GatewayError(ErrorKind.INTERNAL, "cannot answer: the gateway failed"))
        return told


def make_failure(plugin: Plugin, text: str) -> PluginError:
    """Return a failure of a plugin."""
    return PluginError(plugin.kind.value, plugin.id, FailureDetails(text))


_A_MESSAGE: Final = 0.00002
"""Seconds that reading a message takes at least, beside what it says."""
