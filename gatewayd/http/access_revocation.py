"""Cancellation of the running requests of an account that loses its access."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.errors import ErrorKind, GatewayError

Result = TypeVar("Result")


class AccessRevocation:
    """The running requests of each account. Writes are short and are not registered: they run to their end.

    The assembly subscribes `on_change` to the changes of accounts.
    """

    def __init__(self) -> None:
        self._running: dict[str, set[asyncio.Task[object]]] = {}
        self._revoked: set[asyncio.Task[object]] = set()
        self._count = 0

    async def identify_again(self, find: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of `find`, called again while an account loses its access during the call.

        `find` may have read the account before the change, and the request is not registered yet.
        """
        while True:
            before = self._count
            found = await find()
            if before == self._count:
                return found

    async def run(self, user_id: str, work: Awaitable[Result]) -> Result:
        """Await the work of a request; raises unauthenticated as soon as the account loses its access.

        A cancellation by a client that leaves is raised unchanged.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served in a task")
        own_tasks = self._running.setdefault(user_id, set())
        own_tasks.add(task)
        try:
            return await work
        except asyncio.CancelledError:
            if task not in self._revoked or task.cancelling() > 1:
                raise
            raise GatewayError(
                ErrorKind.UNAUTHENTICATED,
                "cannot go on: the account was deactivated, removed or made pending",
            ) from None
        finally:
            own_tasks.discard(task)
            if not own_tasks:
                del self._running[user_id]
            if task in self._revoked:
                self._revoked.discard(task)
                task.uncancel()

    def on_change(self, change: AccountChange) -> None:
        """Cancel the requests of the changed account, or of every account, when the change ends the
        access."""
        if not change.is_out:
            return
        self._count += 1
        found = self._running.values() if change.user_id is None else [self._running.get(change.user_id, ())]
        for task in [task for tasks in found for task in tasks]:
            if task not in self._revoked:
                self._revoked.add(task)
                task.cancel()
