"""Calls over both adapters: answered once, on any node, whatever happens to Redis."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events import calls as calls_module
from gatewayd.events import foreign_calls as foreign_module
from gatewayd.events.calls import CallTimeout
from gatewayd.events.hub import EVERYBODY
from gatewayd.events.records import Event, EventTarget
from gatewayd.events.rooms import Subscription
from gatewayd.nodes import messages as messages_module
from gatewayd.nodes.records import NodeMessage
from tests.fakes.daemons.bus_nodes import WAIT_SECONDS, BusNode, bus_nodes, met
from tests.fakes.daemons.redis_server import RedisServer

EVENT = Event("confirmation", {"title": "t"})
TARGET = EventTarget("ann", "c", "m")
PAYLOAD = re.compile(rb"data: ([^\n]+)\n\n")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_module, "BEAT_SECONDS", 0.2)
    for module in (messages_module, calls_module, foreign_module):
        monkeypatch.setattr(module, "DEAD_SECONDS", 1.0)


async def shown(listener: Subscription) -> dict[str, Any]:
    """Return the next call that a subscriber gets."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            for payload in PAYLOAD.findall(await listener.next()):
                found: dict[str, Any] = orjson.loads(payload)
                if "call_id" in found:
                    return found


async def until(check: Any) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not check():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def asking(node: BusNode, target: EventTarget = TARGET) -> AsyncIterator[asyncio.Task[Any]]:
    task = asyncio.ensure_future(node.calls.ask(target, EVENT))
    await asyncio.sleep(0)
    yield task
    task.cancel()
    await asyncio.wait([task])


async def kind_of(answer: Any) -> ErrorKind:
    with pytest.raises(GatewayError) as caught:
        await answer
    return caught.value.kind


async def test_a_call_is_shown_and_answered_on_other_nodes_once(either: list[BusNode]) -> None:
    first, second, third = either
    listener, everybody = second.hub.subscribe("ann"), third.hub.subscribe(EVERYBODY)
    stranger = second.hub.subscribe("bob")
    async with asking(first) as task:
        call = await shown(listener)
        assert call["data"] == {"type": "confirmation", "data": {"title": "t"}}
        assert await shown(everybody) == {**call, "user_id": "ann"}
        await until(lambda: third.calls.find_user(call["call_id"]) == "ann")
        [waiting] = third.calls.pending("ann")
        assert (waiting.id, waiting.target, waiting.event) == (call["call_id"], TARGET, EVENT)
        assert third.calls.pending("bob") == []
        for wrong in (third.calls.answer("bob", waiting.id, 1), third.calls.answer("ann", "x", 1)):
            assert await kind_of(wrong) is ErrorKind.NOT_FOUND
        # From a node that is neither that of the call nor that of the listener.
        await third.calls.answer("ann", waiting.id, {"value": [1, None]})
        assert await task == {"value": [1, None]}
        for node in either:
            await until(lambda: node.calls.pending("ann") == [])  # noqa: B023
            assert await kind_of(node.calls.answer("ann", waiting.id, 2)) is ErrorKind.CONFLICT
            assert await kind_of(node.calls.refuse("bob", waiting.id, "no")) is ErrorKind.NOT_FOUND
    assert stranger.is_idle


