"""Early start of a stream, with keep-alives, while its answer is still awaited."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from aiohttp import web

from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.tasks import TaskRegistry


class EarlyHead:
    """Context manager around the wait for an answer, which begins the stream after `seconds`.

    `reply` is the begun stream, None while nothing was sent. `ping` makes the keep-alive, sent every `pause`
    seconds. Without `seconds` nothing is sent. An answer in time only costs a timer.
    """

    def __init__(
        self,
        request: web.Request,
        tasks: TaskRegistry,
        ping: Callable[[], bytes],
        headers: Mapping[str, str],
        *,
        seconds: float | None,
        pause: float,
    ) -> None:
        self._request = request
        self._tasks = tasks
        self._ping = ping
        self._headers = headers
        self._seconds = seconds
        self._pause = pause
        self._timer: asyncio.TimerHandle | None = None
        self._over: asyncio.Event | None = None
        self.reply: web.StreamResponse | None = None

    def __enter__(self) -> Self:
        """Start the timer."""
        if self._seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the keep-alives; the caller sends the rest."""
        if self._timer is not None:
            self._timer.cancel()
        if self._over is not None:
            # No await here: a cancellation of the request would lose the answer.
            self._over.set()

    def _begin(self) -> None:
        self._over = asyncio.Event()
        self._tasks.spawn("head of a stream", self._send(self._over))

    async def _send(self, over: asyncio.Event) -> None:
        try:
            while not over.is_set():
                self.reply = self.reply or await open_stream(self._request, self._headers)
                await send_frames(self._request, self.reply, self._ping())
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), self._pause)
        except ConnectionError:
            # The departure of the client cancels the request itself.
            return
