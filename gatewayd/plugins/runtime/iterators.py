"""What a plugin gives one after the other: pulled on demand, in the task or thread that made it."""

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
from gatewayd.plugins.runtime.invoke import CallOutcome, run_guarded, run_guarded_async

GRACE_SECONDS: Final = 5.0
"""Seconds that `aclose` waits for the plugin's own end."""

FutureOutcome = Future[CallOutcome]


class ItemProducer(Protocol):
    """Makes items in the plugin's task or thread."""

    @property
    def ended(self) -> "Future[None]":
        """Settled when the plugin's own code has ended."""
        ...

    def ask(self, asked: FutureOutcome) -> None:
        """Settle the future with the next item, or with an error: StopAsyncIteration at the end."""
        ...

    def abandon(self) -> None:
        """Ask for nothing more; the plugin's `finally` runs as soon as its code can be reached."""
        ...


class AbandonedCalls:
    """Counts plain code that runs on although nobody waits for it any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @property
    def count(self) -> int:
        """How many calls there are now."""
        return self._count

    def add(self, number: int) -> None:
        """Count some more, or fewer."""
        with self._lock:
            self._count += number


class PluginIterator(AsyncIterator[Any]):
    """The items of a generator or iterator of a plugin, for one reader on another loop.

    Each is made when it is asked for. Errors are raised as `fail` makes them. Whoever stops early calls
    `aclose`; being cancelled while waiting abandons the rest.
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
        asked: FutureOutcome = Future()
        self._producer.ask(asked)
        try:
            outcome = await asyncio.wrap_future(asked)
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
        """Stop, and wait for a short while until the plugin's own code has ended."""
        self._end()
        waiting: Future[None] = Future()
        self._producer.ended.add_done_callback(lambda _: settle_future(waiting))
        ended = asyncio.wrap_future(waiting)
        await asyncio.wait([ended], timeout=GRACE_SECONDS)
        ended.cancel()

    def _end(self) -> None:
        self._is_over = True
        self._producer.abandon()


class TaskProducer:
    """Pulls an asynchronous iterator in one task of its home."""

    def __init__(self, home: PluginLoop, source: AsyncIterator[Any], context: contextvars.Context) -> None:
        self._home = home
        self._source = source
        self._asked: asyncio.Queue[FutureOutcome] = asyncio.Queue()
        self._present: FutureOutcome | None = None
        self._is_started = False
        self.ended: Future[None] = Future()
        self._task = home.submit(self._pull, context)
        self._task.add_done_callback(self._finish)

    def ask(self, asked: FutureOutcome) -> None:
        """Settle the future with the next item."""
        if self._task.done():
            settle_future(asked, CallOutcome(error=StopAsyncIteration()))
        else:
            self._home.tell(
                lambda: self._put(asked), lambda: settle_future(asked, CallOutcome(error=StoppedError()))
            )

    def abandon(self) -> None:
        """Cancel the task, or close the source where it waits between two items."""
        self._task.cancel()

    def _put(self, asked: FutureOutcome) -> None:
        if self.ended.done():
            settle_future(asked, CallOutcome(error=StoppedError()))
        else:
            self._asked.put_nowait(asked)

    def _finish(self, _: object) -> None:
        self._home.tell(self._refuse_rest, self._refuse_rest)

    def _refuse_rest(self) -> None:
        if not self._is_started:
            settle_future(self.ended)
        waiting = [self._present] if self._present else []
        while not self._asked.empty():
            waiting.append(self._asked.get_nowait())
        for asked in waiting:
            settle_future(asked, CallOutcome(error=StoppedError()))

    async def _pull(self) -> None:
        self._is_started = True
        try:
            while True:
                self._present = await self._asked.get()
                outcome = await run_guarded_async(self._source.__anext__)
                settle_future(self._present, outcome)
                self._present = None
                if outcome.error is not None:
                    return
        finally:
            close = getattr(self._source, "aclose", None)
            if close is not None:
                await run_guarded_async(close)
            settle_future(self.ended)


class ThreadProducer:
    """Pulls an iterator in the thread that calls `serve`."""

    def __init__(self, source: Iterator[Any], left: AbandonedCalls) -> None:
        self._source = source
        self._left = left
        self._code = StoppableCode()
        self._asked: queue.SimpleQueue[FutureOutcome | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_busy = False
        self._is_left = False
        self.ended: Future[None] = Future()

    def ask(self, asked: FutureOutcome) -> None:
        """Settle the future with the next item."""
        self._asked.put(asked)
        if self.ended.done():
            self._refuse_rest()

    def abandon(self) -> None:
        """Interrupt the source, and let the thread close it; until it comes back it is left behind."""
        with self._lock:
            if self._is_busy and not self._is_left:
                self._is_left = True
                self._left.add(1)
                self._code.stop()
        self._asked.put(None)

    def start(self, context: contextvars.Context) -> None:
        """Serve in a new thread."""
        threading.Thread(target=context.run, args=(self.serve,), name="plugin items", daemon=True).start()

    def serve(self) -> None:
        """Make items until there are no more or nobody wants them."""
        while (asked := self._asked.get()) is not None:
            self._set_busy(True)
            outcome = self._code.run(self._next)
            self._set_busy(False)
            settle_future(asked, outcome)
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
                asked = self._asked.get_nowait()
            except queue.Empty:
                return
            if asked is not None:
                settle_future(asked, CallOutcome(error=StopAsyncIteration()))


async def join_texts(items: PluginIterator) -> str:
    """Return the texts of a generator one after the other; what else it yields is left out."""
    async with aclosing(items):
        return "".join([item async for item in items if isinstance(item, str)])
