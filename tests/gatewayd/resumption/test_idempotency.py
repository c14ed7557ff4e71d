"""Tests for gatewayd.resumption.idempotency."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.resumption import idempotency
from gatewayd.resumption.idempotency import IdempotentReplies, check_same
from gatewayd.resumption.records import RequestKey, StoredReply
from gatewayd.tasks import TaskRegistry
from tests.fakes.storage.streams import MemoryReplies

KEY = RequestKey("u1", "d1", "f1")
OTHER = replace(KEY, fingerprint="f2")


class World:
    """The service over a store in memory, and requests that are counted."""

    def __init__(self) -> None:
        self.store = MemoryReplies()
        self.tasks = TaskRegistry()
        self.now = 100
        self.replies = IdempotentReplies(self.store, self.tasks, kept=50, clock=lambda: self.now)
        self.done = 0
        self.gate: asyncio.Event | None = None
        self.failure: GatewayError | None = None

    async def work(self) -> StoredReply:
        self.done += 1
        number = self.done
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return StoredReply(text=f"reply {number}")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.tasks.close()


async def test_request_is_done_once_and_its_reply_repeated_after_a_restart(world: World) -> None:
    first = await world.replies.answer(KEY, world.work)
    again = IdempotentReplies(world.store, world.tasks, kept=50, clock=lambda: world.now)
    second = await again.answer(KEY, world.work)
    assert (first.text, first.is_repeated) == ("reply 1", False)
    assert (second.text, second.is_repeated, world.done) == ("reply 1", True, 1)


async def test_repeated_request_waits_for_the_running_one_whose_client_left(world: World) -> None:
    world.gate = asyncio.Event()
    first = asyncio.ensure_future(world.replies.answer(KEY, world.work))
    await asyncio.sleep(0.01)
    second = asyncio.ensure_future(world.replies.answer(KEY, world.work))
    await asyncio.sleep(0)
    first.cancel()
    world.gate.set()
    reply = await second
    assert (reply.text, reply.is_repeated, world.done) == ("reply 1", True, 1)


async def test_wait_for_the_running_request_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 0.01)
    world.gate = asyncio.Event()
    first = asyncio.ensure_future(world.replies.answer(KEY, world.work))
    await asyncio.sleep(0)
    with pytest.raises(GatewayError) as caught:
        await world.replies.answer(KEY, world.work)
    assert (caught.value.kind, caught.value.code) == (ErrorKind.CONFLICT, "idempotency_key_in_use")
    world.gate.set()
    assert (await first).text == "reply 1"


@pytest.mark.parametrize("is_running", [True, False])
async def test_key_of_another_request_is_refused(world: World, is_running: bool) -> None:
    world.gate = asyncio.Event() if is_running else None
    first = asyncio.ensure_future(world.replies.answer(KEY, world.work))
    await asyncio.sleep(0.01)
    with pytest.raises(GatewayError) as caught:
        await world.replies.answer(OTHER, world.work)
    assert (caught.value.param, caught.value.code) == ("Idempotency-Key", "idempotency_key_reused")
    if world.gate is not None:
        world.gate.set()
    await first
    assert world.done == 1


async def test_failed_request_is_done_again(world: World) -> None:
    world.failure = GatewayError(ErrorKind.RATE_LIMITED, "cannot")
    with pytest.raises(GatewayError) as caught:
        await world.replies.answer(KEY, world.work)
    assert caught.value is world.failure
    world.failure = None
    assert (await world.replies.answer(KEY, world.work)).text == "reply 2"


async def test_reply_that_is_too_old_unusable_or_too_long_is_not_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: StoredReply) -> bool:
        return False

    await world.replies.answer(KEY, world.work)
    assert (await world.replies.answer(KEY, world.work, never)).text == "reply 2"
    world.replies.configure(-1)
    assert (await world.replies.answer(KEY, world.work)).text == "reply 3"
    assert await world.replies.prune() == 1
    world.replies.configure(50)
    monkeypatch.setattr(idempotency, "MAX_REPLY_CHARACTERS", 2)
    await world.replies.answer(KEY, world.work)
    assert world.store.requests == {}


async def test_reply_is_given_though_it_cannot_be_stored(world: World) -> None:
    world.store.outage = GatewayError(ErrorKind.UNAVAILABLE, "cannot")
    assert (await world.replies.answer(KEY, world.work)).text == "reply 1"


async def test_request_that_is_stopped_before_its_first_step_fails(world: World) -> None:
    asked = asyncio.ensure_future(world.replies.answer(KEY, world.work))
    await asyncio.sleep(0)
    await world.tasks.close()
    with pytest.raises(GatewayError) as caught:
        await asked
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_changing_request_is_reserved_completed_and_known(world: World) -> None:
    assert await world.replies.begin(KEY) is None
    with pytest.raises(GatewayError) as caught:
        await world.replies.begin(KEY)
    assert caught.value.code == "idempotency_key_in_use"
    await world.replies.complete(KEY, StoredReply(text="made"))
    known = await world.replies.begin(OTHER)
    assert known is not None
    assert check_same(known, "f1").is_repeated
    with pytest.raises(GatewayError) as caught:
        check_same(known, "f2")
    assert caught.value.code == "idempotency_key_reused"


async def test_changing_request_that_failed_is_done_again(world: World) -> None:
    assert await world.replies.begin(KEY) is None
    await world.replies.release(KEY)
    assert await world.replies.begin(OTHER) is None


async def test_changing_request_cut_by_the_end_of_the_gateway_is_not_done_again(world: World) -> None:
    await world.replies.begin(KEY)
    again = IdempotentReplies(world.store, world.tasks, kept=50, clock=lambda: world.now)
    with pytest.raises(GatewayError) as caught:
        await again.begin(KEY)
    assert (caught.value.kind, caught.value.code) == (ErrorKind.CONFLICT, "idempotency_outcome_unknown")
    world.replies.configure(-1)


async def test_running_requests_of_a_user_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_RUNNING_PER_USER", 1)
    await world.replies.begin(KEY)
    with pytest.raises(GatewayError) as caught:
        await world.replies.begin(replace(KEY, digest="d2"))
    assert caught.value.kind is ErrorKind.RATE_LIMITED
    assert await world.replies.begin(RequestKey("u2", "d3", "f")) is None


async def test_replies_of_a_removed_account_are_gone_and_stay_so(world: World) -> None:
    await world.replies.answer(replace(KEY, digest="d0"), world.work)
    await world.replies.answer(replace(KEY, user_id="u2", digest="d2"), world.work)
    world.gate = asyncio.Event()
    running = asyncio.ensure_future(world.replies.answer(KEY, world.work))
    await asyncio.sleep(0)
    world.replies.forget_account("u1")
    world.gate.set()
    await running
    await asyncio.sleep(0)
    assert list(world.store.requests) == ["d2"]
    assert not world.replies._removed
