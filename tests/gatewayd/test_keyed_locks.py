"""Tests for gatewayd.keyed_locks."""

import asyncio

from gatewayd.keyed_locks import KeyedLocks


async def test_turns_of_one_key_are_taken_in_order_and_of_others_at_once() -> None:
    turns: KeyedLocks[str] = KeyedLocks()
    go = asyncio.Event()
    order: list[str] = []

    async def take(name: str, key: str, hold: bool = False) -> None:
        async with turns.of(key):
            if hold:
                await go.wait()
            order.append(name)

    tasks = [
        asyncio.ensure_future(work)
        for work in (take("a", "a", hold=True), take("b", "a"), take("c", "a"), take("x", "b"))
    ]
    await tasks[3]
    assert "".join(order) == "x"
    assert turns.count == 1
    go.set()
    await asyncio.gather(*tasks)
    assert "".join(order) == "xabc"
    assert turns.count == 0


async def test_who_is_cancelled_while_waiting_holds_nobody_up() -> None:
    turns: KeyedLocks[str] = KeyedLocks()
    go = asyncio.Event()

    async def take(hold: bool) -> str:
        async with turns.of("a"):
            if hold:
                await go.wait()
        return "done"

    first, second, third = [asyncio.ensure_future(take(hold)) for hold in (True, False, False)]
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    go.set()
    assert list(await asyncio.gather(first, third)) == ["done", "done"]
    assert turns.count == 0
