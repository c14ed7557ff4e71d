"""A streamed answer, pulled on a plugin's loop while its source runs on the daemon's."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Sequence
from typing import Final, Self

from gatewayd.plugins.open_webui.host_bridge import HostBridge

_END: Final = b"\n\n"

MAX_FRAMES_AHEAD: Final = 16
"""Events that are taken from the source before the plugin asks for them."""


class EventFrames:
    """An async iterator of events, one an item, each as the bytes of a frame.

    One task on the daemon's loop reads the source to its end, as its context managers need. It is cancelled
    by `aclose`, and when nobody has the iterator any more.
    """

    def __init__(self, gate: HostBridge, source: AsyncIterator[bytes]) -> None:
        self._gate = gate
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_FRAMES_AHEAD)
        self._reading = gate.start(_read(source, self._queue))
        self._ended = False
        weakref.finalize(self, self._reading.cancel).atexit = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return the next frame; a failure of the source is raised in its place."""
        if self._ended:
            raise StopAsyncIteration
        frame = await self._gate.reach(self._queue.get)
        if frame is not None:
            return frame
        self._ended = True
        await asyncio.wrap_future(self._reading)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Have the reading of the source stopped."""
        self._ended = True
        self._reading.cancel()


def split_events(frame: bytes) -> Sequence[bytes]:
    """Return the events of a frame one by one, each with the empty line that ends it.

    Plugins read one `data:` line of each item. A frame holds whole events.
    """
    return [event + _END for event in frame.replace(b"\r\n", b"\n").split(_END) if event.strip()]


async def _read(source: AsyncIterator[bytes], queue: asyncio.Queue[bytes | None]) -> None:
    """Put every event of a source into a queue, and None at its end or failure."""
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
    """Put the end into a queue that nobody reads on, in place of its oldest frame when it is full."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(None)
