"""One stream while it runs: its newest frames in memory, its readers, and its end."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gatewayd.errors import GatewayError
from gatewayd.resumption.frames import FrameNumbering
from gatewayd.resumption.records import FrameBatch, StreamRecord, StreamState

MAX_PENDING_BYTES: Final = 64 * 1024
"""Unwritten bytes of a stream, over which its answer waits for the database."""

MAX_KEPT_BYTES: Final = 32 * 1024
"""Written bytes of a stream that stay in memory while somebody reads it."""

MAX_STREAM_BYTES: Final = 32 * 1024 * 1024
"""Maximum size of a stream."""


@dataclass(frozen=True, slots=True)
class _Frame:
    number: int
    data: bytes


class StreamRecording:
    """A stream with its frames; the producer adds them, readers take them, the writer stores them.

    `begin` announces the head of the reply. A stream that fails before it has no frames and is never stored.
    """

    def __init__(self, record: StreamRecord, now: float, *, is_kept: bool = False) -> None:
        self._record = record
        self.is_kept = is_kept
        """Whether the answer goes on while nobody reads it."""
        self._numbering = FrameNumbering()
        self._frames: deque[_Frame] = deque()
        self._memory = 0
        self._pending = 0
        self._stored = 0
        self._size = 0
        self._changed = asyncio.Event()
        self._begun = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._written_state: StreamState | None = None
        self.task_id = ""
        self.failure: GatewayError | None = None
        """Why the stream failed before it began."""
        self.ending: GatewayError | None = None
        """Why somebody stops the stream, None while nobody does."""
        self.is_discarded = False
        """Whether the stream is no longer stored, as its account was removed."""
        self.readers = 0
        self.unread_since = now

    @property
    def record(self) -> StreamRecord:
        """The stream as it is now."""
        return replace(self._record, last=self._numbering.last, size=self._size)

    @property
    def id(self) -> str:
        """The id of the stream."""
        return self._record.id

    @property
    def user_id(self) -> str:
        """The user who asked."""
        return self._record.user_id

    @property
    def has_begun(self) -> bool:
        """Whether the head is known."""
        return self._begun.is_set() and self.failure is None

    @property
    def is_over(self) -> bool:
        """Whether no frame follows."""
        return self._record.state is not StreamState.RUNNING

    @property
    def is_full(self) -> bool:
        """Whether the producer has to wait for `room`."""
        return self._pending > MAX_PENDING_BYTES

    @property
    def is_too_large(self) -> bool:
        """Whether the stream is over its size."""
        return self._size > MAX_STREAM_BYTES

    @property
    def memory(self) -> int:
        """Bytes of frames in memory."""
        return self._memory

    def begin(self, headers: Mapping[str, str]) -> None:
        """Announce the head of the reply."""
        self._record = replace(self._record, headers=dict(headers))
        self._begun.set()

    def refuse(self, failure: GatewayError) -> None:
        """End a stream that has not begun."""
        self.failure = failure
        self._record = replace(self._record, state=StreamState.BROKEN)
        self._begun.set()
        self._wake()

    def add(self, data: bytes) -> None:
        """Add the bytes of whole frames."""
        self._put(self._numbering.feed(data))
        self._wake()

    def finish(self, state: StreamState, data: bytes, at: int) -> None:
        """End the stream with its last frames; a second call has no effect."""
        if self.is_over:
            return
        # An incomplete frame of a broken answer is no frame.
        self._put(self._numbering.finish(is_complete=state is StreamState.COMPLETE))
        self._put(self._numbering.feed(data))
        self._record = replace(self._record, state=state, ended_at=at)
        self._begun.set()
        self._wake()

    async def begun(self) -> None:
        """Wait for the head, or for the failure before it."""
        await self._begun.wait()

    async def room(self) -> None:
        """Wait until the writer has stored enough."""
        while self.is_full:
            self._has_room.clear()
            await self._has_room.wait()

    async def more(self, after: int) -> None:
        """Wait for a frame after a number, or for the end."""
        while self._numbering.last <= after and not self.is_over:
            await self._changed.wait()

    def take(self, after: int) -> bytes | None:
        """Return the frames in memory after a number, joined; None if older ones are only in the database."""
        if self._frames and self._frames[0].number > after + 1:
            return None
        if not self._frames and self._numbering.last > after:
            return None
        return b"".join(frame.data for frame in self._frames if frame.number > after)

    def unwritten(self) -> FrameBatch | None:
        """Return the frames that are not stored; None if there are none."""
        frames = [frame for frame in self._frames if frame.number > self._stored]
        if not frames:
            return None
        joined = b"".join(frame.data for frame in frames)
        return FrameBatch(self.id, frames[0].number, frames[-1].number, joined)

    @property
    def needs_write(self) -> bool:
        """Whether frames or the end are not stored."""
        return (
            self.has_begun
            and not self.is_discarded
            and (self._stored < self._numbering.last or self._written_state is not self._record.state)
        )

    def mark_written(self, last: int, state: StreamState) -> None:
        """Note that the frames up to a number and a state are stored, and drop frames from memory."""
        self._stored = last
        self._written_state = state
        self._pending = sum(len(frame.data) for frame in self._frames if frame.number > last)
        kept = MAX_KEPT_BYTES if self.readers else 0
        while self._frames and self._frames[0].number <= last and self._memory - self._pending > kept:
            self._memory -= len(self._frames.popleft().data)
        if not self.is_full:
            self._has_room.set()

    def _put(self, frames: Sequence[bytes]) -> None:
        first = self._numbering.last - len(frames) + 1
        for number, data in enumerate(frames, start=first):
            self._frames.append(_Frame(number, data))
            self._memory += len(data)
            self._pending += len(data)
            self._size += len(data)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
