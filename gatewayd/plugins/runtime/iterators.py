"""Iterators of plugins: items are pulled on demand, in the task or thread of the plugin."""

import asyncio
import contextvars
import queue
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import aclosing
from typing import Any, Final, Protocol

from gatewayd.plugins.runtime.event_loop_thread import PluginLoop, StoppedError, settle_future
from gatewayd.plugins.runtime.interrupts import StoppableCode
from gatewayd.plugins.runtime.invoke import PluginOutcome, run_guarded, run_guarded_async

GRACE_SECONDS: Final = 5.0
"""Seconds that `aclose` waits for the code of the plugin to end."""

FutureOutcome = Future[PluginOutcome]


class ItemProducer(Protocol):
    """Produces items in the task or thread of the plugin."""

    @property
    def ended(self) -> "Future[None]":
        """Settled when the code of the plugin has ended."""
        ...

    def ask(self, future: FutureOutcome) -> None:
        """Settle the future with the next item, or with an error: StopAsyncIteration at the end."""
        ...

    def abandon(self) -> None:
        """Stop the production; the `finally` blocks of the plugin run as soon as its code can be stopped."""
        ...


class AbandonedCalls:
    """Counts synchronous calls that still run although their caller has left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @property
    def count(self) -> int:
        """Current number of such calls."""
        return self._count

    def add(self, number: int) -> None:
        """Add a number, which may be negative."""
        with self._lock:
            self._count += number


class PluginIterator(AsyncIterator[Any]):
    """The items of a generator or iterator of a plugin, for one reader on another loop.

    Each item is produced on demand. `fail` converts exceptions. A reader that stops early calls `aclose`; a
    cancellation while waiting abandons the rest.
    """

    def __init__(self, producer: ItemProducer, fail: Callable[[BaseException], Exception]) -> None:
        self._producer = producer
        self._fail = fail
        self._is_over = False
        weakref.finalize(self, producer.abandon).atexit = False

    def __aiter__(self) -> "PluginIterator":
        return self

    async def __anext__(self) -> Any:
        if self._is_over:
            raise StopAsyncIteration
        future: FutureOutcome = Future()
        self._producer.ask(future)
        try:
            outcome = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._end()
            raise
        if outcome.error is None:
            return outcome.value
        self._end()
        if isinstance(outcome.error, StopAsyncIteration):
            raise StopAsyncIteration
        raise self._fail(outcome.error) from outcome.error

    async def aclose(self) -> None:
        """Stop the production, and wait up to GRACE_SECONDS until the code of the plugin has ended."""
        self._end()
        pending: Future[None] = Future()
        self._producer.ended.add_done_callback(lambda _: settle_future(pending))
        ended = asyncio.wrap_future(pending)
        await asyncio.wait([ended], timeout=GRACE_SECONDS)
        ended.cancel()

    def _end(self) -> None:
        self._is_over = True
        self._producer.abandon()


class TaskProducer:
    """Pulls an asynchronous iterator in one task of the plugin loop."""

    def __init__(
        self, plugin_loop: PluginLoop, source: AsyncIterator[Any], context: contextvars.Context
    ) -> None:
        self._plugin_loop = plugin_loop
        self._source = source
        self._requests: asyncio.Queue[FutureOutcome] = asyncio.Queue()
        self._current: FutureOutcome | None = None
        self._is_started = False
        self.ended: Future[None] = Future()
        self._task = plugin_loop.submit(self._pull, context)
        self._task.add_done_callback(self._finish)

    def ask(self, future: FutureOutcome) -> None:
        """Settle the future with the next item."""
        if self._task.done():
            settle_future(future, PluginOutcome(error=StopAsyncIteration()))
        else:
            self._plugin_loop.schedule(
                lambda: self._put(future), lambda: settle_future(future, PluginOutcome(error=StoppedError()))
            )

    def abandon(self) -> None:
        """Cancel the task, which closes the source."""
        self._task.cancel()

    def _put(self, future: FutureOutcome) -> None:
        if self.ended.done():
            settle_future(future, PluginOutcome(error=StoppedError()))
        else:
            self._requests.put_nowait(future)

    def _finish(self, _: object) -> None:
        self._plugin_loop.schedule(self._refuse_rest, self._refuse_rest)

    def _refuse_rest(self) -> None:
        if not self._is_started:
            settle_future(self.ended)
        pending = [self._current] if self._current else []
        while not self._requests.empty():
            pending.append(self._requests.get_nowait())
        for future in pending:
            settle_future(future, PluginOutcome(error=StoppedError()))

    async def _pull(self) -> None:
        self._is_started = True
        try:
            while True:
                self._current = await self._requests.get()
                outcome = await run_guarded_async(self._source.__anext__)
                settle_future(self._current, outcome)
                self._current = None
                if outcome.error is not None:
                    return
        finally:
            close = getattr(self._source, "aclose", None)
            if close is not None:
                await run_guarded_async(close)
            settle_future(self.ended)


class ThreadProducer:
    """Pulls a synchronous iterator in the thread that calls `serve`."""

    def __init__(self, source: Iterator[Any], left: AbandonedCalls) -> None:
        self._source = source
        self._left = left
        self._code = StoppableCode()
        self._requests: queue.SimpleQueue[FutureOutcome | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_busy = False
        self._is_left = False
        self.ended: Future[None] = Future()

    def ask(self, future: FutureOutcome) -> None:
        """Settle the future with the next item."""
        self._requests.put(future)
        if self.ended.done():
            self._refuse_rest()

    def abandon(self) -> None:
        """Interrupt the source and let its thread close it; it counts as left behind until it returns."""
        with self._lock:
            if self._is_busy and not self._is_left:
                self._is_left = True
                self._left.add(1)
                self._code.stop()
        self._requests.put(None)

    def start(self, context: contextvars.Context) -> None:
        """Serve in a new thread."""
        threading.Thread(target=context.run, args=(self.serve,), name="plugin items", daemon=True).start()

    def serve(self) -> None:
        """Produce items until the source ends or is abandoned."""
        while (future := self._requests.get()) is not None:
            self._set_busy(True)
            outcome = self._code.run(self._next)
            self._set_busy(False)
            settle_future(future, outcome)
            if outcome.error is not None:
                break
        close = getattr(self._source, "close", None)
        if callable(close):
            run_guarded(close)
        settle_future(self.ended)
        self._refuse_rest()

    def _next(self) -> Any:
        try:
            return next(self._source)
        except StopIteration:
            raise StopAsyncIteration from None

    def _set_busy(self, is_busy: bool) -> None:
        with self._lock:
            self._is_busy = is_busy
            if self._is_left and not is_busy:
                self._is_left = False
                self._left.add(-1)

    def _refuse_rest(self) -> None:
        while True:
            try:
                future = self._requests.get_nowait()
            except queue.Empty:
                return
            if future is not None:
                settle_future(future, PluginOutcome(error=StopAsyncIteration()))


async def join_texts(items: PluginIterator) -> str:
    """Return the strings of a generator, joined; other items are ignored."""
    async with aclosing(items):
        return "".join([item async for item in items if isinstance(item, str)])
