"""Streams that go on without their client, can be read again, and survive the end of the gateway."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.resumption.interfaces import OtherNodes, StreamLimiter, StreamStore
from gatewayd.resumption.live_stream import StreamRecording
from gatewayd.resumption.reader import TOLD_SECONDS, FrameReader
from gatewayd.resumption.records import EndedStream, StreamRecord, StreamState
from gatewayd.tasks import TaskOwner, TaskRegistry

log = logging.getLogger(__name__)

TASK_NAME: Final = "stream"
"""Name of the tasks of answers that go on without their client."""

WRITE_PAUSE_SECONDS: Final = 0.5
"""Pause between two writes of all streams: the end of the machine loses at most the frames since the last."""

PRUNE_PAUSE_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 5.0
"""Time for the last write when the gateway stops."""

MAX_RUNNING_STREAMS: Final = 1_000
MAX_RUNNING_STREAMS_PER_USER: Final = 100
MAX_KEPT_STREAMS: Final = 10_000
MAX_KEPT_STREAMS_PER_USER: Final = 100
MAX_KEPT_BYTES: Final = 2 * 2**30
MAX_KEPT_BYTES_PER_USER: Final = 256 * 2**20
"""Limits of the streams that run, and of those that are kept after their end; the oldest go first."""

READ, STOP = "streams.read", "streams.stop"
"""Kinds of the messages between nodes: somebody reads a stream, and somebody stops it."""

Produce = Callable[[StreamRecording], Coroutine[Any, Any, None]]
"""Answers a request into a recording, and ends it."""


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """Seconds for which an answer goes on without a reader, and for which an ended stream is kept."""

    unread: float = 300.0
    kept: float = 3600.0


class ResumableStreams:
    """The streams: running ones with their newest frames in memory, all frames in the database."""

    def __init__(
        self,
        store: StreamStore,
        tasks: TaskRegistry,
        limiter: StreamLimiter,
        times: StreamTimes | None = None,
        clock: ids.Clock = ids.now,
        nodes: OtherNodes | None = None,
    ) -> None:
        self.nodes = nodes
        """The other nodes, None for a daemon alone."""
        self._store = store
        self._tasks = tasks
        self._limiter = limiter
        self._times = times or StreamTimes()
        self._clock = clock
        self._prune_clock = ids.retention_clock(clock)
        self._running: dict[str, StreamRecording] = {}
        self._counts: Counter[str] = Counter()
        self._lock = asyncio.Lock()
        self._is_failing = False
        if nodes is not None:
            nodes.on(READ, self._take_read)
            nodes.serve(STOP, self._take_stop)

    def configure(self, times: StreamTimes) -> None:
        """Use these times from now on."""
        self._times = times

    def begin(
        self,
        user_id: str,
        protocol: str,
        produce: Produce,
        *,
        is_kept: bool = False,
        stream_id: str | None = None,
    ) -> StreamRecording:
        """Start an answer that goes on without its client, to its end with `is_kept`.

        The stream has a new id unless one is given, which must be unique.

        Raises rate_limited with the code `too_many_streams` over the limits, and the errors of the limiter.
        """
        if len(self._running) >= MAX_RUNNING_STREAMS:
            raise _too_many("the gateway has", MAX_RUNNING_STREAMS)
        if self._counts[user_id] >= MAX_RUNNING_STREAMS_PER_USER:
            raise _too_many("the account has", MAX_RUNNING_STREAMS_PER_USER)
        record = StreamRecord(
            stream_id or ids.new_id(), user_id, protocol, StreamState.RUNNING, self._clock()
        )
        recording = StreamRecording(record, _now(), is_kept=is_kept)
        release = self._limiter.begin_run(user_id)

        def at_end() -> None:
            release()
            self._close(recording)

        self._running[record.id] = recording
        self._counts[user_id] += 1
        recording.task_id = self._tasks.spawn(
            TASK_NAME, self._produce(recording, produce), TaskOwner(user_id), at_end
        )
        return recording

    async def open(self, stream_id: str, user_id: str, after: int = 0) -> FrameReader:
        """Return a reader behind a frame; raises not_found for the stream of another user, too.

        Raises invalid_request naming Last-Event-ID for a number that the stream does not have, unless it was
        interrupted: the client may have got frames that are lost.
        """
        recording = self._running.get(stream_id)
        if recording is not None and recording.has_begun:
            record = recording.record
        else:
            recording = None
            found = await self._store.find(stream_id)
            if found is None:
                raise not_found("stream", stream_id)
            record = found
        if record.user_id != user_id:
            raise not_found("stream", stream_id)
        reader = FrameReader(self._store, record, recording, after, self._tell_read)
        reader.told_seconds = min(TOLD_SECONDS, self._times.unread / 3)
        return reader

    async def runs_elsewhere(self, stream_id: str, user_id: str) -> bool:
        """Return whether another node makes a stream of a user."""
        if self.nodes is None or stream_id in self._running:
            return False
        record = await self._store.find(stream_id)
        return record is not None and record.user_id == user_id and record.state is StreamState.RUNNING

    def read(self, recording: StreamRecording) -> FrameReader:
        """Return a reader of a stream that was just begun."""
        return FrameReader(self._store, recording.record, recording, 0)

    async def is_whole(self, stream_id: str) -> bool:
        """Return whether a stream runs, or is kept to its end."""
        recording = self._running.get(stream_id)
        if recording is not None:
            return recording.record.state in {StreamState.RUNNING, StreamState.COMPLETE}
        record = await self._store.find(stream_id)
        # One that runs is that of another node.
        return record is not None and record.state in {StreamState.RUNNING, StreamState.COMPLETE}

    async def stop(self, stream_id: str, user_id: str) -> None:
        """Stop a stream of a user and delete it; raises not_found as `open` does.

        Raises unavailable if the node of the stream does not reply.
        """
        reader = await self.open(stream_id, user_id)
        recording = self._running.get(reader.record.id)
        if recording is not None:
            await self._end(recording, _ended("stream_stopped", "it was stopped"))
            await self.write()
        elif self.nodes is not None and reader.record.state is StreamState.RUNNING:
            await self.nodes.ask(STOP, {"id": stream_id, "user_id": user_id})
        await self._store.remove([stream_id])

    async def abandon(self, recording: StreamRecording) -> None:
        """Stop an answer whose client left before it knew the stream."""
        await self._end(recording, _ended("stream_stopped", "its client has left"))

    def stop_account(self, user_id: str | None) -> None:
        """Stop the streams of an account that has lost its access, of every account with None."""
        for recording in list(self._running.values()):
            if user_id in (None, recording.user_id) and recording.ending is None:
                error = _ended("stream_stopped", "the account was deactivated or removed")
                self._tasks.spawn("end of a stream", self._end(recording, error))

    def forget_account(self, user_id: str) -> None:
        """Stop the streams of a removed account, and delete what was being stored as it was removed."""
        for recording in self._running.values():
            if recording.user_id == user_id:
                recording.is_discarded = True
        self.stop_account(user_id)
        self._tasks.spawn("removal of streams", self._remove_account(user_id))

    async def _remove_account(self, user_id: str) -> None:
        async with self._lock:
            await self._store.remove_user(user_id)

    async def resume(self) -> int:
        """Mark the streams of dead processes as interrupted, and return their number.

        A daemon alone calls it once, before the first request.
        """
        count_interrupted = await self._store.interrupt(self._clock())
        if count_interrupted:
            log.info("streams interrupted by a restart", extra={"streams": count_interrupted})
        return count_interrupted

    async def run(self) -> None:
        """Write the frames of all streams, end unread ones and delete old ones, for ever."""
        for turn in count(1):
            await asyncio.sleep(WRITE_PAUSE_SECONDS)
            await self._end_unread()
            try:
                await self.write()
                if turn % int(PRUNE_PAUSE_SECONDS / WRITE_PAUSE_SECONDS) == 0:
                    await self.prune()
                self._is_failing = False
            except GatewayError as error:
                if not self._is_failing:
                    log.warning("streams not stored, this is repeated: %s", error.full_message)
                self._is_failing = True

    async def write(self) -> None:
        """Write the new frames of all streams in one transaction; raises the errors of the store."""
        async with self._lock:
            changed = [each for each in self._running.values() if each.needs_write]
            if changed:
                records = [each.record for each in changed]
                batches = [each.unwritten() for each in changed]
                await self._store.write(records, [batch for batch in batches if batch is not None])
                for each, record in zip(changed, records, strict=True):
                    each.mark_written(record.last, record.state)
            for each in [each for each in self._running.values() if each.is_over and not each.needs_write]:
                self._forget(each)

    async def prune(self) -> int:
        """Delete ended streams that are too old or too many; return how many."""
        oldest = self._prune_clock() - self._times.kept
        gone = _superfluous(await self._store.ended(), oldest)
        return await self._store.remove(gone) if gone else 0

    def _tell_read(self, stream_id: str) -> None:
        if self.nodes is not None:
            self.nodes.tell(READ, {"id": stream_id})

    def _take_read(self, _: str, body: Mapping[str, Any]) -> None:
        recording = self._running.get(body["id"])
        if recording is not None:
            recording.unread_since = _now()

    async def _take_stop(self, body: Mapping[str, Any]) -> bool | None:
        recording = self._running.get(body["id"])
        if recording is None or recording.user_id != body["user_id"]:
            return None
        await self._end(recording, _ended("stream_stopped", "it was stopped"))
        await self.write()
        return True

    async def _produce(self, recording: StreamRecording, produce: Produce) -> None:
        try:
            await produce(recording)
        finally:
            if self._tasks.is_closing:
                await self._write_last()

    def _close(self, recording: StreamRecording) -> None:
        """End a stream whose task is over: it may have been stopped before its first step."""
        if not recording.has_begun:
            recording.refuse(recording.failure or _ended("stream_stopped", "it was stopped"))
            self._forget(recording)
        elif not recording.is_over:
            recording.finish(StreamState.INTERRUPTED, b"", self._clock())

    async def _write_last(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.write()
        except (GatewayError, TimeoutError) as error:
            log.error("the end of streams is not stored: %s", error)

    async def _end(self, recording: StreamRecording, error: GatewayError) -> None:
        recording.ending = recording.ending or error
        await self._tasks.stop(recording.task_id)

    async def _end_unread(self) -> None:
        limit = self._times.unread
        for each in list(self._running.values()):
            if each.is_kept or each.is_over or each.readers or each.ending:
                continue
            if _now() - each.unread_since < limit:
                continue
            error = _ended("stream_unread", f"nobody has read it for {limit:g} s")
            self._tasks.spawn("end of a stream", self._end(each, error))

    def _forget(self, recording: StreamRecording) -> None:
        if self._running.pop(recording.id, None) is None:
            return
        self._counts[recording.user_id] -= 1
        if not self._counts[recording.user_id]:
            del self._counts[recording.user_id]


def interruption() -> GatewayError:
    """Return the error that ends the frames of a stream whose answer the end of the gateway has cut."""
    return GatewayError(
        ErrorKind.UNAVAILABLE,
        "cannot go on with the answer: the gateway was restarted while it was given",
        code="stream_interrupted",
    )


def too_long() -> GatewayError:
    """Return the error that ends a stream over its size."""
    return GatewayError(
        ErrorKind.TOO_LARGE, "cannot go on with the answer: the stream is too long", code="stream_too_long"
    )


def _ended(code: str, reason: str) -> GatewayError:
    return GatewayError(ErrorKind.CONFLICT, f"cannot go on with the answer: {reason}", code=code)


def _too_many(who: str, most: int) -> GatewayError:
    return GatewayError(
        ErrorKind.RATE_LIMITED,
        f"cannot begin a resumable stream: {who} {most} that run",
        code="too_many_streams",
        retry_after=10,
    )


def _superfluous(streams: Sequence[EndedStream], oldest: float) -> list[str]:
    """Return the ids of the streams to delete; `streams` are sorted from the newest."""
    gone: list[str] = []
    size = 0
    numbers: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for number, each in enumerate(streams, start=1):
        size += each.size
        numbers[each.user_id] += 1
        sizes[each.user_id] += each.size
        if (
            each.ended_at < oldest
            or number > MAX_KEPT_STREAMS
            or size > MAX_KEPT_BYTES
            or numbers[each.user_id] > MAX_KEPT_STREAMS_PER_USER
            or sizes[each.user_id] > MAX_KEPT_BYTES_PER_USER
        ):
            gone.append(each.id)
    return gone


def _now() -> float:
    return asyncio.get_running_loop().time()
