"""PostgreSQL engine on asyncpg: a pool of connections, one of which holds the claim on the database."""

import asyncio
import io
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from pathlib import Path
from typing import Any

import asyncpg
from tortoise.backends.asyncpg.client import AsyncpgDBClient, TransactionWrapper
from tortoise.exceptions import OperationalError

from gatewayd.deadlines import CallbackTimer
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.postgres_editor import TriggerKeepingEditor
from gatewayd.storage.engine.postgres_errors import FOREIGN_ERRORS, is_lost, wrap_errors
from gatewayd.storage.engine.postgres_listener import PostgresListener
from gatewayd.storage.engine.transactions import lock_key, run_savepoint, run_transaction

log = logging.getLogger(__name__)

ACQUIRE_SECONDS = 8.0

STATEMENT_SECONDS = 10.0
"""Time limit after which a statement is aborted by closing its connection. The server's own limits, of 8
seconds and less, do not work when the server or the network is dead."""

CLAIM_SECONDS = 5.0
"""Time limit of a claim, which is short because the watchdog's health check waits for it."""

ROLLBACK_SECONDS = 2.0
"""Time limit of a rollback, after which the connection is closed, which also rolls back."""

COLUMNS = """
SELECT table_name AS "table", column_name AS "column"
FROM information_schema.columns WHERE table_schema = current_schema()
"""

BACKEND = "SELECT pg_backend_pid()"
"""Names the process of the server that runs the query."""

