"""Figures of what is stored, for checks that compare them with settings, the disk and the clock."""

from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.tables.documents import REMOVED, FileRow


class TortoiseContents:
    """Reads figures of the stored documents."""

    async def largest_file(self) -> int:
        """Return the size of the largest file in bytes, 0 without one."""
        return await self._number(f"SELECT MAX(size) AS found FROM files WHERE status <> '{REMOVED}'")  # noqa: S608

    async def newest(self) -> int:
        """Return the newest time of a change of an account or file in epoch seconds, 0 without one.

        Whoever imports a chat chooses its times, so that they do not count.
        """
        return max(
            [
                await self._number(f"SELECT MAX(updated_at) AS found FROM {table}")  # noqa: S608 - constants
                for table in ("users", "files")
            ]
        )

    async def _number(self, sql: str) -> int:
        with translate_errors("read figures of the database"):
            [row] = await SqlStatement(FileRow._meta.db).run(sql)
        return int(row["found"] or 0)
