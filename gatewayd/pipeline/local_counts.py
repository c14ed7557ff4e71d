"""Token counts of the gateway itself: in threads, a few of each user at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from gatewayd.completions.records import Body

MAX_COUNTS_PER_USER: Final = 2
"""Maximum number of threads that count for one user: all threads are shared with all other work."""


class CountMethod(StrEnum):
    """Who counted."""

    PROVIDER = "provider"
    TOKENIZER = "tokenizer"
    ESTIMATE = "estimate"


class TokenCount(NamedTuple):
    """A number of tokens, and how it was found."""

    tokens: int
    method: CountMethod


LocalCounter = Callable[[Body, str], TokenCount]
"""Counts a messages request for a family of models; runs in a thread."""


@dataclass(slots=True)
class _Turns:
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_COUNTS_PER_USER))
    waiting: int = 0


class LocalCounts:
    """Runs a counter; the requests of a user beyond the limit wait for their turn."""

    def __init__(self, counter: LocalCounter) -> None:
        self._counter = counter
        self._turns: dict[str, _Turns] = {}

    @property
    def users(self) -> int:
        """The number of users whose requests are counted, or wait."""
        return len(self._turns)

    async def count(self, body: Body, family: str, user_id: str) -> TokenCount:
        """Return the number of tokens of a request.

        The thread of a cancelled request goes on, and holds its turn until it has ended.
        """
        turns = self._turns.setdefault(user_id, _Turns())
        turns.waiting += 1
        counting: asyncio.Future[TokenCount] | None = None
        try:
            await turns.free.acquire()
            counting = asyncio.get_running_loop().run_in_executor(None, self._counter, body, family)
            counting.add_done_callback(lambda _: self._leave(user_id, turns, has_turn=True))
            return await asyncio.shield(counting)
        finally:
            if counting is None:
                self._leave(user_id, turns, has_turn=False)

    def _leave(self, user_id: str, turns: _Turns, *, has_turn: bool) -> None:
        if has_turn:
            turns.free.release()
        turns.waiting -= 1
        if not turns.waiting:
            del self._turns[user_id]
