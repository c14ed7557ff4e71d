"""A stream of a plugin in its process, of which the gateway asks for the next pieces when it has none."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from gatewayd.plugins.isolation.call_results import number_in, read_outcome
from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.isolation.process import MALFORMED, PluginProcess
from gatewayd.plugins.runtime.event_loop_thread import StoppedError, give
from gatewayd.plugins.runtime.invoke import Outcome, PluginError
from gatewayd.plugins.runtime.iterators import Asked, Items
from gatewayd.tasks import Tasks


class ProcessProducer:
    """A `plugins.items.Producer` of a stream in a process."""

    def __init__(self, process: PluginProcess, stream: int, tasks: Tasks) -> None:
        self._process = process
        self._stream = stream
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._there: deque[Any] = deque()
        self.ended: Future[None] = Future()

    def ask(self, asked: Asked) -> None:
        """Settle the future with the next item."""
        if self._is_over:
            give(asked, Outcome(error=StopAsyncIteration()))
        elif self._there:
            give(asked, Outcome(self._there.popleft()))
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

    async def _next(self, asked: Asked) -> None:
        outcome = Outcome(error=StoppedError())
        try:
            outcome = await self._asked()
        finally:
            if outcome.error is not None:
                self._is_over = True
                give(self.ended)
            give(asked, outcome)

    async def _asked(self) -> Outcome:
        try:
            payload = await self._process.ask({"do": "next", "stream": self._stream})
            if payload.value is None:
                return Outcome(error=StopAsyncIteration())
            self._there.extend(_pieces(payload))
            return Outcome(self._there.popleft())
        except PluginError as error:
            return Outcome(error=error)
        except MALFORMED as error:
            return Outcome(error=self._process.spoil(error))

    async def _close(self) -> None:
        try:
            await self._process.ask({"do": "close", "stream": self._stream})
        except PluginError:
            # It has ended, and the stream with it.
            return
        finally:
            give(self.ended)


def open_stream(process: PluginProcess, stream: int, tasks: Tasks, leave: Callable[[], None]) -> Items:
    """Return the items of a stream; `leave` is called when the plugin's own code has ended."""
    producer = ProcessProducer(process, stream, tasks)
    producer.ended.add_done_callback(lambda _: leave())
    return Items(producer, _same)


def _pieces(payload: PipeData) -> Iterator[Any]:
    """Yield the pieces of a message; raises one of MALFORMED for what is none."""
    place = 0
    for told in payload.value:
        end = place + number_in(told["attached"])
        if not place <= end <= len(payload.attachment):
            raise ValueError("a piece has fewer bytes than it says")
        yield read_outcome(PipeData(told["outcome"], payload.attachment[place:end]), _no_stream)
        place = end


def _no_stream(_: int) -> Items:
    raise ValueError("a stream in a stream")


def _same(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else StoppedError()
