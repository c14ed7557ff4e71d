"""Changes of stored messages by events, each atomic and within the limits of a message."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.chats.json_limits import MAX_VALUES
from gatewayd.chats.records import MAX_CONTENT_CHARACTERS
from gatewayd.storage.chat_sizes import ChatSizes, size_of_text
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, fits_columns
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.message_limits import check_content, check_items, content_too_large
from gatewayd.storage.messages import (
    append_items,
    check_list,
    encode_items,
    lock_message,
    message_condition,
    replace_items,
)
from gatewayd.storage.tables.chats import ChatMessageItemRow, ChatMessageRow
from gatewayd.text import MAX_NON_STARTERS, casefold_nfc, is_continuation, storable
from gatewayd.time_slices import map_slices

END_CHARACTERS: Final = MAX_NON_STARTERS + 2
"""Maximum length of a character with its combining characters and a joiner."""

VALUES_PER_PART: Final = 3
"""JSON values of a text part: the object, its type and its text."""


class TortoiseMessageEvents:
    """Implements `events.interfaces.MessageEffects`."""

    def __init__(self) -> None:
        self._sizes = ChatSizes()

    async def append_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Append text to the content, or to a content list as a part of its own."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        check_content(text)
        await self._sizes.check(chat_id, size_of_text(text))
        text = await map_slices(storable, text)
        if not is_continuation(text):
            return await _append(chat_id, message_id, text, await map_slices(casefold_nfc, text))
        return await _append_to_end(chat_id, message_id, text)

    async def replace_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Replace the content by a text."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        check_content(text)
        await self._sizes.check(chat_id, size_of_text(text))
        text = await map_slices(storable, text)
        statement = SqlStatement(ChatMessageRow._meta.db)
        content, key = statement.bind(text), statement.bind(await map_slices(casefold_nfc, text))
        return await _update(
            statement, f"content = {content}, content_key = {key}, parts = NULL", chat_id, message_id
        )

    async def append_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Append JSON values to a list of a message, in their order."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        encoded = await self._encoded(chat_id, kind, values)
        async with write_transaction("add to the message"):
            found = await lock_message(chat_id, message_id)
            if found is not None and encoded:
                await append_items(found["number"], kind, encoded)
        return found is not None

    async def put_item(self, chat_id: str, message_id: str, kind: str, value: Mapping[str, Any]) -> bool:
        """Replace the object with the same `type` and `id` in a list, or append it."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        [text] = await self._encoded(chat_id, kind, [value])
        async with write_transaction("add to the message"):
            # Without the lock two concurrent calls would both find no object to replace.
            found = await lock_message(chat_id, message_id)
            if found is None:
                return False
            statement = SqlStatement(ChatMessageItemRow._meta.db)
            if await statement.run(_replacement_sql(statement, found["number"], kind, text)):
                await check_list(found["number"], kind)
            else:
                await append_items(found["number"], kind, [text])
        return True

    async def replace_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Replace a list of a message by these values."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        encoded = await self._encoded(chat_id, kind, values)
        async with write_transaction("replace a list of the message"):
            found = await lock_message(chat_id, message_id)
            if found is not None:
                await replace_items(found["number"], kind, encoded)
        return found is not None

    async def items(self, chat_id: str, message_id: str, kind: str) -> Sequence[Any]:
        """Return the values of a list of a message, oldest first; empty when there is no such message."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return []
        statement = SqlStatement(ChatMessageItemRow._meta.db)
        message, wanted = message_condition(statement, chat_id, message_id), statement.bind(kind)
        with translate_errors("read a list of a message"):
            rows = await statement.run(
                f"SELECT value FROM chat_message_items WHERE kind = {wanted} AND message_id ="  # noqa: S608
                f" (SELECT number FROM chat_messages WHERE {message}) ORDER BY id"
            )
        return [decode(row["value"], f"the {kind} of message {message_id}") for row in rows]

    async def _encoded(self, chat_id: str, kind: str, values: Sequence[Any]) -> Sequence[str]:
        """Return values for a list as JSON; too_large above the limits of a list or of the chat."""
        encoded = await encode_items(kind, values)
        await self._sizes.check(chat_id, check_items(kind, encoded))
        return encoded


async def _append_to_end(chat_id: str, message_id: str, text: str) -> bool:
    """Append text that may compose with the last character of a content; refold the key from there on."""
    end = await _end_of_key(chat_id, message_id)
    for is_last in (False, False, True):
        if end is None:
            return False
        # Folding a long text takes seconds. Other writers run meanwhile, rarely on the same message.
        key = await map_slices(casefold_nfc, end + text)
        async with write_transaction("write the message"):
            found = await lock_message(chat_id, message_id)
            current = None if found is None else await _end_of_key(chat_id, message_id)
            if is_last and current not in (None, end):
                end, key = current, await map_slices(casefold_nfc, current + text)
            if current == end:
                return await _append(chat_id, message_id, text, key, replaced=len(end))
        end = current
    return False


async def _append(chat_id: str, message_id: str, text: str, key: str, *, replaced: int = 0) -> bool:
    """Append text to a content; its folded form replaces the last `replaced` characters of the key."""
    statement = SqlStatement(ChatMessageRow._meta.db)
    content, added = statement.bind(text), statement.bind(key)
    part = {"type": "text", "text": text}
    # Both expressions are NULL when `parts` is NULL.
    if statement.is_postgres:
        parts = f"parts || {statement.bind(orjson.dumps([part]).decode())}::jsonb"
        length = "COALESCE(length(parts::text), length(content))"
        values = "(SELECT COUNT(*) FROM jsonb_path_query(parts, 'strict $.**'))"
    else:
        parts = f"json_insert(parts, '$[#]', json({statement.bind(orjson.dumps(part).decode())}))"
        length = "COALESCE(length(parts), length(content))"
        values = "(SELECT COUNT(*) FROM json_tree(parts))"
    room = statement.bind(MAX_CONTENT_CHARACTERS - len(text))
    room_of_values = statement.bind(MAX_VALUES - VALUES_PER_PART)
    kept = "content_key"
    if replaced:
        kept = f"substr(content_key, 1, length(content_key) - {statement.bind(replaced)})"
    changes = (
        f"content = CASE WHEN parts IS NULL THEN content || {content} ELSE content END,"
        f" content_key = {kept} || {added}, parts = {parts}"
    )
    condition = f" AND {length} <= {room} AND {values} <= {room_of_values}"
    if await _update(statement, changes, chat_id, message_id, condition):
        return True
    if await _exists(chat_id, message_id):
        raise content_too_large()
    return False


async def _end_of_key(chat_id: str, message_id: str) -> str | None:
    """Return the last character of a folded content with its combining characters, None without the
    message."""
    statement = SqlStatement(ChatMessageRow._meta.db)
    end = (
        f"right(content_key, {END_CHARACTERS})"
        if statement.is_postgres
        else f"substr(content_key, -{END_CHARACTERS})"
    )
    message = message_condition(statement, chat_id, message_id)
    with translate_errors("read the message"):
        rows = await statement.run(f"SELECT {end} AS key_end FROM chat_messages WHERE {message}")  # noqa: S608
    if not rows:
        return None
    key: str = rows[0]["key_end"]
    start = len(key) - 1
    while start > 0 and is_continuation(key[start]):
        start -= 1
    return key[max(start, 0) :]


async def _update(
    statement: SqlStatement, changes: str, chat_id: str, message_id: str, condition: str = ""
) -> bool:
    message = message_condition(statement, chat_id, message_id)
    with translate_errors("write the message"):
        rows = await statement.run(
            f"UPDATE chat_messages SET {changes} WHERE {message}{condition} RETURNING number"  # noqa: S608
        )
    return bool(rows)


async def _exists(chat_id: str, message_id: str) -> bool:
    statement = SqlStatement(ChatMessageRow._meta.db)
    message = message_condition(statement, chat_id, message_id)
    with translate_errors("find the message"):
        return bool(await statement.run(f"SELECT 1 FROM chat_messages WHERE {message}"))  # noqa: S608


def _replacement_sql(statement: SqlStatement, number: int, kind: str, text: str) -> str:
    """Return the statement that replaces the first object with the `type` and `id` of an encoded one."""
    encoded = orjson.loads(text)
    written, names = statement.bind(text), ("type", "id")
    if statement.is_postgres:
        written, members = f"{written}::jsonb", [f"value ->> '{name}'" for name in names]
    else:
        members = [f"json_extract(value, '$.{name}')" for name in names]
    same = [
        f"{member} = {statement.bind(encoded[name])}" for member, name in zip(members, names, strict=True)
    ]
    return (
        f"UPDATE chat_message_items SET value = {written}"  # noqa: S608 - no values
        " WHERE id = (SELECT MIN(id) FROM chat_message_items"
        f" WHERE message_id = {statement.bind(number)} AND kind = {statement.bind(kind)}"
        f" AND {' AND '.join(same)}) RETURNING id"
    )
