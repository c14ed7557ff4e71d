"""Store of the sizes of files by their owners."""

from typing import Final

from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.tables.documents import FileRow

TABLES: Final = ("files", "batch_files")


class TortoiseStoredBytes:
    """Implements `limits.interfaces.StorageSizes`."""

    async def stored_bytes(self, *, user_id: str | None = None, group_id: str | None = None) -> int:
        """Return the sum of the sizes of files of a user, of the members of a group, or of all."""
        statement = SqlStatement(FileRow._meta.db)
        where = ""
        if user_id is not None:
            where = f" WHERE user_id = {statement.bind(user_id)}"
        elif group_id is not None:
            members = f"SELECT user_id FROM group_members WHERE group_id = {statement.bind(group_id)}"  # noqa: S608
            where = f" WHERE user_id IN ({members})"
        sums = [f"COALESCE((SELECT SUM(size) FROM {table}{where}), 0)" for table in TABLES]  # noqa: S608
        with translate_errors("count the stored bytes"):
            [row] = await statement.run(f"SELECT {' + '.join(sums)} AS total")
        return int(row["total"])
