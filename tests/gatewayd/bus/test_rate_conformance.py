"""What every store of rates does: a store of another kind joins as a parameter of the fixture `bench`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import pytest

from gatewayd.limits.interfaces import RateStore
from gatewayd.limits.memory_rates import MemoryRates
from gatewayd.limits.records import RatePot, RateQuantity, RateRefusal, RateUse
from tests.fakes.daemons.redis_server import RedisServer, redis_server
from tests.fakes.limits.rate_nodes import rate_nodes


@dataclass
class RateBench:
    """A store of rates and its clock, in seconds."""

    store: RateStore
    pass_time: Callable[[float], None]

    async def use(self, pot: RatePot) -> RateUse:
        await self.store.look([pot])
        return self.store.use(pot)


def memory_bench() -> RateBench:
    now = [1000.0]

    def pass_time(seconds: float) -> None:
        now[0] += seconds

    return RateBench(MemoryRates(lambda: now[0]), pass_time)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as made:
        yield made


@pytest.fixture(params=["memory", "redis"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[RateBench]:
    if request.param == "memory":
        yield memory_bench()
        return
    server: RedisServer = request.getfixturevalue("server")
    server.command("FLUSHALL")
    async with rate_nodes(server, 1) as nodes:
        yield RateBench(nodes.rates[0], nodes.pass_time)


def pot(
    name: str = "p", requests: int | None = None, tokens: int | None = None, parallel: int | None = None
) -> RatePot:
    return RatePot(name, "this account", requests, tokens, parallel)


async def refused(bench: RateBench, pots: list[RatePot], tokens: int = 0) -> tuple[str, RateQuantity, float]:
    found = await bench.store.take(pots, tokens)
    assert isinstance(found, RateRefusal)
    return found.pot.id, found.quantity, found.seconds


async def test_requests_a_minute(bench: RateBench) -> None:
    one = pot(requests=2)
    await bench.store.take([one], 0)
    bench.pass_time(10)
    await bench.store.take([one], 0)
    assert await refused(bench, [one]) == ("p", RateQuantity.REQUESTS, 50)
    assert await bench.use(one) == RateUse(requests=2, requests_reset=60)
    bench.pass_time(50)
    assert not isinstance(await bench.store.take([one], 0), RateRefusal)
    assert await refused(bench, [one]) == ("p", RateQuantity.REQUESTS, 10)


async def test_tokens_are_reserved_then_corrected(bench: RateBench) -> None:
    one = pot(tokens=100)
    first = await bench.store.take([one], 80)
    assert await refused(bench, [one], 30) == ("p", RateQuantity.TOKENS, 60)
    bench.store.give_back(first, 10)
    bench.store.give_back(first, 99)
    second = await bench.store.take([one], 90)
    assert (await bench.use(one)).tokens == 100
    # It used more than it reserved: later calls wait.
    bench.store.give_back(second, 150)
    assert (await bench.use(one)).tokens == 160
    bench.pass_time(59)
    assert await refused(bench, [one], 1) == ("p", RateQuantity.TOKENS, 1)
    bench.pass_time(1)
    assert not isinstance(await bench.store.take([one], 1), RateRefusal)


async def test_tokens_beyond_the_estimate_of_a_long_stream_count_at_its_end(bench: RateBench) -> None:
    one = pot(tokens=100)
    held = await bench.store.take([one], 50)
    bench.pass_time(300)
    bench.store.give_back(held, 130)
    assert await refused(bench, [one], 21) == ("p", RateQuantity.TOKENS, 60)


async def test_an_estimate_above_the_limit_runs_alone(bench: RateBench) -> None:
    one = pot(tokens=100)
    await bench.store.take([one], 5000)
    assert await refused(bench, [one], 1) == ("p", RateQuantity.TOKENS, 60)


async def test_parallel_calls(bench: RateBench) -> None:
    one = pot(parallel=1)
    held = await bench.store.take([one], 0)
    assert (await refused(bench, [one]))[:2] == ("p", RateQuantity.PARALLEL)
    bench.store.give_back(held, 0)
    bench.store.give_back(held, 0)
    bench.store.undo(held)
    assert await bench.use(one) == RateUse()
    await bench.store.take([one], 0)
    assert (await refused(bench, [one]))[:2] == ("p", RateQuantity.PARALLEL)


async def test_all_pots_or_none_and_the_strictest_is_named(bench: RateBench) -> None:
    wide, narrow, full = pot("wide", requests=9, tokens=9), pot("narrow", requests=1), pot("full", parallel=1)
    await bench.store.take([narrow, full], 0)
    assert await refused(bench, [wide, full, narrow], 5) == ("narrow", RateQuantity.REQUESTS, 60)
    assert await bench.use(wide) == RateUse()


async def test_undone_calls_leave_nothing(bench: RateBench) -> None:
    one = pot(requests=1, tokens=5, parallel=1)
    for _ in range(3):
        taken = await bench.store.take([one], 5)
        assert not isinstance(taken, RateRefusal)
        bench.store.undo(taken)
    assert (use := await bench.use(one)).requests == use.tokens == use.parallel == 0


async def test_many_streams_of_many_keys_stay_within_their_limits(bench: RateBench) -> None:
    """200 parallel streams and 50 keys, with 400 tokens reserved each of a common 20,000."""
    common = pot("all", tokens=20_000)
    keys = [pot(f"k{number}", requests=3, parallel=2) for number in range(50)]

    async def stream(number: int) -> bool:
        taken = await bench.store.take([keys[number % 50], common], 400)
        if isinstance(taken, RateRefusal):
            return False
        await asyncio.sleep(0)
        assert bench.store.use(common).tokens <= 20_000
        assert bench.store.use(keys[number % 50]).parallel <= 2
        bench.store.give_back(taken, 300 + number % 100)
        return True

    answered = await asyncio.gather(*(stream(number) for number in range(200)))
    # All that were admitted at once hold 400: 50 of them, one of each key.
    assert sum(answered) == 50
    again = await asyncio.gather(*(stream(number) for number in range(200)))
    assert (await bench.use(common)).tokens <= 20_000
    assert sum(again) == (20_000 - sum(300 + n % 100 for n in range(50))) // 400
