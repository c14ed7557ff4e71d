"""Collection of garbage: bytes without a file, abandoned uploads, unused vectors, expired rows."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from gatewayd import ids
from gatewayd.ingest.interfaces import BlobStore
from gatewayd.nodes.duties import Duties, LocalDuties

MIN_AGE_SECONDS: Final = 3600
"""Least age of what is collected: an upload writes, and its row follows its bytes, earlier than that."""

DEFAULT_AGE_SECONDS: Final = 86_400

DUTY: Final = "garbage"
"""Name of the duty of nodes."""


@dataclass(frozen=True, slots=True)
class GarbageCount:
    """What was found, or removed, of one kind; `size` is in bytes, 0 where it is not known."""

    kind: str
    count: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class BlobHolder:
    """Blobs, the keys that rows name, and whether a row names a key by now."""

    blobs: BlobStore
    keys: Callable[[], AsyncIterator[str]]
    is_named: Callable[[str], Awaitable[bool]]


class UnusedSpaces(Protocol):
    """Vectors that nothing searches."""

    async def find_unused(self) -> Sequence[str]:
        """Return the names of embedding spaces that are neither searched nor filled."""
        ...

    async def remove_unused(self) -> int:
        """Remove these spaces with their vectors; return their number."""
        ...


class RehearsedTransactions(Protocol):
    """Transactions that are rolled back."""

    def rehearsal(self) -> AbstractAsyncContextManager[None]:
        """Run a transaction that is always rolled back."""
        ...


class AgedRows(Protocol):
    """What is over a limit of age, of one kind."""

    @property
    def count(self) -> Callable[[], Awaitable[int]]:
        """Returns how many `prune` would delete."""
        ...

    @property
    def prune(self) -> Callable[[], Awaitable[int]]:
        """Deletes them and returns their number."""
        ...


class GarbageCollector:
    """Finds and removes what nothing needs.

    `expired` removes the expired rows of each kind, `aged` what is over a limit of age.
    """

    def __init__(
        self,
        holders: Sequence[BlobHolder],
        spaces: UnusedSpaces,
        expired: Mapping[str, Callable[[], Awaitable[int]]],
        transactor: RehearsedTransactions,
        clock: ids.Clock | None = None,
        aged: Mapping[str, AgedRows] | None = None,
        duties: Duties | None = None,
    ) -> None:
        self._aged = aged or {}
        self._duties = duties or LocalDuties()
        self._holders = holders
        self._spaces = spaces
        self._expired = expired
        self._transactor = transactor
        self._clock = clock or ids.retention_clock()

    async def find(self, age: int = DEFAULT_AGE_SECONDS, *, rows: bool = True) -> Sequence[GarbageCount]:
        """Return what `collect` would remove, of at least this age in seconds; changes nothing."""
        before = self._clock() - max(age, MIN_AGE_SECONDS)
        orphans, uploads = await self._blobs(before)
        found = [_sum("orphaned files", orphans), _sum("abandoned uploads", uploads)]
        found.append(GarbageCount("unused vectors", len(await self._spaces.find_unused())))
        if rows:
            async with self._transactor.rehearsal():
                found += await self._prune()
            found += [GarbageCount(kind, await rows.count()) for kind, rows in self._aged.items()]
        return found

    async def collect(self, age: int = DEFAULT_AGE_SECONDS) -> Sequence[GarbageCount]:
        """Remove what is older than an age in seconds, and return what was removed.

        Each file is looked at again right before it is deleted: its age, and whether it has a row by now.
        Raises conflict while another node collects.
        """
        async with self._duties.alone(DUTY):
            return await self._collect(age)

    async def _collect(self, age: int) -> Sequence[GarbageCount]:
        before = self._clock() - max(age, MIN_AGE_SECONDS)
        removed: list[int] = []
        uploads: list[int] = []
        for holder in self._holders:
            for key, _ in await holder.blobs.find_orphans(holder.keys(), before):
                if not await holder.is_named(key):
                    removed += await holder.blobs.remove_orphan(key, before)
            uploads += await holder.blobs.remove_abandoned(before)
        counts = [_sum("orphaned files", removed), _sum("abandoned uploads", uploads)]
        counts.append(GarbageCount("unused vectors", await self._spaces.remove_unused()))
        counts += await self._prune()
        return [*counts, *[GarbageCount(kind, await rows.prune()) for kind, rows in self._aged.items()]]

    async def _blobs(self, before: int) -> tuple[list[int], list[int]]:
        orphans: list[int] = []
        uploads: list[int] = []
        for holder in self._holders:
            orphans += [size for _, size in await holder.blobs.find_orphans(holder.keys(), before)]
            uploads += await holder.blobs.find_abandoned(before)
        return orphans, uploads

    async def _prune(self) -> list[GarbageCount]:
        return [GarbageCount(kind, await prune()) for kind, prune in self._expired.items()]


def _sum(kind: str, sizes: Sequence[int]) -> GarbageCount:
    return GarbageCount(kind, len(sizes), sum(sizes))
