"""Ends what an account has open, at the moment when it may no longer have it."""

import asyncio
from collections.abc import Awaitable

from aiohttp import web

from gatewayd.accounts.changes import Change
from gatewayd.errors import GatewayError, Kind
from gatewayd.http.context import STARTED
from gatewayd.http.errors import cut


class ShutOut:
    """Knows the requests that each account has in flight; writes, which are short, run to their end.

    `on_change` is to be subscribed to the changes of accounts.
    """

    def __init__(self) -> None:
        self._running: dict[str, set[asyncio.Task[object]]] = {}
        self._put_out: set[asyncio.Task[object]] = set()

    async def run(
        self, user_id: str, request: web.Request, work: Awaitable[web.StreamResponse]
    ) -> web.StreamResponse:
        """Await the work of a request; unauthenticated as soon as the account is put out.

        A stream that has begun is cut then: its client must not take what it has for the whole answer.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served in a task")
        mine = self._running.setdefault(user_id, set())
        mine.add(task)
        try:
            return await work
        except asyncio.CancelledError:
            if task not in self._put_out:
                raise
            task.uncancel()
            if STARTED in request:
                cut(request)
            raise GatewayError(
                Kind.UNAUTHENTICATED, "cannot go on: the account was deactivated or removed"
            ) from None
        finally:
            self._put_out.discard(task)
            mine.discard(task)
            if not mine:
                self._running.pop(user_id, None)

    def on_change(self, change: Change) -> None:
        """Put an account out, when the change says that it is."""
        if not change.is_out or change.user_id is None:
            return
        for task in self._running.get(change.user_id, ()):
            self._put_out.add(task)
            task.cancel()
