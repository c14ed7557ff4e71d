"""Sliding windows of plugins in Redis: each counts on all nodes together, by the clock of Redis."""

import logging
from collections.abc import Sequence
from typing import Final

from gatewayd import ids
from gatewayd.bus.redis_client import RedisClient
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.interfaces import SharedWindow

NEVER: Final = -1

TAKE: Final = """
-- KEYS: windows; ARGV: of each its microseconds, its limit and the amount
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local windows, waits, is_full = {}, {}, false
for number, key in ipairs(KEYS) do
  local length, limit = tonumber(ARGV[3 * number - 2]), tonumber(ARGV[3 * number - 1])
  local amount = tonumber(ARGV[3 * number])
  local text = redis.call('GET', key)
  local slots, free, wait = {}, limit, 0
  for _, slot in ipairs(text and cmsgpack.unpack(text) or {}) do
    if slot[2] > now then slot[2] = now end
    if slot[2] + length > now then
      slots[#slots + 1] = slot
      free = free - slot[3]
    end
  end
  if amount > limit then
    wait = -1
  elseif amount > free then
    for _, slot in ipairs(slots) do
      free = free + slot[3]
      wait = slot[2] + length - now
      if free >= amount then break end
    end
  end
  windows[number], waits[number] = slots, wait
  is_full = is_full or wait ~= 0
end
if is_full then return waits end
for number, key in ipairs(KEYS) do
  local length, amount, slots = tonumber(ARGV[3 * number - 2]), tonumber(ARGV[3 * number]), windows[number]
  local slot = slots[#slots]
  -- At most 61 slots.
  if slot and now >= slot[1] and now - slot[1] < length / 60 then
    slot[2] = now
    slot[3] = slot[3] + amount
  else
    slots[#slots + 1] = {now, now, amount}
  end
  redis.call('SET', key, cmsgpack.pack(slots), 'PX', math.ceil(length / 1000) + 1000)
end
return waits
"""
"""Counts the amounts in all windows or in none; returns the microseconds to wait, -1 for never."""

log = logging.getLogger(__name__)


class RedisWindows:
    """Implements `plugins.interfaces.SharedWindows`; `is_closed` refuses requests without Redis."""

    def __init__(self, client: RedisClient, *, is_closed: bool = False, prefix: str = "gatewayd") -> None:
        self._client = client
        self._is_closed = is_closed
        self._prefix = f"{{{prefix}}}:windows:"
        self._take = client.script(TAKE)

    async def take(self, owner: str, windows: Sequence[SharedWindow]) -> Sequence[float] | None:
        """Count amounts, or return the seconds to wait; None without Redis, unavailable if closed."""
        keys = [self._prefix + ids.digest(f"{owner}\n{window.name}") for window in windows]
        values = [
            number
            for each in windows
            for number in (each.seconds * 1_000_000, each.limit, max(0, each.amount))
        ]
        try:
            waits: Sequence[int] = await self._client.run(
                lambda client: self._take(keys=keys, args=values, client=client)
            )
        except GatewayError as error:
            if self._is_closed:
                raise GatewayError(
                    ErrorKind.UNAVAILABLE,
                    f"cannot check the limits of a plugin: {error.message}",
                    retry_after=1,
                ) from error
            log.warning("the limits of plugins are counted by this node alone: %s", error.message)
            return None
        return [float("inf") if wait == NEVER else wait / 1_000_000 for wait in waits]
