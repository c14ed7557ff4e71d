"""Store of the messages of chats: one row per message, and one per value of its lists."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from gatewayd.chats.json_limits import check_member
from gatewayd.chats.records import Message, MessageChange, MessageLink, MessageState
from gatewayd.errors import not_found
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import (
    decode_large,
    encode_large_sanitised,
    encode_sanitised,
    fits_columns,
)
from gatewayd.storage.engine.statements import SqlStatement, stored_values
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import insert_rows, upsert_rows
from gatewayd.storage.message_limits import check_content, check_items
from gatewayd.storage.tables.chats import ChatMessageItemRow, ChatMessageRow
from gatewayd.text import casefold_nfc, storable
from gatewayd.time_slices import LoopPacer, map_slices

SELECT: Final = (
    "SELECT number, id, parent_id, role, content, parts, done, state, attributes, timestamp"
    " FROM chat_messages WHERE"
)


class EncodedMessage(NamedTuple):
    """A message encoded for the database: its columns, and its lists with a JSON text for each value."""

    columns: dict[str, Any]
    lists: Mapping[str, Sequence[str]]


UNCLAIMED: Final = (
    " AND NOT EXISTS (SELECT 1 FROM answer_runs r"
    " WHERE r.chat_id = chat_messages.chat_id AND r.message_id = chat_messages.id)"
)


class TortoiseMessages:
    """Implements `chats.interfaces.MessageStore`."""

    async def list(self, chat_id: str) -> Sequence[Message]:
        """Return all messages of a chat in the order of their creation."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id):
            return []
        with translate_errors("read the messages of a chat"):
            statement = SqlStatement(ChatMessageRow._meta.db)
            return await _read(statement, f"{SELECT} chat_id = {statement.bind(chat_id)} ORDER BY number")

    async def count(self, chat_id: str) -> int:
        """Return the number of messages of a chat."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id):
            return 0
        with translate_errors("count the messages of a chat"):
            statement = SqlStatement(ChatMessageRow._meta.db)
            [row] = await statement.run(
                f"SELECT COUNT(*) AS total FROM chat_messages WHERE chat_id = {statement.bind(chat_id)}"  # noqa: S608
            )
        return int(row["total"])

    async def size(self, chat_id: str) -> int:
        """Return the size of the messages of a chat in bytes."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id):
            return 0
        with translate_errors("measure the messages of a chat"):
            return await size_of_chat(chat_id)

    async def find(self, chat_id: str, message_id: str) -> Message | None:
        """Return one message."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return None
        with translate_errors("read a message"):
            statement = SqlStatement(ChatMessageRow._meta.db)
            found = await _read(statement, f"{SELECT} {message_condition(statement, chat_id, message_id)}")
        return found[0] if found else None

    async def branch(self, chat_id: str, message_id: str) -> Sequence[Message]:
        """Return the messages from the root to this one; a missing or repeated parent counts as the root."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return []
        with translate_errors("read the messages of a chat"):
            numbers = await _branch(chat_id, message_id)
            statement = SqlStatement(ChatMessageRow._meta.db)
            found = await _read(statement, f"{SELECT} number {statement.among(list(numbers.values()))}")
        order = {each: place for place, each in enumerate(numbers)}
        return sorted(found, key=lambda message: order[message.id], reverse=True)

    async def outline(self, chat_id: str) -> Sequence[MessageLink]:
        """Return the ids and parents of all messages of a chat in the order of their creation."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id):
            return []
        with translate_errors("read the tree of a chat"):
            statement = SqlStatement(ChatMessageRow._meta.db)
            rows = await statement.run(
                "SELECT id, parent_id FROM chat_messages"  # noqa: S608 - no values
                f" WHERE chat_id = {statement.bind(chat_id)} ORDER BY number"
            )
        return [MessageLink(row["id"], row["parent_id"]) for row in rows]

    async def select(self, chat_id: str, message_ids: Sequence[str]) -> Sequence[Message]:
        """Return the messages with these ids in the order of their creation."""
        if not message_ids or not fits_columns(ChatMessageRow, chat_id=chat_id):
            return []
        with translate_errors("read messages of a chat"):
            statement = SqlStatement(ChatMessageRow._meta.db)
            chat, wanted = statement.bind(chat_id), statement.among(list(message_ids))
            return await _read(statement, f"{SELECT} chat_id = {chat} AND id {wanted} ORDER BY number")

    async def put(self, chat_id: str, messages: Sequence[Message]) -> None:
        """Insert messages, or replace them completely; not_found without the chat."""
        encoded = await _encode(chat_id, messages)
        async with write_transaction("store messages", not_found("chat", chat_id)):
            await _write(encoded)

    async def change(self, chat_id: str, message_id: str, change: MessageChange) -> bool:
        """Change one message; False when there is none."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        # Encoding a long text takes seconds, and other writes would wait for the transaction.
        columns = await _changed(change)
        encoded = {kind: await encode_items(kind, values) for kind, values in (change.items or {}).items()}
        async with write_transaction("change the message"):
            found = await lock_message(chat_id, message_id)
            if found is None:
                return False
            if change.attributes is not None:
                columns["attributes"] = await _merged(found["attributes"], change.attributes)
            if columns:
                statement = SqlStatement(ChatMessageRow._meta.db)
                pairs = [f"{name} = {statement.bind(value)}" for name, value in columns.items()]
                number = statement.bind(found["number"])
                await statement.run(
                    f"UPDATE chat_messages SET {', '.join(pairs)} WHERE number = {number}"  # noqa: S608
                )
            for kind, items in encoded.items():
                await replace_items(found["number"], kind, items)
        return True

    async def remove(self, chat_id: str, message_id: str) -> bool:
        """Delete a message; its children get its parent."""
        if not fits_columns(ChatMessageRow, chat_id=chat_id, id=message_id):
            return False
        async with write_transaction("remove the message"):
            found = await lock_message(chat_id, message_id)
            if found is None:
                return False
            children = ChatMessageRow.filter(chat_id=chat_id, parent_id=message_id)
            await children.update(parent_id=found["parent_id"])
            await ChatMessageRow.filter(number=found["number"]).delete()
        return True

    async def remove_all(self, chat_id: str, message_ids: Sequence[str]) -> None:
        """Delete messages; the parents of others stay as they are."""
        async with write_transaction("remove messages") as client:
            statement = SqlStatement(client)
            chat, gone = statement.bind(chat_id), statement.among(list(message_ids))
            await statement.run(f"DELETE FROM chat_messages WHERE chat_id = {chat} AND id {gone}")  # noqa: S608

    async def end_running(self, error: Mapping[str, Any], *, unclaimed: bool = False) -> int:
        """Mark every message in the state RUNNING as done with `error`; return their number.

        With `unclaimed` only those that no run of a node claims: a claim precedes the state, and follows it.
        """
        condition = UNCLAIMED if unclaimed else ""
        async with write_transaction("end the running messages") as client:
            statement = SqlStatement(client)
            value = statement.bind(encode_sanitised(dict(error), "error"))
            if statement.is_postgres:
                merged = f"attributes || jsonb_build_object('error', {value}::jsonb)"
            else:
                merged = f"json_set(attributes, '$.error', json({value}))"
            idle, running = (
                statement.bind(MessageState.IDLE.value),
                statement.bind(MessageState.RUNNING.value),
            )
            rows = await statement.run(
                f"UPDATE chat_messages SET attributes = {merged}, done = TRUE, state = {idle}"  # noqa: S608
                f" WHERE state = {running}{condition} RETURNING number"
            )
        return len(rows)


