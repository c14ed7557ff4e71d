"""Tests for gatewayd.events.calls."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.events import calls as module
from gatewayd.events.calls import CallTimeout
from gatewayd.events.hub import EVERYBODY
from gatewayd.events.records import Event, EventCall, EventTarget
from tests.fakes.storage.events import SOON, TARGET, EventSite, heard, waiting

EVENT = Event("confirmation", {"title": "t"})


@asynccontextmanager
async def asking(
    site: EventSite, target: EventTarget = TARGET
) -> AsyncIterator[tuple[asyncio.Task[Any], EventCall]]:
    """Ask, and give the task that waits and its call."""
    before = len(site.calls.pending(target.user_id))
    task = asyncio.ensure_future(site.calls.ask(target, EVENT))
    while len(site.calls.pending(target.user_id)) == before:
        await asyncio.sleep(0)
    yield task, site.calls.pending(target.user_id)[-1]
    if not task.done():
        task.cancel()
    await asyncio.wait([task])
    assert site.calls.pending(target.user_id) == []


async def ended(task: asyncio.Task[Any]) -> Any:
    return await asyncio.wait_for(task, SOON)


async def test_what_the_client_gets() -> None:
    site = EventSite()
    listener = site.hub.subscribe("ann")
    async with asking(site) as (_, call):
        assert await heard(listener) == [
            {
                "chat_id": "c1",
                "message_id": "m1",
                "call_id": call.id,
                "data": {"type": "confirmation", "data": {"title": "t"}},
            }
        ]


@pytest.mark.parametrize("result", [True, False, None, "", "text", 0, [], {}, {"value": "x"}, {"error": "x"}])
async def test_an_answer_may_be_any_value(result: Any) -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        await site.calls.answer("ann", call.id, result)
        assert await ended(task) == result


async def test_a_failure_of_the_client_is_raised() -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        await site.calls.refuse("ann", call.id, "the script threw")
        with pytest.raises(RuntimeError, match="the client could not answer confirmation: the script threw"):
            await ended(task)


async def test_the_first_answer_counts() -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        await site.calls.answer("ann", call.id, 1)
        # Before the one who asked has run, and afterwards.
        for _ in range(2):
            for answer in (site.calls.answer, site.calls.refuse):
                with pytest.raises(GatewayError) as caught:
                    await answer("ann", call.id, "2")
                assert caught.value.kind is ErrorKind.CONFLICT
            assert await ended(task) == 1


async def test_only_the_user_who_is_asked_can_answer() -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        for user_id, call_id in (("bob", call.id), ("ann", "other"), ("", "")):
            with pytest.raises(GatewayError) as caught:
                await site.calls.answer(user_id, call_id, 1)
            assert caught.value.kind is ErrorKind.NOT_FOUND
        assert site.calls.pending("bob") == []
        await site.calls.answer("ann", call.id, 1)
        assert await ended(task) == 1
        with pytest.raises(GatewayError) as caught:
            await site.calls.answer("bob", call.id, 1)
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_answered_calls_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED_CALLS", 1)
    site = EventSite()
    site.hub.subscribe("ann")
    done = []
    for _ in range(2):
        async with asking(site) as (task, call):
            await site.calls.answer("ann", call.id, 1)
            await ended(task)
            done.append(call.id)
    for call_id, kind in zip(done, (ErrorKind.NOT_FOUND, ErrorKind.CONFLICT), strict=True):
        with pytest.raises(GatewayError) as caught:
            await site.calls.answer("ann", call_id, 1)
        assert caught.value.kind is kind


async def test_no_answer_in_time_raises() -> None:
    site = EventSite(timeout=0.01)
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        with pytest.raises(CallTimeout, match=r"none came within 0\.01 s"):
            await ended(task)
        with pytest.raises(GatewayError) as caught:
            await site.calls.answer("ann", call.id, 1)
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_without_a_limit_a_call_waits() -> None:
    site = EventSite(timeout=0)
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        assert (await asyncio.wait([task], timeout=0.01))[0] == set()
        await site.calls.answer("ann", call.id, 1)
        assert await ended(task) == 1


async def test_nobody_there_raises_after_the_grace() -> None:
    site = EventSite(timeout=0, grace=0.01)
    site.hub.subscribe("bob")
    site.hub.subscribe("ann", chat_id="other chat")
    async with asking(site) as (task, _):
        with pytest.raises(CallTimeout, match="no live connection"):
            await ended(task)


async def test_who_comes_within_the_grace_is_asked() -> None:
    site = EventSite(timeout=0)
    async with asking(site) as (task, call):
        listener = site.hub.subscribe("ann")
        assert (await heard(listener))[0]["call_id"] == call.id
        await site.calls.answer("ann", call.id, 1)
        assert await ended(task) == 1


async def test_the_grace_begins_when_the_last_session_goes_and_ends_when_one_comes() -> None:
    site = EventSite(timeout=0, grace=0.02)
    first, second = site.hub.subscribe("ann"), site.hub.subscribe("ann")
    async with asking(site) as (task, _):
        first.close()
        assert (await asyncio.wait([task], timeout=0.06))[0] == set()
        second.close()
        third = site.hub.subscribe("ann")
        assert (await asyncio.wait([task], timeout=0.06))[0] == set()
        third.close()
        with pytest.raises(CallTimeout, match="no live connection"):
            await ended(task)


async def test_who_is_put_out_is_not_waited_for() -> None:
    site = EventSite(timeout=0, grace=0)
    site.hub.subscribe("ann")
    async with asking(site) as (task, _):
        site.hub.disconnect("ann")
        with pytest.raises(CallTimeout):
            await ended(task)


async def test_a_call_comes_again_after_a_reconnect_and_not_once_answered() -> None:
    site = EventSite()
    first = site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        await heard(first)
        first.close()
        second = site.hub.subscribe("ann", last_id=first.position)
        assert [one["call_id"] for one in await heard(second)] == [call.id]
        await site.calls.answer("ann", call.id, 1)
        await ended(task)
        assert not waiting(site.hub.subscribe("ann", last_id=first.position))


async def test_a_call_goes_to_its_session_alone() -> None:
    site = EventSite()
    own, other = site.hub.subscribe("ann"), site.hub.subscribe("ann")
    target = EventTarget("ann", "c1", "m1", own.opened.session_id)
    async with asking(site, target) as (task, call):
        assert waiting(own)
        assert not waiting(other)
        late = site.hub.subscribe("ann")
        assert not waiting(late)
        # Once that session is gone, the others are asked, and any of them may answer.
        own.close()
        assert [one["call_id"] for one in await heard(other)] == [call.id]
        assert [one["call_id"] for one in await heard(late)] == [call.id]
        await site.calls.answer("ann", call.id, 1)
        assert await ended(task) == 1


async def test_a_call_for_a_session_of_nobody_goes_to_all() -> None:
    site = EventSite()
    first, second = site.hub.subscribe("ann"), site.hub.subscribe("ann")
    chosen = site.hub.subscribe("ann", chat_id="other chat")
    async with asking(site):
        assert (waiting(first), waiting(second), waiting(chosen)) == (True, True, False)


async def test_a_caller_that_is_cancelled_takes_its_call_back() -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert site.calls.pending("ann") == []
        with pytest.raises(GatewayError) as caught:
            await site.calls.answer("ann", call.id, 1)
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_the_calls_of_a_stopped_answer_are_withdrawn_at_once() -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        site.calls.withdraw(EventTarget("ann", "c1", "another"))
        assert list(site.calls.pending("ann")) == [call]
        site.calls.withdraw(TARGET)
        assert list(site.calls.pending("ann")) == []
        with pytest.raises(asyncio.CancelledError):
            await ended(task)


async def test_a_caller_that_is_cancelled_as_the_failure_comes_leaves_nothing_behind() -> None:
    complaints: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
    site = EventSite()
    site.hub.subscribe("ann")
    async with asking(site) as (task, call):
        await site.calls.refuse("ann", call.id, "no")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    del task
    # A failure that nobody took is told when its future is thrown away.
    gc.collect()
    assert complaints == []


async def test_several_calls_wait_side_by_side() -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    async with asking(site) as (first, one), asking(site) as (second, two):
        assert [call.id for call in site.calls.pending("ann")] == [one.id, two.id]
        await site.calls.answer("ann", two.id, 2)
        assert await ended(second) == 2
        assert not first.done()
        await site.calls.answer("ann", one.id, 1)
        assert await ended(first) == 1


async def test_who_hears_everybody_sees_calls_but_is_not_waited_for() -> None:
    site = EventSite(grace=0.01)
    early = site.hub.subscribe(EVERYBODY)
    other = site.hub.subscribe(EVERYBODY, chat_id="c2")
    async with asking(site) as (task, call):
        late = site.hub.subscribe(EVERYBODY)
        for listener in (early, late):
            (payload,) = await heard(listener)
            assert (payload["user_id"], payload["call_id"]) == ("ann", call.id)
        assert not waiting(other)
        with pytest.raises(CallTimeout, match="no live connection"):
            await ended(task)


async def test_whose_call_it_is() -> None:
    site = EventSite()
    site.hub.subscribe("ann")
    site.hub.subscribe("bob")
    async with asking(site) as (task, call), asking(site, EventTarget("bob")) as (_, other):
        assert list(site.calls.every()) == [call, other]
        assert (site.calls.find_user(call.id), site.calls.find_user(other.id)) == ("ann", "bob")
        await site.calls.answer("ann", call.id, 1)
        await ended(task)
        assert list(site.calls.every()) == [other]
        assert site.calls.find_user(call.id) == "ann"
        assert site.calls.find_user("none") is None
