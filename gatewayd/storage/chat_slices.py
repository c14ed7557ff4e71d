"""Storage and deletion of chats in short transactions, because other writers wait for SQLite's one writer.

A chat that is incomplete, not yet stored or partly deleted, has the tag UNFINISHED. No reader finds it, and
the next start deletes what is left of it. So the chats of one addition appear together, or none of them does,
also when the process is killed.
"""

import time
from collections.abc import AsyncIterable, Sequence
from typing import Any, Final

from tortoise.models import Model

from gatewayd.chats.records import Chat, NewChat
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import encode_large_sanitised
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import insert_rows
from gatewayd.storage.messages import columns_of, encode_list
from gatewayd.storage.tables.chats import ChatMessageItemRow, ChatMessageRow, ChatRow, ChatTagRow
from gatewayd.text import casefold_nfc, storable

MAX_SLICE_CHARACTERS: Final = 256 * 1024
MAX_SLICE_ROWS: Final = 128
"""Maximum of one transaction that stores; a larger row has a transaction of its own."""

MAX_SLICE_SECONDS: Final = 0.01
"""Seconds after which a transaction that deletes begins no other statement."""

MAX_DELETED_ROWS: Final = 500
FIRST_DELETED_ROWS: Final = 8
"""Messages that one statement deletes: the maximum, and the first number before any is timed."""

UNFINISHED: Final = "UNFINISHED"
"""Id of a tag that no user can set: ids of users' tags are in lower case."""

IS_COMPLETE: Final = (
    f"NOT EXISTS (SELECT 1 FROM chat_tags u WHERE u.chat_id = c.id AND u.tag = '{UNFINISHED}')"  # noqa: S608
)
"""The condition that a row `c` of `chats` is complete."""

STOP_RUNS: Final = (
    "UPDATE answer_runs SET is_stopped = TRUE WHERE NOT is_stopped AND EXISTS"  # noqa: S608
    f" (SELECT 1 FROM chat_tags t WHERE t.chat_id = answer_runs.chat_id AND t.tag = '{UNFINISHED}')"
)

Record = dict[str, Any]
Key = tuple[str, str]
"""The ids of a chat and of a message in it."""


async def add(chats: AsyncIterable[NewChat]) -> None:
    """Insert chats, all or none; no reader finds one before all are stored.

    On PostgreSQL one transaction contains all, because other writers do not wait for it.
    """
    if SqlStatement(ChatRow._meta.db).is_postgres:
        async with write_transaction("add the chat"):
            await _Addition(is_sliced=False).run(chats)
    else:
        await _Addition(is_sliced=True).run(chats)


async def hide(column: str, value: str, condition: str = "1 = 1") -> Sequence[str]:
    """Make the chats whose column has a value unfinished, and return their ids.

    `condition` is a further condition of a row `c` of `chats`, without values from outside. Chats that
    another process is deleting are not included.
    """
    async with write_transaction("remove the chat") as client:
        statement = SqlStatement(client)
        # SQLite has one writer.
        ending = " FOR KEY SHARE" if statement.is_postgres else ""
        rows = await statement.run(
            f"INSERT INTO chat_tags (chat_id, tag, name) SELECT c.id, '{UNFINISHED}', '{UNFINISHED}'"  # noqa: S608
            f" FROM chats c WHERE c.{column} = {statement.bind(value)} AND {condition}{ending}"
            " ON CONFLICT DO NOTHING RETURNING chat_id"
        )
    return [row["chat_id"] for row in rows]


async def list_unfinished() -> Sequence[str]:
    """Return the ids of chats that are incomplete."""
    with translate_errors("read unfinished chats"):
        statement = SqlStatement(ChatTagRow._meta.db)
        tag = statement.bind(UNFINISHED)
        rows = await statement.run(f"SELECT chat_id FROM chat_tags WHERE tag = {tag}")  # noqa: S608
    return [row["chat_id"] for row in rows]


