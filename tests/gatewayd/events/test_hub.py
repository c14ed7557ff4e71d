"""Tests for gatewayd.events.hub."""

import asyncio
from typing import Any

import pytest

from gatewayd.bus.memory import MemoryBus
from gatewayd.events.hub import BEAT_FRAME, BEAT_SECONDS, EVERYBODY, LISTENERS_PER_BATCH, TICK_SECONDS, Hub
from gatewayd.events.rooms import EventLimits, Subscription
from tests.fakes.storage.events import SOON, Clock, fields, heard, ids_of, payloads, waiting


class Site:
    """A hub under a clock that a test sets."""

    def __init__(self, **limits: Any) -> None:
        self.clock = Clock()
        self.today = Clock(0)
        self.hub = Hub(
            MemoryBus(), EventLimits(**limits), clock=self.clock, today=lambda: int(self.today.now)
        )

    async def send(self, *numbers: int, user_id: str = "ann", chat_id: str = "c1") -> None:
        for number in numbers:
            await self.hub.publish(user_id, chat_id, {"n": number})

    async def seen(self, *numbers: int) -> str:
        """Return the id of the last of these frames, as a client that left afterwards knows it."""
        listener = self.hub.subscribe("ann")
        await self.send(*numbers)
        last = ids_of(await listener.next())[-1]
        listener.close()
        return last


async def numbers(listener: Subscription) -> list[int]:
    return [one["n"] for one in await heard(listener)]


async def test_every_listener_of_a_user_hears_and_no_other() -> None:
    site = Site()
    first, second = site.hub.subscribe("ann"), site.hub.subscribe("ann")
    other = site.hub.subscribe("bob")
    await site.send(1, 2)
    assert await numbers(first) == await numbers(second) == [1, 2]
    assert not waiting(other)
    assert first.opened.session_id != second.opened.session_id


async def test_a_frame_has_an_id_and_is_made_once() -> None:
    site = Site()
    first, second = site.hub.subscribe("ann"), site.hub.subscribe("ann")
    await site.send(1)
    one, two = await first.next(), await second.next()
    assert one is two
    (lines,) = fields(one)
    assert lines.keys() == {"id", "data"}
    boot, _, number = lines["id"].rpartition("-")
    assert (boot, number) == (first.position.rpartition("-")[0], "1")


async def test_one_chat_can_be_chosen() -> None:
    site = Site()
    listener = site.hub.subscribe("ann", chat_id="c1")
    await site.send(1, chat_id="c2")
    await site.send(2, chat_id="")
    await site.send(3, chat_id="c1")
    assert await numbers(listener) == [3]
    assert site.hub.is_live("ann", "c1")
    assert not site.hub.is_live("ann", "c2")
    assert not site.hub.is_live("bob")


async def test_who_comes_first_hears_nothing_of_before() -> None:
    site = Site()
    await site.seen(1, 2)
    listener = site.hub.subscribe("ann")
    assert not waiting(listener)
    assert (listener.opened.resume_from, listener.opened.gap) == (None, False)


async def test_who_comes_back_goes_on_where_it_was() -> None:
    site = Site()
    last = await site.seen(1, 2)
    await site.send(3, 4)
    await site.send(5, chat_id="c2")
    listener = site.hub.subscribe("ann", last_id=last)
    assert (listener.opened.resume_from, listener.opened.gap, listener.position) == (last, False, last)
    assert await site.hub.settled_position("ann") == last.replace("-2", "-5")
    frames = await listener.next()
    assert [one["n"] for one in payloads(frames)] == [3, 4, 5]
    await site.send(6)
    assert await numbers(listener) == [6]
    chosen = site.hub.subscribe("ann", last_id=last, chat_id="c2")
    assert await numbers(chosen) == [5]


async def test_who_got_nothing_goes_on_from_its_beginning() -> None:
    site = Site()
    await site.send(1, user_id="bob")
    listener = site.hub.subscribe("ann")
    listener.close()
    await site.send(2)
    again = site.hub.subscribe("ann", last_id=listener.position)
    assert not again.opened.gap
    assert await numbers(again) == [2]


async def test_who_missed_nothing_has_no_gap() -> None:
    site = Site()
    last = await site.seen(1)
    await site.send(2, 3, user_id="bob")
    listener = site.hub.subscribe("ann", last_id=last)
    assert not listener.opened.gap
    assert not waiting(listener)


async def test_a_gap_is_told_and_what_is_kept_still_comes() -> None:
    site = Site(replay_frames=2)
    last = await site.seen(1)
    await site.send(2, 3)
    assert not site.hub.subscribe("ann", last_id=last).opened.gap
    await site.send(4)
    listener = site.hub.subscribe("ann", last_id=last)
    assert (listener.opened.resume_from, listener.opened.gap) == (last, True)
    assert await numbers(listener) == [3, 4]


async def test_frames_that_are_too_old_are_a_gap() -> None:
    site = Site()
    last = await site.seen(1)
    await site.send(2)
    site.clock.now += 601
    listener = site.hub.subscribe("ann", last_id=last)
    assert listener.opened.gap
    assert not waiting(listener)


