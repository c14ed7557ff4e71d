"""What code on one event loop waits for while another thread makes it."""

import asyncio
from typing import Generic, TypeVar

Value = TypeVar("Value")


class CrossThreadReply(Generic[Value]):
    """One value for the loop that made this, given in another thread; `future` is what to await."""

    __slots__ = ("_loop", "future")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Value] = self._loop.create_future()

    def give(self, value: Value) -> None:
        """Hand the value over; nothing happens when it is not waited for any more."""
        try:
            self._loop.call_soon_threadsafe(self._settle, value)
        except RuntimeError:
            # The loop is closed.
            return

    def _settle(self, value: Value) -> None:
        if not self.future.done():
            self.future.set_result(value)
