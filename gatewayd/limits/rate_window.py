"""A sliding window of one minute in constant memory."""

from collections import deque
from typing import Final

WINDOW_SECONDS: Final = 60.0
SLOT_SECONDS: Final = 1.0
"""Amounts of one second are kept together, and leave the window with the last of them."""

Slot = list[float]
"""Time of the first and of the last amount, and their sum."""


class SlidingWindow:
    """The sum of the amounts of the last 60 seconds, in at most 61 slots; times are monotonic seconds."""

    __slots__ = ("_slots", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self._slots: deque[Slot] = deque()

    def add(self, now: float, amount: float) -> Slot:
        """Add an amount, and return the slot that holds it."""
        slots = self._slots
        if slots and now - slots[-1][0] < SLOT_SECONDS:
            slot = slots[-1]
            slot[1] = now
            slot[2] += amount
        else:
            slot = [now, now, amount]
            slots.append(slot)
        self.total += amount
        return slot

    def correct(self, now: float, slot: Slot, amount: float) -> None:
        """Change an amount that was added; an addition to one that has left the window counts from now."""
        self.expire(now)
        if self._slots and slot[0] >= self._slots[0][0]:
            slot[2] += amount
            self.total += amount
        elif amount > 0:
            self.add(now, amount)

    def expire(self, now: float) -> None:
        """Drop the amounts that are older than the window."""
        slots = self._slots
        while slots and slots[0][1] + WINDOW_SECONDS <= now:
            self.total -= slots.popleft()[2]

    def wait(self, now: float, excess: float) -> float:
        """Return the seconds until the total has fallen by `excess`; those of the whole window at most."""
        for _, last, amount in self._slots:
            excess -= amount
            if excess <= 0:
                return last + WINDOW_SECONDS - now
        return WINDOW_SECONDS

    def reset(self, now: float) -> float:
        """Return the seconds until the window is empty, 0.0 for an empty one."""
        return self._slots[-1][1] + WINDOW_SECONDS - now if self._slots else 0.0
