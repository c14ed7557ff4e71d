"""Reads a stream of a plugin ahead of the gateway, which gets the pieces that are there at once.

A crossing to the gateway takes longer than most pieces. Of a stream that is slow there is nothing to read
ahead, and each piece goes as soon as it is there.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from gatewayd.plugins.runtime.invoke import run_guarded_async
from gatewayd.plugins.runtime.iterators import PluginIterator

MAX_PIECES: Final = 16
"""Pieces that are read before the gateway has asked for them."""
MAX_AHEAD_BYTES: Final = 64 << 10
"""Characters or bytes of such pieces, texts and lines, beside the last one; an object counts as many."""
OBJECT_BYTES: Final = 4 << 10


class ReadAhead:
    """The pieces of one stream, for one reader on the loop that this was made on."""

    def __init__(self, items: PluginIterator) -> None:
        self._items = items
        self._pieces: deque[Any] = deque()
        self._size = 0
        self._error: BaseException | None = None
        self._is_over = False
        self._changed = asyncio.Condition()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def take(self) -> Sequence[Any]:
        """Return the pieces that are there, after waiting for one; none at the end.

        Raises what the stream raised, after its pieces.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._pieces or self._is_over)
            pieces = list(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._changed.notify_all()
        if not pieces and self._error is not None:
            raise self._error
        return pieces

    async def close(self) -> None:
        """End the stream, and wait for a short while until the plugin's own code has ended."""
        self._reading.cancel()
        await asyncio.wait([self._reading])
        async with self._changed:
            self._is_over = True
            self._changed.notify_all()
        await self._items.aclose()

    async def _read(self) -> None:
        while True:
            outcome = await run_guarded_async(self._items.__anext__)
            async with self._changed:
                if outcome.error is None:
                    self._pieces.append(outcome.value)
                    self._size += _size(outcome.value)
                else:
                    self._error = None if isinstance(outcome.error, StopAsyncIteration) else outcome.error
                    self._is_over = True
                self._changed.notify_all()
                if self._is_over:
                    return
                await self._changed.wait_for(self._has_room)

    def _has_room(self) -> bool:
        return len(self._pieces) < MAX_PIECES and self._size < MAX_AHEAD_BYTES


def _size(piece: Any) -> int:
    return len(piece) if isinstance(piece, str | bytes) else OBJECT_BYTES
