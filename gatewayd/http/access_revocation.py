"""Cancellation of the running requests of an account that loses its access, or of a session that ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Set
from typing import Protocol, TypeVar

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.errors import ErrorKind, GatewayError

Result = TypeVar("Result")


class Revocable(Protocol):
    """A running request without a task."""

    def revoke(self) -> None:
        """End the request, whose account or session has lost its access."""
        ...


class AccessRevocation:
    """The running requests of each account, each with its session.

    Writes are short and are not registered: they run to their end.

    The assembly subscribes `on_change` to the changes of accounts.
    """

    def __init__(self) -> None:
        self._running: dict[str, dict[asyncio.Task[object] | Revocable, str | None]] = {}
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

    async def run(self, user_id: str, work: Awaitable[Result], session_id: str | None = None) -> Result:
        """Await the work of a request; raises unauthenticated as soon as the account loses its access, or the
        session of the request ends.

        A cancellation by a client that leaves is raised unchanged.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served in a task")
        self.enter(user_id, task, session_id)
        try:
            return await work
        except asyncio.CancelledError:
            if task not in self._revoked or task.cancelling() > 1:
                raise
            raise access_ended() from None
        finally:
            self.leave(user_id, task)
            if task in self._revoked:
                self._revoked.discard(task)
                task.uncancel()

    def running(self) -> Mapping[str, Set[str]]:
        """Return the accounts with running requests, each with the sessions of these requests."""
        return {
            user_id: {session_id for session_id in tasks.values() if session_id is not None}
            for user_id, tasks in self._running.items()
        }

    def enter(
        self, user_id: str, running: "asyncio.Task[object] | Revocable", session_id: str | None
    ) -> None:
        """Register a running request; `leave` must follow."""
        self._running.setdefault(user_id, {})[running] = session_id

    def leave(self, user_id: str, running: "asyncio.Task[object] | Revocable") -> None:
        """Remove a request that is over."""
        own = self._running[user_id]
        del own[running]
        if not own:
            del self._running[user_id]

    def on_change(self, change: AccountChange) -> None:
        """Cancel the requests of the changed account, or of every account, whose access or session the change
        ends."""
        if not (change.is_out or change.ended or change.is_signed_out):
            return
        self._count += 1
        found = self._running.values() if change.user_id is None else [self._running.get(change.user_id, {})]
        running = [(task, session_id) for tasks in found for task, session_id in tasks.items()]
        for one, session_id in running:
            if not _is_ended(change, session_id):
                continue
            if not isinstance(one, asyncio.Task):
                one.revoke()
            elif one not in self._revoked:
                self._revoked.add(one)
                one.cancel()


def access_ended() -> GatewayError:
    """Return the failure of a request whose account or session has lost its access."""
    return GatewayError(
        ErrorKind.UNAUTHENTICATED,
        "cannot go on: the session was ended, or the account was deactivated or removed",
    )


def _is_ended(change: AccountChange, session_id: str | None) -> bool:
    """Return whether a change ends the requests of a session, or those of no session with None."""
    if change.is_out or session_id is None:
        return change.is_out
    return change.is_signed_out or session_id in change.ended