@pytest.mark.parametrize(
    "last",
    [
        "x",
        "-",
        "",
        "other-1",
        "{boot}-99",
        "{boot}-x",
        "{boot}-1x",
        "{boot}--1",
        "{boot}-²",
        "{boot}-" + "9" * 5000,
    ],
)
async def test_an_id_of_nobody_is_a_gap(last: str) -> None:
    site = Site()
    boot = (await site.seen(1)).rpartition("-")[0]
    listener = site.hub.subscribe("ann", last_id=last.replace("{boot}", boot))
    assert (listener.opened.resume_from, listener.opened.gap) == (None, True)


async def test_what_is_kept_may_be_more_than_what_may_wait() -> None:
    site = Site(queue_frames=10, replay_frames=100)
    last = await site.seen(0)
    await site.send(*range(1, 51))
    listener = site.hub.subscribe("ann", last_id=last)
    assert await numbers(listener) == list(range(1, 51))


async def test_a_slow_listener_is_closed_and_comes_back_without_a_gap() -> None:
    site = Site(queue_frames=3)
    slow, quick = site.hub.subscribe("ann"), site.hub.subscribe("ann")
    await site.send(1)
    last = ids_of(await slow.next())[-1]
    for number in range(2, 7):
        await site.send(number)
        assert await heard(quick)
    assert slow.is_closed
    assert await slow.next() == b""
    assert site.hub.listeners("ann") == [quick]
    again = site.hub.subscribe("ann", last_id=last)
    assert not again.opened.gap
    assert await numbers(again) == [2, 3, 4, 5, 6]


async def test_users_without_listeners_are_forgotten() -> None:
    site = Site()
    last = await site.seen(1)
    await site.send(2)
    site.clock.now += 599
    await site.hub.tick()
    # Kept for ten minutes ...
    assert not site.hub.subscribe("bob", last_id=None).opened.gap
    await site.send(3)
    site.clock.now += 2
    await site.hub.tick()
    listener = site.hub.subscribe("ann", last_id=last)
    # ... and no longer, nor is what came afterwards.
    assert listener.opened.gap
    assert not waiting(listener)


async def test_a_forgotten_user_who_missed_nothing_has_no_gap() -> None:
    site = Site()
    last = await site.seen(1)
    site.clock.now += 601
    await site.hub.tick()
    assert not site.hub.subscribe("ann", last_id=last).opened.gap


async def test_frames_for_users_who_never_listened_are_not_kept() -> None:
    site = Site()
    position = site.hub.subscribe("bob").position
    await site.send(1)
    listener = site.hub.subscribe("ann", last_id=position)
    assert listener.opened.gap
    assert not waiting(listener)


async def test_silent_listeners_get_a_beat_and_others_none() -> None:
    site = Site()
    silent, busy, full = [site.hub.subscribe(name) for name in ("ann", "bob", "cay")]
    await site.send(1, user_id="cay")
    site.clock.now += BEAT_SECONDS - TICK_SECONDS - 0.5
    await site.hub.tick()
    assert not waiting(silent)
    await site.send(1, user_id="bob")
    site.clock.now += TICK_SECONDS
    await site.hub.tick()
    assert await silent.next() == BEAT_FRAME
    assert (await numbers(busy), await numbers(full)) == ([1], [1])
    await site.hub.tick()
    assert not waiting(silent)
    site.clock.now += BEAT_SECONDS
    await site.hub.tick()
    assert await silent.next() == BEAT_FRAME


async def test_a_beat_of_many_lets_others_run() -> None:
    site = Site()
    for number in range(LISTENERS_PER_BATCH * 3):
        site.hub.subscribe(f"u{number}")
    site.clock.now += BEAT_SECONDS
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    await site.hub.tick()
    counting.cancel()
    await asyncio.wait([counting])
    assert turns >= 3


async def test_the_ticker_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayd.events.hub.TICK_SECONDS", 0.001)
    site = Site()
    listener = site.hub.subscribe("ann")
    site.clock.now += BEAT_SECONDS
    running = asyncio.ensure_future(site.hub.run())
    assert await asyncio.wait_for(listener.next(), SOON) == BEAT_FRAME
    running.cancel()
    await asyncio.wait([running])


async def test_a_listener_ends_with_its_credential() -> None:
    site = Site()
    first, second = site.hub.subscribe("ann"), site.hub.subscribe("ann")
    first.until = 100
    site.today.now = 99
    await site.hub.tick()
    assert not first.is_closed
    site.today.now = 100
    await site.hub.tick()
    assert first.is_closed
    assert not second.is_closed


async def test_putting_out() -> None:
    site = Site()
    first, second, other = [site.hub.subscribe(name) for name in ("ann", "ann", "bob")]
    reading = asyncio.ensure_future(first.next())
    await site.send(1)
    site.hub.disconnect("nobody")
    site.hub.disconnect("ann")
    assert (first.is_closed, second.is_closed, other.is_closed) == (True, True, False)
    assert await asyncio.wait_for(reading, SOON) == b""
    assert not site.hub.is_live("ann")
    site.hub.disconnect(None)
    assert other.is_closed


