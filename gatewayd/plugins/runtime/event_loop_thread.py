"""Event loop threads: each plugin runs on a loop and thread of its own, apart from the loop of the daemon."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from typing import Any, Final, Generic, ParamSpec, TypeVar

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.runtime.call_context import current_call
from gatewayd.plugins.runtime.interrupts import interrupt
from gatewayd.plugins.runtime.invoke import PluginOutcome, run_guarded, run_guarded_async

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Value = TypeVar("Value")
Params = ParamSpec("Params")
Work = Callable[[], Coroutine[Any, Any, Result]]

CLEANUP_SECONDS: Final = 2.0
"""Seconds for the cancelled tasks of a plugin loop to end."""

STOP_SECONDS: Final = CLEANUP_SECONDS + 1.0
"""Seconds for an interrupted plugin loop to end."""


class StoppedError(GatewayError):
    """The plugin loop ended, or the code cancelled itself, before it returned a result."""

    def __init__(self) -> None:
        super().__init__(ErrorKind.PLUGIN_FAILED, "it was stopped before it finished")


class PluginLoop:
    """One daemon thread with a running event loop.

    Other threads submit work and get its exceptions. Only `stop` ends the loop. `fields` are the fields of
    its log lines.
    """

    def __init__(self, name: str, fields: Mapping[str, str]) -> None:
        self._fields = fields
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonThreads())
        self._loop.set_exception_handler(self._report)
        self._thread = threading.Thread(target=self._run_thread, name=name, daemon=True)
        self._is_stopping = False
        self.ended: Final[Future[None]] = Future()
        """Settled when the thread ends; its callbacks run in that thread."""

    def start(self) -> None:
        """Start the thread; work submitted earlier runs then."""
        self._thread.start()

    def submit(self, work: Work[Result], context: contextvars.Context) -> "Future[Result]":
        """Run a coroutine function as a task of this loop; cancelling the future cancels the task.

        The future raises the exception of the work, and StoppedError when other code cancelled the task.
        """
        future: Future[Result] = Future()
        self.schedule(
            lambda: self._begin(work, context, future), lambda: settle_future(future, error=StoppedError())
        )
        return future

    async def attempt(
        self, work: Callable[[], Awaitable[Any]], context: contextvars.Context
    ) -> PluginOutcome:
        """Await code of the plugin on this loop, from another loop, and return its outcome.

        A cancellation cancels the code without waiting for it.
        """
        call = _LoopCall(self._loop, work, context)
        self.schedule(call.begin, call.refuse)
        try:
            return await call.reply.future
        except asyncio.CancelledError:
            self.schedule(call.cancel)
            raise

    def schedule(self, action: Callable[[], object], otherwise: Callable[[], object] | None = None) -> None:
        """Schedule a short function on this loop; run `otherwise` here when the loop has ended."""
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            if otherwise is not None:
                otherwise()

    def interrupt(self) -> None:
        """Raise Interrupted in the thread; a blocked call gets it when it returns to Python code."""
        interrupt(self._thread)

    async def stop(self, timeout: float) -> bool:  # noqa: ASYNC109 - a bound of a wait, not of the caller
        """Cancel all tasks and end the thread.

        The thread is interrupted after `timeout` seconds; False when it does not end then either.
        """
        self._is_stopping = True
        self.schedule(self._loop.stop)
        if await self._wait_ended(timeout):
            return True
        self.interrupt()
        return await self._wait_ended(STOP_SECONDS)

    async def _wait_ended(self, timeout: float) -> bool:  # noqa: ASYNC109 - a bound of a wait, not of the caller
        waiting: Future[None] = Future()
        self.ended.add_done_callback(lambda _: settle_future(waiting))
        ended = asyncio.wrap_future(waiting)
        done, _ = await asyncio.wait([ended], timeout=timeout)
        ended.cancel()
        return bool(done)

    def _begin(self, work: Work[Result], context: contextvars.Context, future: "Future[Result]") -> None:
        if future.cancelled():
            return
        task = self._loop.create_task(work(), context=context)
        future.add_done_callback(lambda _: self.schedule(task.cancel) if future.cancelled() else None)
        task.add_done_callback(lambda _: _settle(task, future))

    def _run_thread(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._is_stopping:
                self._run_loop()
            self._clean()
        finally:
            self._loop.close()
            settle_future(self.ended)

    def _run_loop(self) -> None:
        try:
            self._loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            log.warning("plugin tried to exit the gateway", extra={**self._fields, "error": repr(error)})

    def _clean(self) -> None:
        pending = asyncio.all_tasks(self._loop)
        for task in pending:
            task.cancel()
        try:
            if pending:
                self._loop.run_until_complete(asyncio.wait(pending, timeout=CLEANUP_SECONDS))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
            log.warning(
                "plugin raised an exception while it ended",
                extra={**self._fields, "error": repr(error)},
                exc_info=error,
            )

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        log.warning(
            "unhandled exception in a plugin",
            extra={**self._fields, "what": context.get("message"), "error": repr(error)},
            exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
        )


class CrossThreadReply(Generic[Value]):
    """A value that another thread passes to the loop that made this object; await `future`."""

    __slots__ = ("_loop", "future")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Value] = self._loop.create_future()

    def give(self, value: Value) -> None:
        """Pass the value, from any thread; it is dropped when the future is cancelled or the loop closed."""
        try:
            self._loop.call_soon_threadsafe(self._settle, value)
        except RuntimeError:
            # The loop is closed.
            return

    def _settle(self, value: Value) -> None:
        if not self.future.done():
            self.future.set_result(value)


class _LoopCall:
    """Code of the plugin that another loop awaits; all but `reply` belongs to the thread of the plugin."""

    __slots__ = ("_context", "_is_cancelled", "_loop", "_task", "_work", "reply")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], Awaitable[Any]],
        context: contextvars.Context,
    ) -> None:
        self.reply: CrossThreadReply[PluginOutcome] = CrossThreadReply()
        self._loop = loop
        self._work = work
        self._context = context
        self._task: asyncio.Task[PluginOutcome] | None = None
        self._is_cancelled = False

    def begin(self) -> None:
        """Start the code as a task."""
        if self._is_cancelled:
            return
        self._task = self._loop.create_task(run_guarded_async(self._work), context=self._context)
        self._task.add_done_callback(self._finish)

    def cancel(self) -> None:
        """Cancel the code, or prevent its start."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

    def refuse(self) -> None:
        """Reply that the plugin loop has ended."""
        self.reply.give(PluginOutcome(error=StoppedError()))

    def _finish(self, task: "asyncio.Task[PluginOutcome]") -> None:
        if task.cancelled():
            self.refuse()
        else:
            self.reply.give(task.result())


class DaemonThreads(ThreadPoolExecutor):
    """An executor with one daemon thread for each call, so that an endless call blocks no other.

    The interpreter would wait for the threads of a ThreadPoolExecutor before it ends.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)

    def submit(
        self, fn: Callable[Params, Result], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> "Future[Result]":
        """Run a function in a thread of its own."""
        future: Future[Result] = Future()
        context = contextvars.Context()
        context.run(current_call.set, current_call.get())
        threading.Thread(
            target=context.run, args=(_settle_with, future, lambda: fn(*args, **kwargs)), daemon=True
        ).start()
        return future


def settle_future(future: "Future[Any]", value: Any = None, *, error: BaseException | None = None) -> bool:
    """Settle a future; False when it was cancelled or settled before."""
    try:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
    except InvalidStateError:
        return False
    return True


def _settle_with(future: "Future[Any]", work: Callable[[], Any]) -> None:
    outcome = run_guarded(work)
    settle_future(future, outcome.value, error=outcome.error)


def _settle(task: "asyncio.Task[Any]", future: "Future[Any]") -> None:
    if task.cancelled():
        settle_future(future, error=StoppedError())
    elif (error := task.exception()) is not None:
        settle_future(future, error=error)
    else:
        settle_future(future, task.result())
