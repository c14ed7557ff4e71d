"""Room of one user: its subscribers, and the buffered frames for clients that reconnect."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gatewayd.events.records import SessionInfo


@dataclass(frozen=True, slots=True)
class EventLimits:
    """Limits of the queue of a subscriber, and of the replay buffer of a user: frames, bytes and seconds."""

    queue_frames: int = 1000
    queue_bytes: int = 8 * 1024 * 1024
    replay_frames: int = 1000
    replay_bytes: int = 1024 * 1024
    replay_seconds: float = 600.0


class BufferedFrame(NamedTuple):
    """A sent frame: its number, chat, bytes, time (monotonic seconds), `about` and common order."""

    number: int
    chat_id: str
    wire: bytes
    at: float
    about: str = ""
    order: tuple[int, int] | None = None


class Subscription:
    """One subscriber: a bounded queue of bytes that are ready to be sent.

    `opened` is the first message to the subscriber, `position` the id after which it starts. At `until`
    (epoch seconds) its credential expires and the subscriber is closed. `has_key` says that it used an API
    key. A subscriber whose queue is full is closed; its client reconnects with the id of the last frame that
    it got.
    """

    __slots__ = (
        "_left",
        "_limits",
        "_size",
        "_waiting",
        "_waker",
        "after",
        "chat_id",
        "has_key",
        "is_closed",
        "opened",
        "position",
        "touched",
        "until",
    )

    def __init__(
        self,
        opened: SessionInfo,
        position: str,
        chat_id: str | None,
        limits: EventLimits,
        left: "Callable[[Subscription], None]",
    ) -> None:
        self.opened = opened
        self.position = position
        self.chat_id = chat_id
        self.is_closed = False
        self.touched = 0.0
        self.until: int | None = None
        # Frames of other processes up to this order were replayed.
        self.after: tuple[int, int] | None = None
        self.has_key = False
        self._limits = limits
        self._left = left
        # A list, as an empty deque takes 600 bytes and most listeners have nothing waiting.
        self._waiting: list[bytes] = []
        self._size = 0
        self._waker: asyncio.Future[None] | None = None

    def wants_events_of(self, chat_id: str) -> bool:
        """Tell whether the listener wants the events of a chat."""
        return self.chat_id is None or self.chat_id == chat_id

    @property
    def is_idle(self) -> bool:
        """Whether the queue is empty."""
        return not self._waiting

    def push(self, wire: bytes) -> None:
        """Append bytes to the queue; close the subscriber if the queue is full."""
        if self.is_closed:
            return
        is_full = len(self._waiting) >= self._limits.queue_frames or (
            self._waiting and self._size + len(wire) > self._limits.queue_bytes
        )
        if is_full:
            self.close()
            return
        self._waiting.append(wire)
        self._size += len(wire)
        self._wake()

    async def next(self) -> bytes:
        """Wait for and return the whole queue; b"" once the subscriber is closed. For one reader."""
        while not self._waiting and not self.is_closed:
            self._waker = asyncio.get_running_loop().create_future()
            try:
                await self._waker
            finally:
                self._waker = None
        ready = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        return ready

    def close(self) -> None:
        """Leave the room and discard the queue. Idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        self._waiting.clear()
        self._left(self)
        self._wake()

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)


@dataclass(slots=True)
class Room:
    """The subscribers of one user, and the replay buffer of its last frames.

    `floor` is the number of the newest lost frame: a subscriber that resumes before it has a gap. A frame
    that a newer one with the same `about` replaces is not lost.
    """

    limits: EventLimits
    floor: int
    listeners: dict[str, Subscription] = field(default_factory=dict)
    frames: deque[BufferedFrame] = field(default_factory=deque)
    size: int = 0
    empty_since: float = 0.0

    def keep(self, frame: BufferedFrame) -> None:
        """Buffer a frame in place of an older one with the same `about`; drop the oldest over the limits."""
        if frame.about:
            self._replace(frame.about)
        self.frames.append(frame)
        self.size += len(frame.wire)
        while self.frames and (
            len(self.frames) > self.limits.replay_frames or self.size > self.limits.replay_bytes
        ):
            self._drop()

    def prune(self, now: float) -> None:
        """Drop expired frames."""
        while self.frames and self.frames[0].at < now - self.limits.replay_seconds:
            self._drop()

    def is_expired_room(self, now: float) -> bool:
        """Tell whether the room has had no subscriber for `replay_seconds`."""
        return not self.listeners and self.empty_since < now - self.limits.replay_seconds

    def _replace(self, about: str) -> None:
        for older in reversed(self.frames):
            if older.about == about:
                self.frames.remove(older)
                self.size -= len(older.wire)
                return

    def _drop(self) -> None:
        dropped = self.frames.popleft()
        self.size -= len(dropped.wire)
        self.floor = dropped.number
