"""Reader of a stream in a plugin process, which requests further items when it has none."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from gatewayd.plugins.isolation.call_results import read_number, read_outcome
from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.isolation.process import MALFORMED_ERRORS, PluginProcess
from gatewayd.plugins.runtime.event_loop_thread import StoppedError, settle_future
from gatewayd.plugins.runtime.invoke import PluginError, PluginOutcome
from gatewayd.plugins.runtime.iterators import FutureOutcome, PluginIterator
from gatewayd.tasks import TaskRegistry


class ProcessProducer:
    """A `runtime.iterators.ItemProducer` of a stream in a process."""

    def __init__(self, process: PluginProcess, stream: int, tasks: TaskRegistry) -> None:
        self._process = process
        self._stream = stream
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._buffer: deque[Any] = deque()
        self.ended: Future[None] = Future()

    def ask(self, future: FutureOutcome) -> None:
        """Settle the future with the next item."""
        if self._is_over:
            settle_future(future, PluginOutcome(error=StopAsyncIteration()))
        elif self._buffer:
            settle_future(future, PluginOutcome(self._buffer.popleft()))
        else:
            self._tasks.spawn("next item of a plugin", self._next(future))

    def abandon(self) -> None:
        """Close the stream; may be called from any thread."""
        if not self._is_over and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close_soon)

    def _close_soon(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._tasks.spawn("end of a stream of a plugin", self._close())

    async def _next(self, future: FutureOutcome) -> None:
        outcome = PluginOutcome(error=StoppedError())
        try:
            outcome = await self._request()
        finally:
            if outcome.error is not None:
                self._is_over = True
                settle_future(self.ended)
            settle_future(future, outcome)

    async def _request(self) -> PluginOutcome:
        try:
            payload = await self._process.ask({"do": "next", "stream": self._stream})
            if payload.value is None:
                return PluginOutcome(error=StopAsyncIteration())
            self._buffer.extend(_pieces(payload))
            return PluginOutcome(self._buffer.popleft())
        except PluginError as error:
            return PluginOutcome(error=error)
        except MALFORMED_ERRORS as error:
            return PluginOutcome(error=self._process.spoil(error))

    async def _close(self) -> None:
        try:
            await self._process.ask({"do": "close", "stream": self._stream})
        except PluginError:
            # The process has ended, and the stream with it.
            return
        finally:
            settle_future(self.ended)


def open_stream(
    process: PluginProcess, stream: int, tasks: TaskRegistry, leave: Callable[[], None]
) -> PluginIterator:
    """Return the items of a stream; `leave` is called when the code of the plugin has ended."""
    producer = ProcessProducer(process, stream, tasks)
    producer.ended.add_done_callback(lambda _: leave())
    return PluginIterator(producer, _same)


def _pieces(payload: PipeData) -> Iterator[Any]:
    """Yield the items of a message; raises one of MALFORMED_ERRORS for an invalid one."""
    place = 0
    for item in payload.value:
        end = place + read_number(item["attached"])
        if not place <= end <= len(payload.attachment):
            raise ValueError("an item is shorter than its message says")
        yield read_outcome(PipeData(item["outcome"], payload.attachment[place:end]), _no_stream)
        place = end


def _no_stream(_: int) -> PluginIterator:
    raise ValueError("a stream cannot be an item of a stream")


def _same(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else StoppedError()
