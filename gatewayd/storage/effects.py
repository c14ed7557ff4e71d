"""What events do to stored messages: single statements, so that their order is the database's."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gatewayd.accounts.texts import mended
from gatewayd.storage.chat_rows import ChatMessageItemRow, ChatMessageRow
from gatewayd.storage.failures import translated
from gatewayd.storage.fields import decode, fits
from gatewayd.storage.mending import encode_mended
from gatewayd.storage.messages import append_items, lock, one, replace_items
from gatewayd.storage.statements import Statement
from gatewayd.storage.transactions import writing
from gatewayd.text import folded


class EffectRows:
    """Implements `events.interfaces.MessageEffects`."""

    async def append_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Add text to the end of the content; to a list, as a part of its own."""
        if not fits(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        text = mended(text)
        statement = Statement(ChatMessageRow._meta.db)
        said, key = statement.bind(text), statement.bind(folded(text))
        part = {"type": "text", "text": text}
        # Of no list, NULL, both make NULL.
        if statement.is_postgres:
            parts = f"parts || {statement.bind(orjson.dumps([part]).decode())}::jsonb"
        else:
            parts = f"json_insert(parts, '$[#]', json({statement.bind(orjson.dumps(part).decode())}))"
        return await _update(
            statement,
            f"content = CASE WHEN parts IS NULL THEN content || {said} ELSE content END,"
            f" content_key = content_key || {key}, parts = {parts}",
            chat_id,
            message_id,
        )

    async def replace_content(self, chat_id: str, message_id: str, text: str) -> bool:
        """Make the content this text."""
        if not fits(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        text = mended(text)
        statement = Statement(ChatMessageRow._meta.db)
        said, key = statement.bind(text), statement.bind(folded(text))
        return await _update(
            statement, f"content = {said}, content_key = {key}, parts = NULL", chat_id, message_id
        )

    async def append_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Add JSON values to the end of a list of a message, in their order."""
        if not fits(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        statement = Statement(ChatMessageItemRow._meta.db)
        texts = [encode_mended(value, kind) for value in values]
        with translated("add to the message"):
            if not texts:
                message = one(statement, chat_id, message_id)
                return bool(await statement.run(f"SELECT 1 FROM chat_messages WHERE {message}"))  # noqa: S608
            return bool(await statement.run(_insertion(statement, chat_id, message_id, kind, texts)))

    async def put_item(self, chat_id: str, message_id: str, kind: str, value: Mapping[str, Any]) -> bool:
        """Put an object in the place of the one with the same `type` and `id` of a list, or at its end."""
        if not fits(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        text = encode_mended(value, kind)
        async with writing("add to the message"):
            # Two that come at the same time would both find no object to replace.
            found = await lock(chat_id, message_id)
            if found is None:
                return False
            statement = Statement(ChatMessageItemRow._meta.db)
            if not await statement.run(_replacement(statement, found["number"], kind, text)):
                await append_items(found["number"], kind, [value])
        return True

    async def replace_items(self, chat_id: str, message_id: str, kind: str, values: Sequence[Any]) -> bool:
        """Make a list of a message these values."""
        if not fits(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        async with writing("replace a list of the message"):
            found = await lock(chat_id, message_id)
            if found is not None:
                await replace_items(found["number"], kind, values)
        return found is not None

    async def items(self, chat_id: str, message_id: str, kind: str) -> Sequence[Any]:
        """Return the values of a list of a message, oldest first; empty when there is no such message."""
        if not fits(ChatMessageRow, chat_id=chat_id, id=message_id):
            return []
        statement = Statement(ChatMessageItemRow._meta.db)
        message, wanted = one(statement, chat_id, message_id), statement.bind(kind)
        with translated("read a list of a message"):
            rows = await statement.run(
                f"SELECT value FROM chat_message_items WHERE kind = {wanted} AND message_id ="  # noqa: S608
                f" (SELECT number FROM chat_messages WHERE {message}) ORDER BY id"
            )
        return [decode(row["value"], f"the {kind} of message {message_id}") for row in rows]


async def _update(statement: Statement, changes: str, chat_id: str, message_id: str) -> bool:
    message = one(statement, chat_id, message_id)
    with translated("write the message"):
        rows = await statement.run(
            f"UPDATE chat_messages SET {changes} WHERE {message} RETURNING number"  # noqa: S608 - no values
        )
    return bool(rows)


def _replacement(statement: Statement, number: int, kind: str, text: str) -> str:
    """Return the statement that replaces the objects of a list with the `type` and `id` of an encoded one."""
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
        f" WHERE message_id = {statement.bind(number)} AND kind = {statement.bind(kind)}"
        f" AND {' AND '.join(same)} RETURNING id"
    )


def _insertion(statement: Statement, chat_id: str, message_id: str, kind: str, texts: Sequence[str]) -> str:
    """Return the statement that adds encoded values to a list, when there is such a message."""
    message, wanted = one(statement, chat_id, message_id, "m."), statement.bind(kind)
    if statement.is_postgres:
        values = statement.bind(list(texts))
        # Locked, so that a message that goes at this moment is none, and no broken reference.
        rows = (
            f"SELECT m.number, {wanted}, v.value::jsonb FROM chat_messages m"  # noqa: S608 - no values
            f" CROSS JOIN unnest({values}::text[]) WITH ORDINALITY AS v(value, place)"
            f" WHERE {message} ORDER BY v.place FOR KEY SHARE OF m"
        )
    else:
        values = statement.bind(orjson.dumps(texts).decode())
        rows = (
            f"SELECT m.number, {wanted}, v.value FROM chat_messages m"  # noqa: S608 - no values
            f" CROSS JOIN json_each({values}) v WHERE {message} ORDER BY v.key"
        )
    return f"INSERT INTO chat_message_items (message_id, kind, value) {rows} RETURNING id"
