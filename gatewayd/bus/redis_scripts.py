"""Scripts of the event streams in Redis: each is one step for all who see it."""

from typing import Final

_SHARD: Final = """
-- KEYS: shard and facts of the shard, epoch; ARGV: user, chat, payload, about, node, number, kind, new epoch,
-- frames, bytes and milliseconds of a shard
local now = redis.call('TIME')
local milliseconds = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local epoch = redis.call('GET', KEYS[3])
if not epoch then
  epoch = ARGV[8]
  redis.call('SET', KEYS[3], epoch)
end
-- The reader of an entry learns from the id of the former one whether it has lost any.
local former = redis.call('HGET', KEYS[2], 'last') or ''
local id = redis.call('XADD', KEYS[1], '*', 'e', epoch, 'u', ARGV[1], 'c', ARGV[2],
  'p', ARGV[3], 'a', ARGV[4], 'n', ARGV[5], 'i', ARGV[6], 'k', ARGV[7], 'b', former)
redis.call('HSET', KEYS[2], 'last', id)
local held = redis.call('HINCRBY', KEYS[2], 'size', #ARGV[3])
local length = redis.call('XLEN', KEYS[1])
-- A shard that was quiet is shortened little by little.
for _ = 1, 100 do
  if length < 2 then break end
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local at = tonumber(string.match(first[1], '^%d+'))
  local is_new = at >= milliseconds - tonumber(ARGV[11])
  if length <= tonumber(ARGV[9]) and held <= tonumber(ARGV[10]) and is_new then break end
  redis.call('XDEL', KEYS[1], first[1])
  length = length - 1
  held = redis.call('HINCRBY', KEYS[2], 'size', -#first[2][8])
end
"""

PASS: Final = _SHARD + "return id"
"""Appends a message between nodes to a shard, which is bounded by number, bytes and age."""

APPEND: Final = (
    _SHARD
    + """
-- KEYS: stream and facts of the user; ARGV: frames, bytes and milliseconds of the stream, milliseconds for
-- which the facts are kept
if redis.call('EXISTS', KEYS[4]) == 0 then
  -- The stream has expired: all that it had is lost.
  local last = redis.call('HGET', KEYS[5], 'last')
  redis.call('DEL', KEYS[5])
  if last then redis.call('HSET', KEYS[5], 'floor', last) end
end
local fields = {'c', ARGV[2], 'p', ARGV[3], 'a', ARGV[4], 'k', ARGV[7]}
local added = redis.pcall('XADD', KEYS[4], id, unpack(fields))
if type(added) == 'table' and added.err then
  -- The stream is from before another clock: nobody resumes in it.
  redis.call('DEL', KEYS[4], KEYS[5])
  redis.call('HSET', KEYS[5], 'floor', id)
  redis.call('XADD', KEYS[4], id, unpack(fields))
end
local function remove(entry)
  redis.call('XDEL', KEYS[4], entry[1])
  redis.call('HINCRBY', KEYS[5], 'size', -#entry[2][4])
  local about = entry[2][6]
  if about ~= '' and redis.call('HGET', KEYS[5], 'a:' .. about) == entry[1] then
    redis.call('HDEL', KEYS[5], 'a:' .. about)
  end
end
if ARGV[4] ~= '' then
  local former = redis.call('HGET', KEYS[5], 'a:' .. ARGV[4])
  if former then
    local found = redis.call('XRANGE', KEYS[4], former, former)
    if found[1] then remove(found[1]) end
  end
  redis.call('HSET', KEYS[5], 'a:' .. ARGV[4], id)
end
local size = redis.call('HINCRBY', KEYS[5], 'size', #ARGV[3])
local count = redis.call('XLEN', KEYS[4])
local oldest = milliseconds - tonumber(ARGV[14])
while count > 0 do
  local first = redis.call('XRANGE', KEYS[4], '-', '+', 'COUNT', 1)[1]
  local at = tonumber(string.match(first[1], '^%d+'))
  if count <= tonumber(ARGV[12]) and size <= tonumber(ARGV[13]) and at >= oldest then break end
  remove(first)
  redis.call('HSET', KEYS[5], 'floor', first[1])
  size = size - #first[2][4]
  count = count - 1
end
redis.call('HSET', KEYS[5], 'last', id)
redis.call('PEXPIRE', KEYS[4], ARGV[14])
redis.call('PEXPIRE', KEYS[5], ARGV[15])
return id
"""
)
"""Appends a frame to the stream of a shard, and under the same id to the bounded stream of its user."""

ATTACH: Final = """
-- KEYS: epoch, shards; ARGV: new epoch
redis.call('SET', KEYS[1], ARGV[1], 'NX')
local reply = {redis.call('GET', KEYS[1])}
for number = 2, #KEYS do
  local found = redis.pcall('XINFO', 'STREAM', KEYS[number])
  local last = '0-0'
  if not found.err then
    for at = 1, #found, 2 do
      if found[at] == 'last-generated-id' then last = found[at + 1] end
    end
  end
  reply[number] = last
end
return reply
"""
"""Returns the epoch and the last id of each shard."""

MISSED: Final = """
-- KEYS: stream and facts of a user, epoch, shard; ARGV: first id
local now = redis.call('TIME')
local epoch = redis.call('GET', KEYS[3])
local floor = redis.call('HGET', KEYS[2], redis.call('EXISTS', KEYS[1]) == 1 and 'floor' or 'last')
local last = '0-0'
local shard = redis.pcall('XINFO', 'STREAM', KEYS[4])
if not shard.err then
  for at = 1, #shard, 2 do
    if shard[at] == 'last-generated-id' then last = shard[at + 1] end
  end
end
return {epoch or '', floor or '', tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000),
  last, redis.call('XRANGE', KEYS[1], ARGV[1], '+')}
"""
"""Returns epoch, last lost id, time in milliseconds, last id of the shard, frames of a user from an id on."""
