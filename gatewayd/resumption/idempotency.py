"""Requests that are repeated with one key: the first one is done, the others get its reply.

It follows the Internet draft "The Idempotency-Key HTTP Header Field"
(draft-ietf-httpapi-idempotency-key-header).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.resumption.interfaces import ReplyStore
from gatewayd.resumption.records import RequestKey, RequestRecord, StoredReply
from gatewayd.tasks import TaskOwner, TaskRegistry

log = logging.getLogger(__name__)

TASK_NAME: Final = "request"
"""Name of the tasks of requests that go on without their client."""

WAIT_SECONDS: Final = 60.0
"""Maximum wait of a repeated request for the first one; then it is refused, and may be repeated."""

MAX_REQUESTS_PER_USER: Final = 1_000
MAX_REPLY_CHARACTERS: Final = 4 * 2**20
MAX_CHARACTERS_PER_USER: Final = 64 * 2**20
MAX_RUNNING_PER_USER: Final = 100
"""Limits of the requests of a user; the oldest stored ones go first. A longer reply is not stored."""

Work = Callable[[], Coroutine[Any, Any, StoredReply]]
"""Does a request and returns its reply."""

UsableCheck = Callable[[StoredReply], Awaitable[bool]]
"""Returns whether a stored reply can still be repeated."""


@dataclass(slots=True)
class _Running:
    """A request that is being done; without a fingerprint its body is still being read."""

    fingerprint: str
    reply: asyncio.Future[StoredReply]


async def _always(_: StoredReply) -> bool:
    return True


class IdempotentReplies:
    """Does each request with a key once, and repeats its reply for `kept` seconds.

    Only successes are stored: a request that failed is done again.
    """

    def __init__(
        self, store: ReplyStore, tasks: TaskRegistry, *, kept: float = 86_400.0, clock: ids.Clock = ids.now
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._kept = kept
        self._clock = clock
        self._prune_clock = ids.retention_clock(clock)
        self._running: dict[str, _Running] = {}
        self._counts: Counter[str] = Counter()
        self._removed: set[str] = set()

    def configure(self, kept: float) -> None:
        """Keep replies for so many seconds from now on."""
        self._kept = kept

    async def answer(self, key: RequestKey, work: Work, is_usable: UsableCheck = _always) -> StoredReply:
        """Return the reply of `work`, which goes on without its caller, or the stored one.

        Raises what `work` raises; invalid_request with the code `idempotency_key_reused` for a key of another
        request, and conflict with the code `idempotency_key_in_use` while the first request is not done after
        WAIT_SECONDS.
        """
        running = self._running.get(key.digest)
        if running is None:
            running = self._reserve(key)
            reply = running.reply
            self._tasks.spawn(
                TASK_NAME,
                self._do(key, reply, work, is_usable),
                TaskOwner(key.user_id),
                partial(self._drop, key, running),
            )
            return await asyncio.shield(reply)
        _check(running.fingerprint, key)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return replace(await asyncio.shield(running.reply), is_repeated=True)
        except TimeoutError:
            raise in_use() from None

    async def begin(self, key: RequestKey) -> RequestRecord | None:
        """Reserve a key whose request changes data, or return the stored request.

        `complete` or `release` has to follow a reservation. Raises conflict with the code
        `idempotency_key_in_use` while the first request runs, and with `idempotency_outcome_unknown` if the
        gateway ended during it. The caller compares the fingerprint, by `check_same`.
        """
        if key.digest in self._running:
            raise in_use()
        running = self._reserve(key)
        is_kept = False
        try:
            known = await self._find(key.digest)
            if known is None:
                await self._store.put(self._record(key, None))
                is_kept = True
                return None
            if known.reply is None:
                raise GatewayError(
                    ErrorKind.CONFLICT,
                    "cannot repeat the request: the gateway was stopped during the first, which may be done",
                    code="idempotency_outcome_unknown",
                )
            return known
        finally:
            if not is_kept:
                self._drop(key, running)

    async def complete(self, key: RequestKey, reply: StoredReply) -> None:
        """Store the reply of a reserved key."""
        try:
            await self._put(key, reply)
        finally:
            self._drop(key, self._running.get(key.digest))

    async def release(self, key: RequestKey) -> None:
        """Forget a reserved key whose request has failed, so that it is done again."""
        try:
            await self._store.remove(key.digest)
        finally:
            self._drop(key, self._running.get(key.digest))

    def forget_account(self, user_id: str) -> None:
        """Store no reply of a removed account, and delete what was stored as it was removed."""
        if self._counts[user_id]:
            self._removed.add(user_id)
        self._tasks.spawn("removal of replies", self._store.remove_user(user_id))

    async def prune(self) -> int:
        """Delete the requests that are too old; return how many."""
        return await self._store.prune(int(self._prune_clock() - self._kept))

    def _reserve(self, key: RequestKey) -> _Running:
        if self._counts[key.user_id] >= MAX_RUNNING_PER_USER:
            raise GatewayError(
                ErrorKind.RATE_LIMITED,
                f"cannot begin the request: {MAX_RUNNING_PER_USER} with an idempotency key run",
                code="too_many_idempotent_requests",
                retry_after=5,
            )
        self._counts[key.user_id] += 1
        running = _Running(key.fingerprint, asyncio.get_running_loop().create_future())
        # Nobody may wait for it, and then its failure is known to the task alone.
        running.reply.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._running[key.digest] = running
        return running

    def _drop(self, key: RequestKey, running: _Running | None) -> None:
        if running is None or self._running.get(key.digest) is not running:
            return
        del self._running[key.digest]
        self._counts[key.user_id] -= 1
        if not self._counts[key.user_id]:
            del self._counts[key.user_id]
            self._removed.discard(key.user_id)
        if not running.reply.done():
            running.reply.set_exception(_stopped())

    async def _do(
        self, key: RequestKey, reply: asyncio.Future[StoredReply], work: Work, is_usable: UsableCheck
    ) -> None:
        try:
            known = await self._find(key.digest)
            if known is not None and known.reply is not None:
                _check(known.fingerprint, key)
                if await is_usable(known.reply):
                    reply.set_result(replace(known.reply, is_repeated=True))
                    return
            done = await work()
            await self._put(key, done)
            reply.set_result(done)
        except GatewayError as error:
            reply.set_exception(error)

    async def _find(self, digest: str) -> RequestRecord | None:
        known = await self._store.find(digest)
        if known is None or known.created_at < self._prune_clock() - self._kept:
            return None
        return known

    async def _put(self, key: RequestKey, reply: StoredReply) -> None:
        if len(reply.text) > MAX_REPLY_CHARACTERS or key.user_id in self._removed:
            return
        try:
            await self._store.put(self._record(key, reply))
            await self._store.trim(key.user_id, MAX_REQUESTS_PER_USER, MAX_CHARACTERS_PER_USER)
        except GatewayError as error:
            # The request is done, so that its caller gets the reply.
            log.error("the reply of a request is not stored: %s", error.full_message)

    def _record(self, key: RequestKey, reply: StoredReply | None) -> RequestRecord:
        return RequestRecord(key.digest, key.user_id, key.fingerprint, self._clock(), reply)


def check_same(known: RequestRecord, fingerprint: str) -> StoredReply:
    """Return the stored reply; raises invalid_request with the code `idempotency_key_reused` for another
    request."""
    if known.fingerprint != fingerprint or known.reply is None:
        raise _reused()
    return replace(known.reply, is_repeated=True)


def in_use() -> GatewayError:
    """Return the error for a request whose first one is not done."""
    return GatewayError(
        ErrorKind.CONFLICT,
        "cannot repeat the request: the first one with this Idempotency-Key is not done",
        param="Idempotency-Key",
        code="idempotency_key_in_use",
        retry_after=1,
    )


def _check(fingerprint: str, key: RequestKey) -> None:
    if fingerprint != key.fingerprint:
        raise _reused()


def _reused() -> GatewayError:
    return GatewayError(
        ErrorKind.INVALID_REQUEST,
        "cannot accept Idempotency-Key: another request had this key",
        param="Idempotency-Key",
        code="idempotency_key_reused",
    )


def _stopped() -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, "cannot finish the request: it was stopped")
