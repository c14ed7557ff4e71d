"""Tests for gatewayd.accounts.shared_attempts.desk."""

import asyncio
from collections.abc import Sequence

import pytest

from gatewayd.accounts.attempts import AttemptCounter, AttemptLimit
from gatewayd.accounts.shared_attempts.desk import AttemptDesk, ClaimedTry, SharedCount

LIMIT = AttemptLimit(2, 900)


class OtherNodes:
    """Implements `SharedAttempts`: answers with a wait, or hangs."""

    def __init__(self) -> None:
        self.wait: int | None = 0
        self.told: list[tuple[str, object]] = []

    async def claim(self, try_id: str, counts: Sequence[SharedCount]) -> int:
        self.told.append(("claim", counts))
        if self.wait is None:
            await asyncio.Event().wait()
        return self.wait or 0

    async def release(self, try_id: str, counts: Sequence[SharedCount]) -> None:
        self.told.append(("release", counts))

    async def forget(self, count: SharedCount) -> None:
        self.told.append(("forget", count))

    async def remember(self, pair: str) -> None:
        self.told.append(("remember", pair))

    async def is_known(self, pair: str) -> bool:
        return False


@pytest.fixture
def counter() -> AttemptCounter:
    return AttemptCounter(LIMIT, lambda: 1000, "pair")


async def test_a_node_alone_limits_tries(counter: AttemptCounter) -> None:
    desk = AttemptDesk()
    first = await desk.claim([(counter, "ann")])
    assert isinstance(first, ClaimedTry)
    assert isinstance(await desk.claim([(counter, "ann")]), ClaimedTry)
    assert await desk.claim([(counter, "ann")]) == 900
    await desk.release(first)
    assert isinstance(await desk.claim([(counter, "ann")]), ClaimedTry)
    await desk.forget(counter, "ann")
    assert counter.wait("ann") == 0


async def test_other_nodes_limit_tries_too(counter: AttemptCounter) -> None:
    others = OtherNodes()
    desk = AttemptDesk(others)
    shared = [SharedCount("pair", "ann", LIMIT)]
    claimed = await desk.claim([(counter, "ann")])
    assert isinstance(claimed, ClaimedTry)
    await desk.release(claimed)
    await desk.forget(counter, "ann")
    assert others.told == [("claim", shared), ("release", shared), ("forget", shared[0])]
    others.wait = 30
    for _ in range(5):
        assert await desk.claim([(counter, "ann")]) == 30
    assert counter.wait("ann") == 0, "a refused try is not counted here"


async def test_a_cancelled_claim_counts_nothing_here(counter: AttemptCounter) -> None:
    others = OtherNodes()
    others.wait = None
    desk = AttemptDesk(others)
    for _ in range(5):
        asked = asyncio.ensure_future(desk.claim([(counter, "ann")]))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
    assert counter.wait("ann") == 0
