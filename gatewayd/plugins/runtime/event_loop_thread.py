"""Threads with an event loop of their own, in which plugins live, apart from the daemon's loop."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.runtime.call_context import current_call
from gatewayd.plugins.runtime.interrupts import interrupt
from gatewayd.plugins.runtime.invoke import CallOutcome, run_guarded, run_guarded_async
from gatewayd.plugins.runtime.thread_futures import CrossThreadReply

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Params = ParamSpec("Params")
Work = Callable[[], Coroutine[Any, Any, Result]]

CLEANUP_SECONDS: Final = 2.0
"""Seconds for the tasks of a home to end once they are cancelled."""


STOP_SECONDS: Final = CLEANUP_SECONDS + 1.0
"""Seconds for a home that was interrupted to end."""


class StoppedError(GatewayError):
    """The home ended, or its code cancelled itself, before it gave a result."""

    def __init__(self) -> None:
        super().__init__(ErrorKind.PLUGIN_FAILED, "it was stopped before it was done")


class PluginLoop:
    """One daemon thread with a running event loop.

    Work is given to it from other threads; what it raises belongs to whoever gave it, except that nothing
    can end the loop but `stop`. Its log lines say what is `told` of it.
    """

    def __init__(self, name: str, told: Mapping[str, str]) -> None:
        self._told = told
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonThreads())
        self._loop.set_exception_handler(self._report)
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._is_stopping = False
        self.ended: Final[Future[None]] = Future()
        """Is done when the thread ends, and calls back there."""

    def start(self) -> None:
        """Start the thread; work given before waits for it."""
        self._thread.start()

    def submit(self, work: Work[Result], context: contextvars.Context) -> "Future[Result]":
        """Run a coroutine function as a task of the home; cancelling the future cancels the task.

        The future raises what the work raises, and StoppedError when the task was cancelled from elsewhere.
        """
        future: Future[Result] = Future()
        self.tell(
            lambda: self._begin(work, context, future), lambda: settle_future(future, error=StoppedError())
        )
        return future

    async def attempt(self, work: Callable[[], Awaitable[Any]], context: contextvars.Context) -> CallOutcome:
        """Await code of the plugin in the home, from another loop, and return what came of it.

        Being cancelled cancels the code, and does not wait for it.
        """
        crossing = _Crossing(self._loop, work, context)
        self.tell(crossing.begin, crossing.refuse)
        try:
            return await crossing.reply.future
        except asyncio.CancelledError:
            self.tell(crossing.cancel)
            raise

    def tell(self, action: Callable[[], object], otherwise: Callable[[], object] | None = None) -> None:
        """Run a short function in the home soon, or the other one here when the home has ended."""
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            if otherwise is not None:
                otherwise()

    def interrupt(self) -> None:
        """Raise Interrupted in the thread, wherever it is in Python code; a blocked call is not reached."""
        interrupt(self._thread)

    async def stop(self, timeout: float) -> bool:  # noqa: ASYNC109 - a bound of a wait, not of the caller
        """Cancel what still runs and end the thread.

        What has not ended after `timeout` seconds is interrupted; False when that does not help either.
        """
        self._is_stopping = True
        self.tell(self._loop.stop)
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
        future.add_done_callback(lambda _: self.tell(task.cancel) if future.cancelled() else None)
        task.add_done_callback(lambda _: _settle(task, future))

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._is_stopping:
                self._turn()
            self._clean()
        finally:
            self._loop.close()
            settle_future(self.ended)

    def _turn(self) -> None:
        try:
            self._loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            log.warning("a plugin tried to end the gateway", extra={**self._told, "error": repr(error)})

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
                "a plugin did not end well", extra={**self._told, "error": repr(error)}, exc_info=error
            )

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        log.warning(
            "a plugin left an error behind",
            extra={**self._told, "what": context.get("message"), "error": repr(error)},
            exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
        )


class _Crossing:
    """Code of the plugin that another loop waits for; everything but `reply` is of the home's thread."""

    __slots__ = ("_context", "_is_cancelled", "_loop", "_task", "_work", "reply")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], Awaitable[Any]],
        context: contextvars.Context,
    ) -> None:
        self.reply: CrossThreadReply[CallOutcome] = CrossThreadReply()
        self._loop = loop
        self._work = work
        self._context = context
        self._task: asyncio.Task[CallOutcome] | None = None
        self._is_cancelled = False

    def begin(self) -> None:
        """Run the code as a task."""
        if self._is_cancelled:
            return
        self._task = self._loop.create_task(run_guarded_async(self._work), context=self._context)
        self._task.add_done_callback(self._finish)

    def cancel(self) -> None:
        """Cancel the code, or do not begin it."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

    def refuse(self) -> None:
        """Say that the home has ended."""
        self.reply.give(CallOutcome(error=StoppedError()))

    def _finish(self, task: "asyncio.Task[CallOutcome]") -> None:
        if task.cancelled():
            self.refuse()
        else:
            self.reply.give(task.result())


class DaemonThreads(ThreadPoolExecutor):
    """An executor with one daemon thread a call: a call that never ends takes nobody's place.

    The threads of a plain pool are waited for when the interpreter ends, whatever they do.
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
    """Settle a future that may have been cancelled; False when nobody waits for it any more."""
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
