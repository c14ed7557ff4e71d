"""Read-ahead buffer for a stream of a plugin, whose items go to the gateway in batches.

A message to the gateway takes longer than most items. An item of a slow stream is sent as soon as it exists.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from gatewayd.plugins.runtime.invoke import run_guarded_async
from gatewayd.plugins.runtime.iterators import PluginIterator

MAX_PIECES: Final = 16
"""Maximum number of items read before the gateway requests them."""
MAX_AHEAD_BYTES: Final = 64 << 10
"""Maximum size of these items without the last; str and bytes count by length, others OBJECT_BYTES."""
OBJECT_BYTES: Final = 4 << 10


class ReadAhead:
    """Items of one stream, for one reader on the loop on which this was made."""

    def __init__(self, items: PluginIterator) -> None:
        self._items = items
        self._pieces: deque[Any] = deque()
        self._size = 0
        self._error: BaseException | None = None
        self._is_over = False
        self._changed = asyncio.Condition()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def take(self) -> Sequence[Any]:
        """Wait for an item and return all available items; empty at the end.

        Raises the exception of the stream, after its items.
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
        """Close the stream, and wait up to GRACE_SECONDS for the code of the plugin to end."""
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
