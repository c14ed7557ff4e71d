"""A deferred write and its attempts; the first attempt may go on after its caller stops waiting."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError

Key = tuple[str, str]
"""The ids of a chat and of one of its messages.

The message id is CHAT_ITSELF_ID for the chat itself; the chat id is NO_CHAT_ID for the ids of a response.
"""

CHAT_ITSELF_ID: Final = ""
NO_CHAT_ID: Final = ""

Work = Callable[[bool], Awaitable[object]]
"""Writes once. The argument is true if the content has changed since the write was deferred."""


class WriteAttempts:
    """The attempts at one write, one at a time; the first goes on if its caller stops waiting for it."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._failure: GatewayError | None = None
        self._is_stored = False
        self._is_awaited = False
        self._is_given_up = False
        self._over = asyncio.Event()
        self._limit: asyncio.Timeout | None = None

        self.is_superseded = False
        """Whether another write has changed the content since this one was requested."""

        self.is_dropped = False
        """Whether the write is obsolete: its message is removed or generated again."""

    @property
    def is_awaited(self) -> bool:
        """Whether a first attempt has started and its result is not collected yet."""
        return self._is_awaited

    def first(self) -> Coroutine[Any, Any, None]:
        """Return the first attempt, to run in a task; the task logs internal errors."""
        self._is_awaited = True
        return self._first()

    async def result(self) -> None:
        """Wait for the end of the first attempt; raises its error."""
        await self._over.wait()
        self._is_awaited = False
        if not self._is_stored:
            raise self._failure or GatewayError(
                ErrorKind.INTERNAL, "cannot write the message: internal error, see the log"
            )

    async def again(self) -> None:
        """Wait for the end of the first attempt if its result is not collected yet; otherwise write again."""
        if self._is_awaited:
            await self.result()
        else:
            await self._once()

    def interrupt(self) -> None:
        """Let a running attempt fail with unavailable, because the message has changed."""
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    def give_up(self) -> None:
        """Let a running attempt fail, and later ones write nothing."""
        self._is_given_up = True
        self.interrupt()

    async def _first(self) -> None:
        try:
            await self._once()
            self._is_stored = True
        except GatewayError as error:
            self._failure = error
        finally:
            self._over.set()

    async def _once(self) -> None:
        if self._is_given_up:
            raise _changed()
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limit = limit
                await self._work(self.is_superseded)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise _changed() from error
        finally:
            self._limit = None


@dataclass(slots=True, eq=False)
class DeferredWrite:
    """A write that is repeated until it is stored or given up; then `at_end` is called."""

    key: Key
    owner: str
    attempts: WriteAttempts
    since: float
    request_id: str = ""
    size: int = 0
    is_stored: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    at_end: Callable[[], None] | None = None

    @property
    def is_superseded(self) -> bool:
        """Whether another write has changed the content since this one was requested."""
        return self.attempts.is_superseded

    @property
    def fields(self) -> dict[str, str]:
        """Fields for the log."""
        chat_id, message_id = self.key if self.key[0] != NO_CHAT_ID else ("", "")
        named = {"request_id": self.request_id, "chat_id": chat_id, "message_id": message_id}
        return {name: value for name, value in named.items() if value}

    def end(self, *, is_stored: bool) -> None:
        """Record the result and call `at_end`."""
        self.is_stored = is_stored
        self.over.set()
        if self.at_end is not None:
            self.at_end()

    async def wait(self) -> bool:
        """Wait until the write is stored (True) or given up (False)."""
        await self.over.wait()
        return self.is_stored


def _changed() -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, "cannot write the message: it has changed")
