"""Resumable streams and idempotent requests in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from gatewayd.resumption.records import EndedStream, FrameBatch, RequestRecord, StreamRecord, StreamState


class MemoryStreams:
    """Implements `resumption.interfaces.StreamStore`; `outage` is raised by every write."""

    def __init__(self) -> None:
        self.streams: dict[str, StreamRecord] = {}
        self.batches: dict[str, dict[int, FrameBatch]] = {}
        self.outage: Exception | None = None
        self.writes = 0

    async def write(self, streams: Sequence[StreamRecord], batches: Sequence[FrameBatch]) -> None:
        if self.outage is not None:
            raise self.outage
        self.writes += 1
        self.streams |= {each.id: each for each in streams}
        for batch in batches:
            self.batches.setdefault(batch.stream_id, {})[batch.first] = batch

    async def find(self, stream_id: str) -> StreamRecord | None:
        return self.streams.get(stream_id)

    async def read(self, stream_id: str, after: int, most: int) -> Sequence[FrameBatch]:
        found = sorted(self.batches.get(stream_id, {}).values(), key=lambda batch: batch.first)
        return [batch for batch in found if batch.last > after][:most]

    async def interrupt(self, at: int) -> int:
        running = [each for each in self.streams.values() if each.state is StreamState.RUNNING]
        for each in running:
            last = max((batch.last for batch in self.batches.get(each.id, {}).values()), default=0)
            ended = replace(each, state=StreamState.INTERRUPTED, ended_at=at, last=last)
            self.streams[each.id] = ended
        return len(running)

    async def ended(self) -> Sequence[EndedStream]:
        found = [
            EndedStream(each.id, each.user_id, each.ended_at, each.size)
            for each in self.streams.values()
            if each.ended_at is not None
        ]
        return sorted(found, key=lambda each: (each.ended_at, each.id), reverse=True)

    async def remove(self, stream_ids: Sequence[str]) -> int:
        for each in stream_ids:
            self.batches.pop(each, None)
        return sum(self.streams.pop(each, None) is not None for each in stream_ids)

    async def remove_user(self, user_id: str) -> None:
        await self.remove([each.id for each in self.streams.values() if each.user_id == user_id])


class MemoryReplies:
    """Implements `resumption.interfaces.ReplyStore`; `outage` is raised by every write."""

    def __init__(self) -> None:
        self.requests: dict[str, RequestRecord] = {}
        self.outage: Exception | None = None

    async def find(self, digest: str) -> RequestRecord | None:
        return self.requests.get(digest)

    async def put(self, record: RequestRecord) -> None:
        if self.outage is not None:
            raise self.outage
        self.requests[record.digest] = record

    async def remove(self, digest: str) -> None:
        self.requests.pop(digest, None)

    async def remove_user(self, user_id: str) -> None:
        self.requests = {digest: each for digest, each in self.requests.items() if each.user_id != user_id}

    async def prune(self, before: int) -> int:
        gone = [each.digest for each in self.requests.values() if each.created_at < before]
        for digest in gone:
            del self.requests[digest]
        return len(gone)

    async def trim(self, user_id: str, most: int, characters: int) -> None:
        own = [each for each in self.requests.values() if each.user_id == user_id]
        own.sort(key=lambda each: (-each.created_at, each.digest))
        size = 0
        for number, each in enumerate(own, start=1):
            size += len(each.reply.text) if each.reply else 0
            if (number > most or size > characters) and each.reply is not None:
                del self.requests[each.digest]


class CountingLimiter:
    """Counts the answers that go on."""

    def __init__(self) -> None:
        self.running = 0

    def begin_run(self, account: str) -> Callable[[], None]:
        self.running += 1
        return self._end

    def _end(self) -> None:
        self.running -= 1
