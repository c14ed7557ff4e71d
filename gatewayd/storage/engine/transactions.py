"""Transactions that survive cancellation, nest, and cannot pretend to have committed.

The ORM's own contexts keep a lock or a pooled connection for ever when BEGIN fails or is cancelled; these
give back what they took on every way out.
"""

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


def placeholder(client: Any, position: int) -> str:
    """Return how the engine's SQL refers to a parameter, counted from 1."""
    return f"${position}" if client.capabilities.dialect == "postgres" else f"?{position}"


class GivenUpError(OperationalError):
    """The database has rolled back a whole transaction by itself, and nothing more can be done in it."""

    is_given_up = True


class Transaction(Protocol):
    """One transaction on one connection."""

    connection_name: str
    finished_part: str
    """The savepoint of the last part that ended well and is not released yet, empty for none."""

    @property
    def is_given_up(self) -> bool:
        """Whether the database has ended it, so that nothing is left to undo."""
        ...

    async def begin(self) -> None:
        """Start it."""
        ...

    async def commit(self) -> None:
        """Make it durable; raise when the engine has not."""
        ...

    async def rollback(self) -> None:
        """Undo what there is, which may be nothing when it never began or did commit."""
        ...

    async def execute_script(self, query: str) -> None:
        """Run SQL without parameters."""
        ...


@asynccontextmanager
async def write_transaction(what: str, missing: GatewayError | None = None) -> AsyncIterator[Any]:
    """Change the database, as a transaction or, inside one, as a part that can fail alone.

    Without the part, PostgreSQL would give up a whole transaction for one broken constraint. `what` completes
    "cannot ...", `missing` is raised when a row would refer to one that does not exist. Yields the ORM's
    client, for SQL of one's own.
    """
    with translate_errors(what, missing):
        async with in_transaction() as client:
            yield client


@asynccontextmanager
async def run_transaction(transaction: T) -> AsyncIterator[T]:
    """Run the block in a transaction that the ORM's queries of this task use; commit at its end."""
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
    """Run the block as a part that can fail alone.

    Only one task at a time may use a transaction: savepoints are a stack. One that ended well is released
    with the next statement about parts; until then it takes no part in anything, and the end of the
    transaction or of the part around it releases it, too.
    """
    name = f"part_{next(_names)}"
    released = f"RELEASE SAVEPOINT {transaction.finished_part}; " if transaction.finished_part else ""
    finished = False
    with translate_errors("begin the change"):
        await transaction.execute_script(f"{released}SAVEPOINT {name}")
    transaction.finished_part = ""
    try:
        yield transaction
        finished = True
    finally:
        if finished:
            transaction.finished_part = name
        elif not transaction.is_given_up:
            transaction.finished_part = ""
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