async def test_putting_out_those_who_came_by_key() -> None:
    site = Site()
    by_session, by_key, other = [site.hub.subscribe(name) for name in ("ann", "ann", "bob")]
    by_key.has_key = other.has_key = True
    site.hub.disconnect("ann", only_keys=True)
    assert (by_session.is_closed, by_key.is_closed, other.is_closed) == (False, True, False)
    site.hub.disconnect(only_keys=True)
    assert (by_session.is_closed, other.is_closed) == (False, True)


async def test_a_hub_that_closes_takes_no_listeners() -> None:
    site = Site()
    first = site.hub.subscribe("ann")
    site.hub.close()
    late = site.hub.subscribe("ann")
    assert (first.is_closed, late.is_closed) == (True, True)
    assert await late.next() == b""
    assert not site.hub.is_live("ann")


async def test_who_comes_and_goes_is_told() -> None:
    site = Site(queue_frames=1)
    told: list[tuple[str, Subscription]] = []

    class Watcher:
        def joined(self, listener: Subscription) -> None:
            told.append(("joined", listener))
            assert site.hub.is_live("ann")

        def left(self, listener: Subscription) -> None:
            told.append(("left", listener))
            assert not site.hub.is_live("ann")

    site.hub.watch(Watcher())
    first = site.hub.subscribe("ann")
    first.close()
    first.close()
    slow = site.hub.subscribe("ann")
    await site.send(1, 2)
    assert told == [("joined", first), ("left", first), ("joined", slow), ("left", slow)]


async def test_what_is_told_to_some_has_no_id_and_is_not_kept() -> None:
    site = Site()
    first, second = site.hub.subscribe("ann"), site.hub.subscribe("ann")
    site.hub.send([first], {"n": 1})
    assert fields(await first.next()) == [{"data": '{"n":1}'}]
    assert not waiting(second)
    assert not waiting(site.hub.subscribe("ann", last_id=first.position))


async def test_line_ends_of_every_kind_do_not_break_a_frame() -> None:
    site = Site()
    listener = site.hub.subscribe("ann")
    text = "a\nb\rc\r\nd\u2028e\u2029f\x85g\x0bh\x1ci"
    await site.hub.publish("ann", "c1", {"text": text})
    frame = await listener.next()
    assert payloads(frame) == [{"text": text}]
    assert len(frame.decode().splitlines()) == 3
    assert b"\r" not in frame


async def test_who_hears_everybody_is_told_who_it_was() -> None:
    site = Site()
    everybody = site.hub.subscribe(EVERYBODY)
    chosen = site.hub.subscribe(EVERYBODY, chat_id="c2")
    ann = site.hub.subscribe("ann")
    await site.send(1)
    await site.send(2, user_id='b"b', chat_id="c2")
    frames = await everybody.next()
    assert payloads(frames) == [{"user_id": "ann", "n": 1}, {"user_id": 'b"b', "n": 2}]
    own = await ann.next()
    assert (payloads(own), ids_of(own)) == ([{"n": 1}], ids_of(frames)[:1])
    assert await heard(chosen) == [{"user_id": 'b"b', "n": 2}]


async def test_who_hears_everybody_is_nobodys_listener() -> None:
    site = Site()
    site.hub.subscribe(EVERYBODY)
    await site.send(1)
    assert not site.hub.is_live("ann")
    # Nothing was kept for who never listened.
    last = f"{site.hub.subscribe('ann').position.rpartition('-')[0]}-0"
    assert site.hub.subscribe("ann", last_id=last).opened.gap


async def test_who_hears_everybody_goes_on_where_it_was() -> None:
    site = Site()
    await site.send(1)
    first = site.hub.subscribe(EVERYBODY)
    await site.send(2)
    await site.send(3, user_id="bob")
    last = ids_of(await first.next())[0]
    first.close()
    await site.send(4, user_id="eve")
    again = site.hub.subscribe(EVERYBODY, last_id=last)
    assert (again.opened.gap, await numbers(again)) == (False, [3, 4])
    # What came before anybody heard all of them was not kept.
    assert site.hub.subscribe(EVERYBODY, last_id=f"{last.rpartition('-')[0]}-0").opened.gap


async def test_forgetting_who_heard_everybody_loses_nothing_of_the_users() -> None:
    site = Site()
    site.hub.subscribe(EVERYBODY).close()
    ann = site.hub.subscribe("ann")
    await site.send(1, user_id="ann")
    last = ids_of(await ann.next())[0]
    ann.close()
    site.hub.subscribe("bob")
    await site.send(2, user_id="bob")
    site.clock.now += site.hub._limits.replay_seconds + 1
    await site.hub.tick()
    assert not site.hub.subscribe("ann", last_id=last).opened.gap
