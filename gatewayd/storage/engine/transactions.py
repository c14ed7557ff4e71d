"""Transactions that are safe under cancellation, nest, and report a failed commit.

The ORM's own context managers leak a lock or a pooled connection when BEGIN fails or is cancelled; these
release both in every case.
"""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import Any, Protocol, TypeVar

from tortoise.connection import get_connections
from tortoise.exceptions import OperationalError
from tortoise.transactions import in_transaction

from gatewayd.errors import GatewayError
from gatewayd.storage.engine.failures import translate_errors

_names = count(1)
T = TypeVar("T", bound="Transaction")


def lock_key(name: str) -> int:
    """Return the key of PostgreSQL's advisory lock for a name, a signed 64-bit number."""
    return int.from_bytes(hashlib.sha256(f"gatewayd:{name}".encode()).digest()[:8], "big", signed=True)


def placeholder(client: Any, position: int) -> str:
    """Return the placeholder of a parameter in the engine's SQL; positions count from 1."""
    return f"${position}" if client.capabilities.dialect == "postgres" else f"?{position}"


class RolledBackError(OperationalError):
    """The database has rolled back a whole transaction by itself; no statement can run in it."""

    is_rolled_back = True


class Transaction(Protocol):
    """One transaction on one connection."""

    connection_name: str
    finished_savepoint: str
    """The savepoint of the last successful nested block that is not released yet, "" for none."""

    @property
    def is_rolled_back(self) -> bool:
        """Whether the database has already rolled it back."""
        ...

    async def begin(self) -> None:
        """Start the transaction."""
        ...

    async def commit(self) -> None:
        """Commit; raise when the engine has not committed."""
        ...

    async def rollback(self) -> None:
        """Roll back; does nothing when the transaction never began or has committed."""
        ...

    async def execute_script(self, query: str) -> None:
        """Run SQL without parameters."""
        ...


@asynccontextmanager
async def write_transaction(what: str, missing: GatewayError | None = None) -> AsyncIterator[Any]:
    """Run a block in a transaction or, inside another one, in a savepoint that can fail alone.

    Without the savepoint, PostgreSQL aborts the whole transaction for one violated constraint. `what`
    completes "cannot ...", `missing` is raised for a violated foreign key. Yields the ORM's client for custom
    SQL.
    """
    with translate_errors(what, missing):
        async with in_transaction() as client:
            yield client


@asynccontextmanager
async def run_transaction(transaction: T) -> AsyncIterator[T]:
    """Run the block in a transaction, which the ORM's queries of this task use; commit at its end."""
    finished = False
    try:
        with translate_errors("begin the change"):
            await transaction.begin()
        with _current(transaction):
            yield transaction
        with translate_errors("commit the change"):
            await transaction.commit()
        finished = True
    finally:
        if not finished:
            with translate_errors("undo the change"):
                await transaction.rollback()


@asynccontextmanager
async def run_savepoint(transaction: T) -> AsyncIterator[T]:
    """Run the block in a savepoint, so that it can fail alone.

    Savepoints are a stack, so only one task at a time may use a transaction. A successful savepoint is
    released together with the next savepoint statement; the end of the transaction or of the enclosing
    savepoint releases it, too. Until then it has no effect.
    """
    name = f"part_{next(_names)}"
    former = transaction.finished_savepoint
    released = f"RELEASE SAVEPOINT {former}; " if former else ""
    finished = False
    with translate_errors("begin the change"):
        await transaction.execute_script(f"{released}SAVEPOINT {name}")
    transaction.finished_savepoint = ""
    try:
        yield transaction
        finished = True
    finally:
        if finished:
            transaction.finished_savepoint = name
        elif not transaction.is_rolled_back:
            transaction.finished_savepoint = ""
            with translate_errors("undo the change"):
                await transaction.execute_script(f"ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}")


@contextmanager
def _current(transaction: Any) -> Iterator[None]:
    connections = get_connections()
    token = connections.set(transaction.connection_name, transaction)
    try:
        yield
    finally:
        connections.reset(token)
