"""Store of rows by their age: old chats, files and rows of usage."""

from collections.abc import AsyncIterator
from typing import Any, Final

from gatewayd.chats.records import MessageState
from gatewayd.storage import chat_slices
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.chats import ChatRow
from gatewayd.storage.tables.documents import REMOVED, FileRow
from gatewayd.storage.tables.usage import UsageRow

PAGE_ROWS: Final = 500
"""Rows that one statement looks at."""

DELETED_ROWS: Final = 1000
"""Rows of usage that one transaction deletes."""

CHAT: Final = (
    "NOT c.pinned AND NOT EXISTS (SELECT 1 FROM chat_messages m"  # noqa: S608
    f" WHERE m.chat_id = c.id AND m.state = '{MessageState.RUNNING}')"
)
_MENTIONED: Final = "LIKE '%' || f.id || '%'"
FILE: Final = (
    f"f.status <> '{REMOVED}'"  # noqa: S608
    " AND NOT EXISTS (SELECT 1 FROM collection_files l WHERE l.file_id = f.id)"
    " AND NOT EXISTS (SELECT 1 FROM ingest_jobs j WHERE j.file_id = f.id)"
    f" AND NOT EXISTS (SELECT 1 FROM models m WHERE CAST(m.meta AS TEXT) {_MENTIONED})"
    " AND NOT EXISTS (SELECT 1 FROM chat_folders d WHERE d.user_id = f.user_id"
    f" AND (CAST(d.data AS TEXT) {_MENTIONED} OR CAST(d.meta AS TEXT) {_MENTIONED}))"
)
"""Conditions of `privacy.interfaces.AgedRowStore` besides the age.

An id with `_` may match more than itself; the file is kept then.
"""


class TortoiseAgedRows:
    """Implements `privacy.interfaces.AgedRowStore`."""

    async def old_chats(self, before: int) -> AsyncIterator[str]:
        """Yield the ids of old chats, the oldest first."""
        async for chat_id in _old("chats", "c", f"{CHAT} AND {chat_slices.IS_COMPLETE}", before):
            yield chat_id

    async def hide_old_chat(self, chat_id: str, before: int) -> bool:
        """Hide a chat if it is old."""
        if not fits_columns(ChatRow, id=chat_id):
            return False
        return bool(await chat_slices.hide("id", chat_id, f"c.updated_at < {before:d} AND {CHAT}"))

    async def old_files(self, before: int) -> AsyncIterator[str]:
        """Yield the ids of old files, the oldest first."""
        async for file_id in _old("files", "f", FILE, before):
            yield file_id

    async def is_old_file(self, file_id: str, before: int) -> bool:
        """Return whether a file is old."""
        statement = SqlStatement(FileRow._meta.db)
        with translate_errors("read old files"):
            found = await statement.run(
                f"SELECT 1 FROM files f WHERE f.id = {statement.bind(file_id)}"  # noqa: S608
                f" AND f.updated_at < {statement.bind(before)} AND {FILE}"
            )
        return bool(found)

    async def count_usage(self, day: str) -> int:
        """Return the number of rows of usage before a day."""
        with translate_errors("count old rows of usage"):
            return await UsageRow.filter(day__lt=day).count()

    async def remove_usage(self, day: str) -> int:
        """Delete the rows of usage before a day."""
        count, deleted = 0, DELETED_ROWS
        while deleted:
            async with write_transaction("delete old rows of usage") as client:
                statement = SqlStatement(client)
                rows = await statement.run(
                    "DELETE FROM usage WHERE id IN (SELECT id FROM usage"  # noqa: S608
                    f" WHERE day < {statement.bind(day)} LIMIT {DELETED_ROWS}) RETURNING id"
                )
            deleted = len(rows)
            count += deleted
        return count


async def _old(table: str, alias: str, condition: str, before: int) -> AsyncIterator[str]:
    """Yield the ids of the rows that were changed before a time and fulfil a condition.

    Each statement looks at PAGE_ROWS rows, whether they fulfil it or not.
    """
    last: tuple[int, str] = (-1, "")
    while True:
        page, wanted = SqlStatement(FileRow._meta.db), SqlStatement(FileRow._meta.db)
        with translate_errors(f"read old {table}"):
            seen: list[dict[str, Any]] = await page.run(
                f"SELECT id, updated_at FROM {table}"  # noqa: S608
                f" WHERE updated_at < {page.bind(before)}"
                f" AND (updated_at, id) > ({page.bind(last[0])}, {page.bind(last[1])})"
                f" ORDER BY updated_at, id LIMIT {PAGE_ROWS}"
            )
            among = wanted.among([row["id"] for row in seen])
            found = await wanted.run(
                f"SELECT {alias}.id FROM {table} {alias}"  # noqa: S608
                f" WHERE {alias}.id {among} AND {condition} ORDER BY {alias}.updated_at, {alias}.id"
            )
        for row in found:
            yield row["id"]
        if len(seen) < PAGE_ROWS:
            return
        last = seen[-1]["updated_at"], seen[-1]["id"]
