"""Store of responses with their input."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.pipeline.responses.archive import ArchiveBounds, StoredResponse
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import (
    decode_large,
    encode_large_sanitised,
    fits_columns,
)
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import insert_unless_present
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.storage.tables.responses import StoredResponseRow
from gatewayd.time_slices import SLICE_CHARACTERS, LoopPacer

COLUMNS: Final = (
    "id, user_id, previous_id, model, source, response, input, events, size, created_at, expires_at"
)


class TortoiseResponses:
    """Implements `pipeline.responses.archive.StoredResponses`."""

    async def add(self, response: StoredResponse, bounds: ArchiveBounds) -> bool:
        """Store a response within the bounds of its user."""
        columns = await _columns_of(response)
        if columns["size"] > bounds.user_bytes or not fits_columns(StoredResponseRow, id=response.id):
            return False
        async with write_transaction("store the response"):
            if not await insert_unless_present(StoredResponseRow, columns, "id"):
                return False
            await _shrink(response.user_id, bounds)
        return True

    async def replace(self, response: StoredResponse, bounds: ArchiveBounds) -> bool:
        """Store another state of a response within the bounds of its user."""
        columns = await _columns_of(response)
        if columns["size"] > bounds.user_bytes:
            return False
        async with write_transaction("store the response"):
            rows = StoredResponseRow.filter(id=columns.pop("id"), user_id=columns.pop("user_id"))
            is_there = bool(await rows.update(**columns))
            await _shrink(response.user_id, bounds)
        return is_there

    async def settle(self, response: StoredResponse, usage: Mapping[UsageKey, UsageSums]) -> bool:
        """Add to the usage and empty the content of a response; the first of several does so."""
        async with write_transaction("count the usage of the response"):
            statement = SqlStatement(StoredResponseRow._meta.db)
            emptied = await statement.run(
                "UPDATE stored_responses SET response = '{}'"  # noqa: S608 - no values
                f" WHERE id = {statement.bind(response.id)} AND user_id = {statement.bind(response.user_id)}"
                " AND source <> '' AND response <> '{}' RETURNING id"
            )
            if emptied and usage:
                await TortoiseUsage().add(usage)
            return bool(emptied)

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return one response."""
        if not fits_columns(StoredResponseRow, id=response_id):
            return None
        with translate_errors("read a response"):
            statement = SqlStatement(StoredResponseRow._meta.db)
            rows = await statement.run(
                f"SELECT {COLUMNS} FROM stored_responses WHERE id = {statement.bind(response_id)}"  # noqa: S608
            )
        return await _response_of(rows[0]) if rows else None

    async def chain(self, response_id: str, most: int) -> Sequence[StoredResponse]:
        """Return a response and those before it, the oldest first."""
        if not fits_columns(StoredResponseRow, id=response_id):
            return []
        with translate_errors("read a conversation"):
            statement = SqlStatement(StoredResponseRow._meta.db)
            first, limit = statement.bind(response_id), statement.bind(most)
            rows = await statement.run(
                "WITH RECURSIVE chain(id, previous_id, user_id, depth) AS ("  # noqa: S608 - no values
                f"SELECT id, previous_id, user_id, 1 FROM stored_responses WHERE id = {first}"
                " UNION ALL SELECT r.id, r.previous_id, r.user_id, c.depth + 1"
                " FROM stored_responses r JOIN chain c ON r.id = c.previous_id AND r.user_id = c.user_id"
                f" WHERE c.depth < {limit}"
                f") SELECT {_prefixed('r')} FROM chain c JOIN stored_responses r ON r.id = c.id"
                " ORDER BY c.depth DESC"
            )
        return [await _response_of(row) for row in rows]

    async def renew(self, response_ids: Sequence[str], expires_at: int) -> None:
        """Change when responses expire."""
        async with write_transaction("keep the conversation"):
            statement = SqlStatement(StoredResponseRow._meta.db)
            at = statement.bind(expires_at)
            await statement.run(
                f"UPDATE stored_responses SET expires_at = {at}"  # noqa: S608 - no values
                f" WHERE id {statement.among(response_ids)} AND expires_at < {at} RETURNING id"
            )

    async def remove(self, response_id: str) -> bool:
        """Delete one response."""
        if not fits_columns(StoredResponseRow, id=response_id):
            return False
        async with write_transaction("delete the response"):
            return await StoredResponseRow.filter(id=response_id).delete() > 0

    async def prune(self, before: int) -> int:
        """Delete the responses that expire before a time."""
        async with write_transaction("delete expired responses"):
            return int(await StoredResponseRow.filter(expires_at__lt=before).delete())


async def _shrink(user_id: str, bounds: ArchiveBounds) -> None:
    """Delete the oldest responses of a user that are over the bounds."""
    statement = SqlStatement(StoredResponseRow._meta.db)
    user = statement.bind(user_id)
    over = f"total > {statement.bind(bounds.user_bytes)} OR place > {statement.bind(bounds.user_responses)}"
    await statement.run(
        "DELETE FROM stored_responses WHERE id IN (SELECT id FROM (SELECT id,"  # noqa: S608 - no values
        " SUM(size) OVER newest AS total, ROW_NUMBER() OVER newest AS place"
        f" FROM stored_responses WHERE user_id = {user}"
        " WINDOW newest AS (ORDER BY created_at DESC, id DESC"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) sized"
        f" WHERE {over}) RETURNING id"
    )


async def _columns_of(response: StoredResponse) -> dict[str, Any]:
    texts = {
        "response": await encode_large_sanitised(response.response, "response"),
        "input": await encode_large_sanitised(response.input, "input"),
        "events": await encode_large_sanitised([response.pieces, response.pings], "events"),
    }
    return {
        "id": response.id,
        "user_id": response.user_id,
        "previous_id": response.previous_id,
        "model": response.model,
        "source": response.source,
        **texts,
        "size": sum([await _bytes_of(text) for text in texts.values()]),
        "created_at": response.created_at,
        "expires_at": response.expires_at,
    }


async def _bytes_of(text: str) -> int:
    """Return the size of a text in UTF-8, without blocking the event loop."""
    if text.isascii():
        return len(text)
    pace, size = LoopPacer(), 0
    for start in range(0, len(text), SLICE_CHARACTERS):
        size += len(text[start : start + SLICE_CHARACTERS].encode())
        await pace.turn()
    return size


async def _response_of(row: Mapping[str, Any]) -> StoredResponse:
    what = f"the response {row['id']}"
    pieces, pings = await decode_large(row["events"], what)
    return StoredResponse(
        id=row["id"],
        user_id=row["user_id"],
        model=row["model"],
        response=await decode_large(row["response"], what),
        input=await decode_large(row["input"], what),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        previous_id=row["previous_id"],
        source=row["source"],
        pieces=pieces,
        pings=pings,
    )


def _prefixed(table: str) -> str:
    return ", ".join(f"{table}.{column}" for column in COLUMNS.split(", "))
