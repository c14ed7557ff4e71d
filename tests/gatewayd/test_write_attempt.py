"""Tests for gatewayd.write_attempt."""

import asyncio

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.write_attempt import WriteAttempts


async def test_a_write_that_is_given_up_before_it_began_writes_nothing() -> None:
    written: list[bool] = []

    async def work(is_superseded: bool) -> None:
        written.append(is_superseded)

    attempts = WriteAttempts(work)
    first = attempts.first()
    attempts.give_up()
    await first
    with pytest.raises(GatewayError) as caught:
        await attempts.result()
    assert (caught.value.kind, written) == (ErrorKind.UNAVAILABLE, [])


async def test_again_waits_for_the_first_attempt_that_nobody_waits_for() -> None:
    released, written = asyncio.Event(), []

    async def work(is_superseded: bool) -> None:
        await released.wait()
        written.append(is_superseded)

    attempts = WriteAttempts(work)
    first = asyncio.ensure_future(attempts.first())
    again = asyncio.ensure_future(attempts.again())
    await asyncio.sleep(0)
    released.set()
    await asyncio.gather(first, again)
    attempts.is_superseded = True
    await attempts.again()
    assert written == [False, True]
