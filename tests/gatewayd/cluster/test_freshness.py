"""The clock of freshness, and a process that is alone."""

import time

from gatewayd.cluster.freshness import ALWAYS_FRESH, TRUST_SECONDS, boottime


async def test_a_process_that_is_alone_is_always_fresh() -> None:
    assert ALWAYS_FRESH.is_fresh()
    await ALWAYS_FRESH.renew()


def test_the_clock_goes_on_and_is_not_the_time_of_day() -> None:
    first = boottime()
    assert first <= boottime() <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert first >= time.monotonic() - 1


def test_trust_ends_before_the_second_after_which_a_revocation_holds() -> None:
    assert 0 < TRUST_SECONDS < 1
