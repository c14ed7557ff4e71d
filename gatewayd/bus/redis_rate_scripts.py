"""Scripts of rates in Redis: each is one step for all nodes, by the clock of Redis.

A pot is two keys: its window, two lists of slots as in `limits.rate_window` for requests and tokens, and its
places, a sorted set of tickets by the time until which each has its place.
"""

from typing import Final

REDIS_CLOCK: Final = """
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
"""
"""The time in microseconds."""

_POTS: Final = """
local WINDOW, SLOT = 60000000, 1000000
local function load(key)
  local text = redis.call('GET', key)
  local pot = text and cmsgpack.unpack(text) or {{}, {}}
  local totals = {0, 0}
  for kind = 1, 2 do
    local kept = {}
    for _, slot in ipairs(pot[kind]) do
      -- The clock of a replica that took over may be behind.
      if slot[2] > now then slot[2] = now end
      if slot[2] + WINDOW > now then
        kept[#kept + 1] = slot
        totals[kind] = totals[kind] + slot[3]
      end
    end
    pot[kind] = kept
  end
  return pot, totals
end
local function save(key, pot)
  local last = 0
  for kind = 1, 2 do
    if #pot[kind] > 0 then last = math.max(last, pot[kind][#pot[kind]][2]) end
  end
  if last == 0 then
    redis.call('DEL', key)
  else
    redis.call('SET', key, cmsgpack.pack(pot), 'PX', math.ceil((last + WINDOW - now) / 1000) + 1000)
  end
end
local function add(slots, amount)
  local slot = slots[#slots]
  if slot and now - slot[1] < SLOT and now >= slot[1] then
    slot[2] = now
    slot[3] = slot[3] + amount
  else
    slot = {now, now, amount}
    slots[#slots + 1] = slot
  end
  return slot[1]
end
local function correct(slots, first, amount)
  for _, slot in ipairs(slots) do
    if slot[1] == first then
      slot[3] = slot[3] + amount
      return
    end
  end
  if amount > 0 then add(slots, amount) end
end
local function wait(slots, excess)
  for _, slot in ipairs(slots) do
    excess = excess - slot[3]
    if excess <= 0 then return slot[2] + WINDOW - now end
  end
  return WINDOW
end
local function reset(slots)
  return #slots > 0 and slots[#slots][2] + WINDOW - now or 0
end
local function count(key)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  return redis.call('ZCARD', key)
end
local function use(pot, totals, places)
  return {totals[1], totals[2], places, reset(pot[1]), reset(pot[2])}
end
"""

TAKE: Final = (
    _POTS
    + """
-- KEYS: window and places of each pot
-- ARGV: ticket, microseconds of a place, tokens, and of each pot the limits of requests, tokens and places
local pots, totals, places, worst, seconds = {}, {}, {}, nil, -1
local function refuse(number, quantity, duration)
  if duration > seconds then
    worst, seconds = {number, quantity, duration}, duration
  end
end
local function limit(number, position) return tonumber(ARGV[3 * number + position]) end
local function amount(number) return math.min(tonumber(ARGV[3]), limit(number, 2)) end
for number = 1, #KEYS / 2 do
  local pot, sums = load(KEYS[2 * number - 1])
  local held = count(KEYS[2 * number])
  pots[number], totals[number], places[number] = pot, sums, held
  if limit(number, 3) >= 0 and held >= limit(number, 3) then refuse(number, 3, 1000000) end
  if limit(number, 1) >= 0 and sums[1] + 1 > limit(number, 1) then
    refuse(number, 1, wait(pot[1], sums[1] + 1 - limit(number, 1)))
  end
  if limit(number, 2) >= 0 and sums[2] + amount(number) > limit(number, 2) then
    refuse(number, 2, wait(pot[2], sums[2] + amount(number) - limit(number, 2)))
  end
end
local uses, firsts = {}, {}
for number = 1, #pots do
  local pot, sums = pots[number], totals[number]
  firsts[number] = {0, 0}
  if not worst then
    if limit(number, 1) >= 0 then
      firsts[number][1] = add(pot[1], 1)
      sums[1] = sums[1] + 1
    end
    if limit(number, 2) >= 0 then
      firsts[number][2] = add(pot[2], amount(number))
      sums[2] = sums[2] + amount(number)
    end
    save(KEYS[2 * number - 1], pot)
    if limit(number, 3) >= 0 then
      redis.call('ZADD', KEYS[2 * number], now + tonumber(ARGV[2]), ARGV[1])
      redis.call('PEXPIRE', KEYS[2 * number], math.ceil(tonumber(ARGV[2]) / 1000) + 1000)
      places[number] = places[number] + 1
    end
  end
  uses[number] = use(pot, sums, places[number])
end
return {worst or {}, uses, firsts}
"""
)
"""Takes from each pot or from none; returns the refusal or nothing, the uses, and the slots of amounts."""

CLOSE: Final = (
    _POTS
    + """
-- KEYS: window and places of each pot
-- ARGV: ticket, requests to give back, tokens that were used, and of each pot the slots of its request and of
-- its tokens, 0 for none, and the tokens that were taken
for number = 1, #KEYS / 2 do
  redis.call('ZREM', KEYS[2 * number], ARGV[1])
  local function given(position) return tonumber(ARGV[3 * number + position]) end
  local pot = load(KEYS[2 * number - 1])
  local undone, more = tonumber(ARGV[2]), tonumber(ARGV[3]) - given(3)
  local is_changed = false
  if given(2) > 0 and more ~= 0 then
    correct(pot[2], given(2), more)
    is_changed = true
  end
  if given(1) > 0 and undone > 0 then
    correct(pot[1], given(1), -undone)
    is_changed = true
  end
  if is_changed then save(KEYS[2 * number - 1], pot) end
end
return 1
"""
)
"""Frees the places of a call, and corrects its amounts."""

LOOK: Final = (
    _POTS
    + """
-- KEYS: window and places of each pot
local uses = {}
for number = 1, #KEYS / 2 do
  local pot, sums = load(KEYS[2 * number - 1])
  uses[number] = use(pot, sums, count(KEYS[2 * number]))
end
return uses
"""
)
"""Returns the present uses."""

RENEW: Final = """
-- KEYS: places of a pot; ARGV: microseconds of a place, tickets
local until_then = now + tonumber(ARGV[1])
-- It frees memory, so that a full Redis runs this, as it runs TAKE: running calls keep their places.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for number = 2, #ARGV do redis.call('ZADD', KEYS[1], until_then, ARGV[number]) end
redis.call('PEXPIRE', KEYS[1], math.ceil(tonumber(ARGV[1]) / 1000) + 1000)
return #ARGV - 1
"""
"""Extends the places of tickets, also those that Redis has lost."""