HOLDER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid::bigint = $1 AND objid::bigint = $2 LIMIT 1
"""


class _PooledConnection:
    """One pooled connection for one statement, with `is_unlimited` without the time limit."""

    def __init__(self, engine: "PostgresEngine", *, is_unlimited: bool = False) -> None:
        self._engine = engine
        self._connection: Any = None
        self._is_unlimited = is_unlimited
        self._timer: CallbackTimer | None = None

    async def __aenter__(self) -> Any:
        self._connection = await self._engine.take_connection()
        if not self._is_unlimited:
            self._timer = _terminate_after(self._connection)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._engine.return_connection(self._connection)


class PostgresEngine(AsyncpgDBClient):
    """The connection pool."""

    def __init__(self, label: str = "", **options: Any) -> None:
        super().__init__(application_name=f"gatewayd {label or f'(pid {os.getpid()})'}", **options)
        self._claim: Any = None
        self._claimed = False
        self._claim_lock = asyncio.Lock()
        self._shared = False

    @property
    def connections(self) -> tuple[int, int] | None:
        """Number of idle and of used connections of the pool."""
        pool: Any = self._pool
        if not pool:
            return None
        idle = pool.get_idle_size()
        return idle, pool.get_size() - idle

    async def claim(self, *, shared: bool) -> None:
        """Hold an advisory lock until `release`; conflict when another gatewayd has it.

        Several processes may hold it `shared`, which excludes an exclusive holder. A connection pooler in
        transaction mode is refused, because the lock would be lost unnoticed.
        """
        self._shared = shared
        connection = await wrap_errors(self.take_connection)
        claimed = False
        try:
            with _time_limit(connection, CLAIM_SECONDS):
                if not self._claimed:
                    # Not for a renewal: it would need more connections than the daemon has.
                    await wrap_errors(self._check_session, connection)
                await self._acquire_claim(connection)
            claimed = True
        finally:
            if not claimed:
                await self.return_connection(connection)
        self._claim = connection
        self._claimed = True

    async def forget(self) -> None:
        """Do nothing: the driver caches no values."""

    async def keep_claim(self) -> None:
        """Renew the claim if its connection was lost; conflict when another gatewayd has it."""
        async with self._claim_lock:
            if self._claimed and not await self._is_claim_held():
                await self.claim(shared=self._shared)

    async def release(self) -> None:
        """Release the claim: a connection that returns to the pool loses its locks."""
        self._claimed = False
        await self._return_claim()

    async def reserve(self) -> "ReservedSession":
        """Open a connection outside of the pool."""
        connection = await wrap_errors(
            asyncpg.connect,
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            database=self.database,
            server_settings={**self.server_settings, "application_name": self.application_name},
            **self.extra,
        )
        return ReservedSession(connection)

    async def create_connection(self, with_db: bool) -> None:
        """Open the pool."""
        await wrap_errors(super().create_connection, with_db=with_db)

    async def take_connection(self) -> Any:
        """Return a connection of the pool, waiting up to ACQUIRE_SECONDS for one."""
        if not self._pool:
            async with self._pool_init_lock:
                if not self._pool:
                    await self.create_connection(with_db=True)
        pool: Any = self._pool
        return await pool.acquire(timeout=ACQUIRE_SECONDS)

    async def return_connection(self, connection: Any) -> None:
        """Return a connection to the pool, unless the pool was closed.

        The pool closes a connection that breaks at this moment and opens another; the statements on it have
        already succeeded or failed.
        """
        if self._pool:
            try:
                await self._pool.release(connection)
            except FOREIGN_ERRORS as error:
                log.debug("cannot return a connection to the pool: %r", error)

    def acquire_connection(self) -> Any:
        """Return the context manager of one statement's connection."""
        return _PooledConnection(self)

    def schema_editor(self, transaction: Any, *, collect_sql: bool = False) -> TriggerKeepingEditor:
        """Return the schema editor for migrations."""
        return TriggerKeepingEditor(transaction, atomic=True, collect_sql=collect_sql)

    async def columns(self) -> list[dict[str, str]]:
        """Return the `table` and `column` of every column in the database."""
        rows: list[dict[str, str]] = await self.execute_query_dict(COLUMNS)
        return rows

    async def exclude(self, transaction: Any, name: str) -> None:
        """Wait for the lock of this name, which the transaction holds until its end, across processes."""
        await transaction.execute_query("SELECT pg_advisory_xact_lock($1)", [lock_key(f"exclusive:{name}")])

    async def snapshot(self, label: str) -> Path | None:
        """Copy nothing: the administrator of the server makes its backups."""
        return None

    async def run_alone(self, *statements: str) -> None:
        """Run statements that cannot be in a transaction, on one connection without time limits."""
        async with _PooledConnection(self, is_unlimited=True) as connection:
            # The pool resets the limits.
            for statement in ("SET statement_timeout = 0", "SET lock_timeout = 0", *statements):
                await wrap_errors(connection.execute, statement)

    @asynccontextmanager
    async def listening(self, channel: str, notice: Callable[[], None]) -> AsyncIterator[PostgresListener]:
        """Yield a connection apart from the pool, which calls `notice` at each notification of a channel, and
        when it is lost."""
        options = {**self._template, "password": self.password}
        listener = await PostgresListener.connect(options, channel, notice)
        try:
            yield listener
        finally:
            await listener.close()

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[Any]:
        """Run a block that changes the schema, in one transaction without time limits of the server."""
        async with self._in_transaction() as transaction:
            await transaction.lift_limits()
            await transaction.execute_script("SET LOCAL lock_timeout = 0")
            yield transaction

    @asynccontextmanager
    async def _in_transaction(self) -> AsyncIterator[Any]:  # type: ignore[override]
        with translate_errors("reach the database"):
            connection = await wrap_errors(self.take_connection)
        try:
            async with run_transaction(PostgresTransaction(self, connection)) as transaction:
                yield transaction
        finally:
            # The pool resets a released connection, so no transaction stays open after an error.
            await self.return_connection(connection)

    async def _is_claim_held(self) -> bool:
        if self._claim is None:
            return False
        try:
            with _time_limit(self._claim, CLAIM_SECONDS):
                await self._claim.fetchval("SELECT 1")
        except FOREIGN_ERRORS:
            await self._return_claim()
            return False
        return True

    async def _return_claim(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            await self.return_connection(claim)

    async def _check_session(self, connection: Any) -> None:
        """Refuse a pooler that gives the session of a connection to another one after each transaction."""
        try:
            is_shared = await self._shares_session(connection)
        except (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError):
            # A statement was prepared in the session of another connection.
            is_shared = True
        if is_shared:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                f"cannot use the database {self.database}: a pooler in front of it gives sessions to others "
                "after each transaction; name the server itself, or set the pooler to session mode",
                param="database_url",
            )

    async def _shares_session(self, connection: Any) -> bool:
        async with connection.transaction():
            own = await connection.fetchval(BACKEND)
        async with AsyncExitStack() as stack:
            # The first one may get another idle session of a pooler; then the second one gets this one.
            others = []
            for _ in range(2):
                other = await self.reserve()
                stack.callback(other.close)
                others.append(await other.begin_transaction(BACKEND))
            return own in others or own != await connection.fetchval(BACKEND)

    async def _acquire_claim(self, connection: Any) -> None:
        key = lock_key("daemon")
        function = "pg_try_advisory_lock_shared" if self._shared else "pg_try_advisory_lock"
        if await wrap_errors(connection.fetchval, f"SELECT {function}($1)", key):
            return
        halves = (key >> 32) & 0xFFFFFFFF, key & 0xFFFFFFFF
        holder = await wrap_errors(connection.fetchval, HOLDER, *halves)
        raise GatewayError(
            ErrorKind.CONFLICT,
            f"cannot use the database {self.database}: another {holder or 'gatewayd'} uses it, "
            "and several need the cluster profile",
            param="database_url",
        )

    async def _translate_exceptions(
        self, func: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        return await wrap_errors(func, self, *args, **kwargs)


class ReservedSession:
    """Implements `database.ReservedConnection`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def rows(self, query: str, *values: Any) -> list[Any]:
        """Run one query, for a few seconds at most."""
        with _time_limit(self._connection, CLAIM_SECONDS):
            rows: list[Any] = await wrap_errors(self._connection.fetch, query, *values)
            return rows

    async def begin_transaction(self, query: str) -> Any:
        """Run one query in a transaction that ends with the connection, and return its value.

        The errors are those of asyncpg.
        """
        with _time_limit(self._connection, CLAIM_SECONDS):
            await self._connection.execute("BEGIN")
            return await self._connection.fetchval(query)

    def close(self) -> None:
        """Close the connection at once."""
        self._connection.terminate()


class PostgresTransaction(TransactionWrapper):
    """A transaction on one connection. After its end it passes later statements to the engine.

    Such statements come from tasks that were started inside the transaction and outlive it.
    """

    def __init__(self, engine: PostgresEngine, connection: Any) -> None:
        super().__init__(engine)
        self._connection = connection
        self._is_unlimited = False
        self.finished_savepoint = ""

    async def begin(self) -> None:
        """Start the transaction."""
        await self.execute_script("BEGIN")

    async def lift_limits(self) -> None:
        """Lift the time limits of the following statements."""
        await self.execute_script("SET LOCAL statement_timeout = 0")
        self._is_unlimited = True

    @property
    def is_rolled_back(self) -> bool:
        """Whether the connection, and with it the transaction, is lost."""
        return is_lost(self._connection)

    async def commit(self) -> None:
        """Commit; raise when PostgreSQL rolled back, which it reports as a status and not as an error."""
        with self._statement_limit():
            status = await wrap_errors(self._connection.execute, "COMMIT")
        self._finalized = True
        if status != "COMMIT":
            raise OperationalError("the transaction was rolled back by the database")

    async def rollback(self) -> None:
        """Roll back; if that fails, close the connection, which rolls back, too."""
        self._finalized = True
        if is_lost(self._connection):
            return
        ended = False
        try:
            with _time_limit(self._connection, ROLLBACK_SECONDS):
                await self._roll_back()
            ended = True
        except FOREIGN_ERRORS as error:
            log.debug("cannot roll back, closing the connection: %r", error)
        finally:
            if not ended and not is_lost(self._connection):
                self._connection.terminate()

    async def _roll_back(self) -> None:
        if not self._connection.is_in_transaction():
            # A cancelled BEGIN may still be running: this statement waits for its end.
            await self._connection.execute("SELECT 1")
        if self._connection.is_in_transaction():
            await self._connection.execute("ROLLBACK")

    async def copy_rows(self, table: str, columns: Sequence[str], rows: bytes) -> None:
        """Insert rows in the format of PostgreSQL's binary COPY."""
        copy, source = self._connection.copy_to_table, io.BytesIO(rows)
        with self._statement_limit():
            await wrap_errors(copy, table, source=source, columns=columns, format="binary")

    def acquire_connection(self) -> Any:
        """Return the context manager of one statement's connection."""
        return self._parent.acquire_connection() if self._finalized else super().acquire_connection()

    def _in_transaction(self) -> Any:
        return self._parent._in_transaction() if self._finalized else run_savepoint(self)

    def _statement_limit(self) -> AbstractContextManager[None]:
        return nullcontext() if self._is_unlimited or self._finalized else _time_limit(self._connection)

    async def _translate_exceptions(
        self, func: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        with self._statement_limit():
            return await wrap_errors(func, self, *args, **kwargs)


@contextmanager
def _time_limit(connection: Any, seconds: float | None = None) -> Iterator[None]:
    """Close a connection if the block takes longer than `seconds` (None: STATEMENT_SECONDS)."""
    timer = _terminate_after(connection, seconds)
    try:
        yield
    finally:
        timer.cancel()


def _terminate_after(connection: Any, seconds: float | None = None) -> CallbackTimer:
    return CallbackTimer(seconds or STATEMENT_SECONDS, connection.terminate)


client_class = PostgresEngine
"""Name under which the ORM finds the class."""