def message_condition(statement: SqlStatement, chat_id: str, message_id: str, table: str = "") -> str:
    """Return the SQL condition for the row of a message; `table` is an alias with a dot, or empty."""
    return f"{table}chat_id = {statement.bind(chat_id)} AND {table}id = {statement.bind(message_id)}"


async def lock_message(chat_id: str, message_id: str) -> dict[str, Any] | None:
    """Return the number, parent_id and attributes of a message, locked for the caller's transaction."""
    statement = SqlStatement(ChatMessageRow._meta.db)
    # SQLite has one writer.
    ending = " FOR NO KEY UPDATE" if statement.is_postgres else ""
    rows = await statement.run(
        "SELECT number, parent_id, attributes FROM chat_messages"  # noqa: S608 - no values
        f" WHERE {message_condition(statement, chat_id, message_id)}{ending}"
    )
    return rows[0] if rows else None


async def _encode(chat_id: str, messages: Sequence[Message]) -> Sequence[EncodedMessage]:
    """Return encoded messages; of several messages with one id the last wins."""
    encoded = []
    for message in {each.id: each for each in messages}.values():
        lists = {kind: await encode_list(kind, values) for kind, values in message.items.items()}
        encoded.append(EncodedMessage(await columns_of(chat_id, message), lists))
    return encoded


