"""A stream of a plugin in its process, of which the gateway asks for the next pieces when it has none."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from gatewayd.plugins.isolation.call_results import read_number, read_outcome
from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.isolation.process import MALFORMED_ERRORS, PluginProcess
from gatewayd.plugins.runtime.event_loop_thread import StoppedError, settle_future
from gatewayd.plugins.runtime.invoke import CallOutcome, PluginError
from gatewayd.plugins.runtime.iterators import FutureOutcome, PluginIterator
from gatewayd.tasks import TaskRegistry


class ProcessProducer:
    """A `plugins.items.Producer` of a stream in a process."""

    def __init__(self, process: PluginProcess, stream: int, tasks: TaskRegistry) -> None:
        self._process = process
        self._stream = stream
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._there: deque[Any] = deque()
        self.ended: Future[None] = Future()

    def ask(self, asked: FutureOutcome) -> None:
        """Settle the future with the next item."""
        if self._is_over:
            settle_future(asked, CallOutcome(error=StopAsyncIteration()))
        elif self._there:
            settle_future(asked, CallOutcome(self._there.popleft()))
        else:
            self._tasks.spawn("next item of a plugin", self._next(asked))

    def abandon(self) -> None:
        """End the stream; from any thread."""
        if not self._is_over and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close_soon)

    def _close_soon(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._tasks.spawn("end of a stream of a plugin", self._close())

    async def _next(self, asked: FutureOutcome) -> None:
        outcome = CallOutcome(error=StoppedError())
        try:
            outcome = await self._asked()
        finally:
            if outcome.error is not None:
                self._is_over = True
                settle_future(self.ended)
            settle_future(asked, outcome)

    async def _asked(self) -> CallOutcome:
        try:
            payload = await self._process.ask({"do": "next", "stream": self._stream})
            if payload.value is None:
                return CallOutcome(error=StopAsyncIteration())
            self._there.extend(_pieces(payload))
            return CallOutcome(self._there.popleft())
        except PluginError as error:
            return CallOutcome(error=error)
        except MALFORMED_ERRORS as error:
            return CallOutcome(error=self._process.spoil(error))

    async def _close(self) -> None:
        try:
            await self._process.ask({"do": "close", "stream": self._stream})
        except PluginError:
            # It has ended, and the stream with it.
            return
        finally:
            settle_future(self.ended)


def open_stream(
    process: PluginProcess, stream: int, tasks: TaskRegistry, leave: Callable[[], None]
) -> PluginIterator:
    """Return the items of a stream; `leave` is called when the plugin's own code has ended."""
    producer = ProcessProducer(process, stream, tasks)
    producer.ended.add_done_callback(lambda _: leave())
    return PluginIterator(producer, _same)


def _pieces(payload: PipeData) -> Iterator[Any]:
    """Yield the pieces of a message; raises one of MALFORMED for what is none."""
    place = 0
    for told in payload.value:
        end = place + read_number(told["attached"])
        if not place <= end <= len(payload.attachment):
            raise ValueError("a piece has fewer bytes than it says")
        yield read_outcome(PipeData(told["outcome"], payload.attachment[place:end]), _no_stream)
        place = end


def _no_stream(_: int) -> PluginIterator:
    raise ValueError("a stream in a stream")


def _same(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else StoppedError()
