import asyncio
import socket
import time

import pytest

from gatewayd.deadlines import GRACE_SECONDS, PAUSE_THRESHOLD_SECONDS, TimeLimit, pause_extension
from tests.fakes.http.byte_server import on_both_loops


async def test_a_block_that_takes_too_long_ends() -> None:
    with pytest.raises(TimeoutError):
        async with TimeLimit(0.001):
            await asyncio.Event().wait()


async def test_a_block_in_time_is_left_alone() -> None:
    async with TimeLimit(0.001):
        pass
    await asyncio.sleep(0.002)


async def test_a_cancelled_block_is_cancelled() -> None:
    async def wait() -> None:
        async with TimeLimit(60):
            await asyncio.Event().wait()

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@on_both_loops
async def test_what_came_during_a_pause_of_the_loop_is_in_time() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)
        async with TimeLimit(0.1):
            line = asyncio.ensure_future(reader.readline())
            await asyncio.sleep(0)
            theirs.sendall(b"in time\n")
            time.sleep(0.1 + PAUSE_THRESHOLD_SECONDS + 0.1)
            assert await line == b"in time\n"
        writer.close()


def test_a_pause_leaves_a_moment_more() -> None:
    assert pause_extension(10.0, 10.0 + PAUSE_THRESHOLD_SECONDS, 60.0) == 0.0
    assert pause_extension(10.0, 11.0, 60.0) == GRACE_SECONDS
    assert pause_extension(10.0, 11.0, 0.2) == 0.2
