"""Sends the head of a stream, and then keep-alives, when its answer is long in coming."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from aiohttp import web

from gatewayd.http.sse import open_stream, send
from gatewayd.tasks import Tasks


class EarlyHead:
    """Inside an `async with` block, waits `seconds` for an answer and then begins the stream without it.

    `reply` is the stream that was begun, None while nothing was sent. `ping` is what keeps it alive, and is
    sent again every `pause` seconds. Without `seconds` nothing is ever sent. A timer is all that an answer
    in time costs.
    """

    def __init__(
        self,
        request: web.Request,
        tasks: Tasks,
        ping: bytes,
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
        self._task: str | None = None
        self._opened: asyncio.Event | None = None
        self.reply: web.StreamResponse | None = None

    async def __aenter__(self) -> Self:
        """Begin to count."""
        if self._seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End: what follows is the caller's to send."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and self._opened is not None:
            # A head is sent whole or not at all.
            await self._opened.wait()
            await self._tasks.stop(self._task)

    def _begin(self) -> None:
        self._opened = asyncio.Event()
        self._task = self._tasks.spawn("head of a stream", self._send(self._opened))

    async def _send(self, opened: asyncio.Event) -> None:
        try:
            self.reply = await open_stream(self._request, self._headers)
            await send(self._request, self.reply, self._ping)
            opened.set()
            while True:
                await asyncio.sleep(self._pause)
                await send(self._request, self.reply, self._ping)
        except ConnectionError:
            # A client that has gone ends the request itself.
            return
        finally:
            opened.set()
