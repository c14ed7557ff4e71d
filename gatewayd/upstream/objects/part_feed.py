"""Hands the pieces of an upload to the library that sends them: one waits, so the sender is slowed down."""

import asyncio
from collections.abc import AsyncGenerator


class PartFeed:
    """One sender, which calls `offer`, and one reader, which iterates over `pieces`, on one event loop."""

    def __init__(self) -> None:
        self._piece: bytes | None = None
        self._error: BaseException | None = None
        self._is_over = False
        self._changed = asyncio.Event()

    async def offer(self, piece: bytes) -> None:
        """Hand over a piece and wait until it is taken; returns at once after `close`."""
        self._piece = piece
        self._changed.set()
        while self._piece is not None and not self._is_over:
            self._changed.clear()
            await self._changed.wait()

    def end(self) -> None:
        """End the pieces."""
        self._is_over = True
        self._changed.set()

    def fail(self, error: BaseException) -> None:
        """End the pieces by an error, in place of a piece that waits."""
        self._error = error
        self.end()

    def close(self) -> None:
        """Stop waiting for a reader that takes no more."""
        self._is_over = True
        self._changed.set()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the pieces in order; raises the error of `fail`."""
        while True:
            if self._error is not None:
                raise self._error
            if self._piece is not None:
                piece, self._piece = self._piece, None
                self._changed.set()
                yield piece
            elif self._is_over:
                return
            else:
                self._changed.clear()
                await self._changed.wait()
