"""Rates in memory: the adapter of one process."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from gatewayd.limits.interfaces import RateTicket
from gatewayd.limits.rate_window import SlidingWindow, Slot
from gatewayd.limits.records import RatePot, RateQuantity, RateRefusal, RateUse

IDLE_POTS: Final = 1000
"""Number of pots above which unused ones are removed, each time that their number has doubled."""

PARALLEL_WAIT_SECONDS: Final = 1.0
"""Wait that a refusal names for a free place: nobody knows when a call ends."""


class PotState:
    """The present state of one pot."""

    __slots__ = ("parallel", "requests", "tokens")

    def __init__(self) -> None:
        self.requests = SlidingWindow()
        self.tokens = SlidingWindow()
        self.parallel = 0

    def is_idle(self, now: float) -> bool:
        """Return whether the state can be forgotten."""
        self.requests.expire(now)
        self.tokens.expire(now)
        return not (self.parallel or self.requests.reset(now) or self.tokens.reset(now))


class MemoryTicket:
    """What one call took: for each pot its state, the slots of its request and tokens, and the tokens."""

    __slots__ = ("is_open", "parts")

    def __init__(self) -> None:
        self.is_open = True
        self.parts: list[tuple[PotState, Slot | None, Slot | None, int, bool]] = []


class MemoryRates:
    """Implements `interfaces.RateStore` in one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._states: dict[str, PotState] = {}
        self._sweep_at = IDLE_POTS

    def __len__(self) -> int:
        """Return the number of pots in memory."""
        return len(self._states)

    async def take(self, pots: Sequence[RatePot], tokens: int) -> MemoryTicket | RateRefusal:
        """Take from each pot, or nothing from any."""
        now = self._clock()
        if len(self._states) >= self._sweep_at:
            # Before the first pot is made: a new one is unused too.
            self._sweep(now)
        states = self._states
        found = []
        worst: RateRefusal | None = None
        for pot in pots:
            state = states.get(pot.id)
            if state is None:
                state = states[pot.id] = PotState()
            found.append(state)
            refusal = _refusal(pot, state, tokens, now)
            if refusal is not None and (worst is None or refusal.seconds > worst.seconds):
                worst = refusal
        if worst is not None:
            return worst
        ticket = MemoryTicket()
        for pot, state in zip(pots, found, strict=True):
            request_slot = None if pot.requests is None else state.requests.add(now, 1)
            amount, token_slot = 0, None
            if pot.tokens is not None:
                amount = min(tokens, pot.tokens)
                token_slot = state.tokens.add(now, amount)
            has_place = pot.parallel is not None
            if has_place:
                state.parallel += 1
            ticket.parts.append((state, request_slot, token_slot, amount, has_place))
        return ticket

    def give_back(self, ticket: RateTicket, tokens: int) -> None:
        """Free the places, and correct the tokens."""
        self._close(ticket, tokens, is_undone=False)

    def undo(self, ticket: RateTicket) -> None:
        """Give back everything."""
        self._close(ticket, 0, is_undone=True)

    def use(self, pot: RatePot) -> RateUse:
        """Return the present use of a pot."""
        state = self._states.get(pot.id)
        if state is None:
            return RateUse()
        now = self._clock()
        state.requests.expire(now)
        state.tokens.expire(now)
        return RateUse(
            int(state.requests.total),
            int(state.tokens.total),
            state.parallel,
            state.requests.reset(now),
            state.tokens.reset(now),
        )

    async def look(self, pots: Sequence[RatePot]) -> None:
        """Do nothing: the use is known."""

    def _close(self, ticket: RateTicket, tokens: int, *, is_undone: bool) -> None:
        if not isinstance(ticket, MemoryTicket):
            raise TypeError("a ticket of another store")
        if not ticket.is_open:
            return
        ticket.is_open = False
        now = self._clock()
        for state, request_slot, token_slot, amount, has_place in ticket.parts:
            if has_place:
                state.parallel -= 1
            if token_slot is not None and tokens != amount:
                state.tokens.correct(now, token_slot, tokens - amount)
            if is_undone and request_slot is not None:
                state.requests.correct(now, request_slot, -1)

    def _sweep(self, now: float) -> None:
        self._states = {key: state for key, state in self._states.items() if not state.is_idle(now)}
        self._sweep_at = max(IDLE_POTS, 2 * len(self._states))


def _refusal(pot: RatePot, state: PotState, tokens: int, now: float) -> RateRefusal | None:
    """Return why a pot cannot take a call, the reason with the longest wait."""
    found: RateRefusal | None = None
    if pot.parallel is not None and state.parallel >= pot.parallel:
        found = RateRefusal(pot, RateQuantity.PARALLEL, PARALLEL_WAIT_SECONDS)
    if pot.requests is not None:
        window = state.requests
        window.expire(now)
        if window.total + 1 > pot.requests:
            wait = window.wait(now, window.total + 1 - pot.requests)
            if found is None or wait > found.seconds:
                found = RateRefusal(pot, RateQuantity.REQUESTS, wait)
    if pot.tokens is not None:
        window = state.tokens
        window.expire(now)
        amount = min(tokens, pot.tokens)
        if window.total + amount > pot.tokens:
            wait = window.wait(now, window.total + amount - pot.tokens)
            if found is None or wait > found.seconds:
                found = RateRefusal(pot, RateQuantity.TOKENS, wait)
    return found
