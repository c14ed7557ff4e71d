"""Store of the folders of chats."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.chats.folders import name_key
from gatewayd.chats.records import ChatFolder
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode_large, encode_sanitised, fits_columns
from gatewayd.storage.engine.statements import SqlStatement, storable_ids
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import insert_rows
from gatewayd.storage.tables.chats import ChatRow, FolderRow

COLUMNS: Final = "id, user_id, parent_id, name, is_expanded, meta, updated_at, created_at"
MAX_MOVED_ROWS: Final = 200
"""Maximum number of chats that one transaction takes out of folders."""


class TortoiseFolders:
    """Implements `chats.interfaces.FolderStore`."""

    async def add(self, folder: ChatFolder) -> None:
        """Insert a folder; conflict when the id is taken."""
        async with write_transaction("add the folder"):
            await insert_rows(FolderRow, [_columns_of(folder)])

    async def find(self, folder_id: str) -> ChatFolder | None:
        """Return one folder with its data."""
        if not fits_columns(FolderRow, id=folder_id):
            return None
        with translate_errors("read a folder"):
            statement = SqlStatement(FolderRow._meta.db)
            rows = await statement.run(
                f"SELECT {COLUMNS}, data FROM chat_folders WHERE id = {statement.bind(folder_id)}"  # noqa: S608
            )
        return await _folder_of(rows[0]) if rows else None

    async def list(self, user_id: str) -> Sequence[ChatFolder]:
        """Return all folders of a user by name, without their data."""
        if not fits_columns(FolderRow, user_id=user_id):
            return []
        with translate_errors("list folders"):
            statement = SqlStatement(FolderRow._meta.db)
            order = 'name_key COLLATE "C"' if statement.is_postgres else "name_key"
            rows = await statement.run(
                f"SELECT {COLUMNS} FROM chat_folders WHERE user_id = {statement.bind(user_id)}"  # noqa: S608
                f" ORDER BY {order}, id"
            )
        return [await _folder_of(row) for row in rows]

    async def put(self, folder: ChatFolder) -> bool:
        """Replace a folder; False when there is none."""
        if not fits_columns(FolderRow, id=folder.id):
            return False
        columns = _columns_of(folder)
        async with write_transaction("change the folder"):
            return await FolderRow.filter(id=columns.pop("id")).update(**columns) > 0

    async def remove(self, folder_ids: Sequence[str]) -> None:
        """Delete folders."""
        async with write_transaction("remove folders"):
            await FolderRow.filter(id__in=storable_ids(FolderRow, folder_ids)).delete()

    async def empty(self, user_id: str, folder_ids: Sequence[str]) -> None:
        """Take the chats of a user out of folders, in several transactions."""
        if not fits_columns(ChatRow, user_id=user_id):
            return
        with translate_errors("read the chats"):
            finding = SqlStatement(ChatRow._meta.db)
            user, folders = finding.bind(user_id), finding.among(storable_ids(FolderRow, folder_ids))
            found = await finding.run(
                f"SELECT id FROM chats WHERE user_id = {user} AND folder_id {folders}"  # noqa: S608 - no values
            )
        for start in range(0, len(found), MAX_MOVED_ROWS):
            some = [row["id"] for row in found[start : start + MAX_MOVED_ROWS]]
            async with write_transaction("change the chat"):
                await ChatRow.filter(id__in=some, folder_id__in=list(folder_ids)).update(folder_id=None)


def _columns_of(folder: ChatFolder) -> dict[str, Any]:
    return {
        "id": folder.id,
        "user_id": folder.user_id,
        "parent_id": folder.parent_id,
        "name": folder.name,
        "name_key": name_key(folder.name),
        "is_expanded": folder.is_expanded,
        "meta": encode_sanitised(folder.meta, "meta"),
        "data": encode_sanitised(folder.data, "data"),
        "updated_at": folder.updated_at,
        "created_at": folder.created_at,
    }


async def _folder_of(row: Mapping[str, Any]) -> ChatFolder:
    what = f"the folder {row['id']}"
    return ChatFolder(
        id=row["id"],
        user_id=row["user_id"],
        name=row["name"],
        parent_id=row["parent_id"],
        is_expanded=bool(row["is_expanded"]),
        meta=await decode_large(row["meta"], what),
        data=await decode_large(row["data"], what) if "data" in row else {},
        updated_at=row["updated_at"],
        created_at=row["created_at"],
    )
