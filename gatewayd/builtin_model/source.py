"""Source of the built-in model: a model server in a supervised child process."""

import asyncio
import contextlib
import logging
import math
import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.builtin_model.child import BuiltinProcess, ChildError, EngineOptions
from gatewayd.builtin_model.weights import model_id
from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer, ForwardingSource, ModelSource
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.deadlines import TimeLimit
from gatewayd.dialects.forced_tool_call import form_to_tool_calls, to_form_request
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.openai import OpenAiSource
from gatewayd.upstream.streams.chunks import completion_chunk

log = logging.getLogger(__name__)

NAME: Final = "built-in model"
SOCKET: Final = "model.sock"

MAX_SOCKET_PATH = 107
"""Maximum number of bytes of the path of a unix socket."""

MAX_CHOSEN_THREADS = 4

HTTP_THREADS: Final = 64
"""Maximum number of requests that the server accepts at once."""

MakeSource = Callable[[Path], ModelSource]
"""Opens a source for the server at a unix socket."""


class ModelState(StrEnum):
    """State of the built-in model."""

    # Being loaded, for the first time or again.
    STARTING = "starting"
    READY = "ready"
    # The last attempt to load it failed; further attempts follow.
    FAILED = "failed"
    # Not started yet, or closed.
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Durations of supervision in seconds.

    `load` is the limit for one start, `patience` the maximum wait of a request for a model that is being
    loaded. After the process ends, the next start follows in `first_delay`, doubled each time up to
    `last_delay`, until the model has been ready for `steady`. While requests run, the process is probed every
    `probe`; if it does not answer within `silence`, it is killed.
    """

    load: float = 120.0
    patience: float = 10.0
    first_delay: float = 0.5
    last_delay: float = 30.0
    steady: float = 30.0
    probe: float = 10.0
    silence: float = 60.0


def backoff_delays(pace: RestartPolicy) -> Iterator[float]:
    """Yield the pauses between starts, for ever."""
    delay = pace.first_delay
    while True:
        yield delay
        delay = min(delay * 2, pace.last_delay)


def choose_threads(wanted: int, cores: int) -> int:
    """Return the number of computing threads; 0 derives it from the cores.

    One core always stays free: with threads on all cores and another program running, the engine has a tenth
    of its speed.
    """
    if wanted == 0:
        return min(MAX_CHOSEN_THREADS, max(1, cores // 2))
    return min(wanted, max(1, cores - 1))


def open_local(socket: Path) -> ModelSource:
    """Open the source for a model server at a unix socket."""
    config = ProviderConfig(
        name=NAME, kind=SourceKind.OPENAI, base_url="http://localhost/v1", socket_path=str(socket)
    )
    return OpenAiSource(config)


class BuiltinModel:
    """A `ModelSource` with one model, which is listed also while its process is not ready.

    `socket_dir` is private to one daemon; `threads` is passed to `choose_threads`.
    """

    def __init__(
        self,
        weights: Path,
        socket_dir: Path,
        tasks: TaskRegistry,
        *,
        threads: int = 0,
        make_source: MakeSource = open_local,
        pace: RestartPolicy | None = None,
    ) -> None:
        self._options = EngineOptions(
            weights=weights,
            model_id=model_id(weights),
            threads=choose_threads(threads, len(os.sched_getaffinity(0))),
        )
        self._socket = socket_dir / SOCKET
        self._tasks = tasks
        self._make_source = make_source
        self._pace = pace or RestartPolicy()
        self._state = ModelState.STOPPED
        self._trouble = "it is not started"
        # Set in the states ready, failed and stopped.
        self._settled = asyncio.Event()
        self._settled.set()
        self._next_start = 0.0
        self._task_id = ""
        self._closing = asyncio.Event()
        self._ended = asyncio.Event()
        self._source: ModelSource | None = None
        self._child: BuiltinProcess | None = None
        self._calls = 0
        # The process that was killed because it did not answer.
        self._killed_child: BuiltinProcess | None = None
        self._temporary_folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def name(self) -> str:
        """The name in messages and logs."""
        return NAME

    @property
    def model_id(self) -> str:
        """The id under which the model is listed."""
        return self._options.model_id

    @property
    def state(self) -> ModelState:
        """The state of the model."""
        return self._state

    @property
    def trouble(self) -> str:
        """Why the model is not ready, as a sentence that starts with "it"; "" if it is ready."""
        return self._trouble

    @property
    def pid(self) -> int | None:
        """The id of the running process."""
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start the supervision of the process; returns at once, `ready` waits."""
        if self._state is ModelState.STOPPED and not self._closing.is_set():
            self._prepare_folder()
            self._become(ModelState.STARTING, "it is being loaded")
            self._task_id = self._tasks.spawn(NAME, self._supervise())

    async def ready(self, deadline: float) -> None:
        """Wait until the model answers, at most `deadline` seconds.

        Raises upstream_unreachable with `retry_after` if loading fails or takes longer.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                await self._settled.wait()
        if self._state is not ModelState.READY:
            raise self._unreachable()

    async def list_models(self) -> Sequence[Model]:
        """Return the model, ready or not."""
        return [
            Model(
                id=self.model_id,
                name=self.model_id,
                owned_by="local",
                source=NAME,
                upstream_id=self.model_id,
                connection_type="local",
            )
        ]

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return a whole answer; wait a few seconds for a model that is being loaded.

        A forced tool call is requested as a JSON form, because the engine obeys schemas and not
        `tool_choice`.
        """
        form = to_form_request(body)
        source = await self._reach()
        with self._called():
            completion = await source.complete(body if form is None else form, model, context)
        return (
            completion if form is None else Completion(body=form_to_tool_calls(completion.body, ids.new_id))
        )

    async def stream(
        self, body: Body, model: Model, context: CallContext
    ) -> AsyncGenerator[CompletionChunk, None]:
        """Return the answer in chunks; wait a few seconds for a model that is being loaded.

        A forced tool call comes in one chunk, which always has the usage.
        """
        if to_form_request(body) is not None:
            yield completion_chunk((await self.complete(body, model, context)).body)
            return
        source = await self._reach()
        with self._called():
            async with contextlib.aclosing(source.stream(body, model, context)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def forward(
        self, method: str, path: str, body: Body | None, context: CallContext | None = None
    ) -> ForwardedAnswer:
        """Forward a request to the model server; raises not_found if the source forwards nothing."""
        source = await self._reach()
        if not isinstance(source, ForwardingSource):
            raise GatewayError(ErrorKind.NOT_FOUND, f"cannot forward {path} to the {NAME}")
        with self._called():
            return await source.forward(method, path, body, context)

    async def close(self) -> None:
        """End the process and the connections to it; it cannot be started again."""
        self._closing.set()
        if self._child is not None:
            await self._child.end_process()
        if self._task_id in self._tasks.list():
            await self._ended.wait()
        self._become(ModelState.STOPPED, "it is stopped")
        if self._temporary_folder is not None:
            self._temporary_folder.cleanup()
            self._temporary_folder = None

    def _prepare_folder(self) -> None:
        self._socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if len(os.fsencode(self._socket.absolute())) > MAX_SOCKET_PATH:
            self._temporary_folder = tempfile.TemporaryDirectory(prefix="gatewayd-")
            self._socket = Path(self._temporary_folder.name) / SOCKET

    async def _reach(self) -> ModelSource:
        if self._source is None:
            await self.ready(self._pace.patience)
        if self._source is None:
            raise self._unreachable()
        return self._source

    @contextlib.contextmanager
    def _called(self) -> Iterator[None]:
        """Count a request; raises timeout if its process is killed because it does not answer."""
        child = self._child
        self._calls += 1
        try:
            yield
        except GatewayError as error:
            if child is None or child is not self._killed_child:
                raise
            sentence = f"the {NAME} {self.model_id!r} did not answer for {self._pace.silence:g} s"
            raise GatewayError(ErrorKind.TIMEOUT, sentence) from error
        finally:
            self._calls -= 1

    def _unreachable(self) -> GatewayError:
        wait = self._next_start - asyncio.get_running_loop().time()
        return GatewayError(
            ErrorKind.UPSTREAM_UNREACHABLE,
            f"cannot run the {NAME} {self.model_id!r}: {self._trouble}",
            retry_after=max(1, math.ceil(wait)),
        )

    def _become(self, state: ModelState, trouble: str = "") -> None:
        self._state = state
        self._trouble = trouble
        if state is ModelState.STARTING:
            self._settled.clear()
        else:
            self._settled.set()

    async def _supervise(self) -> None:
        """Run the process again and again, with growing pauses while it keeps failing.

        This task is not cancelled, because a process that is just being started or ended would be lost.
        """
        loop = asyncio.get_running_loop()
        delays = backoff_delays(self._pace)
        try:
            while not self._closing.is_set():
                started = loop.time()
                was_ready = await self._run_once()
                if was_ready and loop.time() - started >= self._pace.steady:
                    delays = backoff_delays(self._pace)
                await self._pause(next(delays))
        finally:
            self._become(ModelState.STOPPED, "it is stopped")
            self._ended.set()

    async def _pause(self, delay: float) -> None:
        if self._closing.is_set():
            return
        self._next_start = asyncio.get_running_loop().time() + delay
        log.warning("the built-in model restarts in %g s: %s", delay, self._trouble)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._closing.wait()

    async def _run_once(self) -> bool:
        """Run the process until it ends; return whether the model was ready in between."""
        try:
            child = self._child = await BuiltinProcess.spawn(self._options, self._socket, self._tasks)
        except ChildError as error:
            self._become(ModelState.FAILED, str(error))
            return False
        watch = ""
        try:
            if self._closing.is_set():
                return False
            await child.listening(self._pace.load)
            self._source = self._make_source(self._socket)
            self._become(ModelState.READY)
            watch = self._tasks.spawn(f"watch of the {NAME}", self._watch(child, self._source))
            log.info("the built-in model %s is ready", self.model_id)
            await child.wait()
            self._become(ModelState.STARTING, f"{child.end()} and restarts")
        except ChildError as error:
            self._become(ModelState.FAILED, str(error))
            return False
        finally:
            await self._clean_up(child, watch)
        return True

    async def _watch(self, child: BuiltinProcess, source: ModelSource) -> None:
        """Kill the process if it stops answering while requests wait for it."""
        while True:
            await asyncio.sleep(self._pace.probe)
            # So many requests occupy every thread, which could not answer a probe.
            if not 0 < self._calls < HTTP_THREADS or child is not self._child:
                continue
            if await _is_silent(source, self._pace.silence):
                self._killed_child = child
                log.warning("the %s did not answer for %g s, killing it", NAME, self._pace.silence)
                child.kill()
                return

    async def _clean_up(self, child: BuiltinProcess, watch: str) -> None:
        source, self._source, self._child = self._source, None, None
        await self._tasks.stop(watch)
        if source is not None:
            await source.close()
        await child.end_process()
        await child.close_pipes()
        self._socket.unlink(missing_ok=True)


async def _is_silent(source: ModelSource, seconds: float) -> bool:
    """Return whether a model server gives no answer within `seconds`."""
    try:
        async with TimeLimit(seconds):
            await source.list_models()
    except TimeoutError:
        return True
    except GatewayError as error:
        return error.kind is ErrorKind.TIMEOUT
    return False
