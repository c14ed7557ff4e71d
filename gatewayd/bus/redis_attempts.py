"""Tries of sign-ins on all nodes in Redis, by the clock of Redis."""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from gatewayd import ids
from gatewayd.accounts.shared_attempts.desk import SharedCount
from gatewayd.bus.redis_client import RedisClient
from gatewayd.errors import GatewayError

KNOWN_SECONDS: Final = 30 * 86_400
"""How long it is known from which network an account signed in."""

CLAIM: Final = """
-- KEYS: sorted sets of tries by time; ARGV: id of the try, and of each set its limit and its seconds
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local longest = 0
for number, key in ipairs(KEYS) do
  local tries, length = tonumber(ARGV[2 * number]), 1000 * tonumber(ARGV[2 * number + 1])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - length)
  if redis.call('ZCARD', key) >= tries then
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    longest = math.max(longest, 1, first and tonumber(first) + length - now or length)
  end
end
if longest > 0 then return longest end
for number, key in ipairs(KEYS) do
  redis.call('ZADD', key, now, ARGV[1])
  redis.call('EXPIRE', key, ARGV[2 * number + 1])
end
return 0
"""
"""Counts a try in each set, or in none; returns the milliseconds to wait."""

log = logging.getLogger(__name__)

Reply = TypeVar("Reply")


class RedisAttempts:
    """Implements `accounts.shared_attempts.desk.SharedAttempts`. Redis has digests instead of names."""

    def __init__(self, client: RedisClient, *, prefix: str = "gatewayd") -> None:
        self._client = client
        self._prefix = f"{{{prefix}}}:tries:"
        self._claim = client.script(CLAIM)

    async def claim(self, try_id: str, counts: Sequence[SharedCount]) -> int:
        """Count a try, or return the seconds to wait."""
        keys = [self._key(count.kind, count.name) for count in counts]
        limits = [number for count in counts for number in (count.limit.tries, count.limit.seconds)]
        wait = await self._run(
            lambda client: self._claim(keys=keys, args=[try_id, *limits], client=client), "count a sign-in"
        )
        return math.ceil((wait or 0) / 1000)

    async def release(self, try_id: str, counts: Sequence[SharedCount]) -> None:
        """Uncount a try."""

        async def remove(client: Any) -> None:
            pipeline = client.pipeline(transaction=False)
            for count in counts:
                pipeline.zrem(self._key(count.kind, count.name), try_id)
            await pipeline.execute()

        await self._run(remove, "uncount a sign-in")

    async def forget(self, count: SharedCount) -> None:
        """Uncount every try."""
        await self._run(lambda client: client.delete(self._key(count.kind, count.name)), "uncount sign-ins")

    async def remember(self, pair: str) -> None:
        """Store a pair."""
        key = self._key("known", pair)
        await self._run(lambda client: client.set(key, "1", ex=KNOWN_SECONDS), "store a network")

    async def is_known(self, pair: str) -> bool:
        """Return whether a pair is stored."""
        key = self._key("known", pair)
        return bool(await self._run(lambda client: client.exists(key), "find a network"))

    async def _run(self, command: Callable[[Any], Awaitable[Reply]], what: str) -> Reply | None:
        """Return the reply, None without Redis: each node counts alone."""
        try:
            return await self._client.run(command)
        except GatewayError as error:
            log.warning("cannot %s on all nodes: %s", what, error.message)
            return None

    def _key(self, kind: str, name: str) -> str:
        return self._prefix + ids.digest(f"{kind} {name}")
