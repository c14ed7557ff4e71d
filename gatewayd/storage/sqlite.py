"""The SQLite engine: tortoise's own, with transactions that take the write lock when they begin.

A deferred transaction that reads first and writes later fails at once when another process (a backup, a
shell) wrote in between; an immediate one waits for `busy_timeout` instead.
"""

import sqlite3

from tortoise.backends.base.client import TransactionalDBClient, TransactionContext
from tortoise.backends.sqlite.client import (
    SqliteClient,
    SqliteTransactionContext,
    SqliteTransactionWrapper,
)
from tortoise.exceptions import OperationalError


class ImmediateTransaction(SqliteTransactionWrapper):
    """A transaction that begins with the write lock."""

    async def begin(self) -> None:
        """Take the write lock, waiting as long as `busy_timeout` says."""
        try:
            await self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            self._finalized = True
            raise OperationalError(error) from error


class ImmediateContext(SqliteTransactionContext):
    """Holds the one connection for a transaction, and lets it go when the transaction cannot begin."""

    async def __aenter__(self) -> TransactionalDBClient:
        """Begin, or release everything."""
        try:
            return await super().__aenter__()
        except OperationalError as error:
            await self.__aexit__(type(error), error, None)
            raise


class ImmediateClient(SqliteClient):
    """The client that tortoise opens for this engine."""

    def _in_transaction(self) -> TransactionContext:
        return ImmediateContext(ImmediateTransaction(self), self._lock)


client_class = ImmediateClient
