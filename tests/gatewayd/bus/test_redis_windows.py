"""Windows of plugins that nodes count together."""

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.bus import redis_client
from gatewayd.bus.redis_client import RedisClient
from gatewayd.bus.redis_windows import RedisWindows
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.builtin.rate_limit import Filter
from gatewayd.plugins.interfaces import SharedWindow
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.arguments import CallServices, reserved_arguments
from tests.fakes.daemons.redis_server import RedisServer
from tests.fakes.plugins.memory import scope_of


@pytest.fixture
async def nodes(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[RedisWindows]]:
    monkeypatch.setattr(redis_client, "COMMAND_SECONDS", 10.0)
    clients = [RedisClient(redis.url) for _ in range(2)]
    yield [RedisWindows(clients[0]), RedisWindows(clients[1], is_closed=True)]
    for client in clients:
        await client.close()


async def test_nodes_count_together(redis: RedisServer, nodes: list[RedisWindows]) -> None:
    minute, hour = SharedWindow("user u1", 60, 5), SharedWindow("user u1 hour", 3600, 9)
    waits = await asyncio.gather(*(nodes[n % 2].take("p", [minute, hour]) for n in range(20)))
    assert waits.count([0.0, 0.0]) == 5
    full = [each for each in waits if each is not None and each[0]]
    assert len(full) == 15
    assert all(50 < each[0] <= 60 and each[1] == 0 for each in full)
    assert await nodes[0].take("other plugin", [minute]) == [0.0]
    assert b"u1" not in redis.command("KEYS", "*")
    tokens = SharedWindow("tokens", 60, 100, 101)
    assert await nodes[0].take("p", [tokens]) == [math.inf]
    # A negative amount frees nothing.
    assert await nodes[0].take("p", [SharedWindow("tokens", 60, 100, -50)]) == [0.0]
    assert await nodes[1].take("p", [SharedWindow("tokens", 60, 100, 100)]) == [0.0]
    [wait] = await nodes[1].take("p", [SharedWindow("tokens", 60, 100, 1)]) or [0.0]
    assert 50 < wait <= 60


async def test_without_redis_nothing_is_counted_together(
    redis: RedisServer, nodes: list[RedisWindows]
) -> None:
    redis.stop()
    assert await nodes[0].take("p", [SharedWindow("a", 60, 1)]) is None
    with pytest.raises(GatewayError, match="cannot check the limits of a plugin") as refused:
        await nodes[1].take("p", [SharedWindow("a", 60, 1)])
    assert refused.value.kind is ErrorKind.UNAVAILABLE


async def test_the_rate_limit_counts_on_all_nodes(redis: RedisServer, nodes: list[RedisWindows]) -> None:
    refusals: list[Any] = []

    async def ask(windows: RedisWindows, made: Filter, user: str) -> bool:
        services = CallServices(asyncio.get_running_loop(), None, None, windows=windows)  # type: ignore[arg-type]
        given = reserved_arguments(frozenset({"__shared_limits__"}), "rate_limit", scope_of(), services)
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        try:
            await made.inlet(body, {"id": user, "role": "user"}, None, **given)
        except Exception as error:
            refusals.append(error)
            return False
        return True

    filters = [Filter(), Filter()]
    for made in filters:
        made.valves = Filter.Valves(user_per_minute=3, tokens_per_minute=1000)
    answers = [await ask(nodes[n % 2], filters[n % 2], "u1") for n in range(6)]
    assert answers == [True] * 3 + [False] * 3
    assert await ask(nodes[0], filters[0], "u2")
    assert {error.status_code for error in refusals} == {429}
    assert all(1 <= int(error.headers["Retry-After"]) <= 60 for error in refusals)
    redis.stop()
    # The node goes on with its own count, two of the three.
    assert [await ask(nodes[0], filters[0], "u1") for _ in range(3)] == [True, False, False]


async def test_a_tool_does_not_count_in_the_windows_of_a_function(nodes: list[RedisWindows]) -> None:
    function = CallServices(asyncio.get_running_loop(), None, None, windows=nodes[0])  # type: ignore[arg-type]
    tool = replace(function, family=PluginFamily.TOOL)
    waits = []
    for services in (tool, tool, function):
        [count] = reserved_arguments(
            frozenset({"__shared_limits__"}), "rate_limit", scope_of(), services
        ).values()
        [wait] = await count([("user\nu1\n60", 60, 1, 1)])
        waits.append(wait > 0)
    assert waits == [False, True, False]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("a", 60, 1, 1)] * 2, "a name of its own"),
        ([(f"{n}", 60, 1, 1) for n in range(101)], "up to 100"),
        ([("a", 0, 1, 1)], "seconds"),
        ([("a", 10**18, 1, 1)], "seconds"),
        ([("a", 60, "1", 1)], "whole numbers"),
        ([("a", 60, 1, 0.5)], "whole numbers"),
        ([(None, 60, 1, 1)], "a text"),
    ],
)
async def test_what_is_no_window_is_refused_to_the_plugin(rows: list[Any], reason: str) -> None:
    services = CallServices(asyncio.get_running_loop(), None, None, windows=object())  # type: ignore[arg-type]
    [count] = reserved_arguments(frozenset({"__shared_limits__"}), "p", scope_of(), services).values()
    with pytest.raises(ValueError, match=reason):
        await count(rows)


async def test_a_limit_that_is_none_is_counted(nodes: list[RedisWindows]) -> None:
    services = CallServices(asyncio.get_running_loop(), None, None, windows=nodes[1])  # type: ignore[arg-type]
    [count] = reserved_arguments(frozenset({"__shared_limits__"}), "p", scope_of(), services).values()
    assert await count([("a", 60, 10**30, 5)]) == [0.0]
    assert await count([("a", 60, 10**30, 10**31)]) == [math.inf]
