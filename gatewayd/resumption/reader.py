"""One reader of a stream: frames from the database, then from memory, then as they come."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Self

from gatewayd.errors import invalid
from gatewayd.resumption.frames import frames_after
from gatewayd.resumption.interfaces import StreamStore
from gatewayd.resumption.live_stream import StreamRecording
from gatewayd.resumption.records import StreamRecord, StreamState

MAX_BATCHES: Final = 8
"""Batches of one read of the database."""

POLL_SECONDS: Final = 0.5
"""Pause between two looks for the frames of a stream that another node makes; that stores them as often."""

TOLD_SECONDS: Final = 10.0
"""Maximum interval at which the node of a stream is told that it is read."""

LAST_EVENT_ID: Final = "Last-Event-ID"


class FrameReader:
    """Context manager that yields the frames behind a number; while it is open, the answer counts as read.

    `tell_read` tells the other nodes that a stream of one of them is read. What is stored of such a stream
    may be less than a client has.
    """

    def __init__(
        self,
        store: StreamStore,
        record: StreamRecord,
        recording: StreamRecording | None,
        after: int,
        tell_read: Callable[[str], None] | None = None,
    ) -> None:
        is_elsewhere = recording is None and record.state is StreamState.RUNNING
        if after > record.last and record.state is not StreamState.INTERRUPTED and not is_elsewhere:
            raise invalid(
                f"cannot resume after event {after}: the stream has {record.last} so far",
                param=LAST_EVENT_ID,
            )
        self._store = store
        self._record = record
        self._recording = recording
        self._tell_read = tell_read
        self._told_at = 0.0
        self.told_seconds = TOLD_SECONDS
        """Interval at which the node of the stream is told that it is read."""
        self.position = after
        """The number of the last frame that was returned."""

    @property
    def record(self) -> StreamRecord:
        """The stream."""
        return self._record if self._recording is None else self._recording.record

    @property
    def is_interrupted(self) -> bool:
        """Whether an error has to follow the frames, as the gateway ended during the answer."""
        return self.record.state is StreamState.INTERRUPTED

    @property
    def is_at_end(self) -> bool:
        """Whether the reader has every frame of a stream that has ended."""
        record = self.record
        return record.state is not StreamState.RUNNING and self.position >= record.last

    def __enter__(self) -> Self:
        """Count as a reader."""
        if self._recording is not None:
            self._recording.readers += 1
        return self

    def __exit__(self, *_: object) -> None:
        """Count no longer; the time without a reader begins with the last one."""
        if self._recording is not None:
            self._recording.readers -= 1
            self._recording.unread_since = asyncio.get_running_loop().time()

    async def next(self) -> bytes:
        """Return the next frames, b"" at the end; raises the errors of the store."""
        if self._recording is not None:
            await self._recording.more(self.position)
            frames = self._recording.take(self.position)
            if frames is not None:
                self.position = self._recording.record.last
                return frames
        return await self._from_store()

    async def _from_store(self) -> bytes:
        if self._recording is None and self._record.state is StreamState.RUNNING:
            # Also by a client that is slower than the answer, and never waits.
            self._tell()
        while not (frames := await self._stored()) and self._record.state is StreamState.RUNNING:
            if self._recording is not None:
                # Its frames are in memory from here on.
                break
            self._tell()
            await asyncio.sleep(POLL_SECONDS)
            gone = replace(self._record, state=StreamState.INTERRUPTED)
            self._record = await self._store.find(self._record.id) or gone
        return frames

    def _tell(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._tell_read is not None and now - self._told_at >= self.told_seconds:
            self._told_at = now
            self._tell_read(self._record.id)

    async def _stored(self) -> bytes:
        batches = await self._store.read(self._record.id, self.position, MAX_BATCHES)
        parts = [frames_after(batch.frames, batch.first, self.position) for batch in batches]
        if batches:
            self.position = batches[-1].last
        return b"".join(parts)
