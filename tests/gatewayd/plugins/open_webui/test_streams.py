import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.streams import MAX_FRAMES_AHEAD, EventFrames
from tests.fakes.plugins.plugin_threads import at_home


class Source:
    """Numbers without an end, or a failure after some; one task must read all of it."""

    def __init__(self, fails_after: int | None = None) -> None:
        self.given = 0
        self.closed = asyncio.Event()
        self.fails_after = fails_after

    async def frames(self) -> AsyncIterator[bytes]:
        try:
            async with asyncio.timeout(60):
                while self.given != self.fails_after:
                    self.given += 1
                    yield b"%d\n\n" % self.given
                raise LookupError("the provider went away")
        finally:
            self.closed.set()


@pytest.fixture
async def gate(host: PluginHost) -> HostBridge:
    return HostBridge(host, asyncio.get_running_loop())


async def test_a_failure_comes_in_its_place(gate: HostBridge) -> None:
    source = Source(fails_after=MAX_FRAMES_AHEAD * 3)

    async def plugin() -> list[bytes]:
        got = []
        with pytest.raises(LookupError, match="went away"):
            async for frame in EventFrames(gate, source.frames()):
                got.append(frame)
        return got

    assert await at_home(plugin) == [b"%d\n\n" % number for number in range(1, MAX_FRAMES_AHEAD * 3 + 1)]


async def test_each_item_is_one_event(gate: HostBridge) -> None:
    async def several() -> AsyncIterator[bytes]:
        yield b'data: {"a": 1}\n\ndata: {"b": 2}\n\n'
        yield b"event: x\r\ndata: 3\r\n\r\n: ping\r\n\r\n"
        yield b"data: [DONE]\n\n"

    async def plugin() -> list[bytes]:
        return [event async for event in EventFrames(gate, several())]

    assert await at_home(plugin) == [
        b'data: {"a": 1}\n\n',
        b'data: {"b": 2}\n\n',
        b"event: x\ndata: 3\n\n",
        b": ping\n\n",
        b"data: [DONE]\n\n",
    ]


async def test_it_reads_only_a_little_ahead_and_stops_when_closed(gate: HostBridge) -> None:
    source = Source()

    async def plugin() -> list[bytes]:
        frames = EventFrames(gate, source.frames())
        first = await anext(frames)
        await frames.aclose()
        return [first, *[frame async for frame in frames]]

    assert await at_home(plugin) == [b"1\n\n"]
    await source.closed.wait()
    assert source.given <= MAX_FRAMES_AHEAD + 2


async def test_what_nobody_has_any_more_is_stopped(gate: HostBridge) -> None:
    source = Source()

    async def plugin() -> None:
        frames = EventFrames(gate, source.frames())
        await anext(frames)
        del frames

    await at_home(plugin)
    gc.collect()
    await source.closed.wait()


async def test_cancelling_the_reader_leaves_nothing_running(gate: HostBridge) -> None:
    source = Source()

    async def plugin() -> None:
        async def read() -> None:
            async for _ in EventFrames(gate, source.frames()):
                pass

        task = asyncio.get_running_loop().create_task(read())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    await at_home(plugin)
    gc.collect()
    await source.closed.wait()
