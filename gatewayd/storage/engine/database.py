"""The open database: connections, transactions, and the claim of one daemon."""

from collections.abc import AsyncIterator, Sequence
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


class ReservedConnection(Protocol):
    """A connection outside of the pool, which a full pool cannot delay. One task at a time uses it."""

    async def rows(self, query: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run one query."""
        ...

    def close(self) -> None:
        """Close the connection at once."""
        ...


class DatabaseEngine(Protocol):
    """Methods that the engines in `sqlite` and `postgres` add to the ORM's client."""

    connection_name: str
    """Name of the connection in the ORM."""

    @property
    def connections(self) -> tuple[int, int] | None:
        """Number of idle and of used connections of the pool; None without a pool."""
        ...

    async def claim(self, *, shared: bool) -> None:
        """Claim the database against other daemons; conflict when another one has it."""
        ...

    async def keep_claim(self) -> None:
        """Renew a lost claim, or raise conflict."""
        ...

    async def release(self) -> None:
        """Release the claim."""
        ...

    async def reserve(self) -> ReservedConnection:
        """Open a connection outside of the pool; not_configured without a server."""
        ...

    def schema_editor(self, transaction: Any, *, collect_sql: bool = False) -> Any:
        """Return the schema editor for migrations; with `collect_sql` it only lists its statements."""
        ...

    async def columns(self) -> list[dict[str, str]]:
        """Return the `table` and `column` of every column in the database."""
        ...

    async def exclude(self, transaction: Any, name: str) -> None:
        """Wait for the lock of this name, which the transaction holds until its end."""
        ...

    async def snapshot(self, label: str) -> Path | None:
        """Copy the database and return the path, None for a server, whose administrator makes backups."""
        ...

    def migrating(self) -> AbstractAsyncContextManager[Any]:
        """Run a block that changes the schema, in one transaction."""
        ...

    async def execute_query_dict(self, query: str, values: list[Any] | None = None) -> list[dict[str, Any]]:
        """Run one query."""
        ...

    async def forget(self) -> None:
        """Free the memory of caches."""
        ...


class Database:
    """Implements `transactions.Transactor`; the stores work inside it.

    Open it before the listeners, in the task that starts them: the stores find it through a context variable.
    Only one task at a time may use a transaction. A task that outlives the transaction in which it was
    started then works outside of it.
    """

    def __init__(self, location: DatabaseLocation, context: TortoiseContext, damage: DatabaseDamage) -> None:
        self.location = location
        self.damage = damage
        """Known damage of this database."""
        self._context = context
        self._engine: Any = context.db()

    @classmethod
    @asynccontextmanager
    async def open(cls, location: DatabaseLocation) -> AsyncIterator["Database"]:
        """Connect; not_configured when the database cannot be opened, unavailable for an unreachable
        server."""
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
                # An unreachable server may return; a file that cannot be opened needs the administrator.
                if isinstance(error, GatewayError) and not location.is_sqlite:
                    kind = error.kind
                sentence = f"cannot open the database {location.address}: {error}"
                raise GatewayError(kind, sentence, param="database_url") from error
            yield database

    @property
    def engine(self) -> DatabaseEngine:
        """The engine for SQLite or PostgreSQL."""
        engine: DatabaseEngine = self._engine
        return engine

    async def ping(self) -> None:
        """Return when the database answers; unavailable without an answer, conflict without the claim."""
        with translate_errors("reach the database"):
            await self.engine.keep_claim()
            await self.engine.execute_query_dict("SELECT 1")

    async def forget(self) -> None:
        """Free the memory of caches."""
        with translate_errors("free memory"):
            await self.engine.forget()

    async def own(self, *, shared: bool = False) -> None:
        """Claim the database for this daemon until it is closed; conflict when another daemon has it.

        Several daemons may have a `shared` claim on a PostgreSQL database.
        """
        with translate_errors("own the database"):
            await self.engine.claim(shared=shared)

    def expected_columns(self) -> frozenset[tuple[str, str]]:
        """Return the table and name of every column of the row classes."""
        apps = self._context.apps
        rows = apps[APP].values() if apps else ()
        return frozenset(
            (str(row._meta.db_table), column)
            for row in rows
            for column in row._meta.fields_db_projection.values()
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commit all changes of the block at its end, or none when it raises; blocks may nest."""
        async with in_transaction():
            yield

    @asynccontextmanager
    async def exclusive(self, name: str) -> AsyncIterator[None]:
        """Run a transaction that excludes all others of this name, also in other processes.

        On SQLite a transaction excludes all others.
        """
        async with in_transaction() as transaction:
            with translate_errors("wait for other changes"):
                await self.engine.exclude(transaction, name)
            yield

    @asynccontextmanager
    async def rehearsal(self) -> AsyncIterator[None]:
        """Run a transaction that is always rolled back; errors of the block still propagate."""
        try:
            async with in_transaction():
                yield
                raise _RolledBack
        except _RolledBack:
            return


class _RolledBack(Exception):  # noqa: N818 - control flow, not a failure
    """Ends a rehearsal."""
