"""Store of chats, their tags and shared copies."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from gatewayd import json_encoder
from gatewayd.chats.records import Chat, ChatChange, ChatQuery, Message, NewChat, SharedChat, Tag
from gatewayd.errors import invalid, not_found
from gatewayd.storage import chat_slices
from gatewayd.storage.chat_slices import IS_COMPLETE, UNFINISHED, title_columns
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode_large, encode_large_sanitised, fits_columns
from gatewayd.storage.engine.statements import SqlStatement, contains_pattern, storable_ids
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.message_limits import check_content
from gatewayd.storage.messages import encode_list
from gatewayd.storage.tables.chats import ChatRow, ChatTagRow, FolderRow, SharedChatRow
from gatewayd.time_slices import LoopPacer

ORDERS: Final = {"updated_at": "updated_at", "created_at": "created_at", "title": "title_key"}
"""The column of each sort order."""
FROM: Final = " FROM chats c LEFT JOIN shared_chats s ON s.chat_id = c.id"
SELECT: Final = (
    "SELECT c.id, c.user_id, c.title, c.head, c.current_id, c.archived, c.pinned, c.folder_id, c.meta,"
    f" c.last_read_at, c.updated_at, c.created_at, s.id AS share_id{FROM}"
)
MAX_ARCHIVED_ROWS: Final = 200
"""Maximum number of chats that one transaction archives."""

FOLDER: Final = "SELECT 1 FROM chat_folders f WHERE f.id = c.folder_id"

CONTAINS: Final = (
    "(c.title_key {like} OR EXISTS"
    " (SELECT 1 FROM chat_messages m WHERE m.chat_id = c.id AND m.content_key {like}))"
)


class TortoiseChats:
    """Implements `chats.interfaces.ChatStore`."""

    async def add(self, chat: Chat, messages: Sequence[Message], *, is_copy: bool = False) -> None:
        """Insert a chat with its messages; conflict when the id is taken. Tags are added by `add_tag`."""

        async def one() -> AsyncIterator[NewChat]:
            yield NewChat(chat, messages, is_copy=is_copy)

        await self.add_all(one())

    async def add_all(self, chats: AsyncIterator[NewChat]) -> None:
        """Insert chats with their messages and tags, all or none; conflict when an id is taken."""
        await chat_slices.add(chats)

    async def check(self, messages: Sequence[Message]) -> None:
        """Raise too_large for a message over the limits of a stored one."""
        pace = LoopPacer()
        for message in messages:
            await pace.turn()
            check_content(message.content)
            for kind, values in message.items.items():
                await encode_list(kind, values)

    async def find(self, chat_id: str) -> Chat | None:
        """Return one chat."""
        if not fits_columns(ChatRow, id=chat_id):
            return None
        with translate_errors("read a chat"):
            statement = SqlStatement(ChatRow._meta.db)
            found = await _read(
                statement, f"{SELECT} WHERE c.id = {statement.bind(chat_id)} AND {IS_COMPLETE}"
            )
        return found[0] if found else None

    async def list(self, query: ChatQuery) -> tuple[Sequence[Chat], int]:
        """Return one page of chats without their messages, and the total count."""
        if query.sort_by not in ORDERS:
            raise invalid(f"cannot order chats by {query.sort_by!r}", param="sort_by")
        statement = SqlStatement(ChatRow._meta.db)
        conditions = _conditions(statement, query)
        if conditions is None:
            return [], 0
        where = f" WHERE {' AND '.join(conditions)}"
        counting = statement.copy()
        column = f"c.{ORDERS[query.sort_by]}"
        if query.sort_by == "title" and statement.is_postgres:
            column += ' COLLATE "C"'
        direction = "DESC" if query.descending else "ASC"
        page = (
            f" ORDER BY {column} {direction}, c.id {direction}{statement.window(query.offset, query.limit)}"
        )
        with translate_errors("list chats"):
            [counted] = await counting.run(f"SELECT COUNT(*) AS total{FROM}{where}")
            return await _read(statement, f"{SELECT}{where}{page}"), counted["total"]

    async def change(self, chat_id: str, change: ChatChange, at: int) -> bool:
        """Change a chat; `at` is its new `updated_at`. False when there is none."""
        if not fits_columns(ChatRow, id=chat_id):
            return False
        async with write_transaction("change the chat"):
            return await ChatRow.filter(id=chat_id).update(**await _changed(change), updated_at=at) > 0

    async def touch(self, chat_id: str, at: int) -> bool:
        """Set `updated_at`, unless it has this value already."""
        if not fits_columns(ChatRow, id=chat_id):
            return False
        with translate_errors("change the chat"):
            found: Any = await ChatRow.filter(id=chat_id).values_list("updated_at", flat=True)
            if found and found[0] != at:
                return await ChatRow.filter(id=chat_id).update(updated_at=at) > 0
        return bool(found)

    async def hide(self, chat_id: str) -> bool:
        """Make a chat unfinished, as the first step to delete it; False when there is none."""
        return fits_columns(ChatRow, id=chat_id) and bool(await chat_slices.hide("id", chat_id))

    async def hide_all(self, user_id: str) -> Sequence[str]:
        """Make every chat of a user unfinished, and return their ids."""
        return await chat_slices.hide("user_id", user_id) if fits_columns(ChatRow, user_id=user_id) else []

    async def list_unfinished(self) -> Sequence[str]:
        """Return the ids of the incomplete chats that a killed process has left."""
        return await chat_slices.list_unfinished()

    async def purge(self, chat_ids: Sequence[str]) -> None:
        """Delete unfinished chats, their messages, tags and shared copies."""
        await chat_slices.purge(chat_ids)

    async def archive_all(self, user_id: str, *, archived: bool) -> None:
        """Set `archived` of every chat of a user, in several transactions; `updated_at` stays."""
        if not fits_columns(ChatRow, user_id=user_id):
            return
        with translate_errors("read the chats"):
            finding = SqlStatement(ChatRow._meta.db)
            user, other = finding.bind(user_id), finding.bind(not archived)
            found = await finding.run(
                f"SELECT c.id FROM chats c WHERE c.user_id = {user}"  # noqa: S608
                f" AND c.archived = {other} AND {IS_COMPLETE}"
            )
        for start in range(0, len(found), MAX_ARCHIVED_ROWS):
            some = [row["id"] for row in found[start : start + MAX_ARCHIVED_ROWS]]
            async with write_transaction("change the chat"):
                await ChatRow.filter(id__in=some).update(archived=archived)

    async def add_tag(self, chat_id: str, tag: Tag) -> None:
        """Add a tag to a chat unless it has the tag; not_found without the chat."""
        row = ChatTagRow(chat_id=chat_id, tag=tag.id, name=tag.name)
        async with write_transaction("add the tag", not_found("chat", chat_id)):
            await ChatTagRow.bulk_create([row], ignore_conflicts=True)

    async def remove_tags(self, chat_id: str, tag_ids: Sequence[str] | None = None) -> None:
        """Remove these tags of a chat, or all."""
        if not fits_columns(ChatTagRow, chat_id=chat_id):
            return
        gone = ChatTagRow.filter(chat_id=chat_id).exclude(tag=UNFINISHED)
        if tag_ids is not None:
            gone = gone.filter(tag__in=[each for each in tag_ids if fits_columns(ChatTagRow, tag=each)])
        async with write_transaction("remove tags"):
            await gone.delete()

    async def tags(self, *, user_id: str | None = None, chat_id: str | None = None) -> Sequence[Tag]:
        """Return the tags of a chat, or those of all chats of a user, each once, by name."""
        statement = SqlStatement(ChatTagRow._meta.db)
        conditions = [IS_COMPLETE]
        for column, value in (("c.user_id", user_id), ("c.id", chat_id)):
            if value is not None:
                if not fits_columns(ChatRow, id=value):
                    return []
                conditions.append(f"{column} = {statement.bind(value)}")
        where = f" WHERE {' AND '.join(conditions)}"
        with translate_errors("read tags"):
            rows = await statement.run(
                "SELECT t.tag AS id, MIN(t.name) AS name, c.user_id AS user_id FROM chats c"  # noqa: S608
                f" JOIN chat_tags t ON t.chat_id = c.id{where} GROUP BY c.user_id, t.tag ORDER BY 2, 1, 3"
            )
        return [Tag(**row) for row in rows]

    async def share(self, shared: SharedChat) -> None:
        """Store a shared copy of a chat, replacing the former one; not_found without the chat."""
        columns = {
            "id": shared.id,
            "chat_id": shared.chat_id,
            "user_id": shared.user_id,
            "document": b"".join(await json_encoder.encode(shared.document)).decode(),
            "created_at": shared.created_at,
        }
        async with write_transaction("share the chat", not_found("chat", shared.chat_id)):
            await upsert_rows(SharedChatRow, [columns], ["chat_id"])

    async def find_shared(self, share_id: str) -> SharedChat | None:
        """Return the shared copy with this id."""
        if not fits_columns(SharedChatRow, id=share_id):
            return None
        with translate_errors("read a shared chat"):
            row = await SharedChatRow.get_or_none(id=share_id)
            chat_id = "" if row is None else str(row.chat_id)  # type: ignore[attr-defined]
            is_gone = await ChatTagRow.filter(chat_id=chat_id, tag=UNFINISHED).exists()
        if row is None or is_gone:
            return None
        return SharedChat(
            id=row.id,
            chat_id=chat_id,
            user_id=row.user_id,
            document=await decode_large(row.document, f"the shared chat {row.id}"),
            created_at=row.created_at,
        )

    async def unshare(self, chat_id: str) -> bool:
        """Delete the shared copy of a chat."""
        if not fits_columns(SharedChatRow, chat_id=chat_id):
            return False
        async with write_transaction("stop sharing the chat"):
            return await SharedChatRow.filter(chat_id=chat_id).delete() > 0


async def _changed(change: ChatChange) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in ("current_id", "archived", "pinned", "folder_id", "last_read_at"):
        value = getattr(change, name)
        if value is not None:
            columns[name] = None if value == "" else value
    if change.title is not None:
        columns |= title_columns(change.title)
    if change.head is not None:
        columns["head"] = await encode_large_sanitised(change.head, "chat")
    if change.meta is not None:
        columns["meta"] = await encode_large_sanitised(change.meta, "meta")
    return columns


def _conditions(statement: SqlStatement, query: ChatQuery) -> list[str] | None:
    """Return the SQL conditions of a query, None when no chat can match."""
    pattern = contains_pattern(query.text)
    possible = query.user_id is None or fits_columns(ChatRow, user_id=query.user_id)
    if pattern is None or not possible or not all(fits_columns(ChatTagRow, tag=tag) for tag in query.tags):
        return None
    exact = {"user_id": query.user_id, "archived": query.archived, "pinned": query.pinned}
    conditions = [f"c.{name} = {statement.bind(value)}" for name, value in exact.items() if value is not None]
    conditions.append(IS_COMPLETE)
    if query.shared is not None:
        conditions.append(f"s.id IS {'NOT ' if query.shared else ''}NULL")
    conditions += [
        f"EXISTS (SELECT 1 FROM chat_tags t WHERE t.chat_id = c.id AND t.tag = {statement.bind(tag)})"  # noqa: S608
        for tag in query.tags
    ]
    conditions += _folder_conditions(statement, query)
    if query.text:
        conditions.append(CONTAINS.format(like=statement.like(pattern)))
    return conditions


def _folder_conditions(statement: SqlStatement, query: ChatQuery) -> list[str]:
    """Return the SQL conditions on the folder of a chat; one that does not exist counts as none."""
    conditions = []
    if query.is_loose:
        conditions.append(f"NOT EXISTS ({FOLDER})")
    if query.folder_ids is not None:
        conditions.append(f"c.folder_id {statement.among(storable_ids(FolderRow, query.folder_ids))}")
    if query.folder_name is not None:
        name = statement.bind(query.folder_name if fits_columns(FolderRow, name=query.folder_name) else "")
        conditions.append(f"EXISTS ({FOLDER} AND f.user_id = c.user_id AND f.name_key = {name})")
    return conditions


async def _read(statement: SqlStatement, sql: str) -> list[Chat]:
    """Run a query of SELECT and return its chats with their tags, in two statements."""
    rows = await statement.run(sql)
    if not rows:
        return []
    tagged = SqlStatement(statement.client)
    among = tagged.among([row["id"] for row in rows])
    tags: dict[str, list[str]] = {}
    for each in await tagged.run(f"SELECT chat_id, tag FROM chat_tags WHERE chat_id {among} ORDER BY tag"):  # noqa: S608
        tags.setdefault(each["chat_id"], []).append(each["tag"])
    pace = LoopPacer()
    found = []
    for row in rows:
        await pace.turn()
        found.append(await _record_of(row, tuple(tags.get(row["id"], ()))))
    return found


async def _record_of(row: Mapping[str, Any], tags: tuple[str, ...]) -> Chat:
    return Chat(
        id=row["id"],
        user_id=row["user_id"],
        title=row["title"],
        head=await decode_large(row["head"], f"the head of chat {row['id']}"),
        current_id=row["current_id"],
        archived=bool(row["archived"]),
        pinned=bool(row["pinned"]),
        folder_id=row["folder_id"],
        share_id=row["share_id"],
        meta=await decode_large(row["meta"], f"the meta of chat {row['id']}"),
        tags=tags,
        last_read_at=row["last_read_at"],
        updated_at=row["updated_at"],
        created_at=row["created_at"],
    )
