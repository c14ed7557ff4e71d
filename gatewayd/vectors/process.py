"""Supervisor of the process of one model: starts it on use, replaces it if it dies, ends it when idle."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.text import encodable
from gatewayd.workers import WorkerDiedError, WorkerLateError, WorkerOptions, WorkerProcess

log = logging.getLogger(__name__)

CHILD: Final = "gatewayd.vectors.worker"
IDLE_SECONDS: Final = 600.0
OPEN_SECONDS: Final = 120.0
"""Time-out of opening a model on this machine."""
ANSWER_SECONDS: Final = 60.0
MAX_ATTEMPTS: Final = 2

ENVIRONMENT: Final = {
    # One heap: with a heap per thread, threads keep several times the memory that they use.
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}

Prepare = Callable[[], Awaitable[Mapping[str, Any]]]
"""Returns the request that opens the model; raises GatewayError if the model is unusable."""


class ModelProcess:
    """Client and supervisor of the process of a model; `name` stands in error messages."""

    def __init__(
        self,
        name: str,
        prepare: Prepare,
        environment: Mapping[str, str],
        tasks: TaskRegistry,
        idle_seconds: float = IDLE_SECONDS,
        open_seconds: float = OPEN_SECONDS,
    ) -> None:
        self._name = name
        self._prepare = prepare
        self._options = WorkerOptions(CHILD, environment={**ENVIRONMENT, **environment})
        self._tasks = tasks
        self._idle_seconds = idle_seconds
        self._open_seconds = open_seconds
        self._watching = ""
        # The result of a start in progress, and the id of the task that starts the process.
        self._opening: asyncio.Future[WorkerProcess] | None = None
        self._opener = ""
        self._starting = asyncio.Lock()
        self._worker: WorkerProcess | None = None
        self._width = 0
        self._busy = 0
        self._used = 0.0
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The id of the process, None while it does not run."""
        return self._worker.pid if self._worker is not None and self._worker.is_alive else None

    async def start(self) -> None:
        """Start the process unless it runs; raises GatewayError as `width` does."""
        await self._started()

    async def width(self) -> int:
        """Return the number of values per text; start the process if it never ran.

        Raises GatewayError: not_configured, unavailable, and what `prepare` raises.
        """
        if not self._width:
            await self._started()
        return self._width

    async def rows(
        self, texts: Sequence[str], request: Mapping[str, Any], seconds: float = ANSWER_SECONDS
    ) -> bytes:
        """Return a row of little-endian float32 for each text.

        A process that dies meanwhile is replaced once; a process that does not answer in time is killed.
        Raises GatewayError as `width` does, timeout after `seconds`, and upstream_failed if the model
        computed no finite numbers.
        """
        message = {**request, "texts": [encodable(text) for text in texts]}
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        reason = ""
        for _ in range(MAX_ATTEMPTS):
            worker = await self._started_within(due - loop.time(), seconds)
            self._busy += 1
            try:
                _, rows = await worker.call(message, seconds=max(0.0, due - loop.time()))
                return rows
            except WorkerLateError as error:
                log.warning("the process of the model %r %s, killing it", self._name, error.reason)
                raise self._late(seconds) from error
            except WorkerDiedError as error:
                reason = error.reason
                log.warning("the process of the model %r %s", self._name, reason)
            finally:
                self._busy -= 1
                self._used = loop.time()
        raise self._unavailable(reason)

    async def close(self) -> None:
        """End the process for good."""
        self._is_closed = True
        await self._tasks.stop(self._opener)
        async with self._starting:
            await self._replace(None)

    async def _started_within(self, left: float, seconds: float) -> WorkerProcess:
        try:
            async with TimeLimit(max(0.0, left)):
                return await self._started()
        except TimeoutError as error:
            raise self._late(seconds) from error

    async def _started(self) -> WorkerProcess:
        """Return the process, starting it if needed; a start continues if its caller is cancelled."""
        if self._is_closed:
            raise self._unavailable("is not started while the gateway stops")
        if self._worker is not None and self._worker.is_alive:
            return self._worker
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_future()
            self._opener = self._tasks.spawn(f"start of the model {self._name}", self._open(self._opening))
        return await asyncio.shield(self._opening)

    async def _open(self, opening: asyncio.Future[WorkerProcess]) -> None:
        failure = self._unavailable("was not started")
        try:
            async with self._starting:
                await self._replace(None)
                worker = await self._start()
                await self._replace(worker)
            opening.set_result(worker)
        except GatewayError as error:
            failure = error
        finally:
            self._opening = None
            if not opening.done():
                opening.set_exception(failure)
                # Retrieves the exception: every caller may have been cancelled.
                opening.exception()

    async def _start(self) -> WorkerProcess:
        request = await self._prepare()
        worker = await WorkerProcess.start(self._options, self._tasks)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(worker.close)
            try:
                answer, _ = await worker.call({**request, "do": "open"}, seconds=self._open_seconds)
            except WorkerDiedError as error:
                raise self._unavailable(error.reason) from error
            stack.pop_all()
        self._width = answer["width"]
        return worker

    async def _replace(self, worker: WorkerProcess | None) -> None:
        """Use another process, or none, and end the former one."""
        await self._tasks.stop(self._watching)
        former, self._worker = self._worker, worker
        if former is not None:
            await former.close()
        if worker is not None:
            self._used = asyncio.get_running_loop().time()
            name = f"idle time of the model {self._name}"
            self._watching = self._tasks.spawn(name, self._watch(worker))

    async def _watch(self, worker: WorkerProcess) -> None:
        """End a process that was idle for `idle_seconds`."""
        loop = asyncio.get_running_loop()
        while worker is self._worker and worker.is_alive:
            left = self._used + self._idle_seconds - loop.time()
            if left > 0 or self._busy:
                await asyncio.sleep(max(left, self._idle_seconds / 10))
                continue
            async with self._starting:
                if worker is self._worker and not self._busy:
                    self._worker = None
                    await worker.close()

    def _unavailable(self, reason: str) -> GatewayError:
        sentence = f"cannot use the model {self._name!r}: its process {reason}"
        return GatewayError(ErrorKind.UNAVAILABLE, sentence)

    def _late(self, seconds: float) -> GatewayError:
        sentence = f"cannot use the model {self._name!r}: its process did not answer within {seconds:g} s"
        return GatewayError(ErrorKind.TIMEOUT, sentence)
