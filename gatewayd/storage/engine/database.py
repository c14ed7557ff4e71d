"""The open database: its connections, its transactions, and one daemon at a time."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from tortoise.context import TortoiseContext
from tortoise.exceptions import ConfigurationError
from tortoise.transactions import in_transaction

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.damage import DatabaseDamage, begin
from gatewayd.storage.engine.failures import set_server_name, translate_errors
from gatewayd.storage.engine.location import APP, DatabaseLocation


class DatabaseEngine(Protocol):
    """What the engines of `sqlite` and `postgres` add to the ORM's client."""

    connection_name: str
    """Under which the ORM knows it."""

    async def claim(self, *, shared: bool) -> None:
        """Keep other daemons out, or raise conflict."""
        ...

    async def keep_claim(self) -> None:
        """See that a claim still holds."""
        ...

    async def release(self) -> None:
        """Let others in."""
        ...

    def schema_editor(self, transaction: Any) -> Any:
        """Return what migrations change tables with."""
        ...

    async def columns(self) -> list[dict[str, str]]:
        """Return the `table` and `column` of every column there is."""
        ...

    async def exclude(self, transaction: Any, name: str) -> None:
        """Wait until no other transaction excludes by this name."""
        ...

    async def snapshot(self, label: str) -> Path | None:
        """Copy the database, None when that is not for us to do."""
        ...

    def migrating(self) -> AbstractAsyncContextManager[Any]:
        """Run a block that changes tables, in one transaction."""
        ...

    async def execute_query_dict(self, query: str, values: list[Any] | None = None) -> list[dict[str, Any]]:
        """Run one query."""
        ...

    async def forget(self) -> None:
        """Let go of memory that is kept for speed alone."""
        ...


class Database:
    """Implements `commits.Transactor`; the stores work inside it.

    It must be opened before the listeners, in the task that starts them: the stores find it by context. One
    task at a time may use a transaction; a task that was started inside one, and outlives it, is outside.
    """

    def __init__(self, location: DatabaseLocation, context: TortoiseContext, damage: DatabaseDamage) -> None:
        self.location = location
        self.damage = damage
        """What is known of damage to it."""
        self._context = context
        self._engine: Any = context.db()

    @classmethod
    @asynccontextmanager
    async def open(cls, location: DatabaseLocation) -> AsyncIterator["Database"]:
        """Connect; not_configured when it cannot be opened, unavailable while a server cannot be reached."""
        async with AsyncExitStack() as stack:
            context = await stack.enter_async_context(TortoiseContext())
            damage = begin()
            set_server_name(location.server)
            try:
                await context.init(config=location.config())
                database = cls(location, context, damage)
                stack.push_async_callback(database.engine.release)
                await database.ping()
            except (GatewayError, ConfigurationError) as error:
                kind = ErrorKind.NOT_CONFIGURED
                # A server may be down for a while, a file that cannot be opened stays so.
                if isinstance(error, GatewayError) and not location.is_sqlite:
                    kind = error.kind
                sentence = f"cannot open the database {location.address}: {error}"
                raise GatewayError(kind, sentence, param="database_url") from error
            yield database

    @property
    def engine(self) -> DatabaseEngine:
        """What is particular to SQLite or PostgreSQL."""
        engine: DatabaseEngine = self._engine
        return engine

    async def ping(self) -> None:
        """Return when the database answers; unavailable when it does not, conflict when it is not ours."""
        with translate_errors("reach the database"):
            await self.engine.keep_claim()
            await self.engine.execute_query_dict("SELECT 1")

    async def forget(self) -> None:
        """Let go of memory that is kept for speed alone."""
        with translate_errors("free memory"):
            await self.engine.forget()

    async def own(self, *, shared: bool = False) -> None:
        """Be the only daemon on this database until it is closed; conflict when there is another.

        With `shared`, on PostgreSQL only, others may be there that are `shared` too.
        """
        with translate_errors("own the database"):
            await self.engine.claim(shared=shared)

    def expected_columns(self) -> frozenset[tuple[str, str]]:
        """Return the table and name of every column that the rows have."""
        apps = self._context.apps
        rows = apps[APP].values() if apps else ()
        return frozenset(
            (str(row._meta.db_table), column)
            for row in rows
            for column in row._meta.fields_db_projection.values()
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commit everything inside the block at its end, or nothing when it raises; blocks may nest."""
        async with in_transaction():
            yield

    @asynccontextmanager
    async def exclusive(self, name: str) -> AsyncIterator[None]:
        """Be a transaction that excludes every other `exclusive(name)`, in other processes too.

        On SQLite every transaction excludes every other.
        """
        async with in_transaction() as transaction:
            with translate_errors("wait for other changes"):
                await self.engine.exclude(transaction, name)
            yield

    @asynccontextmanager
    async def rehearsal(self) -> AsyncIterator[None]:
        """Be a transaction that is always rolled back; what raises inside still raises."""
        try:
            async with in_transaction():
                yield
                raise _RolledBack
        except _RolledBack:
            return


class _RolledBack(Exception):  # noqa: N818 - a way out, not a failure
    """Ends a rehearsal."""
