"""Tests for gatewayd.http.inflight."""

import asyncio

import pytest

from gatewayd.http.inflight import InFlight


async def test_waits_for_the_last_request() -> None:
    in_flight = InFlight()
    with in_flight:
        with in_flight:
            assert in_flight.count == 2
        assert not await in_flight.drained(0.01)
        waiting = asyncio.ensure_future(in_flight.drained(5))
        await asyncio.sleep(0)
    assert await waiting


async def test_a_failing_request_counts_as_ended() -> None:
    in_flight = InFlight()
    with pytest.raises(ValueError, match="boom"), in_flight:
        raise ValueError("boom")
    assert await in_flight.drained(0)
