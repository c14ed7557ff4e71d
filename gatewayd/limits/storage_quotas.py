"""Quotas of the bytes that users store in files."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.book import LimitBook, owner_of
from gatewayd.limits.interfaces import StorageSizes
from gatewayd.limits.records import LimitRule, LimitSubject
from gatewayd.transactions import Transactor

SHARED: Final = frozenset({LimitSubject.GROUP, LimitSubject.TOTAL})
"""Subjects whose quota counts the files of several users together."""

QUOTA_CODE: Final = "storage_quota_exceeded"

GroupFinder = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the ids of the groups of a user."""


@dataclass(frozen=True, slots=True)
class StorageState:
    """The stored bytes of a user, and those that the quota with the least room leaves, None without one."""

    used: int
    left: int | None


class StorageQuotas:
    """Implements `ingest.storage_room.StorageLimiter` over the rules of limits.

    Bytes are reserved in this process while they come, and counted again in the transaction that adds the
    row. What is stored already is never refused: a quota below it refuses new files only.
    """

    def __init__(self, sizes: StorageSizes, groups: GroupFinder, transactor: Transactor) -> None:
        self.book = LimitBook()
        """The rules in force."""
        self._sizes = sizes
        self._groups = groups
        self._transactor = transactor
        self._held: Counter[str] = Counter()
        self._settlements = 0

    @asynccontextmanager
    async def reserved(self, user_id: str, size: int = 0) -> AsyncIterator["QuotaReservation"]:
        """Reserve room for a file of at least a size; raises too_large."""
        reservation = QuotaReservation(self, user_id, await self.rules(user_id))
        try:
            await reservation.grow(size)
            yield reservation
        finally:
            reservation.release()

    async def state(self, user_id: str) -> StorageState:
        """Return what a user stores and may store yet."""
        rules = await self.rules(user_id)
        lefts = [(rule.storage_bytes or 0) - await self.used(rule, user_id) for rule in rules]
        left = max(0, min(lefts)) if lefts else None
        return StorageState(await self._sizes.stored_bytes(user_id=user_id), left)

    async def used(self, rule: LimitRule, user_id: str) -> int:
        """Return the stored bytes that a quota counts for a user."""
        if rule.subject is LimitSubject.TOTAL:
            return await self._sizes.stored_bytes()
        if rule.subject is LimitSubject.GROUP:
            return await self._sizes.stored_bytes(group_id=rule.subject_id)
        owner = rule.subject_id if rule.subject is LimitSubject.USER else user_id
        return await self._sizes.stored_bytes(user_id=owner)

    async def rules(self, user_id: str) -> Sequence[LimitRule]:
        """Return the quotas in force for a user."""
        if not self.book.has_storage:
            return []
        return self.book.storage_rules(user_id, await self._groups(user_id))

    @asynccontextmanager
    async def counted(self, user_id: str, size: int) -> AsyncIterator[None]:
        """Run a block in a transaction in which no other file under the same quotas is added."""
        rules = await self.rules(user_id)
        if not rules:
            yield
            return
        is_shared = any(rule.subject in SHARED for rule in rules)
        async with self._transactor.exclusive("stored bytes" if is_shared else f"stored bytes of {user_id}"):
            for rule in rules:
                used = await self.used(rule, user_id)
                if used + size > (rule.storage_bytes or 0):
                    raise quota_error(rule, used)
            yield

    def hold(self, rule: LimitRule, user_id: str, size: int) -> int:
        """Change the reserved bytes of a quota by a number, and return them."""
        key = rule.id if rule.subject in SHARED else f"{rule.id}/{user_id}"
        self._held[key] += size
        held = self._held[key]
        if not held:
            del self._held[key]
        return held

    @property
    def settlements(self) -> int:
        """The number of files that were added so far."""
        return self._settlements

    def note_settlement(self) -> None:
        """Note that a reserved file is a stored one from now on."""
        self._settlements += 1


class QuotaReservation:
    """Room for one file under the quotas of its user."""

    def __init__(self, quotas: StorageQuotas, user_id: str, rules: Sequence[LimitRule]) -> None:
        self._quotas = quotas
        self._user_id = user_id
        self._rules = rules
        self._size = 0
        self._used: dict[str, int] = {}
        self._seen = -1

    async def fill(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the bytes of a file, each piece after its reservation."""
        size = 0
        async for piece in stream:
            size += len(piece)
            await self.grow(size)
            yield piece

    async def grow(self, size: int) -> None:
        """Reserve up to a size; raises too_large."""
        more = size - self._size
        if more <= 0 or not self._rules:
            return
        self._size = size
        for rule in self._rules:
            self._quotas.hold(rule, self._user_id, more)
        # The files of other uploads count as stored once they are no longer reserved.
        if self._seen != self._quotas.settlements or self._exceeded() is not None:
            await self._read()
        exceeded = self._exceeded()
        if exceeded is not None:
            raise quota_error(exceeded, self._used[exceeded.id])

    @asynccontextmanager
    async def settled(self, size: int) -> AsyncIterator[None]:
        """Run the block that adds the row of the file."""
        async with self._quotas.counted(self._user_id, size):
            yield
            # Before the commit: afterwards the file would count twice until this continues.
            self.release()
        self._quotas.note_settlement()

    def release(self) -> None:
        """Give back what is reserved."""
        size, self._size = self._size, 0
        if size:
            for rule in self._rules:
                self._quotas.hold(rule, self._user_id, -size)

    async def _read(self) -> None:
        self._seen = self._quotas.settlements
        for rule in self._rules:
            self._used[rule.id] = await self._quotas.used(rule, self._user_id)

    def _exceeded(self) -> LimitRule | None:
        for rule in self._rules:
            held = self._quotas.hold(rule, self._user_id, 0)
            if self._used.get(rule.id, 0) + held > (rule.storage_bytes or 0):
                return rule
        return None


def quota_error(rule: LimitRule, used: int) -> GatewayError:
    """Return the refusal of a file for which a quota has no room."""
    return GatewayError(
        ErrorKind.TOO_LARGE,
        f"cannot store the file: it exceeds the storage quota of {rule.storage_bytes} bytes of"
        f" {owner_of(rule)}, of which {used} are used",
        param="file",
        code=QUOTA_CODE,
    )
