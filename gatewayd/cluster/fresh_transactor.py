"""Transactions for changes that read what this process remembers before they write."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from gatewayd.cluster.interfaces import Freshness
from gatewayd.transactions import Transactor


class FreshTransactor:
    """A Transactor whose exclusive blocks begin with everything that other processes have committed.

    Until the block is over no other process commits a change under the same name, so what is read from memory
    in the block is what is stored.
    """

    def __init__(self, inner: Transactor, freshness: Freshness) -> None:
        self._inner = inner
        self.freshness = freshness

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """Commit everything in the block at its end, or nothing if it raises."""
        return self._inner.transaction()

    @asynccontextmanager
    async def exclusive(self, name: str) -> AsyncIterator[None]:
        """Run a transaction that excludes every other `exclusive(name)`; raises unavailable."""
        async with self._inner.exclusive(name):
            await self.freshness.renew()
            yield

    def rehearsal(self) -> AbstractAsyncContextManager[None]:
        """Run a transaction that is always rolled back."""
        return self._inner.rehearsal()
