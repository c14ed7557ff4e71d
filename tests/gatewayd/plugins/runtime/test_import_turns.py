"""Turns: one at a time, in order, and nobody is kept waiting."""

import asyncio
import threading

import pytest

from gatewayd.plugins.runtime.import_turns import ImportTurns

pytestmark = pytest.mark.timeout(30)


async def test_one_runs_at_a_time_in_the_order_of_asking() -> None:
    turns, told = ImportTurns(60), []

    async def work(name: str) -> None:
        async with turns.turn():
            told.append(f"{name} begins")
            await asyncio.sleep(0)
            told.append(f"{name} ends")

    await asyncio.gather(*(work(name) for name in "abc"))
    assert told == [f"{name} {word}" for name in "abc" for word in ("begins", "ends")]


async def test_a_turn_ends_before_its_block_from_any_thread() -> None:
    turns = ImportTurns(60)
    async with turns.turn() as first:
        thread = threading.Thread(target=first.end_soon)
        thread.start()
        async with turns.turn():
            # The end of the first one's block is not the end of the second one's turn.
            first.end()
            assert turns._lock.locked()
        thread.join()
    async with turns.turn():
        pass


async def test_who_keeps_a_turn_too_long_loses_it() -> None:
    turns = ImportTurns(0.05)
    async with turns.turn(), turns.turn(), turns.turn():
        pass


def test_a_turn_may_end_when_the_loop_has_ended() -> None:
    async def begun() -> ImportTurns:
        turns = ImportTurns(60)
        async with turns.turn() as turn:
            kept.append(turn)
        return turns

    kept: list = []
    asyncio.run(begun())
    kept[0].end_soon()
