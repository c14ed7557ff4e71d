"""Rates of several nodes: nothing is admitted twice, whatever happens to a node or to Redis."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from gatewayd.bus.redis_rate_scripts import REDIS_CLOCK
from gatewayd.bus.redis_rates import RedisRates, RedisTicket
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.interfaces import RateStore
from gatewayd.limits.records import RatePot, RateQuantity, RateRefusal, RateUse
from tests.fakes.daemons.redis_server import RedisServer, redis_server
from tests.fakes.limits.rate_nodes import rate_nodes

PLACES = "{gatewayd}:rate:places:p"
WINDOW = "{gatewayd}:rate:window:p"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as made:
        yield made


@pytest.fixture
def redis(server: RedisServer) -> RedisServer:
    if server.process is None:
        server.start()
    server.go_on()
    server.command("FLUSHALL")
    return server


def pot(requests: int | None = None, tokens: int | None = None, parallel: int | None = None) -> RatePot:
    return RatePot("p", "this account", requests, tokens, parallel)


async def taken(store: RateStore, one: RatePot, tokens: int = 0) -> RedisTicket:
    found = await store.take([one], tokens)
    assert isinstance(found, RedisTicket)
    return found


async def use_of(store: RateStore, one: RatePot) -> RateUse:
    await store.look([one])
    return store.use(one)


async def refusing(store: RateStore, one: RatePot, tokens: int = 0) -> RateQuantity:
    found = await store.take([one], tokens)
    assert isinstance(found, RateRefusal)
    return found.quantity


async def test_200_streams_over_two_nodes_stay_within_the_limits(redis: RedisServer) -> None:
    one = pot(parallel=20, tokens=100_000)
    running, most = 0, 0

    async def stream(rates: RedisRates, number: int) -> bool:
        nonlocal running, most
        found = await rates.take([one], 100)
        if isinstance(found, RateRefusal):
            return False
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        rates.give_back(found, number % 150)
        return True

    async with rate_nodes(redis, 2, counts_alone=True, clock=REDIS_CLOCK) as nodes:
        rounds = [
            await asyncio.gather(*(stream(nodes.rates[number % 2], number) for number in range(200)))
            for _ in range(3)
        ]
        assert most == 20
        # What a node gives back reaches Redis a little later than the end of its call.
        for rates in nodes.rates:
            await rates.flush(10)
        used = sum(number % 150 for answers in rounds for number in range(200) if answers[number])
        final = await use_of(nodes.rates[0], one)
        assert (final.parallel, final.tokens) == (0, used)
        assert (await use_of(nodes.rates[1], one)).tokens == used


async def test_the_counters_expire_by_themselves(redis: RedisServer) -> None:
    async with rate_nodes(redis, 1, seconds=12, clock=REDIS_CLOCK) as nodes:
        await taken(nodes.rates[0], pot(requests=5, parallel=5))
        assert 58 <= int(redis.command("TTL", WINDOW)[1:]) <= 61
        assert 10 <= int(redis.command("TTL", PLACES)[1:]) <= 13


async def test_the_places_of_a_dead_node_are_free_when_its_lease_ends(redis: RedisServer) -> None:
    one = pot(parallel=1)
    async with rate_nodes(redis, 2, seconds=10) as nodes:
        dead, alive = nodes.rates
        await taken(dead, one)
        nodes.senders[0].cancel()
        nodes.pass_time(9)
        assert await refusing(alive, one) is RateQuantity.PARALLEL
        nodes.pass_time(1)
        await taken(alive, one)


async def test_a_full_redis_keeps_the_places_of_running_calls(redis: RedisServer) -> None:
    one = pot(parallel=1)
    async with rate_nodes(redis, 2, seconds=10) as nodes:
        await taken(nodes.rates[0], one)
        nodes.pass_time(9)
        redis.command("CONFIG", "SET", "maxmemory", "1")
        try:
            # What it sends comes after a renewal.
            assert (await use_of(nodes.rates[0], one)).parallel == 1
        finally:
            redis.command("CONFIG", "SET", "maxmemory", "0")
        nodes.pass_time(2)
        assert await refusing(nodes.rates[1], one) is RateQuantity.PARALLEL


async def test_a_node_that_was_silent_counts_its_calls_again(redis: RedisServer) -> None:
    one = pot(parallel=1)
    async with rate_nodes(redis, 2, seconds=10) as nodes:
        silent, other = nodes.rates
        held = await taken(silent, one)
        assert (await use_of(silent, one)).parallel == 1
        nodes.pass_time(60)
        taken_over = await taken(other, one)
        # The node comes back; its stream still runs.
        assert (await use_of(silent, one)).parallel == 2
        other.give_back(taken_over, 0)
        assert await refusing(other, one) is RateQuantity.PARALLEL
        silent.give_back(held, 0)
        assert (await use_of(silent, one)).parallel == 0
        await taken(other, one)


async def test_running_calls_are_entered_again_into_an_empty_redis(redis: RedisServer) -> None:
    one = pot(parallel=1, requests=5)
    async with rate_nodes(redis, 2, seconds=10) as nodes:
        held = await taken(nodes.rates[0], one)
        redis.stop()
        redis.start()
        nodes.pass_time(5)
        for _ in range(100):
            if (await use_of(nodes.rates[0], one)).parallel:
                break
            # A lost connection is opened again a second later.
            await asyncio.sleep(0.05)
        # The restarted server knew no script either; the counts of the minute begin anew.
        assert nodes.rates[0].use(one) == RateUse(parallel=1)
        assert await refusing(nodes.rates[1], one) is RateQuantity.PARALLEL
        nodes.rates[0].give_back(held, 0)
        assert (await use_of(nodes.rates[0], one)).parallel == 0
        await taken(nodes.rates[1], one)


async def test_without_redis_each_node_counts_alone(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    one = pot(requests=3)
    async with rate_nodes(redis, 2, counts_alone=True) as nodes:
        for rates in nodes.rates:
            await taken(rates, one)
        redis.stop()
        with caplog.at_level(logging.WARNING):
            for rates in nodes.rates:
                await taken(rates, one)
                await taken(rates, one)
                assert await refusing(rates, one) is RateQuantity.REQUESTS
                assert (await use_of(rates, one)).requests == 3
        told = [line for line in caplog.messages if "limits without Redis: this node counts alone" in line]
        assert len(told) == 2, "once for each node"


async def test_closed_limits_refuse_without_redis_and_hold_nothing(redis: RedisServer) -> None:
    one = pot(requests=1, parallel=1)
    async with rate_nodes(redis, 1, counts_alone=True, is_closed=True, clock=REDIS_CLOCK) as nodes:
        redis.stop()
        for _ in range(2):
            with pytest.raises(
                GatewayError, match="cannot check the limits of the call: cannot reach Redis"
            ) as it:
                await nodes.rates[0].take([one], 0)
            assert (it.value.kind, it.value.retry_after) == (ErrorKind.UNAVAILABLE, 1)
        redis.start()
        for _ in range(100):
            try:
                await taken(nodes.rates[0], one)
                break
            except GatewayError:
                # The connection is tried again a second after the last failure.
                await asyncio.sleep(0.05)
        assert (await use_of(nodes.rates[0], one)).requests == 1


async def test_a_place_whose_taking_was_uncertain_is_given_back(redis: RedisServer) -> None:
    """Redis stands still: it carries the command out later, when the node has gone on without the reply."""
    one = pot(parallel=2)
    async with rate_nodes(redis, 1, counts_alone=True, patience=0.1, clock=REDIS_CLOCK) as nodes:
        rates = nodes.rates[0]
        first = await taken(rates, one)
        redis.pause()
        second = await taken(rates, one)
        assert not second.slots
        redis.go_on()
        rates.give_back(first, 0)
        rates.give_back(second, 0)
        await rates.flush(5)
        for _ in range(100):
            await rates.look([one])
            if redis.command("ZCARD", PLACES) != b":0\r\n" or not rates.use(one).parallel:
                break
            await asyncio.sleep(0.05)
        assert not rates.use(one).parallel


async def test_callers_that_go_away_leave_nothing(redis: RedisServer) -> None:
    one = pot(requests=10, tokens=1000, parallel=10)
    async with rate_nodes(redis, 1) as nodes:
        rates = nodes.rates[0]
        asked = [asyncio.ensure_future(rates.take([one], 50)) for _ in range(8)]
        for pause in range(4):
            await asyncio.sleep(0)
            asked[pause].cancel()
            asked[7 - pause].cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        await rates.flush(5)
        use = await use_of(rates, one)
        assert (use.requests, use.tokens, use.parallel) == (0, 0, 0)


async def test_a_caller_that_goes_away_as_its_reply_arrives_leaves_nothing(redis: RedisServer) -> None:
    one = pot(requests=10, parallel=10)
    async with rate_nodes(redis, 1) as nodes:
        rates = nodes.rates[0]
        asked: list[asyncio.Future[object]] = []

        async def first() -> None:
            held = await taken(rates, one)
            # The reply of the second came with this one.
            asked[1].cancel()
            rates.give_back(held, 0)

        asked += [asyncio.ensure_future(first()), asyncio.ensure_future(rates.take([one], 0))]
        await asyncio.gather(*asked, return_exceptions=True)
        assert asked[1].cancelled()
        use = await use_of(rates, one)
        assert (use.requests, use.parallel) == (1, 0)


async def test_numbers_of_any_size(redis: RedisServer) -> None:
    one = pot(tokens=10**12, requests=10**12)
    async with rate_nodes(redis, 1) as nodes:
        rates = nodes.rates[0]
        negative = await taken(rates, one, -5)
        rates.give_back(negative, -(10**9))
        assert (await use_of(rates, one)).tokens == 0
        huge = await taken(rates, one, 2**60)
        assert (await use_of(rates, one)).tokens == 10**12
        assert await refusing(rates, one, 1) is RateQuantity.TOKENS
        rates.give_back(huge, 2**60)
        assert (await use_of(rates, one)).tokens == pytest.approx(2**60)
        nodes.pass_time(60)
        await taken(rates, one, 1)
        # A replica whose clock is behind takes over.
        nodes.pass_time(-30)
        await taken(rates, one, 2)
        assert (await use_of(rates, one)).tokens == 3
        nodes.pass_time(60)
        assert (await use_of(rates, one)).tokens == 0


async def test_a_damaged_counter_is_counted_by_the_node(redis: RedisServer) -> None:
    one = pot(parallel=1)
    async with rate_nodes(redis, 1, counts_alone=True) as nodes:
        rates = nodes.rates[0]
        redis.command("SET", PLACES, "x")
        held = await taken(rates, one)
        assert await refusing(rates, one) is RateQuantity.PARALLEL
        await rates.look([one])
        rates.give_back(held, 0)
        with pytest.raises(TypeError):
            rates.undo(object())


async def test_a_stopped_sender_leaves_no_caller_waiting(redis: RedisServer) -> None:
    one = pot(requests=5)
    async with rate_nodes(redis, 1, is_closed=True) as nodes:
        asked = asyncio.ensure_future(nodes.rates[0].take([one], 1))
        await asyncio.sleep(0)
        nodes.senders[0].cancel()
        with pytest.raises(GatewayError, match="cannot check the limits"):
            await asked
        await nodes.rates[0].look([one])
        await nodes.rates[0].flush(0.01)


async def test_memory_of_uses_is_bounded(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayd.bus.redis_rates.MAX_HEARD_POTS", 3)
    async with rate_nodes(redis, 1) as nodes:
        rates = nodes.rates[0]
        pots = [RatePot(f"p{number}", "all", 1, None, None) for number in range(9)]
        for one in pots:
            await taken(rates, one)
        assert [rates.use(one).requests for one in pots] == [0] * 6 + [1] * 3
        nodes.pass_time(61)
        assert rates.use(pots[-1]) == RateUse()
