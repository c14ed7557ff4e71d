"""Streamed answers for plugins: the source runs on the loop of the daemon, the reader on any loop."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Sequence
from typing import Final, Self

from gatewayd.plugins.open_webui.host_bridge import HostBridge

_END: Final = b"\n\n"

MAX_FRAMES_AHEAD: Final = 16
"""Maximum number of events read ahead of the plugin."""


class EventFrames:
    """An async iterator of events, each the bytes of one frame.

    One task on the loop of the daemon reads the source to its end, as its context managers require. `aclose`
    and the garbage collection of the iterator cancel the task.
    """

    def __init__(self, bridge: HostBridge, source: AsyncIterator[bytes]) -> None:
        self._bridge = bridge
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_FRAMES_AHEAD)
        self._reading = bridge.start(_read(source, self._queue))
        self._ended = False
        weakref.finalize(self, self._reading.cancel).atexit = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return the next frame; raises the exception of the source."""
        if self._ended:
            raise StopAsyncIteration
        frame = await self._bridge.reach(self._queue.get)
        if frame is not None:
            return frame
        self._ended = True
        await asyncio.wrap_future(self._reading)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancel the task that reads the source."""
        self._ended = True
        self._reading.cancel()


def split_events(frame: bytes) -> Sequence[bytes]:
    """Return the events of a frame, each with its terminating empty line.

    Plugins read one `data:` line of each item. A frame contains whole events.
    """
    return [event + _END for event in frame.replace(b"\r\n", b"\n").split(_END) if event.strip()]


async def _read(source: AsyncIterator[bytes], queue: asyncio.Queue[bytes | None]) -> None:
    """Put every event of a source into a queue, and None at its end or exception."""
    try:
        async for frame in source:
            for event in split_events(frame):
                await queue.put(event)
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            _end(queue)
        else:
            await queue.put(None)


def _end(queue: asyncio.Queue[bytes | None]) -> None:
    """Put None into a queue whose reader has left; it replaces the oldest frame of a full queue."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(None)
