"""The open database: its connections, its transactions, and one daemon at a time."""

import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from tortoise.context import TortoiseContext
from tortoise.exceptions import ConfigurationError
from tortoise.transactions import in_transaction

from gatewayd.errors import GatewayError, Kind
from gatewayd.storage.failures import translated
from gatewayd.storage.location import Location

OWNER_LOCK: Final = "gatewayd daemon"


class _RolledBack(Exception):  # noqa: N818 - a way out, not a failure
    """Ends a rehearsal."""


class Database:
    """Implements `commits.Transactor`; the stores work inside it.

    It must be opened before the listeners, in the task that starts them: the stores find it by context.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self._context = TortoiseContext()
        self._stack = AsyncExitStack()

    @classmethod
    @asynccontextmanager
    async def open(cls, location: Location) -> AsyncIterator["Database"]:
        """Connect; not_configured when the database cannot be reached or opened."""
        database = cls(location)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(database._context)
            stack.push_async_callback(database._stack.aclose)
            try:
                await database._context.init(config=location.config())
                async with translated("open the database"):
                    await database.ping()
            except (GatewayError, ConfigurationError, OSError) as error:
                raise GatewayError(Kind.NOT_CONFIGURED, f"cannot open the database: {error}") from error
            yield database

    async def ping(self) -> None:
        """Return when the database answers; unavailable when it does not."""
        async with translated("reach the database"):
            await self._context.db().execute_query("SELECT 1")

    async def own(self) -> None:
        """Be the only daemon on this PostgreSQL database until it is closed; conflict when there is another.

        A SQLite database is owned through the lock on its directory.
        """
        if self.location.is_sqlite:
            return
        client = self._context.db()
        async with translated("own the database"):
            connection = await self._stack.enter_async_context(client.acquire_connection())
            owned = await connection.fetchval("SELECT pg_try_advisory_lock($1)", _lock_number(OWNER_LOCK))
        if not owned:
            raise GatewayError(
                Kind.CONFLICT,
                "cannot use the database: another gatewayd works on it, and several need the cluster profile",
            )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commit everything inside the block at its end, or nothing when it raises; blocks may nest."""
        async with translated("commit the change"), in_transaction():
            yield

    @asynccontextmanager
    async def exclusive(self, name: str) -> AsyncIterator[None]:
        """Be a transaction that excludes every other `exclusive(name)`, in other processes too.

        On SQLite every transaction excludes every other.
        """
        async with translated("commit the change"), in_transaction() as connection:
            if not self.location.is_sqlite:
                await connection.execute_query("SELECT pg_advisory_xact_lock($1)", [_lock_number(name)])
            yield

    @asynccontextmanager
    async def rehearsal(self) -> AsyncIterator[None]:
        """Be a transaction that is always rolled back; what raises inside still raises."""
        try:
            async with translated("rehearse the change"), in_transaction():
                yield
                raise _RolledBack
        except _RolledBack:
            return


def _lock_number(name: str) -> int:
    return zlib.crc32(name.encode())
