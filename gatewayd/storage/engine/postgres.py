"""PostgreSQL through asyncpg: a pool of connections, one of which holds the claim on the database."""

import asyncio
import hashlib
import io
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import asyncpg
from tortoise.backends.asyncpg.client import AsyncpgDBClient, TransactionWrapper
from tortoise.exceptions import IntegrityError, OperationalError
from tortoise.migrations.schema_editor import AsyncpgSchemaEditor

from gatewayd.deadlines import CallbackTimer
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.transactions import run_savepoint, run_transaction

log = logging.getLogger(__name__)

ACQUIRE_SECONDS = 8.0

STATEMENT_SECONDS = 10.0
"""After which a statement is given up with its connection: the server's own limits, of 8 seconds and less,
hold only while the server and the network to it live."""

CLAIM_SECONDS = 5.0
"""A claim takes no time either; what feeds the watchdog asks for one after the other."""

ROLLBACK_SECONDS = 2.0
"""A rollback takes no time, and the end of a connection is one, too."""

FOREIGN_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

COLUMNS = """
SELECT table_name AS "table", column_name AS "column"
FROM information_schema.columns WHERE table_schema = current_schema()
"""

HOLDER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid::bigint = $1 AND objid::bigint = $2 LIMIT 1
"""


def lock_key(name: str) -> int:
    """Return the signed 64-bit number that stands for a name among PostgreSQL's advisory locks."""
    return int.from_bytes(hashlib.sha256(f"gatewayd:{name}".encode()).digest()[:8], "big", signed=True)


class LostConnectionError(OperationalError):
    """The driver has no connection any more, and no SQLSTATE to say so."""

    is_lost_connection = True


class _Lease:
    """One pooled connection for one statement, or with `is_patient` for those that take their time."""

    def __init__(self, engine: "PostgresEngine", *, is_patient: bool = False) -> None:
        self._engine = engine
        self._connection: Any = None
        self._is_patient = is_patient
        self._alarm: CallbackTimer | None = None

    async def __aenter__(self) -> Any:
        self._connection = await self._engine.take()
        if not self._is_patient:
            self._alarm = _end_later(self._connection)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        await self._engine.give(self._connection)


