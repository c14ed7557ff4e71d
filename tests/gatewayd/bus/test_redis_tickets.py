"""Tickets that any node redeems, once."""

import asyncio

import pytest

from gatewayd.bus.redis_client import RedisClient
from gatewayd.bus.redis_tickets import RedisTickets
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ids import digest
from tests.fakes.daemons.redis_server import RedisServer


async def test_a_ticket_is_redeemed_once_on_another_node(redis: RedisServer) -> None:
    clients = [RedisClient(redis.url) for _ in range(2)]
    here, there = (RedisTickets(client) for client in clients)
    ticket = await here.issue("the credential")
    key = f"{{gatewayd}}:ticket:{digest(ticket)}"
    stored = redis.command("GET", key)
    assert b"sealed:" in stored
    assert b"credential" not in stored
    assert 25 <= int(redis.command("TTL", key)[1:]) <= 30
    ends = await asyncio.gather(*[tickets.redeem(ticket) for tickets in (here, there, here, there)])
    assert sorted(ends, key=str) == [None, None, None, "the credential"]
    assert await there.redeem("unknown") is None
    redis.command("SET", f"{{gatewayd}}:ticket:{digest('mine')}", "damaged")
    assert await there.redeem("mine") is None
    redis.stop()
    with pytest.raises(GatewayError) as refused:
        await here.issue("x")
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    for client in clients:
        await client.close()
