"""A queue of calls in front of a runtime: few places, given in turn by weighted fairness.

Start-time fair queueing: each call has a start tag, the later of the virtual time and the finish tag of the
flow's previous call, and the call with the lowest start tag gets the next free place. A flow of weight 2 gets
two places for each one of a flow of weight 1; a flow that was idle gains nothing from it.
"""

import asyncio
import heapq
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError

log = logging.getLogger(__name__)

MAX_FLOWS: Final = 1000
"""Number of remembered flows above which those that have no claim any more are forgotten."""

NO_BOUND: Final = 10**9

FULL_CODE: Final = "queue_full"
TIMEOUT_CODE: Final = "queue_timeout"
FIRST_SECONDS: Final = 5.0
"""Expected duration of a call before the first one has ended."""

AVERAGE_SHARE: Final = 0.2
"""Share of the newest call in the average duration."""

MAX_RETRY_SECONDS: Final = 300

Tell = Callable[[int], None]
"""Is told the position in the queue, 1 for the next call."""


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Places, the maximum number of waiting calls, and maximum seconds of a wait and of holding a place."""

    places: int
    length: int = 100
    wait_seconds: float = 300.0
    hold_seconds: float = 900.0


@dataclass(slots=True, eq=False)
class QueueTurn:
    """One call: its flow, the position in which it arrived (0 for a free place), and how long it waited."""

    queue: "FairQueue"
    flow: str
    begun: float
    tell: Tell | None = None
    position: int = 0
    waited: float = 0.0
    place: asyncio.Future[None] | None = None
    has_place: bool = False
    told: int = 0
    limit: asyncio.TimerHandle | None = field(default=None, repr=False)


class FairQueue:
    """The places of one model or provider; `change` replaces the rules."""

    def __init__(self, name: str, rules: QueueRules, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.rules = rules
        self._clock = clock
        self._taken = 0
        self._virtual = 0.0
        self._finish: dict[str, float] = {}
        self._heap: list[tuple[float, int, QueueTurn]] = []
        self._waiting = 0
        self._number = 0
        self._average = FIRST_SECONDS

    @property
    def taken(self) -> int:
        """The number of places in use."""
        return self._taken

    @property
    def waiting(self) -> int:
        """The number of waiting calls."""
        return self._waiting

    def change(self, rules: QueueRules) -> None:
        """Use other rules; calls that have a place keep it."""
        self.rules = rules
        self._give()

    def open(self) -> None:
        """Give every call a place, because the queue is given up."""
        self.change(replace(self.rules, places=NO_BOUND))

    async def enter(self, flow: str, weight: float = 1.0, tell: Tell | None = None) -> QueueTurn:
        """Wait for a place and return the turn, which `leave` ends.

        Raises rate_limited if the queue is full, and unavailable after the longest wait, both with the
        seconds until it may be shorter. A cancelled caller leaves the queue.
        """
        turn = QueueTurn(self, flow, self._clock(), tell)
        start = max(self._virtual, self._finish.get(flow, 0.0))
        if self._taken < self.rules.places and not self._waiting:
            self._note(flow, start, weight)
            self._virtual = start
            self._take(turn)
            return turn
        if self._waiting >= self.rules.length:
            raise self._full()
        self._note(flow, start, weight)
        self._number += 1
        turn.place = asyncio.get_running_loop().create_future()
        turn.position = 1 + sum(1 for item in self._heap if item[0] <= start)
        heapq.heappush(self._heap, (start, self._number, turn))
        self._waiting += 1
        self._tell()
        is_served = False
        try:
            async with asyncio.timeout(self.rules.wait_seconds):
                await turn.place
            is_served = True
        except TimeoutError:
            raise self._late() from None
        finally:
            if not is_served:
                self._withdraw(turn)
        return turn

    def leave(self, turn: QueueTurn) -> None:
        """Free the place of a turn; a second time does nothing."""
        if not turn.has_place:
            return
        turn.has_place = False
        if turn.limit is not None:
            turn.limit.cancel()
        self._taken -= 1
        held = self._clock() - turn.begun - turn.waited
        self._average += AVERAGE_SHARE * (held - self._average)
        self._give()
        if not (self._taken or self._waiting):
            # An idle queue owes nobody.
            self._finish.clear()

    def _take(self, turn: QueueTurn) -> None:
        turn.has_place = True
        self._taken += 1
        turn.limit = asyncio.get_running_loop().call_later(self.rules.hold_seconds, self._take_back, turn)

    def _take_back(self, turn: QueueTurn) -> None:
        log.warning("a call gives its place in the queue %s to the next one: it takes too long", self.name)
        self.leave(turn)

    def _give(self) -> None:
        """Give free places to the calls whose turn it is."""
        moved = False
        while self._heap and self._taken < self.rules.places:
            start, _, turn = heapq.heappop(self._heap)
            if turn.place is None or turn.place.done():
                continue
            self._virtual = max(self._virtual, start)
            self._waiting -= 1
            turn.waited = self._clock() - turn.begun
            self._take(turn)
            turn.place.set_result(None)
            moved = True
        if moved:
            self._tell()

    def _withdraw(self, turn: QueueTurn) -> None:
        """Take out a call that waits no longer, or that got its place when it was too late."""
        if turn.has_place:
            self.leave(turn)
            return
        self._heap = [item for item in self._heap if item[2] is not turn]
        heapq.heapify(self._heap)
        self._waiting -= 1
        # A call that came while this one still counted as waiting did not take the free place.
        self._give()
        self._tell()

    def _note(self, flow: str, start: float, weight: float) -> None:
        if len(self._finish) >= MAX_FLOWS:
            # A flow whose calls are all served has no claim.
            self._finish = {name: at for name, at in self._finish.items() if at > self._virtual}
        self._finish[flow] = start + 1.0 / weight

    def _tell(self) -> None:
        """Tell the waiting calls who want it their position, if it has changed."""
        listening = [item for item in self._heap if item[2].tell is not None]
        if not listening:
            return
        for position, (_, _, turn) in enumerate(sorted(self._heap), 1):
            if turn.tell is not None and turn.told != position:
                turn.told = position
                turn.tell(position)

    def _retry_after(self) -> int:
        rounds = (self._waiting + 1) / max(1, self.rules.places)
        return min(MAX_RETRY_SECONDS, max(1, math.ceil(rounds * self._average)))

    def _full(self) -> GatewayError:
        return GatewayError(
            ErrorKind.RATE_LIMITED,
            f"cannot call the model: {self._waiting} calls wait in the queue {self.name} already",
            code=FULL_CODE,
            retry_after=self._retry_after(),
        )

    def _late(self) -> GatewayError:
        return GatewayError(
            ErrorKind.UNAVAILABLE,
            f"cannot call the model: no place in the queue {self.name} became free in time",
            code=TIMEOUT_CODE,
            retry_after=self._retry_after(),
        )
