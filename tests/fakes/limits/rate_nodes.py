"""Rates of several nodes over one Redis whose clock the test moves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from gatewayd.bus import redis_client
from gatewayd.bus.redis_client import RedisClient
from gatewayd.bus.redis_rates import RedisRateOptions, RedisRates
from gatewayd.limits.interfaces import RateStore, RateTicket
from gatewayd.limits.memory_rates import MemoryRates
from gatewayd.limits.records import RatePot, RateUse
from tests.fakes.daemons.redis_server import RedisServer

CLOCK = "local now = tonumber(redis.call('GET', 'test:clock') or 1000000000)"
PATIENCE_SECONDS = 10.0
"""How long a command may take: the machine of the tests may be busy."""


class Unlimited:
    """Implements `limits.interfaces.RateStore`: admits everything, so that Redis decides."""

    async def take(self, pots: Sequence[RatePot], tokens: int) -> RateTicket:
        return object()

    def give_back(self, ticket: RateTicket, tokens: int) -> None:
        pass

    def undo(self, ticket: RateTicket) -> None:
        pass

    def use(self, pot: RatePot) -> RateUse:
        return RateUse()

    async def look(self, pots: Sequence[RatePot]) -> None:
        pass


@dataclass
class RateNodes:
    """The nodes, their senders, and the time in microseconds."""

    redis: RedisServer
    rates: list[RedisRates] = field(default_factory=list)
    senders: list["asyncio.Task[None]"] = field(default_factory=list)
    now: int = 1_000_000_000

    def pass_time(self, seconds: float) -> None:
        self.now += round(seconds * 1_000_000)
        self.redis.command("SET", "test:clock", str(self.now))


@contextlib.asynccontextmanager
async def rate_nodes(
    redis: RedisServer,
    count: int,
    *,
    seconds: float = 3600,
    is_closed: bool = False,
    counts_alone: bool = False,
    patience: float = PATIENCE_SECONDS,
    clock: str = CLOCK,
) -> AsyncIterator[RateNodes]:
    """Run nodes whose calls Redis counts, and with `counts_alone` each of them, too."""
    former, redis_client.COMMAND_SECONDS = redis_client.COMMAND_SECONDS, patience  # type: ignore[misc]
    clients = [RedisClient(redis.url) for _ in range(count)]
    redis_client.COMMAND_SECONDS = former  # type: ignore[misc]
    nodes = RateNodes(redis)
    options = RedisRateOptions(seconds, is_closed, clock=clock)
    if clock == CLOCK:
        options.monotonic = lambda: nodes.now / 1_000_000
    for client in clients:
        local: RateStore = MemoryRates() if counts_alone else Unlimited()
        nodes.rates.append(RedisRates(client, local, options))
    nodes.senders += [asyncio.ensure_future(each.run()) for each in nodes.rates]
    try:
        yield nodes
    finally:
        for sender in nodes.senders:
            sender.cancel()
        await asyncio.gather(*nodes.senders, return_exceptions=True)
        for client in clients:
            await client.close()
