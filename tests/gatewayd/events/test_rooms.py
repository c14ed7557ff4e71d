"""Tests for gatewayd.events.rooms."""

import asyncio

import pytest

from gatewayd.events.records import SessionInfo
from gatewayd.events.rooms import BufferedFrame, EventLimits, Room, Subscription
from tests.fakes.storage.events import SOON

OPENED = SessionInfo("s1", "ann", None, False)


class Gone:
    """Remembers who left."""

    def __init__(self) -> None:
        self.listeners: list[Subscription] = []


def make(
    gone: Gone | None = None, limits: EventLimits | None = None, chat_id: str | None = None
) -> Subscription:
    left = (gone or Gone()).listeners.append
    return Subscription(OPENED, "b-0", chat_id, limits or EventLimits(), left)


async def test_what_waits_comes_in_one_piece() -> None:
    listener = make()
    listener.push(b"a")
    listener.push(b"b")
    assert not listener.is_idle
    assert await listener.next() == b"ab"
    assert listener.is_idle


async def test_a_reader_is_woken() -> None:
    listener = make()
    reading = asyncio.ensure_future(listener.next())
    await asyncio.sleep(0)
    assert not reading.done()
    listener.push(b"a")
    listener.push(b"b")
    assert await asyncio.wait_for(reading, SOON) == b"ab"


async def test_a_reader_that_is_cancelled_loses_nothing() -> None:
    listener = make()
    reading = asyncio.ensure_future(listener.next())
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    listener.push(b"a")
    assert await listener.next() == b"a"


async def test_closing_ends_the_reader_and_throws_away_what_waits() -> None:
    gone = Gone()
    listener = make(gone)
    reading = asyncio.ensure_future(listener.next())
    await asyncio.sleep(0)
    listener.close()
    listener.close()
    assert await asyncio.wait_for(reading, SOON) == b""
    assert gone.listeners == [listener]
    full = make()
    full.push(b"a")
    full.close()
    full.push(b"b")
    assert await full.next() == b""
    assert full.is_closed


@pytest.mark.parametrize(
    ("limits", "pushed", "is_closed"),
    [
        (EventLimits(queue_frames=2), [b"a", b"b"], False),
        (EventLimits(queue_frames=2), [b"a", b"b", b"c"], True),
        (EventLimits(queue_bytes=4), [b"ab", b"cd"], False),
        (EventLimits(queue_bytes=4), [b"ab", b"cde"], True),
        # One large frame passes: to refuse it would be for ever.
        (EventLimits(queue_bytes=4), [b"abcdef"], False),
    ],
)
async def test_a_slow_listener_is_closed(limits: EventLimits, pushed: list[bytes], is_closed: bool) -> None:
    gone = Gone()
    listener = make(gone, limits)
    for data in pushed:
        listener.push(data)
    assert listener.is_closed is is_closed
    assert len(gone.listeners) == is_closed
    assert await listener.next() == (b"" if is_closed else b"".join(pushed))


async def test_a_listener_that_takes_what_comes_is_never_full() -> None:
    listener = make(limits=EventLimits(queue_frames=1, queue_bytes=2))
    for _ in range(10):
        listener.push(b"ab")
        assert await listener.next() == b"ab"


def test_which_chats_are_heard() -> None:
    assert make().wants_events_of("c1")
    assert make().wants_events_of("")
    assert make(chat_id="c1").wants_events_of("c1")
    assert not make(chat_id="c1").wants_events_of("c2")
    assert not make(chat_id="c1").wants_events_of("")


def filled(limits: EventLimits, count: int) -> Room:
    room = Room(limits, floor=0)
    for number in range(1, count + 1):
        room.keep(BufferedFrame(number, "c1", b"xx", float(number)))
    return room


@pytest.mark.parametrize(
    ("limits", "kept", "floor"),
    [
        (EventLimits(), [1, 2, 3, 4], 0),
        (EventLimits(replay_frames=2), [3, 4], 2),
        (EventLimits(replay_bytes=5), [3, 4], 2),
        (EventLimits(replay_bytes=1), [], 4),
        (EventLimits(replay_frames=0), [], 4),
    ],
)
def test_what_is_kept_is_bounded(limits: EventLimits, kept: list[int], floor: int) -> None:
    room = filled(limits, 4)
    assert [frame.number for frame in room.frames] == kept
    assert (room.floor, room.size) == (floor, 2 * len(kept))


def test_what_is_too_old_is_dropped() -> None:
    room = filled(EventLimits(replay_seconds=10), 4)
    room.prune(13.0)
    assert ([frame.number for frame in room.frames], room.floor, room.size) == ([3, 4], 2, 4)


def test_a_room_is_forgotten_once_nobody_was_there_for_long() -> None:
    room = Room(EventLimits(replay_seconds=10), floor=0, empty_since=5.0)
    assert not room.is_expired_room(15.0)
    assert room.is_expired_room(15.5)
    room.listeners["s1"] = make()
    assert not room.is_expired_room(15.5)


def test_of_what_is_about_the_same_the_newest_is_kept_and_nothing_is_lost() -> None:
    room = Room(EventLimits(replay_frames=3), floor=0)
    for number, about in enumerate(["a", "", "b", "a", "a", "b"], 1):
        room.keep(BufferedFrame(number, "c1", b"xx", float(number), about))
    assert [frame.number for frame in room.frames] == [2, 5, 6]
    assert (room.floor, room.size) == (0, 6)
