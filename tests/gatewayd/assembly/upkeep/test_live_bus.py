"""The bus that the settings name."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd.assembly.events import event_limits
from gatewayd.assembly.upkeep.live_bus import open_bus
from gatewayd.bus.memory import MemoryBus
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events.interfaces import Bus
from gatewayd.events.records import EventFrame
from gatewayd.events.tickets import Tickets
from gatewayd.settings import ConfigurationError, Settings, load
from gatewayd.tasks import TaskRegistry
from tests.fakes.daemons.redis_server import redis_server


def settings_for(state: Path, **values: str) -> Settings:
    return load(None, {"DATA_DIR": str(state), **values})


async def test_events_stay_in_memory_by_default(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    async with AsyncExitStack() as stack:
        bus, tickets, _ = await open_bus(settings, event_limits(settings), TaskRegistry(), stack)
    assert isinstance(bus, MemoryBus)
    assert isinstance(tickets, Tickets)


async def test_two_nodes_share_a_redis_also_one_that_comes_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server() as server:
        settings = settings_for(tmp_path, REDIS_URL=server.url)
        server.stop()
        tasks, heard = TaskRegistry(), asyncio.Event()
        async with AsyncExitStack() as stack:
            nodes: list[Bus] = [
                (await open_bus(settings, event_limits(settings), tasks, stack))[0] for _ in range(2)
            ]
            assert "events reach only the clients of this node" in caplog.text
            stack.push_async_callback(tasks.close)
            nodes[1].subscribe(lambda user_id, frame, place: heard.set())
            server.start()
            async with asyncio.timeout(20):
                while not heard.is_set():
                    await nodes[0].publish("ann", EventFrame("c", b"{}"))
                    await asyncio.sleep(0.05)


async def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        settings_for(tmp_path, REDIS_URL="http://redis")
    settings = settings_for(tmp_path, REDIS_URL="redis+sentinel://host")
    async with AsyncExitStack() as stack:
        with pytest.raises(GatewayError, match="cannot use redis_url: it names no service") as refused:
            await open_bus(settings, event_limits(settings), TaskRegistry(), stack)
    assert refused.value.kind is ErrorKind.NOT_CONFIGURED
