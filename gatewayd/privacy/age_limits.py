"""Limits of age: deletes chats, files and rows of usage that nobody has changed for longer than a setting."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.audit.records import GATEWAY_ACTOR, AuditEntry
from gatewayd.audit.trail import AuditTrail
from gatewayd.chats.message_merge import chat_lock_name
from gatewayd.privacy.interfaces import AgedRowStore, HiddenChats, RemovedFiles
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import Transactor

log = logging.getLogger(__name__)

DAY_SECONDS: Final = 86_400

CHATS: Final = "old chats"
FILES: Final = "old files"
USAGE: Final = "old rows of usage"
AUDIT: Final = "old rows of the audit log"
"""Kinds of what is deleted, as `gatewayctl gc` shows them."""


@dataclass(slots=True)
class AgeLimits:
    """Days after which a chat, a file and a row of usage are deleted, 0 for never."""

    chats: int = 0
    files: int = 0
    usage: int = 0


@dataclass(frozen=True, slots=True)
class AgedKind:
    """What is deleted of one kind: `count` tells how many the next `prune` deletes."""

    count: Callable[[], Awaitable[int]]
    prune: Callable[[], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class AgedStores:
    """What is read and deleted."""

    rows: AgedRowStore
    chats: HiddenChats
    files: RemovedFiles
    transactor: Transactor


class AgeLimitKeeper:
    """Deletes what is over its limit of age. `limits` may change at any time.

    A row of the audit log says how many chats or files were deleted, never whose or which.
    """

    def __init__(
        self,
        stores: AgedStores,
        tasks: TaskRegistry,
        trail: AuditTrail,
        limits: AgeLimits,
        clock: ids.Clock | None = None,
    ) -> None:
        self._stores = stores
        self._tasks = tasks
        self._trail = trail
        self._clock = clock or ids.retention_clock()
        self.limits = limits

    def kinds(self) -> Mapping[str, AgedKind]:
        """Return the kinds by name."""
        return {
            CHATS: AgedKind(self.count_chats, self.prune_chats),
            FILES: AgedKind(self.count_files, self.prune_files),
            USAGE: AgedKind(self.count_usage, self.prune_usage),
        }

    async def prune_chats(self) -> int:
        """Delete the old chats, each in transactions of its own; return their number.

        A chat with a running answer is left, and one that is changed meanwhile.
        """
        count = 0
        if before := self._before(self.limits.chats):
            async for chat_id in self._stores.rows.old_chats(before):
                if await self._hide(chat_id, before):
                    await self._stores.chats.purge([chat_id])
                    count += 1
        return self._report(CHATS, count, self.limits.chats)

    async def count_chats(self) -> int:
        """Return the number of old chats."""
        before = self._before(self.limits.chats)
        return await _count(self._stores.rows.old_chats(before)) if before else 0

    async def prune_files(self) -> int:
        """Delete the old files with their bytes and vectors, each in a transaction; return their number."""
        count = 0
        if before := self._before(self.limits.files):
            async for file_id in self._stores.rows.old_files(before):
                is_old = await self._stores.rows.is_old_file(file_id, before)
                count += is_old and await self._stores.files.remove(file_id, unused=True)
        return self._report(FILES, count, self.limits.files)

    async def count_files(self) -> int:
        """Return the number of old files."""
        before = self._before(self.limits.files)
        return await _count(self._stores.rows.old_files(before)) if before else 0

    async def prune_usage(self) -> int:
        """Delete the old rows of usage; return their number."""
        day = self._day()
        return self._report(USAGE, await self._stores.rows.remove_usage(day) if day else 0, self.limits.usage)

    async def count_usage(self) -> int:
        """Return the number of old rows of usage."""
        day = self._day()
        return await self._stores.rows.count_usage(day) if day else 0

    async def _hide(self, chat_id: str, before: int) -> bool:
        if self._is_used(chat_id):
            return False
        # A change in progress ends first; a later one finds no chat.
        async with self._stores.transactor.exclusive(chat_lock_name(chat_id)):
            return not self._is_used(chat_id) and await self._stores.rows.hide_old_chat(chat_id, before)

    def _is_used(self, chat_id: str) -> bool:
        return bool(self._tasks.started(chat_id=chat_id))

    def _before(self, days: int) -> int:
        """Return the time before which a change is old, 0 for none."""
        return max(0, self._clock() - days * DAY_SECONDS) if days else 0

    def _day(self) -> str:
        before = self._before(self.limits.usage)
        return time.strftime("%Y-%m-%d", time.gmtime(before)) if before else ""

    def _report(self, kind: str, count: int, days: int) -> int:
        if count:
            log.info("%s deleted", kind, extra={"count": count, "days": days})
            values = {"count": count, "days": days}
            self._trail.record(AuditEntry(f"{kind} deleted", GATEWAY_ACTOR, after=values))
        return count


async def _count(found: AsyncIterator[str]) -> int:
    count = 0
    async for _ in found:
        count += 1
    return count
