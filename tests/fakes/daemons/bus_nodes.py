"""Nodes of a gateway as far as live state goes: bus, hub, messages and calls, in memory or over one Redis."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson

from gatewayd.bus.memory import MemoryBus
from gatewayd.bus.redis import RedisBus
from gatewayd.bus.redis_client import RedisClient
from gatewayd.events.calls import EventCalls
from gatewayd.events.hub import Hub
from gatewayd.events.rooms import EventLimits, Subscription
from gatewayd.nodes.messages import NodeMessages
from gatewayd.tasks import TaskRegistry

FRAME = re.compile(rb"id: ([^\n]+)\ndata: ([^\n]+)\n\n")
WAIT_SECONDS = 10.0
GRACE_SECONDS = 1.0


class BusNode:
    """One node. `frames` of a subscriber are pairs of id and payload."""

    def __init__(
        self,
        bus: MemoryBus | RedisBus,
        hub: Hub,
        client: RedisClient | None = None,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.bus, self.hub, self.client = bus, hub, client
        self.tasks = TaskRegistry()
        self.messages = NodeMessages(bus, self.tasks)
        self.calls = EventCalls(hub, timeout=WAIT_SECONDS, grace=grace, messages=self.messages)

    def start(self) -> None:
        if isinstance(self.bus, RedisBus):
            self.tasks.spawn("sending", self.bus.send())
            self.tasks.spawn("reading", self.bus.read())
            self.tasks.spawn("messages", self.messages.run())

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
async def bus_nodes(
    url: str | None, count: int = 1, grace: float = GRACE_SECONDS, **limits: Any
) -> AsyncIterator[list[BusNode]]:
    """Run nodes over the Redis at an address; without one, nodes are one and the same in memory."""
    given = EventLimits(**limits)
    if url is None:
        bus = MemoryBus()
        node = BusNode(bus, Hub(bus, given))
        yield [node] * count
        return
    async with AsyncExitStack() as stack:
        nodes = []
        for _ in range(count):
            client = RedisClient(url)
            stack.push_async_callback(client.close)
            bus_of = RedisBus(client, given)
            node = BusNode(bus_of, Hub(bus_of, given), client, grace)
            nodes.append(node)
            await bus_of.attach()
            node.start()
            stack.push_async_callback(node.tasks.close)
        await met(nodes)
        yield nodes


async def met(nodes: list[BusNode]) -> None:
    """Wait until all nodes know each other."""
    async with asyncio.timeout(WAIT_SECONDS):
        while any(len(node.messages.peers) < len(nodes) - 1 for node in nodes):
            await asyncio.sleep(0.01)
