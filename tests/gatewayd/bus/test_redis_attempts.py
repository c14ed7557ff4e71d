"""Guesses of passwords on several nodes: they share their limits, and each node has its own without Redis."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gatewayd.accounts.devices import DeviceCookies
from gatewayd.accounts.sign_in import SignInClient, SignInGuard, SignInLimits
from gatewayd.bus import redis_client
from gatewayd.bus.redis_attempts import RedisAttempts
from gatewayd.bus.redis_client import RedisClient
from gatewayd.errors import ErrorKind, GatewayError, invalid
from tests.fakes.daemons.redis_server import RedisServer

LIMITS = SignInLimits(failures=3, by_address=8, by_account=5)
COOKIES = DeviceCookies("s" * 32)


@pytest.fixture
async def guards(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[SignInGuard, SignInGuard]]:
    monkeypatch.setattr(redis_client, "COMMAND_SECONDS", 10.0)
    clients = [RedisClient(redis.url) for _ in range(2)]
    one, two = (SignInGuard(COOKIES, LIMITS, shared=RedisAttempts(client)) for client in clients)
    yield one, two
    for client in clients:
        await client.close()


async def fails(guard: SignInGuard, peer: str, account: str = "ann", cookie: str = "") -> ErrorKind:
    """Guess a password, and return the kind of the error."""
    with pytest.raises(GatewayError) as refused:
        async with guard.attempt(account, SignInClient(peer, cookie)):
            raise invalid("cannot sign in: wrong e-mail or password")
    return refused.value.kind


async def succeeds(guard: SignInGuard, peer: str, account: str = "ann", cookie: str = "") -> None:
    async with guard.attempt(account, SignInClient(peer, cookie)):
        pass


async def test_guesses_on_all_nodes_count_together(
    redis: RedisServer, guards: tuple[SignInGuard, SignInGuard]
) -> None:
    kinds = await asyncio.gather(*(fails(guards[n % 2], "192.0.2.1") for n in range(20)))
    assert kinds.count(ErrorKind.INVALID_REQUEST) == 3
    assert kinds.count(ErrorKind.RATE_LIMITED) == 17
    with pytest.raises(GatewayError) as refused:
        async with guards[0].attempt("ann", SignInClient("192.0.2.1")):
            pytest.fail("the limit is reached")
    assert 890 <= (refused.value.retry_after or 0) <= 900
    # Other addresses have what is left of the limit of the account.
    more = [await fails(guards[n % 2], f"192.0.2.{n + 2}") for n in range(4)]
    assert more == [ErrorKind.INVALID_REQUEST] * 2 + [ErrorKind.RATE_LIMITED] * 2
    # Another account is not locked, until the address is.
    others = [await fails(guards[n % 2], "192.0.2.1", f"a{n}") for n in range(6)]
    assert others == [ErrorKind.INVALID_REQUEST] * 5 + [ErrorKind.RATE_LIMITED]
    assert b"ann" not in redis.command("KEYS", "*")
    assert b"192.0.2" not in redis.command("KEYS", "*")


async def test_the_right_password_uncounts_the_guesses_everywhere(
    guards: tuple[SignInGuard, SignInGuard],
) -> None:
    one, two = guards
    for guard in guards:
        await fails(guard, "192.0.2.1")
    await succeeds(one, "192.0.2.1")
    assert [await fails(two, "192.0.2.1") for _ in range(2)] == [ErrorKind.INVALID_REQUEST] * 2
    assert await fails(one, "192.0.2.1") is ErrorKind.INVALID_REQUEST
    assert await fails(one, "192.0.2.1") is ErrorKind.RATE_LIMITED


async def test_a_network_that_signed_in_on_one_node_is_not_locked_out_on_another(
    guards: tuple[SignInGuard, SignInGuard],
) -> None:
    one, two = guards
    await succeeds(one, "192.0.2.1")
    for number in range(7):
        await fails(one, f"198.51.100.{number}")
    assert await fails(two, "203.0.113.1") is ErrorKind.RATE_LIMITED, "strangers are"
    await succeeds(two, "192.0.2.1")
    # So is a browser that signed in.
    await succeeds(two, "203.0.113.1", cookie=one.issue_device_cookie("ann"))


async def test_an_unavailable_check_does_not_count(guards: tuple[SignInGuard, SignInGuard]) -> None:
    for number in range(8):
        with pytest.raises(GatewayError):
            async with guards[number % 2].attempt("ann", SignInClient("192.0.2.1")):
                raise GatewayError(ErrorKind.UNAVAILABLE, "cannot ask the directory")
    await succeeds(guards[0], "192.0.2.1")


async def test_a_stolen_device_cookie_at_its_limit_counts_as_a_stranger(
    guards: tuple[SignInGuard, SignInGuard],
) -> None:
    cookie = guards[0].issue_device_cookie("ann")
    kinds = [await fails(guards[n % 2], "192.0.2.1", cookie=cookie) for n in range(8)]
    # Three by the cookie, three by the network, then none.
    assert kinds == [ErrorKind.INVALID_REQUEST] * 6 + [ErrorKind.RATE_LIMITED] * 2


async def test_without_redis_each_node_limits_guesses(
    redis: RedisServer, guards: tuple[SignInGuard, SignInGuard]
) -> None:
    await succeeds(guards[0], "192.0.2.9", "bob")
    redis.stop()
    for guard in guards:
        kinds = [await fails(guard, "192.0.2.1") for _ in range(4)]
        assert kinds == [ErrorKind.INVALID_REQUEST] * 3 + [ErrorKind.RATE_LIMITED]
    await succeeds(guards[0], "192.0.2.9", "bob")