async def purge(chat_ids: Sequence[str]) -> None:
    """Delete unfinished chats with their messages, in transactions of about MAX_SLICE_SECONDS.

    Nodes that answer in them stop.
    """
    left = list(chat_ids)
    if left:
        await _stop_runs()
    rows = FIRST_DELETED_ROWS
    while left:
        async with write_transaction("remove the chat") as client:
            ends = time.perf_counter() + MAX_SLICE_SECONDS
            is_over = False
            while left and not is_over:
                began = time.perf_counter()
                is_gone = await _delete_some(client, left[-1], rows)
                now = time.perf_counter()
                is_over = now >= ends
                is_quick = now - began < MAX_SLICE_SECONDS / 2
                rows = min(rows * 2, MAX_DELETED_ROWS) if is_quick else max(rows // 2, 1)
                if is_gone:
                    left.pop()
                    rows = FIRST_DELETED_ROWS


async def _stop_runs() -> None:
    """Have nodes stop the runs of unfinished chats; only a cluster, which has PostgreSQL, has such rows.

    A transaction of its own: runs lock their claim before the chat.
    """
    if SqlStatement(ChatRow._meta.db).is_postgres:
        async with write_transaction("stop the runs of the chat") as client:
            await SqlStatement(client).run(STOP_RUNS)


async def _delete_some(client: Any, chat_id: str, rows: int) -> bool:
    """Delete `rows` messages of a chat, and the chat after its last one; return whether it is gone."""
    deletion, rest, end = SqlStatement(client), SqlStatement(client), SqlStatement(client)
    await deletion.run(
        "DELETE FROM chat_messages WHERE number IN (SELECT number FROM chat_messages"  # noqa: S608
        f" WHERE chat_id = {deletion.bind(chat_id)} LIMIT {rows})"
    )
    if await rest.run(f"SELECT 1 FROM chat_messages WHERE chat_id = {rest.bind(chat_id)} LIMIT 1"):  # noqa: S608
        return False
    # The foreign keys delete the tags and the shared copy.
    await end.run(f"DELETE FROM chats WHERE id = {end.bind(chat_id)}")  # noqa: S608
    return True


class _Addition:
    """Stores chats: with `is_sliced` in one transaction per slice, else in the caller's transaction."""

    def __init__(self, *, is_sliced: bool) -> None:
        self._is_sliced = is_sliced
        self._waiting: dict[type[Model], list[Record]] = {}
        self._rows = 0
        self._characters = 0
        self._with_items: set[Key] = set()
        self._numbers: dict[Key, int] = {}
        """The messages that have items, and the numbers of those that are stored."""
        self._started: list[str] = []
        """The ids of chats that earlier slices hold, and of those that a failed commit may have stored."""

    async def run(self, chats: AsyncIterable[NewChat]) -> None:
        is_done = False
        try:
            async for new in chats:
                await self._take(new)
            await self._write(is_last=True)
            is_done = True
        finally:
            if not is_done and self._is_sliced:
                await self._undo()

    async def _undo(self) -> None:
        # After a cancelled commit either all of the chats are complete or none.
        unfinished = set(await list_unfinished())
        await purge([each for each in self._started if each in unfinished])

    async def _take(self, new: NewChat) -> None:
        chat_id = new.chat.id
        await self._put(ChatRow, await _chat_columns(new.chat))
        for tag in {tag.id: tag for tag in reversed(new.tags)}.values():
            await self._put(ChatTagRow, _tag_columns(chat_id, tag.id, tag.name))
        for message in {message.id: message for message in new.messages}.values():
            key = (chat_id, message.id)
            await self._put(ChatMessageRow, await columns_of(chat_id, message, is_copy=new.is_copy))
            for kind, values in message.items.items():
                self._with_items.add(key)
                for value in await encode_list(kind, values, is_copy=new.is_copy):
                    await self._put(ChatMessageItemRow, {"message_id": key, "kind": kind, "value": value})

    async def _put(self, table: type[Model], record: Record) -> None:
        size = sum(len(value) for value in record.values() if isinstance(value, str))
        is_full = self._rows >= MAX_SLICE_ROWS or self._characters + size > MAX_SLICE_CHARACTERS
        if self._rows and is_full:
            await self._write(is_last=False)
        self._waiting.setdefault(table, []).append(record)
        self._rows += 1
        self._characters += size

    async def _write(self, *, is_last: bool) -> None:
        waiting, self._waiting = self._waiting, {}
        self._rows = self._characters = 0
        chats = waiting.get(ChatRow, [])
        tags = waiting.get(ChatTagRow, [])
        is_hidden = self._is_sliced and not is_last
        if is_hidden:
            tags = tags + [_tag_columns(chat["id"], UNFINISHED, UNFINISHED) for chat in chats]
            self._started += [chat["id"] for chat in chats]
        async with write_transaction("add the chat") as client:
            await insert_rows(ChatRow, chats)
            await insert_rows(ChatTagRow, tags)
            await self._write_messages(waiting.get(ChatMessageRow, []), waiting.get(ChatMessageItemRow, []))
            if not is_hidden and self._started:
                await _show(client, self._started)

    async def _write_messages(self, messages: list[Record], items: list[Record]) -> None:
        # While other threads compute, returning a row takes longer than inserting it.
        returning = "number, chat_id, id" if self._with_items else ""
        for row in await insert_rows(ChatMessageRow, messages, returning=returning):
            self._numbers[row["chat_id"], row["id"]] = row["number"]
        await insert_rows(
            ChatMessageItemRow, [{**item, "message_id": self._numbers[item["message_id"]]} for item in items]
        )
        if messages:
            # Items of the last message may follow in the next slice.
            last = (messages[-1]["chat_id"], messages[-1]["id"])
            self._with_items &= {last}
            self._numbers = {key: number for key, number in self._numbers.items() if key == last}


async def _show(client: Any, chat_ids: Sequence[str]) -> None:
    statement = SqlStatement(client)
    await statement.run(
        f"DELETE FROM chat_tags WHERE tag = {statement.bind(UNFINISHED)}"  # noqa: S608
        f" AND chat_id {statement.among(chat_ids)}"
    )


async def _chat_columns(chat: Chat) -> Record:
    return {
        "id": chat.id,
        "user_id": chat.user_id,
        **title_columns(chat.title),
        "head": await encode_large_sanitised(chat.head, "chat"),
        "current_id": chat.current_id,
        "archived": chat.archived,
        "pinned": chat.pinned,
        "folder_id": chat.folder_id,
        "meta": await encode_large_sanitised(chat.meta, "meta"),
        "last_read_at": chat.last_read_at,
        "updated_at": chat.updated_at,
        "created_at": chat.created_at,
    }


def title_columns(title: str) -> dict[str, str]:
    """Return the columns of a title."""
    text = storable(title)
    return {"title": text, "title_key": casefold_nfc(text)}


def _tag_columns(chat_id: str, tag_id: str, name: str) -> Record:
    return {"chat_id": chat_id, "tag": tag_id, "name": name}
