"""Who may have a process, and when."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gatewayd.extract.slots import ReaderSlots
from gatewayd.ingest.size_classes import QueueKey, SizeClass

NEVER = 3600.0


class Visitors:
    """Documents that stay until they are sent away; `inside` has those at work, in their order.

    Names begin with the owner, and end with "s" for a small document.
    """

    def __init__(self, slots: ReaderSlots) -> None:
        self._slots = slots
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.inside: list[str] = []

    async def come(self, *names: str) -> list[str]:
        """Have documents come; return who is inside then."""
        for name in names:
            self._tasks[name] = asyncio.ensure_future(self._visit(name))
            await settled()
        return self.inside

    async def go(self, *names: str) -> list[str]:
        """End the visit of documents; return who is inside then."""
        for name in names:
            self._tasks.pop(name).cancel()
            await settled()
        return self.inside

    async def end(self) -> None:
        await self.go(*self._tasks)

    async def _visit(self, name: str) -> None:
        size = SizeClass.SMALL if name.endswith("s") else SizeClass.LARGE
        async with self._slots.held(QueueKey(name[0], size)):
            self.inside.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                self.inside.remove(name)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def visitors() -> AsyncIterator[list[Visitors]]:
    made: list[Visitors] = []
    yield made
    for each in made:
        await each.end()


def opened(made: list[Visitors], slots: ReaderSlots) -> Visitors:
    made.append(Visitors(slots))
    return made[-1]


async def test_one_owner_may_have_all_places_until_others_come(visitors: list[Visitors]) -> None:
    several = opened(visitors, ReaderSlots(2, 3, NEVER))
    assert await several.come("a1", "a2", "a3", "a4", "b1", "c1") == ["a1", "a2"]
    assert await several.go("a1") == ["a2", "b1"]
    assert await several.go("a2") == ["b1", "c1"]
    assert await several.go("b1") == ["c1", "a3"]
    assert await several.come("b2", "c2") == ["c1", "a3"]
    # All owners have one or none: who waited the longest for a turn is next.
    assert await several.go("c1") == ["a3", "b2"]


async def test_a_long_document_keeps_no_other_owner_waiting(visitors: list[Visitors]) -> None:
    # Each document is a long one at once.
    several = opened(visitors, ReaderSlots(1, 2, 0))
    assert await several.come("a1", "a2", "b1", "c1") == ["a1", "b1", "c1"]
    # There are no more places than that, and none of them is for an owner who has one.
    assert await several.come("d1") == ["a1", "b1", "c1"]
    assert await several.go("b1") == ["a1", "c1", "d1"]
    assert await several.go("c1", "d1") == ["a1"]
    assert await several.go("a1") == ["a2"]


async def test_who_leaves_before_the_turn_came_holds_nothing(visitors: list[Visitors]) -> None:
    several = opened(visitors, ReaderSlots(1, 0, NEVER))
    assert await several.come("a1", "b1", "c1") == ["a1"]
    assert await several.go("b1", "a1") == ["c1"]
    assert await several.go("c1") == []
    assert await several.come("b2") == ["b2"]


async def test_a_small_document_waits_for_no_large_one(visitors: list[Visitors]) -> None:
    several = opened(visitors, ReaderSlots(2, 0, NEVER))
    assert await several.come("a1", "a2", "a3", "b1") == ["a1", "a2"]
    # One slot is for small documents.
    assert await several.come("a4s", "b2s") == ["a1", "a2", "a4s"]
    assert await several.go("a4s") == ["a1", "a2", "b2s"]
    assert await several.go("a1") == ["a2", "b2s", "b1"]


async def test_small_documents_leave_large_ones_their_turns(visitors: list[Visitors]) -> None:
    several = opened(visitors, ReaderSlots(1, 0, NEVER))
    small = [f"a{number}s" for number in range(5)]
    assert await several.come(*small, "b1", "b2") == ["a0s", "a1s"]
    assert await several.go("a0s") == ["a1s", "b1"]
    assert await several.go("a1s") == ["b1", "a2s"]
    assert await several.go("b1") == ["a2s", "b2"]


async def test_a_small_document_that_takes_long_delays_no_other_small_one(visitors: list[Visitors]) -> None:
    # Each document is a long one at once.
    several = opened(visitors, ReaderSlots(1, 3, 0))
    assert await several.come("a1", "a2s", "a3s") == ["a1", "a2s", "a3s"]
    # Its owner has no more of the slots, and the last one is for those who have none.
    assert await several.come("a4s", "b1s", "b2s", "c1s") == ["a1", "a2s", "a3s", "b1s", "c1s"]
    assert await several.go("a3s") == ["a1", "a2s", "b1s", "c1s"]
    assert await several.go("c1s") == ["a1", "a2s", "b1s", "a4s"]
