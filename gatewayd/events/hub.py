"""Delivery of events to subscribers: a room per user, bounded queues and a bounded replay.

The hub runs on one event loop. It encodes a frame once for all subscribers.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

import orjson

from gatewayd import ids
from gatewayd.events.interfaces import Bus
from gatewayd.events.json_values import to_json_bytes
from gatewayd.events.records import EventFrame, FramePlace, Payload, SessionInfo
from gatewayd.events.rooms import BufferedFrame, EventLimits, Room, Subscription

EVERYBODY: Final = "*"
"""Pseudo user id: its subscribers get the events of all users and are not subscribers of any user."""

BEAT_FRAME: Final = b": keep-alive\n\n"
BEAT_SECONDS: Final = 15.0
TICK_SECONDS: Final = 1.0
LISTENERS_PER_BATCH: Final = 100
"""Number of subscribers that get a keep-alive before the loop yields."""

MAX_NUMBER_DIGITS: Final = 18


class ListenerObserver(Protocol):
    """Observer of subscribers that join and leave."""

    def joined(self, listener: Subscription) -> None:
        """Handle a new subscriber."""
        ...

    def left(self, listener: Subscription) -> None:
        """Handle a subscriber that has left."""
        ...


class Hub:
    """Sends frames to the subscribers of a user, and replays missed frames after a reconnect.

    Spawn `run` once: it keeps the connections of all subscribers alive.
    """

    def __init__(
        self,
        bus: Bus,
        limits: EventLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        today: ids.Clock = ids.now,
    ) -> None:
        self._bus = bus
        self._limits = limits or EventLimits()
        self._clock = clock
        self._today = today
        self._boot = ids.new_secret(4)
        self._number = 0
        # Number of the newest frame that was not buffered because its user had no room.
        self._last_unbuffered = 0
        self._rooms: dict[str, Room] = {}
        self._watchers: list[ListenerObserver] = []
        self._is_open = True
        bus.subscribe(self._receive)
        bus.watch_gaps(self._lose)

    def watch(self, watcher: ListenerObserver) -> None:
        """Notify `watcher` of every subscriber that joins or leaves from now on."""
        self._watchers.append(watcher)

    @property
    def published(self) -> int:
        """Number of frames since the start."""
        return self._number

    @property
    def is_whole(self) -> bool:
        """Whether events of other nodes arrive here just now; those of a daemon alone always do."""
        return self._bus.is_whole

    @property
    def audience(self) -> tuple[int, int]:
        """Number of rooms and of subscribers."""
        return len(self._rooms), sum(len(room.listeners) for room in self._rooms.values())

    async def publish(self, user_id: str, chat_id: str, payload: Payload, about: str = "") -> None:
        """Send an event to all subscribers of a user, in every process; each hub has its own numbering.

        The room buffers it for subscribers of the last ten minutes that reconnect. It replaces an older
        buffered event with the same `about`.
        """
        await self._bus.publish(user_id, EventFrame(chat_id, to_json_bytes(payload), about))

    def send(self, listeners: Sequence[Subscription], payload: Payload) -> None:
        """Send a frame to these subscribers only; it has no id and is not buffered."""
        wire = b"data: %b\n\n" % to_json_bytes(payload)
        for listener in listeners:
            listener.push(wire)

    def subscribe(
        self,
        user_id: str,
        *,
        last_id: str | None = None,
        chat_id: str | None = None,
        session_id: str | None = None,
    ) -> Subscription:
        """Return a new subscriber of a user, of one chat or of all, which resumes after the frame `last_id`.

        Its session has a new id unless `session_id` is given, which must be unique. `opened.gap` says that
        later frames are lost: too old, or from before a restart; those still buffered are replayed. The
        caller closes the subscriber.

        The frames of EVERYBODY have `user_id` too.
        """
        now = self._clock()
        room = self._room(user_id)
        room.prune(now)
        seen = None if last_id is None else self._seen(last_id)
        is_gap = last_id is not None and (seen is None or seen < room.floor)
        start = self._number if last_id is None else max(seen or 0, room.floor)
        opened = SessionInfo(
            session_id or ids.new_id(), user_id, last_id if seen is not None else None, is_gap
        )
        position = None if last_id is not None else self._bus.position(user_id)
        listener = Subscription(
            opened, position or f"{self._boot}-{start}", chat_id, self._limits, self._leave
        )
        missed = [
            kept.wire
            for kept in room.frames
            if kept.number > start and listener.wants_events_of(kept.chat_id)
        ]
        return self._join(room, listener, missed)

    async def resume(self, user_id: str, *, last_id: str | None, chat_id: str | None = None) -> Subscription:
        """Return a new subscriber as `subscribe` does, which may resume after a frame of another process."""
        if last_id is None or not self._bus.is_shared or self._seen(last_id) is not None:
            return self.subscribe(user_id, last_id=last_id, chat_id=chat_id)
        # From now on frames are buffered, so that none passes while the missed ones are read.
        self._room(user_id).empty_since = self._clock()
        missed = await self._bus.missed(user_id, last_id)
        room = self._room(user_id)
        opened = SessionInfo(ids.new_id(), user_id, None if missed.is_gap else last_id, missed.is_gap)
        newest = missed.frames[-1][0] if missed.frames else None
        position = newest.id if newest else None if missed.is_gap else last_id
        here = self._bus.position(user_id) or f"{self._boot}-{self._number}"
        listener = Subscription(opened, position or here, chat_id, self._limits, self._leave)
        listener.after = newest.order if newest else order_in(last_id) if not missed.is_gap else None
        replayed = [
            _wire(place.id, frame.payload)
            for place, frame in missed.frames
            if listener.wants_events_of(frame.chat_id)
        ]
        replayed += [
            kept.wire
            for kept in room.frames
            if listener.wants_events_of(kept.chat_id) and _is_later(kept.order, listener.after)
        ]
        return self._join(room, listener, replayed)

    def _join(self, room: Room, listener: Subscription, missed: Sequence[bytes]) -> Subscription:
        opened = listener.opened
        listener.touched = self._clock()
        if missed:
            # In one piece: the replay may have more frames than the queue allows.
            listener.push(b"".join(missed))
        if not self._is_open:
            listener.close()
            return listener
        room.listeners[opened.session_id] = listener
        for watcher in self._watchers:
            watcher.joined(listener)
        return listener

    async def settled_position(self, user_id: str) -> str:
        """Return the id of the newest frame of a user once all that were published here have ids.

        A subscriber may resume after it.
        """
        await self._bus.settle()
        return self._bus.position(user_id) or f"{self._boot}-{self._number}"

    def buffered(self, user_id: str, abouts: Collection[str]) -> Mapping[str, Payload]:
        """Return the payloads of the buffered events of a user that have one of these `about`, by it."""
        room = self._rooms.get(user_id)
        frames = () if room is None else room.frames
        return {frame.about: _payload(frame.wire) for frame in frames if frame.about in abouts}

    def listeners(self, user_id: str, chat_id: str | None = None) -> Sequence[Subscription]:
        """Return the subscribers of a user for a chat, or all, oldest first."""
        room = self._rooms.get(user_id)
        found = () if room is None else room.listeners.values()
        return [one for one in found if chat_id is None or one.wants_events_of(chat_id)]

    def is_live(self, user_id: str, chat_id: str | None = None) -> bool:
        """Tell whether a user has a subscriber, for the chat if one is named."""
        return bool(self.listeners(user_id, chat_id))

    def disconnect(self, user_id: str | None = None, *, only_keys: bool = False) -> None:
        """Close the subscribers of a user, or of all users; with `only_keys` those with an API key."""
        rooms = [self._rooms[user_id]] if user_id in self._rooms else []
        for room in self._rooms.values() if user_id is None else rooms:
            for listener in list(room.listeners.values()):
                if listener.has_key or not only_keys:
                    listener.close()

    def close(self) -> None:
        """Close all subscribers, and each later one on arrival: the gateway stops."""
        self._is_open = False
        self.disconnect()

    async def run(self) -> None:
        """Send keep-alives and drop expired rooms and frames, until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self.tick()

    async def tick(self) -> None:
        """Send a comment to every subscriber that got nothing for 15 s; drop expired rooms and frames."""
        now = self._clock()
        self._end_expired()
        for user_id, room in list(self._rooms.items()):
            room.prune(now)
            if room.is_expired_room(now):
                del self._rooms[user_id]
                if user_id == EVERYBODY:
                    continue
                self._last_unbuffered = max(
                    self._last_unbuffered, room.frames[-1].number if room.frames else room.floor
                )
        due = now - BEAT_SECONDS + TICK_SECONDS
        for count, listener in enumerate(list(self._silent(due)), 1):
            listener.push(BEAT_FRAME)
            listener.touched = now
            if count % LISTENERS_PER_BATCH == 0:
                await asyncio.sleep(0)

    def _room(self, user_id: str) -> Room:
        room = self._rooms.get(user_id)
        if room is None:
            # Frames that rooms of users buffered are not buffered for EVERYBODY.
            floor = self._number if user_id == EVERYBODY else self._last_unbuffered
            room = self._rooms[user_id] = Room(self._limits, floor)
        return room

    def _end_expired(self) -> None:
        today = self._today()
        for room in self._rooms.values():
            for listener in list(room.listeners.values()):
                if listener.until is not None and listener.until <= today:
                    listener.close()

    def _silent(self, due: float) -> Iterator[Subscription]:
        for room in self._rooms.values():
            for listener in room.listeners.values():
                # A subscriber with a frame in its queue needs no keep-alive.
                if listener.touched <= due and listener.is_idle:
                    yield listener

    def _lose(self, user_id: str | None) -> None:
        """Let the subscribers of a user, or of all, come again: they have lost frames."""
        for each in list(self._rooms) if user_id is None else [user_id]:
            if each in self._rooms:
                self._rooms[each].floor = self._number
        self._last_unbuffered = self._number
        self.disconnect(user_id)

    def _receive(self, user_id: str, frame: EventFrame, place: FramePlace | None = None) -> None:
        self._number += 1
        if EVERYBODY in self._rooms:
            # A payload is an object with at least one member.
            payload = b'{"user_id":%b,%b' % (to_json_bytes(user_id), frame.payload[1:])
            self._deliver(self._rooms[EVERYBODY], frame, payload, None)
        if user_id in self._rooms:
            self._deliver(self._rooms[user_id], frame, frame.payload, place)
        else:
            self._last_unbuffered = self._number

    def _deliver(self, room: Room, frame: EventFrame, payload: bytes, place: FramePlace | None) -> None:
        now = self._clock()
        wire = _wire(f"{self._boot}-{self._number}" if place is None else place.id, payload)
        order = None if place is None else place.order
        room.keep(BufferedFrame(self._number, frame.chat_id, wire, now, frame.about, order))
        for listener in list(room.listeners.values()):
            if listener.wants_events_of(frame.chat_id) and _is_later(order, listener.after):
                listener.push(wire)
                listener.touched = now

    def _seen(self, last_id: str) -> int | None:
        """Return the number in a frame id of this hub, None for an older or foreign id."""
        boot, _, digits = last_id.rpartition("-")
        if (
            boot != self._boot
            or not (digits.isascii() and digits.isdigit())
            or len(digits) > MAX_NUMBER_DIGITS
        ):
            return None
        number = int(digits)
        return number if number <= self._number else None

    def _leave(self, listener: Subscription) -> None:
        room = self._rooms.get(listener.opened.user_id)
        if room is None or room.listeners.pop(listener.opened.session_id, None) is None:
            return
        room.empty_since = self._clock()
        for watcher in self._watchers:
            watcher.left(listener)


def order_in(frame_id: str) -> tuple[int, int]:
    """Return the order in the id of a frame that has a place."""
    _, milliseconds, number = frame_id.split("-")
    return int(milliseconds), int(number)


def _is_later(order: tuple[int, int] | None, after: tuple[int, int] | None) -> bool:
    return order is None or after is None or order > after


def _wire(frame_id: str, payload: bytes) -> bytes:
    return b"id: %b\ndata: %b\n\n" % (frame_id.encode(), payload)


def _payload(wire: bytes) -> Payload:
    payload: Payload = orjson.loads(wire[wire.index(b"data: ") + len(b"data: ") :])
    return payload