class PostgresEngine(AsyncpgDBClient):
    """The pool."""

    def __init__(self, **options: Any) -> None:
        super().__init__(application_name=f"gatewayd (pid {os.getpid()})", **options)
        self._claim: Any = None
        self._claimed = False
        self._claim_lock = asyncio.Lock()
        self._shared = False

    async def claim(self, *, shared: bool) -> None:
        """Hold an advisory lock until released; raise conflict when another gatewayd has it.

        Any number of processes may hold it `shared`; then nobody can have it alone.
        """
        self._shared = shared
        connection = await _wrapped(self.take)
        claimed = False
        try:
            with _hurried(connection, CLAIM_SECONDS):
                await self._lock_out(connection)
            claimed = True
        finally:
            if not claimed:
                await self.give(connection)
        self._claim = connection
        self._claimed = True

    async def forget(self) -> None:
        """Do nothing: the driver keeps no values."""

    async def keep_claim(self) -> None:
        """Claim the database again when the connection that held the claim was lost, or raise conflict."""
        async with self._claim_lock:
            if self._claimed and not await self._is_claim_held():
                await self.claim(shared=self._shared)

    async def release(self) -> None:
        """Let others in: a connection that goes back to the pool loses its locks."""
        self._claimed = False
        await self._give_claim()

    async def create_connection(self, with_db: bool) -> None:
        """Open the pool."""
        await _wrapped(super().create_connection, with_db=with_db)

    async def take(self) -> Any:
        """Return a connection of the pool, waiting for one a while."""
        if not self._pool:
            async with self._pool_init_lock:
                if not self._pool:
                    await self.create_connection(with_db=True)
        pool: Any = self._pool
        return await pool.acquire(timeout=ACQUIRE_SECONDS)

    async def give(self, connection: Any) -> None:
        """Put a connection back; a pool that was closed meanwhile has taken it already.

        One that breaks at this moment is closed by the pool, which opens another. What was done with it is
        done, or has failed by itself.
        """
        if self._pool:
            try:
                await self._pool.release(connection)
            except FOREIGN_ERRORS as error:
                log.debug("a connection to the database broke when it was put back: %r", error)

    def acquire_connection(self) -> Any:
        """Return the context of one statement."""
        return _Lease(self)

    def schema_editor(self, transaction: Any) -> AsyncpgSchemaEditor:
        """Return what migrations change tables with."""
        return AsyncpgSchemaEditor(transaction, atomic=True)

    async def columns(self) -> list[dict[str, str]]:
        """Return the `table` and `column` of every column there is."""
        rows: list[dict[str, str]] = await self.execute_query_dict(COLUMNS)
        return rows

    async def exclude(self, transaction: Any, name: str) -> None:
        """Wait until no other transaction, in any process, excludes by this name."""
        await transaction.execute_query("SELECT pg_advisory_xact_lock($1)", [lock_key(f"exclusive:{name}")])

    async def snapshot(self, label: str) -> Path | None:
        """Copy nothing: a server's backups are its administrator's."""
        return None

    async def run_alone(self, *statements: str) -> None:
        """Run statements that cannot be in a transaction, on one connection, however long they take."""
        async with _Lease(self, is_patient=True) as connection:
            # The pool sets the limits back.
            for statement in ("SET statement_timeout = 0", "SET lock_timeout = 0", *statements):
                await _wrapped(connection.execute, statement)

    @asynccontextmanager
    async def migrating(self) -> AsyncIterator[Any]:
        """Run a block that changes tables, in one transaction without time limits of the server."""
        async with self._in_transaction() as transaction:
            await transaction.lift_limits()
            await transaction.execute_script("SET LOCAL lock_timeout = 0")
            yield transaction

    @asynccontextmanager
    async def _in_transaction(self) -> AsyncIterator[Any]:  # type: ignore[override]
        with translate_errors("reach the database"):
            connection = await _wrapped(self.take)
        try:
            async with run_transaction(PostgresTransaction(self, connection)) as transaction:
                yield transaction
        finally:
            # A released connection is reset: whatever failed, no transaction stays open.
            await self.give(connection)

    async def _is_claim_held(self) -> bool:
        if self._claim is None:
            return False
        try:
            with _hurried(self._claim, CLAIM_SECONDS):
                await self._claim.fetchval("SELECT 1")
        except FOREIGN_ERRORS:
            await self._give_claim()
            return False
        return True

    async def _give_claim(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            await self.give(claim)

    async def _lock_out(self, connection: Any) -> None:
        key = lock_key("daemon")
        function = "pg_try_advisory_lock_shared" if self._shared else "pg_try_advisory_lock"
        if await _wrapped(connection.fetchval, f"SELECT {function}($1)", key):
            return
        halves = (key >> 32) & 0xFFFFFFFF, key & 0xFFFFFFFF
        holder = await _wrapped(connection.fetchval, HOLDER, *halves)
        raise GatewayError(
            ErrorKind.CONFLICT,
            f"cannot use the database {self.database}: another {holder or 'gatewayd'} uses it, "
            "and several need the cluster profile",
            param="database_url",
        )

    async def _translate_exceptions(
        self, func: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        return await _wrapped(func, self, *args, **kwargs)


class PostgresTransaction(TransactionWrapper):
    """A transaction on one connection. Once over, it passes what still reaches it on to the engine.

    That is what a task finds that was started inside the transaction and outlives it.
    """

    def __init__(self, engine: PostgresEngine, connection: Any) -> None:
        super().__init__(engine)
        self._connection = connection
        self._is_patient = False
        self.finished_part = ""

    async def begin(self) -> None:
        """Start it."""
        await self.execute_script("BEGIN")

    async def lift_limits(self) -> None:
        """Let the statements that follow take their time."""
        await self.execute_script("SET LOCAL statement_timeout = 0")
        self._is_patient = True

    @property
    def is_given_up(self) -> bool:
        """Whether the connection is lost, and the transaction with it."""
        return _is_lost(self._connection)

    async def commit(self) -> None:
        """Commit; raise when PostgreSQL rolled back, which to it is a status and no error."""
        with self._hurry():
            status = await _wrapped(self._connection.execute, "COMMIT")
        self._finalized = True
        if status != "COMMIT":
            raise OperationalError("the transaction was rolled back by the database")

    async def rollback(self) -> None:
        """Undo what there is; a connection that cannot even do that is cut, which undoes it too."""
        self._finalized = True
        if _is_lost(self._connection):
            return
        ended = False
        try:
            with _hurried(self._connection, ROLLBACK_SECONDS):
                await self._undo()
            ended = True
        except FOREIGN_ERRORS as error:
            log.debug("a rollback failed, and its connection is cut: %r", error)
        finally:
            if not ended and not _is_lost(self._connection):
                self._connection.terminate()

    async def _undo(self) -> None:
        if not self._connection.is_in_transaction():
            # A cancelled BEGIN may still be under way: the driver sends nothing before that has an answer.
            await self._connection.execute("SELECT 1")
        if self._connection.is_in_transaction():
            await self._connection.execute("ROLLBACK")

    async def copy_rows(self, table: str, columns: Sequence[str], rows: bytes) -> None:
        """Insert rows that are in the format of PostgreSQL's binary COPY."""
        copy, source = self._connection.copy_to_table, io.BytesIO(rows)
        with self._hurry():
            await _wrapped(copy, table, source=source, columns=columns, format="binary")

    def acquire_connection(self) -> Any:
        """Return the context of one statement."""
        return self._parent.acquire_connection() if self._finalized else super().acquire_connection()

    def _in_transaction(self) -> Any:
        return self._parent._in_transaction() if self._finalized else run_savepoint(self)

    def _hurry(self) -> AbstractContextManager[None]:
        return nullcontext() if self._is_patient or self._finalized else _hurried(self._connection)

    async def _translate_exceptions(
        self, func: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        with self._hurry():
            return await _wrapped(func, self, *args, **kwargs)


@contextmanager
def _hurried(connection: Any, seconds: float | None = None) -> Iterator[None]:
    """Give the block seconds, STATEMENT_SECONDS unless told, to use a connection, which then ends."""
    alarm = _end_later(connection, seconds)
    try:
        yield
    finally:
        alarm.cancel()


def _end_later(connection: Any, seconds: float | None = None) -> CallbackTimer:
    return CallbackTimer(seconds or STATEMENT_SECONDS, connection.terminate)


def _is_lost(connection: Any) -> bool:
    """Tell whether a connection is closed; one that is, the pool has taken back, and it answers nothing."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


async def _wrapped(function: Callable[..., Awaitable[Any]], *args: Any, **named: Any) -> Any:
    """Call a function, and wrap what asyncpg or the network raises in the ORM's errors."""
    try:
        return await function(*args, **named)
    except asyncpg.IntegrityConstraintViolationError as error:
        raise IntegrityError(error) from error
    except asyncpg.InterfaceError as error:
        raise (OperationalError(error) if isinstance(error, ValueError) else LostConnectionError()) from error
    except asyncpg.InternalClientError as error:
        # The server has ended the connection, and the driver has yet to notice.
        raise LostConnectionError() from error
    except FOREIGN_ERRORS as error:
        raise OperationalError(error) from error


client_class = PostgresEngine
"""The name by which the ORM finds the class."""
