"""Tests for gatewayd.pipeline.local_counts."""

import asyncio
import threading
from typing import Any

from gatewayd.pipeline.local_counts import MAX_COUNTS_PER_USER, CountMethod, LocalCounts, TokenCount


async def test_one_user_does_not_take_all_threads() -> None:
    """A cancelled request holds its turn, as its thread goes on."""
    go_on, running, lock = threading.Event(), {"u1": 0, "u2": 0}, threading.Lock()

    def count(body: Any, family: str) -> TokenCount:
        with lock:
            running[body["user"]] += 1
        if body["user"] == "u1":
            go_on.wait(10)
        return TokenCount(3, CountMethod.ESTIMATE)

    counts = LocalCounts(count)
    asked = [asyncio.ensure_future(counts.count({"user": "u1"}, "", "u1")) for _ in range(9)]
    await asyncio.sleep(0)
    for each in (asked[0], asked[-1]):
        each.cancel()
    assert await counts.count({"user": "u2"}, "", "u2") == (3, CountMethod.ESTIMATE)
    assert running == {"u1": MAX_COUNTS_PER_USER, "u2": 1}
    go_on.set()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(each, TokenCount) for each in found) == 7
    await asyncio.sleep(0)
    assert counts.users == 0
