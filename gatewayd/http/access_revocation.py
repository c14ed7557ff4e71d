"""Ends what an account has open, at the moment when it may no longer have it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.errors import ErrorKind, GatewayError

Result = TypeVar("Result")


class AccessRevocation:
    """Knows the requests that each account has in flight; writes, which are short, run to their end.

    `on_change` is to be subscribed to the changes of accounts.
    """

    def __init__(self) -> None:
        self._running: dict[str, set[asyncio.Task[object]]] = {}
        self._put_out: set[asyncio.Task[object]] = set()
        self._count = 0

    async def identify_again(self, find: Callable[[], Awaitable[Result]]) -> Result:
        """Return who asks, found anew as often as somebody is put out meanwhile.

        Who was found may have been read before that, and the request is not among those in flight yet.
        """
        while True:
            before = self._count
            found = await find()
            if before == self._count:
                return found

    async def run(self, user_id: str, work: Awaitable[Result]) -> Result:
        """Await the work of a request; unauthenticated as soon as the account is put out.

        To tell that from a client that leaves, which cancels the request as well, is the point of it.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served in a task")
        mine = self._running.setdefault(user_id, set())
        mine.add(task)
        try:
            return await work
        except asyncio.CancelledError:
            if task not in self._put_out or task.cancelling() > 1:
                raise
            raise GatewayError(
                ErrorKind.UNAUTHENTICATED,
                "cannot go on: the account was deactivated, removed or made pending",
            ) from None
        finally:
            mine.discard(task)
            if not mine:
                del self._running[user_id]
            if task in self._put_out:
                self._put_out.discard(task)
                task.uncancel()

    def on_change(self, change: AccountChange) -> None:
        """Put an account out, or everybody, when the change says so."""
        if not change.is_out:
            return
        self._count += 1
        found = self._running.values() if change.user_id is None else [self._running.get(change.user_id, ())]
        for task in [task for tasks in found for task in tasks]:
            if task not in self._put_out:
                self._put_out.add(task)
                task.cancel()