async def test_of_answers_at_once_exactly_one_counts(either: list[BusNode]) -> None:
    listeners = [node.hub.subscribe("ann") for node in either[:2]]
    for _ in range(10):
        async with asking(either[0]) as task:
            call_id = (await shown(listeners[1]))["call_id"]
            await until(lambda: all(node.calls.find_user(call_id) for node in either))  # noqa: B023
            told = [
                node.calls.answer("ann", call_id, (at, turn))
                for at, node in enumerate(either)
                for turn in (1, 2)
            ]
            results = await asyncio.gather(*told, return_exceptions=True)
            [won] = [at for at, result in enumerate(results) if result is None]
            assert {each.kind for each in results if isinstance(each, GatewayError)} == {ErrorKind.CONFLICT}
            assert tuple(await task) == (won // 2, won % 2 + 1)


async def test_a_failure_of_the_client_on_another_node_is_raised(either: list[BusNode]) -> None:
    listener = either[1].hub.subscribe("ann")
    async with asking(either[0]) as task:
        call = await shown(listener)
        await either[1].calls.refuse("ann", call["call_id"], "the script threw")
        with pytest.raises(RuntimeError, match="could not answer confirmation: the script threw"):
            await task


async def test_a_call_goes_to_the_session_of_its_target_on_another_node_alone(either: list[BusNode]) -> None:
    first, second, third = either
    wanted, others = second.hub.subscribe("ann"), [first.hub.subscribe("ann"), third.hub.subscribe("ann")]
    target = EventTarget("ann", "c", "m", wanted.opened.session_id)
    async with asking(first, target) as task:
        call = await shown(wanted)
        await asyncio.sleep(2 * calls_module.OPEN_SECONDS)
        assert all(one.is_idle for one in others)
        # When it leaves, the others get the call.
        wanted.close()
        for one in others:
            assert (await shown(one))["call_id"] == call["call_id"]
        await third.calls.answer("ann", call["call_id"], 1)
        assert await task == 1


async def test_a_call_for_a_session_of_nobody_goes_to_all_nodes(either: list[BusNode]) -> None:
    listeners = [node.hub.subscribe("ann") for node in either]
    async with asking(either[0], EventTarget("ann", "c", "m", "api-1")):
        calls = [await shown(listener) for listener in listeners]
        assert len({call["call_id"] for call in calls}) == 1


async def test_who_connects_to_another_node_later_gets_the_call_once(either: list[BusNode]) -> None:
    first, second, _ = either
    async with asking(first) as task:
        await until(lambda: second.calls.pending("ann"))
        listener, everybody = second.hub.subscribe("ann"), second.hub.subscribe(EVERYBODY)
        call = await shown(listener)
        assert (await shown(everybody))["call_id"] == call["call_id"]
        await asyncio.sleep(2.5 * messages_module.BEAT_SECONDS)
        assert listener.is_idle
        await second.calls.answer("ann", call["call_id"], None)
        assert await task is None


async def test_a_user_who_is_nowhere_is_not_waited_for(either: list[BusNode]) -> None:
    first, second, _ = either
    listener = second.hub.subscribe("ann")
    async with asking(first) as task:
        await shown(listener)
        listener.close()
        with pytest.raises(CallTimeout, match="the user has no live connection"):
            await task
    await until(lambda: not any(node.calls.every() for node in either))


async def test_an_ended_call_is_forgotten_everywhere(either: list[BusNode]) -> None:
    either[1].hub.subscribe("ann")
    async with asking(either[0]):
        await until(lambda: all(node.calls.pending("ann") for node in either))
        either[0].calls.withdraw(TARGET)
    await until(lambda: not any(node.calls.every() for node in either))


@pytest.fixture
async def nodes(redis: RedisServer) -> AsyncIterator[list[BusNode]]:
    async with bus_nodes(redis.url, 2) as made:
        yield made


async def test_an_answer_of_a_megabyte_passes_and_a_larger_one_is_refused(nodes: list[BusNode]) -> None:
    first, second = nodes
    listener = second.hub.subscribe("ann")
    async with asking(first) as task:
        call_id = (await shown(listener))["call_id"]
        assert await kind_of(second.calls.answer("ann", call_id, "x" * (2 << 20))) is ErrorKind.TOO_LARGE
        await second.calls.answer("ann", call_id, "x" * (1 << 20))
        assert len(await task) == 1 << 20


async def test_a_call_that_is_too_large_is_shown_on_its_node_alone(
    nodes: list[BusNode], caplog: pytest.LogCaptureFixture
) -> None:
    listener = nodes[0].hub.subscribe("ann")
    task = asyncio.ensure_future(nodes[0].calls.ask(TARGET, Event("execute", {"code": "x" * (2 << 20)})))
    await nodes[0].calls.answer("ann", (await shown(listener))["call_id"], 1)
    assert await task == 1
    assert "only this node shows a call" in caplog.text
    assert nodes[1].calls.every() == []


async def test_without_redis_a_call_fails_like_one_of_a_disconnected_page(
    redis: RedisServer, nodes: list[BusNode]
) -> None:
    first, second = nodes
    listener = second.hub.subscribe("ann")
    async with asking(first) as task:
        call_id = (await shown(listener))["call_id"]
        redis.stop()
        assert await kind_of(second.calls.answer("ann", call_id, 1)) is ErrorKind.UNAVAILABLE
        assert await kind_of(second.calls.answer("ann", "unknown", 1)) is ErrorKind.UNAVAILABLE
        with pytest.raises(CallTimeout, match="the user has no live connection"):
            await task
        # A call to somebody who is here works.
        here = first.hub.subscribe("ann")
        async with asking(first, EventTarget("ann", "c", "m", "api")) as local:
            await first.calls.answer("ann", (await shown(here))["call_id"], 2)
            assert await local == 2
    redis.start()
    await met(nodes)
    listener = second.hub.subscribe("ann")
    await until(lambda: first.client is not None and first.client.is_usable)
    async with asking(first) as task:
        await second.calls.answer("ann", (await shown(listener))["call_id"], 3)
        assert await task == 3


async def test_an_emptied_redis_ends_no_call(redis: RedisServer, nodes: list[BusNode]) -> None:
    first, second = nodes
    listener = second.hub.subscribe("ann")
    async with asking(first) as task:
        call_id = (await shown(listener))["call_id"]
        redis.command("FLUSHALL")
        await until(lambda: listener.is_closed)
        # The gap closed the subscriber; its client comes again.
        assert (await shown(second.hub.subscribe("ann")))["call_id"] == call_id
        await second.calls.answer("ann", call_id, 1)
        assert await task == 1


async def test_a_paused_redis_ends_no_call_and_gives_it_one_answer(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages_module, "REPLY_SECONDS", 0.5)
    async with bus_nodes(redis.url, 2, grace=WAIT_SECONDS) as (first, second):
        listener = second.hub.subscribe("ann")
        async with asking(first) as task:
            call_id = (await shown(listener))["call_id"]
            redis.pause()
            assert await kind_of(second.calls.answer("ann", call_id, 1)) is ErrorKind.UNAVAILABLE
            redis.go_on()
            await met([first, second])
            said = 1
            kind: ErrorKind | None = ErrorKind.UNAVAILABLE
            while kind is ErrorKind.UNAVAILABLE:
                said += 1
                [outcome] = await asyncio.gather(
                    second.calls.answer("ann", call_id, said), return_exceptions=True
                )
                kind = outcome.kind if isinstance(outcome, GatewayError) else None
            # An answer whose fate was unknown may have come through after all.
            assert kind in (None, ErrorKind.CONFLICT)
            assert await task in ([said] if kind is None else range(1, said))


async def test_a_node_that_lost_the_news_asks_for_them(
    nodes: list[BusNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = nodes
    lost = []
    real = first.bus.tell

    def lose(message: NodeMessage) -> bool:
        if message.kind == "call.asked" and not lost:
            lost.append(message)
            return True
        return real(message)

    monkeypatch.setattr(first.bus, "tell", lose)
    listener = second.hub.subscribe("ann")
    async with asking(first) as task:
        await second.calls.answer("ann", (await shown(listener))["call_id"], 1)
        assert await task == 1
    assert lost


async def test_a_shard_is_bounded_and_a_node_that_is_behind_is_told_of_a_gap(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.bus.redis.SHARD_BYTES", 4000)
    async with bus_nodes(redis.url, 2) as (first, second):
        gaps: list[str | None] = []
        second.bus.watch_gaps(gaps.append)
        listener = second.hub.subscribe("ann")
        await second.tasks.close()
        for number in range(30):
            await first.hub.publish("ann", "c", {"n": number, "text": "x" * 500})
        await first.settle()
        shard = first.bus._shard("ann")
        held = int(redis.command("XLEN", shard).strip(b":\r\n"))
        assert 1 <= held <= 4000 // 500
        second.tasks = type(second.tasks)()
        second.start()
        await until(lambda: gaps)
        assert gaps[0] is None
        assert listener.is_closed
        await second.tasks.close()
