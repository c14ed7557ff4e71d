"""Tests for gatewayd.limits.memory_rates, besides those of every store (bus/test_rate_conformance.py)."""

from gatewayd.limits.memory_rates import IDLE_POTS, MemoryRates, MemoryTicket
from gatewayd.limits.records import RatePot


def pot(
    name: str, requests: int | None = None, tokens: int | None = None, parallel: int | None = None
) -> RatePot:
    return RatePot(name, "this account", requests, tokens, parallel)


async def test_memory_is_bounded() -> None:
    now = [0.0]
    store = MemoryRates(lambda: now[0])
    for number in range(10_000):
        now[0] += 0.1
        taken = await store.take([pot(f"k{number}", requests=5, tokens=5)], 1)
        assert isinstance(taken, MemoryTicket)
        store.give_back(taken, 2)
    # The pots of a minute are 600; unused ones go whenever their number has doubled.
    assert len(store) <= 2 * IDLE_POTS


async def test_a_new_pot_is_not_removed_as_unused_by_the_next_one() -> None:
    store = MemoryRates(lambda: 1000.0)
    for number in range(IDLE_POTS - 1):
        await store.take([pot(f"p{number}", parallel=1)], 0)
    both = [pot("first", parallel=1), pot("second", parallel=1)]
    await store.take(both, 0)
    assert [store.use(each).parallel for each in both] == [1, 1]