async def _write(messages: Sequence[EncodedMessage]) -> None:
    """Insert messages, or replace them completely, inside the caller's transaction."""
    records = [each.columns for each in messages]
    rows = await upsert_rows(ChatMessageRow, records, ["chat_id", "id"], returning="number, id")
    numbers = {row["id"]: row["number"] for row in rows}
    if numbers:
        statement = SqlStatement(ChatMessageItemRow._meta.db)
        gone = statement.among(list(numbers.values()))
        await statement.run(f"DELETE FROM chat_message_items WHERE message_id {gone}")  # noqa: S608
    items = [
        {"message_id": numbers[each.columns["id"]], "kind": kind, "value": value}
        for each in messages
        for kind, values in each.lists.items()
        for value in values
    ]
    await insert_rows(ChatMessageItemRow, items)


async def encode_list(kind: str, values: Sequence[Any], *, is_copy: bool = False) -> Sequence[str]:
    """Return a whole list of a message as JSON, a text for each value.

    Raises too_large for a list above its limits, unless it is a copy of a stored list.
    """
    encoded = await _encoded(kind, values)
    if not is_copy:
        check_items(kind, encoded)
    return encoded


async def encode_items(kind: str, values: Sequence[Any]) -> Sequence[str]:
    """Return values for a list of a message as JSON; too_large for a value above the limits of a member."""
    pace = LoopPacer()
    for value in values:
        await pace.turn()
        check_member(value, kind)
    return await _encoded(kind, values)


async def _encoded(kind: str, values: Sequence[Any]) -> Sequence[str]:
    pace = LoopPacer()
    encoded = []
    for value in values:
        await pace.turn()
        encoded.append(await encode_large_sanitised(value, kind))
    return encoded


async def replace_items(number: int, kind: str, values: Sequence[str]) -> None:
    """Replace a list of a message by encoded values, inside the transaction that has locked the message."""
    await ChatMessageItemRow.filter(message_id=number, kind=kind).delete()
    check_items(kind, values)
    await _insert_items(number, kind, values)


async def append_items(number: int, kind: str, values: Sequence[str]) -> None:
    """Append encoded values to a list of a message, inside the transaction that has locked the message."""
    count, size = await _size_of_list(number, kind)
    check_items(kind, values, count=count, size=size)
    await _insert_items(number, kind, values)


async def check_list(number: int, kind: str) -> None:
    """Raise too_large for a list of a message above its limits."""
    count, size = await _size_of_list(number, kind)
    check_items(kind, (), count=count, size=size)


async def _insert_items(number: int, kind: str, values: Sequence[str]) -> None:
    await insert_rows(
        ChatMessageItemRow, [{"message_id": number, "kind": kind, "value": value} for value in values]
    )


async def _size_of_list(number: int, kind: str) -> tuple[int, int]:
    """Return the number of values of a list of a message, and their bytes."""
    statement = SqlStatement(ChatMessageItemRow._meta.db)
    size = "octet_length(value::text)" if statement.is_postgres else "length(CAST(value AS BLOB))"
    [row] = await statement.run(
        f"SELECT COUNT(*) AS count, COALESCE(SUM({size}), 0) AS size FROM chat_message_items"  # noqa: S608
        f" WHERE message_id = {statement.bind(number)} AND kind = {statement.bind(kind)}"
    )
    return int(row["count"]), int(row["size"])


async def size_of_chat(chat_id: str) -> int:
    """Return the size of the messages of a chat with their lists, in bytes."""
    statement = SqlStatement(ChatMessageRow._meta.db)
    chat = statement.bind(chat_id)
    size = "octet_length({}::text)" if statement.is_postgres else "length(CAST({} AS BLOB))"
    sizes = " + ".join(f"COALESCE({size.format(name)}, 0)" for name in ("content", "parts", "attributes"))
    [row] = await statement.run(
        f"SELECT COALESCE((SELECT SUM({sizes}) FROM chat_messages WHERE chat_id = {chat}), 0)"  # noqa: S608
        f" + COALESCE((SELECT SUM({size.format('value')}) FROM chat_message_items WHERE message_id IN"
        f" (SELECT number FROM chat_messages WHERE chat_id = {chat})), 0) AS size"
    )
    return int(row["size"])


