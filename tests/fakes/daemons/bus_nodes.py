"""Nodes of a gateway as far as events go: a hub and a bus each, in memory or over one Redis."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson

from gatewayd.bus.memory import MemoryBus
from gatewayd.bus.redis import RedisBus
from gatewayd.bus.redis_client import RedisClient
from gatewayd.events.hub import Hub
from gatewayd.events.rooms import EventLimits, Subscription
from gatewayd.tasks import TaskRegistry

FRAME = re.compile(rb"id: ([^\n]+)\ndata: ([^\n]+)\n\n")
WAIT_SECONDS = 10.0


class BusNode:
    """One node. `frames` of a subscriber are pairs of id and payload."""

    def __init__(self, bus: MemoryBus | RedisBus, hub: Hub, client: RedisClient | None = None) -> None:
        self.bus, self.hub, self.client = bus, hub, client

    async def publish(self, number: int, user_id: str = "ann", chat_id: str = "c", about: str = "") -> None:
        await self.hub.publish(user_id, chat_id, {"n": number}, about)

    async def settle(self) -> None:
        await self.bus.settle()


class Reader:
    """A client: it reads a subscriber, and comes again with the id of the last frame that it got."""

    def __init__(self, user_id: str = "ann", chat_id: str | None = None) -> None:
        self.user_id, self.chat_id = user_id, chat_id
        self.last_id: str | None = None
        self.numbers: list[int] = []
        self.gaps: list[int] = []
        self.listener: Subscription | None = None

    async def connect(self, node: BusNode) -> "Reader":
        self.listener = await node.hub.resume(self.user_id, last_id=self.last_id, chat_id=self.chat_id)
        if self.listener.opened.gap:
            # It reads again what is stored.
            self.gaps.append(len(self.numbers))
            self.numbers = []
        self.last_id = self.listener.position
        return self

    def leave(self) -> None:
        assert self.listener is not None
        self.listener.close()

    async def read(self, count: int) -> list[int]:
        """Read until there are `count` frames in all; return their numbers."""
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self.numbers) < count:
                self.take(await self.chunk())
        return self.numbers

    async def until(self, number: int, node: BusNode) -> list[int]:
        """Read until this number has come, and connect again as often as need be; return all."""
        async with asyncio.timeout(WAIT_SECONDS):
            while number not in self.numbers:
                try:
                    self.take(await self.chunk())
                except ConnectionResetError:
                    await self.connect(node)
        return self.numbers

    async def chunk(self) -> bytes:
        assert self.listener is not None
        data = await self.listener.next()
        if not data:
            raise ConnectionResetError("the subscriber was closed")
        return data

    def take(self, data: bytes) -> None:
        for frame_id, payload in FRAME.findall(data):
            self.last_id = frame_id.decode()
            self.numbers.append(orjson.loads(payload)["n"])


@asynccontextmanager
async def bus_nodes(url: str | None, count: int = 1, **limits: Any) -> AsyncIterator[list[BusNode]]:
    """Run nodes over the Redis at an address; without one, nodes are one and the same in memory."""
    given = EventLimits(**limits)
    if url is None:
        bus = MemoryBus()
        node = BusNode(bus, Hub(bus, given))
        yield [node] * count
        return
    tasks = TaskRegistry()
    async with AsyncExitStack() as stack:
        nodes = []
        for _ in range(count):
            client = RedisClient(url)
            stack.push_async_callback(client.close)
            bus_of = RedisBus(client, given)
            nodes.append(BusNode(bus_of, Hub(bus_of, given), client))
            await bus_of.attach()
            tasks.spawn("sending", bus_of.send())
            tasks.spawn("reading", bus_of.read())
        stack.push_async_callback(tasks.close)
        yield nodes
