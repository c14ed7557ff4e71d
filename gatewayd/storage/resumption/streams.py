"""Store of resumable streams and their frames."""

from collections.abc import Sequence

from gatewayd.resumption.records import EndedStream, FrameBatch, StreamRecord, StreamState
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, fits_columns
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.nodes.nodes import ALIVE
from gatewayd.storage.tables.streams import StreamFramesRow, StreamRow

MAX_BATCH_ROWS = 200


class TortoiseStreams:
    """Implements `resumption.interfaces.StreamStore`; `node_id` is "" for a daemon alone."""

    def __init__(self, node_id: str = "") -> None:
        self._node_id = node_id

    async def write(self, streams: Sequence[StreamRecord], batches: Sequence[FrameBatch]) -> None:
        """Insert or update streams, and add frames, in one transaction.

        A write whose result is unknown may be repeated: frames that are there already are replaced.
        """
        async with write_transaction("store the frames of streams"):
            await upsert_rows(
                StreamRow, [{**_columns_of(each), "node_id": self._node_id} for each in streams], ["id"]
            )
            for start in range(0, len(batches), MAX_BATCH_ROWS):
                rows = [_batch_columns(each) for each in batches[start : start + MAX_BATCH_ROWS]]
                await upsert_rows(StreamFramesRow, rows, ["stream_id", "first_frame"])

    async def find(self, stream_id: str) -> StreamRecord | None:
        """Return a stream; None if absent."""
        if not fits_columns(StreamRow, id=stream_id):
            return None
        with translate_errors("read a stream"):
            row = await StreamRow.get_or_none(id=stream_id)
        return None if row is None else _record_of(row)

    async def read(self, stream_id: str, after: int, most: int) -> Sequence[FrameBatch]:
        """Return up to `most` batches with frames after a number, in order."""
        with translate_errors("read the frames of a stream"):
            rows = await (
                StreamFramesRow.filter(stream_id=stream_id, last_frame__gt=after)
                .order_by("first_frame")
                .limit(most)
            )
        return [FrameBatch(row.stream_id, row.first_frame, row.last_frame, bytes(row.frames)) for row in rows]

    async def interrupt(self, at: int) -> int:
        """Mark the running streams as interrupted, with the numbers of the frames that were stored.

        A node marks only those of dead nodes.
        """
        dead = f" AND node_id NOT IN {ALIVE}" if self._node_id else ""
        running = StreamState.RUNNING.value
        async with write_transaction("mark interrupted streams"):
            statement = SqlStatement(StreamRow._meta.db)
            frames = "FROM stream_frames WHERE stream_frames.stream_id = streams.id"
            rows = await statement.run(
                f"UPDATE streams SET state = {statement.bind(StreamState.INTERRUPTED.value)},"  # noqa: S608
                f" ended_at = {statement.bind(at)},"
                f" last_frame = COALESCE((SELECT MAX(stream_frames.last_frame) {frames}), 0)"
                f" WHERE state = {statement.bind(running)}{dead} RETURNING id"
            )
        return len(rows)

    async def ended(self) -> Sequence[EndedStream]:
        """Return the streams that have ended, newest first."""
        with translate_errors("list streams"):
            rows = await (
                StreamRow.filter(ended_at__isnull=False)
                .order_by("-ended_at", "-id")
                .values_list("id", "user_id", "ended_at", "size")
            )
        return [EndedStream(*row) for row in rows]

    async def remove(self, stream_ids: Sequence[str]) -> int:
        """Delete streams with their frames; return how many there were."""
        removed = 0
        for start in range(0, len(stream_ids), MAX_BATCH_ROWS):
            part = stream_ids[start : start + MAX_BATCH_ROWS]
            async with write_transaction("delete streams"):
                removed += await _delete(part)
        return removed

    async def remove_user(self, user_id: str) -> None:
        """Delete all streams of a user."""
        async with write_transaction("delete the streams of a user"):
            await delete_streams_of(user_id)


async def delete_streams_of(user_id: str) -> None:
    """Delete all streams of a user, within the transaction of the caller."""
    found = [row.id for row in await StreamRow.filter(user_id=user_id).only("id")]
    for start in range(0, len(found), MAX_BATCH_ROWS):
        await _delete(found[start : start + MAX_BATCH_ROWS])


async def _delete(stream_ids: Sequence[str]) -> int:
    await StreamFramesRow.filter(stream_id__in=list(stream_ids)).delete()
    return await StreamRow.filter(id__in=list(stream_ids)).delete()


def _columns_of(record: StreamRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "user_id": record.user_id,
        "protocol": record.protocol,
        "state": record.state.value,
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "last_frame": record.last,
        "size": record.size,
        "headers": encode(dict(record.headers), "headers"),
    }


def _batch_columns(batch: FrameBatch) -> dict[str, object]:
    return {
        "stream_id": batch.stream_id,
        "first_frame": batch.first,
        "last_frame": batch.last,
        "frames": batch.frames,
    }


def _record_of(row: StreamRow) -> StreamRecord:
    return StreamRecord(
        id=row.id,
        user_id=row.user_id,
        protocol=row.protocol,
        state=StreamState(row.state),
        created_at=row.created_at,
        ended_at=row.ended_at,
        last=row.last_frame,
        size=row.size,
        headers=decode(row.headers, f"the headers of stream {row.id}"),
    )