async def columns_of(chat_id: str, message: Message, *, is_copy: bool = False) -> dict[str, Any]:
    """Return the columns of a message; too_large for a text above its limit, unless it is a copy."""
    return {
        "chat_id": chat_id,
        "id": message.id,
        "parent_id": message.parent_id,
        "role": message.role,
        **await _content(message.content, message.parts, is_copy=is_copy),
        "done": message.done,
        "state": message.state.value,
        "attributes": await encode_large_sanitised(message.attributes, "attributes"),
        "timestamp": message.timestamp,
    }


async def _content(content: str, parts: list[Any] | None, *, is_copy: bool = False) -> dict[str, Any]:
    """Return the columns of a content: a text, or a list of parts, whose texts are searchable."""
    if parts is None:
        if not is_copy:
            check_content(content)
        text = await map_slices(storable, content)
        return {"content": text, "content_key": await map_slices(casefold_nfc, text), "parts": None}
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    key = await map_slices(storable, "\n".join(text for text in texts if isinstance(text, str)))
    return {
        "content": "",
        "content_key": await map_slices(casefold_nfc, key),
        "parts": await encode_large_sanitised(parts, "content"),
    }


async def _changed(change: MessageChange) -> dict[str, Any]:
    """Return the columns that a change replaces, except the attributes, which are merged."""
    columns: dict[str, Any] = {}
    for name in ("role", "done", "state"):
        if getattr(change, name) is not None:
            columns[name] = getattr(change, name)
    if change.content is not None or change.parts is not None:
        columns |= await _content(change.content or "", change.parts)
    return dict(zip(columns, stored_values(ChatMessageRow, columns), strict=True))


async def _merged(attributes: str, changes: Mapping[str, Any]) -> str:
    """Return the stored attributes of a message merged with changes; None removes an attribute."""
    merged = {**await decode_large(attributes, "the attributes of a message"), **changes}
    kept = {name: value for name, value in merged.items() if value is not None}
    return await encode_large_sanitised(kept, "attributes")


async def _branch(chat_id: str, message_id: str) -> dict[str, int]:
    """Return the numbers of the messages by id, from this one to the root.

    Not a recursive query: PostgreSQL plans it badly before the table has statistics.
    """
    statement = SqlStatement(ChatMessageRow._meta.db)
    rows = await statement.run(
        f"SELECT id, parent_id, number FROM chat_messages WHERE chat_id = {statement.bind(chat_id)}"  # noqa: S608
    )
    found = {row["id"]: row for row in rows}
    numbers: dict[str, int] = {}
    at: str | None = message_id
    while at is not None and at in found and at not in numbers:
        numbers[at] = found[at]["number"]
        at = found[at]["parent_id"]
    return numbers


async def _read(statement: SqlStatement, sql: str) -> list[Message]:
    rows = await statement.run(sql)
    items = await _items([row["number"] for row in rows]) if rows else {}
    pace = LoopPacer()
    found = []
    for row in rows:
        await pace.turn()
        found.append(await _record_of(row, items.get(row["number"], {})))
    return found


async def _items(numbers: Sequence[int]) -> Mapping[int, dict[str, list[Any]]]:
    statement = SqlStatement(ChatMessageItemRow._meta.db)
    rows = await statement.run(
        "SELECT message_id, kind, value FROM chat_message_items"  # noqa: S608 - no values
        f" WHERE message_id {statement.among(numbers)} ORDER BY id"
    )
    found: dict[int, dict[str, list[Any]]] = defaultdict(dict)
    pace = LoopPacer()
    for row in rows:
        await pace.turn()
        value = await decode_large(row["value"], f"the {row['kind']} of a message")
        found[row["message_id"]].setdefault(row["kind"], []).append(value)
    return found


async def _record_of(row: Mapping[str, Any], items: dict[str, list[Any]]) -> Message:
    return Message(
        id=row["id"],
        parent_id=row["parent_id"],
        role=row["role"],
        content=row["content"],
        parts=await decode_large(row["parts"], f"the content of message {row['id']}"),
        done=None if row["done"] is None else bool(row["done"]),
        state=MessageState(row["state"]),
        attributes=await decode_large(row["attributes"], f"the attributes of message {row['id']}"),
        items=items,
        timestamp=row["timestamp"],
    )
