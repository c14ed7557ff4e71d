"""Fair allocation of slots for documents that are read at the same time."""

import asyncio
from typing import Final

from gatewayd.ingest.fair_gate import FairGate, GateRequest
from gatewayd.ingest.size_classes import QueueKey, SizeClass

SMALL_SLOTS: Final = 1
"""Additional slots for small documents only."""
MAX_OWN_SMALL: Final = 2
"""Maximum small documents of one owner at a time if every slot is taken: one may turn out to be slow."""


class ReaderSlots(FairGate):
    """Admits `count` documents at a time over all owners, and one more if it is small.

    A document in work for more than `turn` seconds does not count while a small document waits, or a document
    of an owner without one in work. At most `spare` further slots exist for that; the last one is for owners
    without a document in work.
    """

    def __init__(self, count: int, spare: int, turn: float) -> None:
        super().__init__(count)
        self._spare = spare
        self._turn = turn
        self._timers: dict[GateRequest, asyncio.TimerHandle] = {}
        self._long: set[GateRequest] = set()

    def _is_free(self, key: QueueKey) -> bool:
        """Tell whether a slot is free for a document."""
        is_small = key.size is SizeClass.SMALL
        slots = self._count + (SMALL_SLOTS if is_small else 0)
        in_time = [request for request in self._admitted if request not in self._long]
        held = _counted(self._admitted, key)
        if _counted(in_time, key) >= slots or held >= slots + self._spare:
            return False
        own = [request.key.size for request in self._admitted if request.key.owner == key.owner]
        if held < slots or not own:
            return True
        is_last = held == slots + self._spare - 1
        return is_small and not is_last and own.count(SizeClass.SMALL) < MAX_OWN_SMALL

    def _begin(self, request: GateRequest) -> None:
        super()._begin(request)
        loop = asyncio.get_running_loop()
        self._timers[request] = loop.call_later(self._turn, self._mark_long, request)

    def _end(self, request: GateRequest) -> None:
        super()._end(request)
        self._timers.pop(request).cancel()
        self._long.discard(request)

    def _mark_long(self, request: GateRequest) -> None:
        self._long.add(request)
        self._admit()


def _counted(requests: list[GateRequest], key: QueueKey) -> int:
    """Return the number of slots that count for a key: a large document does not count the small slot."""
    small = sum(request.key.size is SizeClass.SMALL for request in requests)
    return len(requests) - (0 if key.size is SizeClass.SMALL else min(SMALL_SLOTS, small))
