"""Who is admitted next."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from gatewayd.ingest.fair_gate import FairGate
from gatewayd.ingest.size_classes import QueueKey, SizeClass

SIZES = {"s": SizeClass.SMALL, "m": SizeClass.MIDDLE, "l": SizeClass.LARGE}


class Work:
    """Pieces of work whose names begin with their owner and the letter of their class."""

    def __init__(self, gate: FairGate) -> None:
        self._gate = gate
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.begun: list[str] = []

    async def come(self, *names: str) -> Sequence[str]:
        """Have work come; return all that has begun so far."""
        for name in names:
            self._tasks[name] = asyncio.ensure_future(self._run(name))
            await settled()
        return self.begun

    async def end(self, *names: str) -> Sequence[str]:
        """End work that has begun or waits; return all that has begun so far."""
        for name in names:
            self._tasks.pop(name).cancel()
            await settled()
        return self.begun

    async def end_in_turn(self) -> Sequence[str]:
        """End everything in the order in which it began."""
        at = 0
        while at < len(self.begun):
            await self.end(self.begun[at])
            at += 1
        return self.begun

    async def end_all(self) -> None:
        await self.end(*self._tasks)

    async def _run(self, name: str) -> None:
        async with self._gate.held(QueueKey(name[0], SIZES[name[1]])):
            self.begun.append(name)
            await asyncio.Event().wait()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def work() -> AsyncIterator[Work]:
    alone = Work(FairGate(1))
    yield alone
    await alone.end_all()


async def test_classes_take_turns(work: Work) -> None:
    await work.come("al1", "al2", "al3", "al4", "am1", "am2", "bs1", "bs2")
    assert await work.end_in_turn() == ["al1", "am1", "bs1", "al2", "am2", "bs2", "al3", "al4"]


async def test_owners_take_turns_inside_a_class(work: Work) -> None:
    await work.come(*(f"as{number}" for number in range(5)), "bs0", "bs1", "cl0")
    expected = ["as0", "cl0", "bs0", "as1", "bs1", "as2", "as3", "as4"]
    assert await work.end_in_turn() == expected


async def test_as_many_are_admitted_as_there_may_be_the_class_with_the_least_first() -> None:
    work = Work(FairGate(3))
    assert await work.come("al1", "al2", "bl1", "al3", "as1") == ["al1", "al2", "bl1"]
    await work.come("as2", "as3")
    # Two of the large class are left, one of them, and one again.
    assert (await work.end("al1"))[3:] == ["as1"]
    assert (await work.end("al2"))[4:] == ["al3"]
    assert (await work.end("bl1"))[5:] == ["as2"]
    await work.end_all()


async def test_who_leaves_before_its_turn_holds_nothing(work: Work) -> None:
    await work.come("al1", "bl1", "cl1")
    assert await work.end("bl1", "al1") == ["al1", "cl1"]
    assert await work.end("cl1") == ["al1", "cl1"]
    assert await work.come("bs1") == ["al1", "cl1", "bs1"]


async def test_who_leaves_at_the_moment_of_its_turn_gives_it_on(work: Work) -> None:
    await work.come("al1", "bl1", "cl1")
    work._tasks["al1"].cancel()
    work._tasks["bl1"].cancel()
    await settled()
    assert work.begun[-1] == "cl1"
