"""Tests for gatewayd.http.connections.minimum_rate."""

import asyncio
import time

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol

from gatewayd.errors import GatewayError
from gatewayd.http.connections.minimum_rate import BodyReader, MinimumRate, RateCredit


@pytest.mark.parametrize(
    ("rate", "notes", "left"),
    [
        (MinimumRate(100, 10), [], 10),
        (MinimumRate(100, 10), [(4, 0)], 6),
        (MinimumRate(100, 10), [(4, 100)], 7),
        # A byte a second, as long as one likes, does not last.
        (MinimumRate(100, 10), [(1, 1)] * 10, 0.1),
        (MinimumRate(100, 10), [(1, 1)] * 11, 0),
        (MinimumRate(100, 10), [(1, 100)] * 1000, 10),
        # Nothing is saved up: after a large part the peer has its ten seconds, not hours.
        (MinimumRate(100, 10), [(0, 10_000_000)], 10),
        (MinimumRate(100, 10), [(0, 10_000_000), (10, 0)], 0),
        (MinimumRate(0, 10), [(9, 1)] * 100, 10),
        (MinimumRate(0, 10), [(9, 0), (1, 0)], 0),
    ],
)
def test_how_long_a_peer_may_go_on(rate: MinimumRate, notes: list[tuple[float, int]], left: float) -> None:
    credit = RateCredit(rate)
    for waited, size in notes:
        credit.note(waited, size)
    assert credit.left == pytest.approx(left)


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (MinimumRate(1024, 30.0), "less than 1024 bytes a second for 30 s"),
        (MinimumRate(0, 0.5), "nothing for 0.5 s"),
    ],
)
def test_a_rate_is_named(rate: MinimumRate, words: str) -> None:
    assert str(rate) == words


def a_stream() -> StreamReader:
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.transport = asyncio.Transport()
    return StreamReader(protocol, 2**16, loop=loop)


async def test_a_body_is_read_whatever_its_length_while_it_keeps_up() -> None:
    content = a_stream()
    reader = BodyReader(content, MinimumRate(1000, 0.5))
    for _ in range(20):
        content.feed_data(b"x" * 100)
        assert await reader.read(60) == b"x" * 60
        assert await reader.read() == b"x" * 40
    content.feed_eof()
    assert await reader.read() == b""
    assert reader.at_eof()


async def test_a_body_that_drips_is_refused_though_it_never_pauses_for_long() -> None:
    content = a_stream()
    reader = BodyReader(content, MinimumRate(1000, 0.1))

    async def drip() -> None:
        while True:
            content.feed_data(b"x")
            await asyncio.sleep(0.02)

    dripping = asyncio.ensure_future(drip())
    with pytest.raises(GatewayError, match="too slowly, less than 1000 bytes a second") as caught:
        while True:
            await reader.read()
    dripping.cancel()
    assert caught.value.code == "body_timeout"


async def test_bytes_that_came_while_the_daemon_was_held_up_are_found() -> None:
    content = a_stream()
    reader = BodyReader(content, MinimumRate(1000, 0.05))
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, content.feed_data, b"in time")
    loop.call_soon(time.sleep, 0.1)
    assert await reader.read() == b"in time"
